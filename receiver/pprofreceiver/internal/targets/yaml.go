// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	// The imports here, in kubernetes.go and in manager.go register the supported `…_sd_configs`.
	_ "github.com/prometheus/prometheus/discovery/dns"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// yamlConfig is Config as written in the configuration. Prometheus' types decode themselves from YAML only.
type yamlConfig struct {
	Config         Config            `yaml:",inline"`
	ScrapeInterval model.Duration    `yaml:"scrape_interval"`
	ScrapeTimeout  *model.Duration   `yaml:"scrape_timeout,omitempty"`
	Profiles       yamlProfiles      `yaml:"profiles,omitempty"`
	Discovery      discovery.Configs `yaml:"-"` // the `…_sd_configs`
}

// UnmarshalYAML reads Prometheus' `…_sd_configs` and HTTP client keys beside the receiver's own keys.
func (y *yamlConfig) UnmarshalYAML(unmarshal func(any) error) error {
	y.Config.HTTPClient = config.DefaultHTTPClientConfig
	y.Config.TargetLimit = defaultLimit
	y.ScrapeInterval = model.Duration(defaultInterval)
	return discovery.UnmarshalYAMLWithInlineConfigs(y, unmarshal)
}

// Unmarshal reads a section of the collector's configuration as Prometheus would read it from its own file, strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	// A secret that is not a string is an error, as everywhere in the collector's configuration.
	if err := conf.Unmarshal(&secretKeys{}, confmap.WithIgnoreUnused()); err != nil {
		return err
	}
	job := conf.Get("job_name")
	for _, key := range []string{"scrape_interval", "scrape_timeout"} {
		if n, ok := conf.Get(key).(int); ok && n != 0 {
			return inJob(job, fmt.Errorf("`%s`: %d has no unit: write %ds", key, n, n))
		}
	}
	section := withStrings(xconfmap.ToStringMapRaw(conf))
	read, err := decode(section)
	if err != nil {
		return inJob(job, readable(section, err))
	}
	*c = read.config()
	return inJob(job, c.validateParts())
}

func decode(section any) (read yamlConfig, err error) {
	text, err := yamlv3.Marshal(section)
	if err != nil {
		return read, err
	}
	return read, yaml.UnmarshalStrict(text, &read)
}

// config sets the defaults.
func (y *yamlConfig) config() Config {
	c := y.Config
	c.Discovery = y.Discovery
	c.ScrapeInterval = time.Duration(y.ScrapeInterval)
	c.ScrapeTimeout = c.ScrapeInterval
	setIf(&c.ScrapeTimeout, (*time.Duration)(y.ScrapeTimeout))
	c.Scheme = cmp.Or(c.Scheme, defaultScheme)
	c.Profiles = y.Profiles.all(c.ScrapeInterval)
	return c
}

// validateParts validates what YAML does not: Prometheus validates rules when it reads the whole configuration, and an
// inlined struct not at all. It also moves the deprecated keys of the HTTP client to their successors, so that it
// cannot wait for Validate.
func (c *Config) validateParts() error {
	var errs []error
	for i, rule := range c.RelabelConfigs {
		if rule == nil {
			errs = append(errs, fmt.Errorf("`relabel_configs[%d]` must not be empty", i))
		} else if err := rule.Validate(model.UTF8Validation); err != nil {
			errs = append(errs, fmt.Errorf("`relabel_configs[%d]`: %w", i, err))
		}
	}
	return errors.Join(append(errs, c.HTTPClient.Validate())...)
}

// yamlProfiles is Config.Profiles as written in the configuration.
type yamlProfiles struct {
	ProcessCPU yamlProfile            `yaml:"process_cpu,omitempty"`
	Memory     yamlProfile            `yaml:"memory,omitempty"`
	Goroutine  yamlProfile            `yaml:"goroutine,omitempty"`
	Block      yamlProfile            `yaml:"block,omitempty"`
	Mutex      yamlProfile            `yaml:"mutex,omitempty"`
	Fgprof     yamlProfile            `yaml:"fgprof,omitempty"`
	Trace      yamlProfile            `yaml:"trace,omitempty"`
	Custom     map[string]yamlProfile `yaml:"custom,omitempty"`
}

// yamlProfile overrides the fields of a ProfileConfig that are set.
type yamlProfile struct {
	Enabled     *bool             `yaml:"enabled,omitempty"`
	Path        *string           `yaml:"path,omitempty"`
	Seconds     *int              `yaml:"seconds,omitempty"`
	Delta       *bool             `yaml:"delta,omitempty"`
	Temporality *kind.Temporality `yaml:"temporality,omitempty"`
	Params      url.Values        `yaml:"params,omitempty"`
}

func (y *yamlProfiles) all(interval time.Duration) []ProfileConfig {
	profiles := defaultProfiles()
	for i, set := range y.standard() {
		set.override(&profiles[i])
	}
	for _, name := range slices.Sorted(maps.Keys(y.Custom)) {
		custom := ProfileConfig{Name: name, Enabled: true}
		set := y.Custom[name]
		set.override(&custom)
		profiles = append(profiles, custom)
	}
	for i := range profiles {
		if profiles[i].fitted {
			profiles[i].Seconds = fitSeconds(interval)
		}
	}
	return profiles
}

// standard has the order of defaultProfiles.
func (y *yamlProfiles) standard() []*yamlProfile {
	return []*yamlProfile{&y.ProcessCPU, &y.Memory, &y.Goroutine, &y.Block, &y.Mutex, &y.Fgprof, &y.Trace}
}

func (y *yamlProfile) override(p *ProfileConfig) {
	setIf(&p.Enabled, y.Enabled)
	setIf(&p.Path, y.Path)
	setIf(&p.Seconds, y.Seconds)
	switch {
	case y.Temporality == nil && y.Delta != nil && *y.Delta && !p.Delta:
		p.Temporality = kind.StatedCumulative // of a profile whose types we do not know
	case y.Temporality != nil && *y.Temporality != kind.StatedCumulative:
		p.Delta = false
	}
	setIf(&p.Delta, y.Delta)
	setIf(&p.Temporality, y.Temporality)
	p.fitted = p.fitted && y.Seconds == nil
	if y.Params != nil {
		p.Params = y.Params
	}
}

func setIf[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// secretKeys are the HTTP client's keys that must be strings.
type secretKeys struct {
	BasicAuth struct {
		Username *string `mapstructure:"username,omitempty"`
		Password *string `mapstructure:"password,omitempty"`
	} `mapstructure:"basic_auth,omitempty"`
	Authorization struct {
		Credentials *string `mapstructure:"credentials,omitempty"`
	} `mapstructure:"authorization,omitempty"`
	OAuth2 struct {
		ClientID     *string `mapstructure:"client_id,omitempty"`
		ClientSecret *string `mapstructure:"client_secret,omitempty"`
	} `mapstructure:"oauth2,omitempty"`
	BearerToken *string `mapstructure:"bearer_token,omitempty"`
}

// withStrings returns a section in which values from environment variables keep their characters where YAML reads
// something else: a version 1.10 is not the number 1.1, and a password 0123 not 83. yaml.v2 takes plain text as it is
// where a string is expected.
func withStrings(value any) any {
	switch v := value.(type) {
	case map[string]any:
		section := make(map[string]any, len(v))
		for key, inner := range v {
			section[key] = withStrings(inner)
		}
		return section
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = withStrings(inner)
		}
		return list
	case xconfmap.ExpandedValue:
		switch v.Value.(type) {
		case nil, string, map[string]any, []any:
			return withStrings(v.Value)
		}
		s := strings.TrimSpace(v.Original)
		if strings.ContainsAny(s, "#\n") { // a comment
			return v.Value
		}
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: s}
	}
	return value
}

// String returns the section without its secrets.
func (c Config) String() string {
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Sprintf("job %q", c.JobName)
	}
	return string(text)
}

// GoString returns String: %#v would show the secrets.
func (c Config) GoString() string { return c.String() }

// MarshalYAML returns the section as it could be written in a configuration, with <secret> for secrets. confmap encodes
// structs with yaml tags by it.
func (c Config) MarshalYAML() (any, error) {
	timeout := model.Duration(c.ScrapeTimeout)
	y := yamlConfig{Config: c, ScrapeInterval: model.Duration(c.ScrapeInterval), ScrapeTimeout: &timeout,
		Discovery: c.Discovery}
	standard := y.Profiles.standard()
	for i, p := range c.Profiles {
		written := yamlProfile{Enabled: &p.Enabled, Path: &p.Path, Delta: &p.Delta, Params: p.Params}
		if p.Temporality != "" {
			written.Temporality = &p.Temporality
		}
		if p.Seconds != 0 && !p.fitted {
			written.Seconds = &p.Seconds
		}
		if i < len(standard) {
			*standard[i] = written
			continue
		}
		if y.Profiles.Custom == nil {
			y.Profiles.Custom = map[string]yamlProfile{}
		}
		y.Profiles.Custom[p.Name] = written
	}
	return discovery.MarshalYAMLWithInlineConfigs(&y)
}

// inJob adds the name of the job to an error, or to each of several joined errors.
func inJob(name any, err error) error {
	if err == nil {
		return nil
	}
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var errs []error
		for _, inner := range joined.Unwrap() {
			errs = append(errs, inJob(name, inner))
		}
		return errors.Join(errs...)
	}
	if name, ok := name.(string); ok && name != "" {
		return fmt.Errorf("job %q: %w", name, err)
	}
	return err
}
