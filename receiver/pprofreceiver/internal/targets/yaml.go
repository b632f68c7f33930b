// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/relabel"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v2"

	// What is imported here and in kubernetes.go is what `…_sd_configs` are known.
	_ "github.com/prometheus/prometheus/discovery/dns"
	_ "github.com/prometheus/prometheus/discovery/file"
	_ "github.com/prometheus/prometheus/discovery/http"
)

// yamlConfig is Config as it is written. Prometheus' types decode themselves from YAML only.
type yamlConfig struct {
	JobName        string                  `yaml:"job_name"`
	ScrapeInterval *model.Duration         `yaml:"scrape_interval,omitempty"`
	ScrapeTimeout  *model.Duration         `yaml:"scrape_timeout,omitempty"`
	Scheme         string                  `yaml:"scheme,omitempty"`
	Params         url.Values              `yaml:"params,omitempty"`
	PathPrefix     string                  `yaml:"path_prefix,omitempty"`
	Profiles       yamlProfiles            `yaml:"profiles,omitempty"`
	RelabelConfigs []*relabel.Config       `yaml:"relabel_configs,omitempty"`
	Discovery      discovery.Configs       `yaml:"-"`
	HTTPClient     config.HTTPClientConfig `yaml:",inline"`
}

// UnmarshalYAML reads Prometheus' `…_sd_configs` and HTTP client keys beside the own ones.
func (y *yamlConfig) UnmarshalYAML(unmarshal func(any) error) error {
	y.HTTPClient = config.DefaultHTTPClientConfig
	return discovery.UnmarshalYAMLWithInlineConfigs(y, unmarshal)
}

// MarshalYAML writes secrets as <secret>.
func (y yamlConfig) MarshalYAML() (any, error) {
	return discovery.MarshalYAMLWithInlineConfigs(&y)
}

// Unmarshal reads a section of the collector's configuration as Prometheus would read it from its own file, strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	raw := conf.ToStringMap()
	if err := restoreSecrets(conf, raw); err != nil {
		return err
	}
	text, err := yaml.Marshal(raw)
	if err != nil {
		return err
	}
	var read yamlConfig
	if err := yaml.UnmarshalStrict(text, &read); err != nil {
		return inJob(raw["job_name"], readable(err))
	}
	made, err := read.config()
	*c = made
	if err != nil {
		return inJob(raw["job_name"], err)
	}
	return nil
}

// config sets the defaults. It refuses only what Config cannot hold; Validate does the rest.
func (y *yamlConfig) config() (Config, error) {
	c := Config{
		JobName:        y.JobName,
		ScrapeInterval: defaultInterval,
		Scheme:         y.Scheme,
		Params:         y.Params,
		PathPrefix:     y.PathPrefix,
		HTTPClient:     y.HTTPClient,
		Discovery:      y.Discovery,
		RelabelConfigs: y.RelabelConfigs,
	}
	setIf(&c.ScrapeInterval, (*time.Duration)(y.ScrapeInterval))
	c.ScrapeTimeout = c.ScrapeInterval
	setIf(&c.ScrapeTimeout, (*time.Duration)(y.ScrapeTimeout))
	if c.Scheme == "" {
		c.Scheme = defaultScheme
	}
	c.Profiles.All = y.Profiles.all(c.ScrapeInterval)
	var errs []error
	for i, rule := range c.RelabelConfigs {
		if rule == nil {
			errs = append(errs, fmt.Errorf("`relabel_configs[%d]` must not be empty", i))
		} else if err := rule.Validate(model.UTF8Validation); err != nil {
			errs = append(errs, fmt.Errorf("`relabel_configs[%d]`: %w", i, err))
		}
	}
	// An inlined struct does not validate itself. This also moves the deprecated keys to where they belong today.
	if err := c.HTTPClient.Validate(); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

// yamlProfiles is ProfilesConfig as it is written.
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

// yamlProfile overrides what is set.
type yamlProfile struct {
	Enabled *bool      `yaml:"enabled,omitempty"`
	Path    *string    `yaml:"path,omitempty"`
	Seconds *int       `yaml:"seconds,omitempty"`
	Delta   *bool      `yaml:"delta,omitempty"`
	Params  url.Values `yaml:"params,omitempty"`
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
	setIf(&p.Delta, y.Delta)
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

// secretKeys are the HTTP client's keys that hold text that YAML may take for a number.
type secretKeys struct {
	BasicAuth struct {
		Username *string `mapstructure:"username"`
		Password *string `mapstructure:"password"`
	} `mapstructure:"basic_auth"`
	Authorization struct {
		Credentials *string `mapstructure:"credentials"`
	} `mapstructure:"authorization"`
	OAuth2 struct {
		ClientID     *string `mapstructure:"client_id"`
		ClientSecret *string `mapstructure:"client_secret"`
	} `mapstructure:"oauth2"`
	BearerToken *string `mapstructure:"bearer_token"`
}

// restoreSecrets puts the text of environment variables in the place of what YAML made of it: a password 0123 is not
// the number 83. What is no text is refused, as it is everywhere in the collector's configuration.
func restoreSecrets(conf *confmap.Conf, raw map[string]any) error {
	var read secretKeys
	if err := conf.Unmarshal(&read, confmap.WithIgnoreUnused()); err != nil {
		return err
	}
	for _, s := range []struct {
		section, key string
		value        *string
	}{
		{"basic_auth", "username", read.BasicAuth.Username},
		{"basic_auth", "password", read.BasicAuth.Password},
		{"authorization", "credentials", read.Authorization.Credentials},
		{"oauth2", "client_id", read.OAuth2.ClientID},
		{"oauth2", "client_secret", read.OAuth2.ClientSecret},
		{"", "bearer_token", read.BearerToken},
	} {
		in := raw
		if s.section != "" {
			in, _ = raw[s.section].(map[string]any)
		}
		if s.value != nil && in != nil {
			in[s.key] = *s.value
		}
	}
	return nil
}

// Marshal writes the section without its secrets.
func (c Config) Marshal(conf *confmap.Conf) error {
	text, err := yaml.Marshal(c.yaml())
	if err != nil {
		return err
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		return err
	}
	return conf.Merge(confmap.NewFromStringMap(stringKeys(out).(map[string]any)))
}

// String is the section without its secrets.
func (c Config) String() string {
	text, err := yaml.Marshal(c.yaml())
	if err != nil {
		return fmt.Sprintf("job %q", c.JobName)
	}
	return string(text)
}

// GoString is String: a %#v would show the secrets.
func (c Config) GoString() string { return c.String() }

// stringKeys makes the maps that yaml.v2 reads such as confmap knows.
func stringKeys(value any) any {
	switch v := value.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[fmt.Sprint(key)] = stringKeys(inner)
		}
		return out
	case map[string]any:
		for key, inner := range v {
			v[key] = stringKeys(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = stringKeys(inner)
		}
	}
	return value
}

// yaml is the section as it could have been written.
func (c Config) yaml() yamlConfig {
	interval, timeout := model.Duration(c.ScrapeInterval), model.Duration(c.ScrapeTimeout)
	y := yamlConfig{
		JobName:        c.JobName,
		ScrapeInterval: &interval,
		ScrapeTimeout:  &timeout,
		Scheme:         c.Scheme,
		Params:         c.Params,
		PathPrefix:     c.PathPrefix,
		RelabelConfigs: c.RelabelConfigs,
		Discovery:      c.Discovery,
		HTTPClient:     c.HTTPClient,
	}
	standard := y.Profiles.standard()
	for i, p := range c.Profiles.All {
		written := yamlProfile{Enabled: &p.Enabled, Path: &p.Path, Delta: &p.Delta, Params: p.Params}
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
	return y
}

// inJob says in each of several errors which job it is about.
func inJob(name any, err error) error {
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

// kubernetesKey is the one discovery that the slim build lacks, since it brings the whole Kubernetes client with it.
const kubernetesKey = "kubernetes_sd_configs"

var (
	yamlLine    = regexp.MustCompile(`line \d+: `)
	yamlUnknown = regexp.MustCompile(`field (\S+) not found in type \S+`)
	yamlValue   = regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into \\S+")
)

// readable rewords the errors of yaml.v2. Its lines are not those of the user's file, its types are ours, and the
// values that it quotes may be secrets in the wrong place.
func readable(err error) error {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return errors.New(yamlLine.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), ""))
	}
	var errs []error
	for _, text := range several.Errors {
		text = yamlLine.ReplaceAllString(text, "")
		text = yamlValue.ReplaceAllString(text, "a value of type $1 stands where another type is expected")
		if unknown := yamlUnknown.FindStringSubmatch(text); unknown != nil {
			text = fmt.Sprintf("`%s` is not a key here", unknown[1])
			if unknown[1] == kubernetesKey { // known where it is built in
				text = "`" + kubernetesKey + "` is not in the slim build: take the full build of otelcol-profiles"
			} else if strings.HasSuffix(unknown[1], "_sd_configs") {
				text += fmt.Sprintf("; discovery is by %s", strings.Join(discoveryKeys(), ", "))
			}
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

func discoveryKeys() []string {
	var keys []string
	for _, name := range discovery.RegisteredConfigNames() {
		if name != "static" {
			name += "_sd"
		}
		keys = append(keys, "`"+name+"_configs`")
	}
	return keys
}

// withoutUser keeps a password and a query out of an error message.
func withoutUser(address string) string {
	address, _, _ = strings.Cut(address, "?")
	if u, err := url.Parse(address); err == nil && u.User != nil {
		u.User = url.User("…")
		return u.String()
	}
	if _, host, found := strings.Cut(address, "@"); found {
		return "…@" + host
	}
	return address
}
