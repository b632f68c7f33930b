// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/hot"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config configures the connector.
type Config struct {
	// Interval is the time between two messages of metrics.
	Interval time.Duration `mapstructure:"interval"`
	// Temporality of sums: cumulative or delta.
	Temporality string `mapstructure:"temporality"`
	// ResourceAttributes distinguish the series of all metrics that do not name others.
	ResourceAttributes []string `mapstructure:"resource_attributes"`
	// Metrics are metrics by their names. One with the name of a built-in metric replaces it.
	Metrics map[string]Metric `mapstructure:"metrics"`
	// TopFunctions are the types whose functions with the largest shares are reported.
	TopFunctions []TopFunctions `mapstructure:"top_functions"`
	// MaxSeries and MaxBytes bound what is kept. SeriesExpiry is how long a series without new values is kept.
	MaxSeries    int           `mapstructure:"max_series"`
	MaxBytes     int           `mapstructure:"max_bytes"`
	SeriesExpiry time.Duration `mapstructure:"series_expiry"`
	// Storage is a storage extension that keeps the history of functions across restarts.
	Storage *component.ID `mapstructure:"storage"`
	// WriterID is the value of profile.writer.id. Empty means the collector's own service.instance.id.
	WriterID string `mapstructure:"writer_id"`
}

// Metric configures a metric.
type Metric struct {
	// Enabled is true if it is not set.
	Enabled     *bool  `mapstructure:"enabled"`
	Description string `mapstructure:"description"`
	// Unit is s, By, 1 or an annotation such as {sample}.
	Unit string `mapstructure:"unit"`
	// Profiles are sample types, such as process_cpu/cpu.
	Profiles []string `mapstructure:"profiles"`
	// Temporality is delta or gauge; if it is empty, it follows from the types.
	Temporality string `mapstructure:"temporality"`
	// Functions are regular expressions. One must match a function anywhere in the stack, or the leaf (Match).
	Functions []string `mapstructure:"functions"`
	Match     string   `mapstructure:"match"`
	// Below are regular expressions. One must match a caller of that function.
	Below []string `mapstructure:"below"`
	// Services are regular expressions. One must match service.name.
	Services []string `mapstructure:"services"`
	// HasResourceAttributes and HasSampleAttributes are regular expressions for the values of attributes.
	HasResourceAttributes map[string]string `mapstructure:"has_resource_attributes"`
	HasSampleAttributes   map[string]string `mapstructure:"has_sample_attributes"`
	GroupBy               GroupBy           `mapstructure:"group_by"`
}

// GroupBy lists what distinguishes the series of a metric.
type GroupBy struct {
	// ResourceAttributes replace those of the connector, if they are set.
	ResourceAttributes []string `mapstructure:"resource_attributes"`
	SampleAttributes   []string `mapstructure:"sample_attributes"`
	// Frame is none, package or function.
	Frame string `mapstructure:"frame"`
}

// TopFunctions configures the functions with the largest shares of each service. A key that is not set has the default
// of defaultTopFunctions.
type TopFunctions struct {
	Profile string `mapstructure:"profile"`
	// Count is how many functions are reported.
	Count int `mapstructure:"count"`
	// Of is self or total.
	Of string `mapstructure:"of"`
	// Window is the time in which shares are measured.
	Window  time.Duration `mapstructure:"window"`
	Compare Compare       `mapstructure:"compare"`
}

// Compare configures what shares are compared with.
type Compare struct {
	// To is how much earlier the other window is.
	To time.Duration `mapstructure:"to"`
	// By is an attribute of resources: the newest value is compared with the one before.
	By string `mapstructure:"by"`
}

// defaultTopFunctions has the defaults of each of TopFunctions.
var defaultTopFunctions = TopFunctions{Count: 10, Of: hot.Self, Window: 10 * time.Minute}

// Unmarshal sets the keys that are not set to their defaults.
func (f *TopFunctions) Unmarshal(conf *confmap.Conf) error {
	*f = defaultTopFunctions
	return conf.Unmarshal(f)
}

const (
	temporalityCumulative = "cumulative"
	temporalityDelta      = "delta"
	temporalityGauge      = "gauge"

	matchAnywhere = "anywhere"
	matchLeaf     = "leaf"

	serviceName = "service.name"

	// maxGroupKeys bounds the attributes of a series.
	maxGroupKeys = 16
)

// builtIn are the metrics that are made unless they are disabled. Those of a runtime have other names
// (go.memory.allocated): they are exact, and these are estimates by samples.
var builtIn = map[string]Metric{
	"profile.cpu.time": {
		Description: "Processor time, by samples of what was running.", Unit: "s",
		Profiles: []string{"process_cpu/cpu", "process_cpu/cpu_time", "wall/cpu", "wall/cpu_time"},
	},
	"profile.memory.allocated": {
		Description: "Memory allocated, by samples.", Unit: "By",
		Profiles: []string{
			"memory/alloc_space", "memory/allocated_space", "memory/alloc_in_new_tlab_bytes", "memory/alloc_outside_tlab_bytes",
			"memory/alloc_sample_bytes", "memory/alloc_size", "process_cpu/alloc_size", "process_cpu/alloc_space",
			"wall/alloc_size",
		},
	},
	"profile.memory.allocations": {
		Description: "Objects allocated, by samples.", Unit: "{allocation}",
		Profiles: []string{
			"memory/alloc_objects", "memory/alloc_in_new_tlab_objects", "memory/alloc_outside_tlab_objects",
			"memory/alloc_sample_objects",
			"memory/alloc_samples", "process_cpu/alloc_samples", "wall/alloc_samples",
		},
	},
	"profile.memory.used": {
		Description: "Memory that is allocated and not freed yet, by samples.", Unit: "By",
		Profiles: []string{
			"memory/inuse_space", "memory/space", "memory/heap_live_size", "memory/heap_space",
			"process_cpu/heap_live_size", "process_cpu/heap_space", "process_cpu/inuse_space", "wall/heap_live_size",
		},
	},
	"profile.goroutine.count": {
		Description: "Goroutines.", Unit: "{goroutine}",
		Profiles: []string{"goroutine/goroutine", "goroutine/goroutines"},
	},
	"profile.lock.wait.time": {
		Description: "Time for which threads or goroutines waited for locks, by samples.", Unit: "s",
		Profiles: []string{
			"mutex/delay", "mutex/lock_time", "mutex/lock_acquire_wait", "process_cpu/lock_time",
			"process_cpu/lock_acquire_wait",
		},
	},
}

var (
	metricName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]{0,254}$`)
	metricUnit = regexp.MustCompile(`^(s|By|1|\{[!-z|~]{1,60}\})$`)
)

// Validate returns all faults.
func (c *Config) Validate() error {
	var faults config.Faults
	check := faults.Require
	check(c.Interval >= time.Second, "`interval` must be at least 1s, found %s", c.Interval)
	check(c.Temporality == temporalityCumulative || c.Temporality == temporalityDelta,
		"`temporality` must be cumulative or delta, found %q", c.Temporality)
	check(c.MaxSeries > 0, "`max_series` must be positive, found %d", c.MaxSeries)
	check(c.MaxBytes >= 1<<16, "`max_bytes` must be at least 65536, found %d", c.MaxBytes)
	check(c.SeriesExpiry >= c.Interval, "`series_expiry` must be at least `interval`, found %s", c.SeriesExpiry)
	check(len(c.ResourceAttributes) <= maxGroupKeys, "`resource_attributes` must have at most %d keys, found %d",
		maxGroupKeys, len(c.ResourceAttributes))
	checkKeys(&faults, "resource_attributes", c.ResourceAttributes)
	for name, metric := range c.Metrics {
		if _, isBuiltIn := builtIn[name]; isBuiltIn && metric.isSwitch() {
			continue
		}
		check(metricName.MatchString(name),
			"`metrics`: %q must begin with a letter, and have only letters, digits and _ . / -", name)
		_, err := metric.definition(name, c.ResourceAttributes)
		faults.Add(err)
	}
	for i := range c.TopFunctions {
		f := &c.TopFunctions[i]
		faults.Add(f.check(i))
		same := slices.IndexFunc(c.TopFunctions, func(g TopFunctions) bool {
			return canonical(g.Profile) == canonical(f.Profile) && g.Of == f.Of
		})
		check(same == i,
			"`top_functions[%d]` has the `profile` and `of` of `top_functions[%d]`, whose series would be the same", i, same)
	}
	if len(faults) == 0 {
		_, err := c.set()
		return err
	}
	return faults.Err()
}

// canonical returns a sample type as it is compared: cpu/cpu is process_cpu/cpu.
func canonical(profile string) string {
	t, err := selection.ParseType(profile)
	if err != nil {
		return profile
	}
	return t.String()
}

// checkKeys returns the faults of a list of attributes that distinguish series.
func checkKeys(faults *config.Faults, list string, keys []string) {
	faults.RequireKeys(list, keys)
	for _, key := range keys {
		faults.Require(!slices.Contains(series.OwnKeys, key), "`%s` must not have %q, which the connector sets", list, key)
	}
}

// check returns the faults of the list's entry i.
func (f *TopFunctions) check(i int) error {
	var faults config.Faults
	check := func(ok bool, format string, args ...any) {
		faults.Require(ok, "`top_functions[%d]."+format, append([]any{i}, args...)...)
	}
	_, err := selection.ParseType(f.Profile)
	check(err == nil, "profile`: %w", err)
	check(f.Count >= 1 && f.Count <= hot.MaxCount, "count` must be 1 to %d, found %d", hot.MaxCount, f.Count)
	check(f.Of == hot.Self || f.Of == hot.Total, "of` must be self or total, found %q", f.Of)
	check(f.Window >= time.Second, "window` must be at least 1s, found %s", f.Window)
	check(f.Window < time.Second || f.Compare.To >= 0 && f.Compare.To%f.Window == 0 && f.Compare.To/f.Window <= maxWindows,
		"compare.to` must be a multiple of `window`, at most %d times, found %s", maxWindows, f.Compare.To)
	return faults.Err()
}

// maxWindows bounds the history of a service: two weeks of ten minutes.
const maxWindows = 2016

// topFunctions returns what is counted and how.
func (c *Config) topFunctions() (sums []reduce.Hot, options hot.Options) {
	largest := 0
	for _, f := range c.TopFunctions {
		t, _ := selection.ParseType(f.Profile) // checked by Validate
		sums = append(sums, reduce.Hot{Type: t, All: f.Of == hot.Total, VersionKey: f.Compare.By})
		options.Entries = append(options.Entries, hot.Entry{
			Type: t.String(), Of: f.Of, Count: f.Count, Window: f.Window, To: f.Compare.To, Version: f.Compare.By,
		})
		largest = max(largest, f.Count)
	}
	options.MaxTracks = max(1, c.MaxSeries/(largest+1))
	options.MaxBytes = c.MaxBytes / 2
	options.ResourceKeys, options.IsSaved = c.ResourceAttributes, c.Storage != nil
	return sums, options
}

// seriesBytes returns the memory of series other than those of functions, which have a half if there are any.
func (c *Config) seriesBytes() int {
	if len(c.TopFunctions) > 0 {
		return c.MaxBytes - c.MaxBytes/2
	}
	return c.MaxBytes
}

// set returns all metrics.
func (c *Config) set() (*selection.Set, error) {
	all := maps.Clone(builtIn)
	for name, metric := range c.Metrics {
		switch {
		case metric.Enabled != nil && !*metric.Enabled:
			delete(all, name)
		case !metric.isSwitch():
			all[name] = metric
		}
	}
	set := &selection.Set{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		metric := all[name]
		definition, err := metric.definition(name, c.ResourceAttributes)
		if err == nil {
			err = set.Add(definition)
		}
		if err != nil {
			return nil, fmt.Errorf("`metrics`: %w", err)
		}
	}
	return set, nil
}

// isSwitch reports whether the metric has nothing but `enabled`.
func (m *Metric) isSwitch() bool { return reflect.DeepEqual(*m, Metric{Enabled: m.Enabled}) }

// definition checks a metric.
func (m *Metric) definition(name string, resourceKeys []string) (d selection.Definition, err error) {
	var faults config.Faults
	check := func(ok bool, format string, args ...any) {
		faults.Require(ok, "`metrics.%s."+format, append([]any{name}, args...)...)
	}
	compile := func(key, s string) *regexp.Regexp {
		pattern, err := regexp.Compile(s)
		check(err == nil, "%s` must have regular expressions: %w", key, err)
		return pattern
	}
	patterns := func(key string, list []string) (all []*regexp.Regexp) {
		for _, s := range list {
			all = append(all, compile(key, s))
		}
		return all
	}
	conditions := func(key string, list map[string]string) map[string]*regexp.Regexp {
		all := map[string]*regexp.Regexp{}
		for attribute, s := range list {
			all[attribute] = compile(key+"."+attribute, s)
		}
		return all
	}
	d = selection.Definition{
		Name: name, Description: m.Description, Unit: m.Unit, Leaf: m.Match == matchLeaf,
		Functions: patterns("functions", m.Functions), Below: patterns("below", m.Below),
		Resource:     conditions("has_resource_attributes", m.HasResourceAttributes),
		Sample:       conditions("has_sample_attributes", m.HasSampleAttributes),
		ResourceKeys: resourceKeys, SampleKeys: m.GroupBy.SampleAttributes,
	}
	if patterns("services", m.Services); len(m.Services) > 0 {
		_, isTwice := d.Resource[serviceName]
		check(!isTwice, "services` and a condition on service.name in `has_resource_attributes` exclude each other")
		all, err := regexp.Compile("(?:" + strings.Join(m.Services, ")|(?:") + ")")
		check(err == nil || len(faults) > 0, "services`: %w", err)
		d.Resource[serviceName] = all
	}
	if m.GroupBy.ResourceAttributes != nil {
		d.ResourceKeys = m.GroupBy.ResourceAttributes
	}
	checkKeys(&faults, "metrics."+name+".group_by.resource_attributes", m.GroupBy.ResourceAttributes)
	checkKeys(&faults, "metrics."+name+".group_by.sample_attributes", m.GroupBy.SampleAttributes)
	n := len(d.ResourceKeys) + len(d.SampleKeys)
	check(n <= maxGroupKeys, "group_by` must have at most %d attributes, found %d", maxGroupKeys, n)
	check(slices.Contains([]string{"", matchLeaf, matchAnywhere}, m.Match), "match` must be anywhere or leaf, found %q",
		m.Match)
	frame := slices.Index(selection.Frames[:], m.GroupBy.Frame)
	check(frame >= 0 || m.GroupBy.Frame == "", "group_by.frame` must be none, package or function, found %q",
		m.GroupBy.Frame)
	d.Frame = selection.Frame(max(frame, 0))
	check(metricUnit.MatchString(m.Unit), "unit` must be s, By, 1 or an annotation such as {sample}, found %q", m.Unit)
	for _, s := range m.Profiles {
		t, err := selection.ParseType(s)
		check(err == nil, "profiles`: %w", err)
		if err == nil && !slices.Contains(d.Types, t) { // cpu/cpu is process_cpu/cpu
			d.Types = append(d.Types, t)
		}
	}
	check(len(m.Profiles) > 0, "profiles` must name at least one sample type, such as process_cpu/cpu")
	if mixed := slices.IndexFunc(d.Types,
		func(t selection.Type) bool { return t.IsGauge() != d.Types[0].IsGauge() }); mixed > 0 {
		check(false, "profiles` must not mix what happens (%s) and what is a state (%s)", d.Types[0], d.Types[mixed])
	}
	check(slices.Contains([]string{"", temporalityDelta, temporalityGauge}, m.Temporality),
		"temporality` must be delta or gauge, found %q", m.Temporality)
	d.IsGauge = m.Temporality == temporalityGauge || m.Temporality == "" && len(d.Types) > 0 && d.Types[0].IsGauge()
	return d, faults.Err()
}
