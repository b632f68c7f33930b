// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	configcheck "github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config is one entry of `scrape.configs`. It is immutable after Unmarshal.
type Config struct {
	// JobName is unique among the receiver's jobs.
	JobName string `yaml:"job_name"`
	// ScrapeInterval is the time from the start of one scrape of an endpoint to the start of the next.
	ScrapeInterval time.Duration `yaml:"-"`
	// ScrapeTimeout bounds one scrape; see Endpoint.Timeout for what it becomes.
	ScrapeTimeout time.Duration `yaml:"-"`
	// Scheme is http or https.
	Scheme string `yaml:"scheme,omitempty"`
	// Params are added to the query of every scrape.
	Params url.Values `yaml:"params,omitempty"`
	// PathPrefix is prepended to the path of every kind.
	PathPrefix string `yaml:"path_prefix,omitempty"`
	// TargetLimit is how many targets are used, before relabelling.
	TargetLimit int `yaml:"target_limit,omitempty"`
	// HTTPClient configures the requests: authorization, TLS, proxy, redirects. Its secrets are never printed.
	HTTPClient config.HTTPClientConfig `yaml:",inline"`
	// Discovery finds the targets.
	Discovery discovery.Configs `yaml:"-"`
	// RelabelConfigs are the rules.
	RelabelConfigs []*relabel.Config `yaml:"relabel_configs,omitempty"`
	// Profiles has the standard kinds in the order of the documentation, then the custom ones by name. It includes those
	// that are not enabled.
	Profiles []ProfileConfig `yaml:"-"`
}

// ProfileConfig is one kind of profile that a target serves.
type ProfileConfig struct {
	// Name is the kind's key in the configuration, for example process_cpu.
	Name string
	// Enabled means that it is scraped.
	Enabled bool
	// Path is the path at which targets serve it.
	Path string
	// Seconds is for how long a target records before it answers; 0 means that it answers at once.
	Seconds int
	// Delta turns cumulative values into the change since the last scrape.
	Delta bool
	// Temporality is what values are: delta, gauge or cumulative. If it is empty, they tell it themselves.
	Temporality kind.Temporality
	// Params are added to the query, and win over those of the job.
	Params url.Values

	// fitted means that Seconds is not configured and follows from the interval.
	fitted bool
}

// Defaults of a job.
const (
	defaultInterval = 15 * time.Second
	defaultScheme   = "http"
	defaultLimit    = 20_000
)

// defaultProfiles returns the standard kinds, without Seconds if they are fitted to the interval.
func defaultProfiles() []ProfileConfig {
	return []ProfileConfig{
		{Name: "process_cpu", Enabled: true, Path: "/debug/pprof/profile", fitted: true},
		{Name: "memory", Enabled: true, Path: "/debug/pprof/allocs", Delta: true},
		{Name: "goroutine", Enabled: true, Path: "/debug/pprof/goroutine"},
		{Name: "block", Enabled: true, Path: "/debug/pprof/block", Delta: true},
		{Name: "mutex", Enabled: true, Path: "/debug/pprof/mutex", Delta: true},
		{Name: "fgprof", Enabled: false, Path: "/debug/fgprof", fitted: true},
		{Name: "trace", Enabled: false, Path: "/debug/pprof/trace", Seconds: 1},
	}
}

// fitSeconds returns the default of `seconds`: the target records for the whole interval less one second.
func fitSeconds(interval time.Duration) int {
	return max(1, int((interval-time.Second)/time.Second))
}

// customName matches the valid names of custom kinds, which become metric attributes and parts of error messages.
var customName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$`)

// Validate returns all faults of the section.
func (c *Config) Validate() error {
	var faults configcheck.Faults
	faults.Require(c.JobName != "", "`job_name` must be set")
	faults.Require(c.ScrapeInterval > 0, "`scrape_interval` must be positive, found %v", c.ScrapeInterval)
	faults.Require(c.ScrapeTimeout > 0, "`scrape_timeout` must be positive, found %v", c.ScrapeTimeout)
	faults.Require(c.TargetLimit > 0, "`target_limit` must be positive, found %d", c.TargetLimit)
	faults.Require(c.Scheme == "http" || c.Scheme == "https", "`scheme` must be http or https, found %q", c.Scheme)
	faults.Require(!c.Params.Has("seconds"), "`params` must not have `seconds`: set `profiles.<kind>.seconds`")
	faults.Require(!strings.ContainsAny(c.PathPrefix, "?#"), "`path_prefix` must be a path without a query, found %q",
		c.PathPrefix)
	faults.Add(c.validateDiscovery())
	faults.Add(c.validateProfiles())
	return inJob(c.JobName, faults.Err())
}

func (c *Config) validateDiscovery() error {
	if len(c.Discovery) == 0 {
		return fmt.Errorf("there must be a service discovery: one of %s", strings.Join(discoveryKeys(), ", "))
	}
	var faults configcheck.Faults
	for _, d := range c.Discovery {
		static, ok := d.(discovery.StaticConfig)
		if !ok {
			continue
		}
		for i, group := range static {
			faults.Require(len(group.Targets) > 0, "`static_configs[%d].targets` must not be empty", i)
			// Rules may turn anything into an address, so it can be checked here only if there are none.
			if len(c.RelabelConfigs) > 0 {
				continue
			}
			for _, target := range group.Targets {
				if _, err := parseAddress(string(target["__address__"])); err != nil {
					faults.Add(fmt.Errorf("`static_configs[%d].targets` must be addresses: %w", i, err))
				}
			}
		}
	}
	return faults.Err()
}

func (c *Config) validateProfiles() error {
	var faults configcheck.Faults
	defaults := defaultProfiles()
	for i, p := range c.Profiles {
		path := "profiles." + p.Name
		standard := slices.IndexFunc(defaults, func(d ProfileConfig) bool { return d.Name == p.Name })
		if standard != i {
			path = "profiles.custom." + p.Name
		}
		check := func(ok bool, key, format string, args ...any) {
			faults.Require(ok, "`%s%s` "+format, append([]any{path, key}, args...)...)
		}
		check(standard < 0 || standard == i, "", "must not be named like a standard kind: set `profiles.%s`",
			p.Name)
		check(customName.MatchString(p.Name), "",
			"must have a name of 1 to 64 letters, digits, `_`, `.` and `-` that begins with a letter or `_`, found %q (%d bytes)",
			p.Name, len(p.Name))
		check(strings.HasPrefix(p.Path, "/") && !strings.ContainsAny(p.Path, "?#"),
			".path", "must be a path that begins with / and has no query (see `params`), found %q", p.Path)
		check(!p.Params.Has("seconds"), ".params", "must not have `seconds`: set `seconds`")
		if !p.Enabled {
			continue
		}
		err := checkSeconds(p, c.ScrapeInterval)
		check(err == nil, ".seconds", "%w", err)
		check(p.Seconds != 0 || standard < 0 || !defaults[standard].fitted,
			".seconds", "must be positive: without it a target chooses for how long it records")
		check(!p.Delta || p.Seconds <= 0, "",
			"must not have both `delta` and `seconds`: with `seconds` the target computes the difference itself")
		if p.Temporality == "" {
			continue
		}
		_, err = kind.ParseTemporality(string(p.Temporality))
		check(err == nil, ".temporality", "%w", err)
		check(!p.Delta || p.Temporality == kind.StatedCumulative, "",
			"must not have `delta` for values that are no totals (`temporality`)")
		check(p.Seconds <= 0 || p.Temporality != kind.StatedCumulative, ".temporality",
			"must not be cumulative with `seconds`: the target computes the difference itself")
	}
	faults.Require(slices.ContainsFunc(c.Profiles, func(p ProfileConfig) bool { return p.Enabled }),
		"`profiles` must have a kind that is enabled")
	return faults.Err()
}

// checkSeconds requires that recordings are shorter than the interval, since scrapes of one endpoint never overlap.
func checkSeconds(p ProfileConfig, interval time.Duration) error {
	if p.Seconds < 0 || (p.Seconds > 0 && time.Duration(p.Seconds) >= (interval+time.Second-1)/time.Second) {
		return fmt.Errorf("must be below `scrape_interval` (%v) and not negative, found %d", interval, p.Seconds)
	}
	return nil
}

// ValidateJobs returns the faults of jobs that only show beside other jobs.
func ValidateJobs(jobs []*Config) error {
	var faults configcheck.Faults
	seen := map[string]bool{}
	for _, job := range jobs {
		if job == nil {
			faults.Add(errors.New("`configs` must not have an empty entry"))
			continue
		}
		faults.Require(!seen[job.JobName], "`job_name` must be unique, found %q twice", job.JobName)
		seen[job.JobName] = true
	}
	return faults.Err()
}
