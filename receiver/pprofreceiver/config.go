// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config configures the receiver. Any non-empty subset of the five sources may stand.
type Config struct {
	// Server takes profiles that are pushed to POST /v1/pprof.
	Server configoptional.Optional[ServerConfig] `mapstructure:"server"`
	// Remote scrapes one URL.
	Remote configoptional.Optional[RemoteConfig] `mapstructure:"remote"`
	// Scrape finds many targets and scrapes them.
	Scrape configoptional.Optional[ScrapeConfig] `mapstructure:"scrape"`
	// File reads profiles from files.
	File configoptional.Optional[FileConfig] `mapstructure:"file"`
	// Self profiles the collector.
	Self configoptional.Optional[SelfConfig] `mapstructure:"self"`

	// ResourceAttributes are added to every resource. Values are scalars.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
	// IncludeOriginalPayload keeps the pprof bytes beside what was made of them.
	IncludeOriginalPayload bool `mapstructure:"include_original_payload"`
	// Limits bound what payloads may cost.
	Limits LimitsConfig `mapstructure:"limits"`
	// DrainTimeout bounds the time that Shutdown waits for what is under way.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`
}

// LimitsConfig bounds what payloads may cost.
type LimitsConfig struct {
	// MaxProfileBytes is the largest size of one payload, as sent and after decompression.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
	// MaxBytesInFlight bounds the bytes of all payloads that are received at a time; 0 means twice MaxProfileBytes.
	MaxBytesInFlight int64 `mapstructure:"max_bytes_in_flight"`
	// MaxTextBytes is the longest single text of a payload.
	MaxTextBytes int `mapstructure:"max_text_bytes"`
	// MaxExpansion bounds the attribute values that a payload becomes, as a multiple of its size.
	MaxExpansion int `mapstructure:"max_expansion"`
}

// bytesInFlight is MaxBytesInFlight or its default.
func (c *LimitsConfig) bytesInFlight() int64 {
	if c.MaxBytesInFlight > 0 {
		return c.MaxBytesInFlight
	}
	return 2 * int64(c.MaxProfileBytes)
}

// ServerConfig configures the HTTP server that profiles are pushed to.
type ServerConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
}

// RemoteConfig configures the scraping of one URL.
type RemoteConfig struct {
	// Client says which URL to ask, and how. Its timeout is raised above the seconds that the URL asks for.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// CollectionInterval is the time from the start of one scrape to the start of the next.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first scrape.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
}

// FileConfig configures the reading of files.
type FileConfig struct {
	// Include is a glob; `**` stands for any number of folders.
	Include string `mapstructure:"include"`
	// CollectionInterval is the time between two looks at the folder.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first look.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// Timeout bounds the delivery of one file to the pipeline; 0 sets no bound.
	Timeout time.Duration `mapstructure:"timeout"`
	// Storage is the storage extension that remembers what was read.
	Storage *component.ID `mapstructure:"storage"`
	// AfterRead is what becomes of a file that the pipeline took: keep, delete or move.
	AfterRead string `mapstructure:"after_read"`
	// MoveTo is the folder that read files are moved to.
	MoveTo string `mapstructure:"move_to"`
}

// SelfConfig configures the profiling of the collector itself.
type SelfConfig struct {
	// CollectionInterval is the length of one CPU profile, and the time between two of the others.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first profile's start.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// Timeout bounds the delivery of one profile to the pipeline; 0 sets no bound.
	Timeout time.Duration `mapstructure:"timeout"`
	// BlockProfileFraction is handed to runtime.SetBlockProfileRate; at 0 or below there is no block profile.
	BlockProfileFraction int `mapstructure:"block_profile_fraction"`
	// MutexProfileFraction is handed to runtime.SetMutexProfileFraction; at 0 or below there is no mutex profile.
	MutexProfileFraction int `mapstructure:"mutex_profile_fraction"`
}

// What becomes of a file that was read.
const (
	afterReadKeep   = "keep"
	afterReadDelete = "delete"
	afterReadMove   = "move"
)

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *ServerConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *RemoteConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// ofDecoder returns the limits of one payload. Entries of OTLP take up to a hundred bytes where those of a pprof take two:
// their number follows from the size of the largest payload, so that lowering that key lowers the memory.
func (c *LimitsConfig) ofDecoder() pprofconv.Limits {
	const bytesPerEntry, leastEntries = 32, 64 << 10
	entries := max(leastEntries, c.MaxProfileBytes/bytesPerEntry)
	return pprofconv.Limits{
		MaxProfileBytes: c.MaxProfileBytes, MaxTextBytes: c.MaxTextBytes, MaxExpansion: c.MaxExpansion,
		MaxSamples: entries, MaxTableEntries: entries,
	}
}

// Validate names every fault of the receiver's own keys; each section names its own.
func (c *Config) Validate() error {
	var errs []error
	if !c.Server.HasValue() && !c.Remote.HasValue() && !c.Scrape.HasValue() && !c.File.HasValue() && !c.Self.HasValue() {
		errs = append(errs, errors.New("at least one of `server`, `remote`, `scrape`, `file` and `self` must be configured"))
	}
	for _, key := range sortedKeys(c.ResourceAttributes) {
		if key == "" {
			errs = append(errs, errors.New("`resource_attributes` must not have an empty key"))
		}
		switch value := c.ResourceAttributes[key].(type) {
		case string, bool, int, int64, uint64, float64:
		default:
			errs = append(errs, fmt.Errorf("`resource_attributes` must have scalar values, found %T for %q", value, key))
		}
	}
	if c.DrainTimeout <= 0 {
		errs = append(errs, fmt.Errorf("`drain_timeout` must be positive, found %v", c.DrainTimeout))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *LimitsConfig) Validate() error {
	var errs []error
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_profile_bytes", c.MaxProfileBytes}, {"max_text_bytes", c.MaxTextBytes}, {"max_expansion", c.MaxExpansion}} {
		if limit.value <= 0 {
			errs = append(errs, fmt.Errorf("`%s` must be positive, found %d", limit.key, limit.value))
		}
	}
	if c.MaxBytesInFlight != 0 && c.MaxBytesInFlight < int64(c.MaxProfileBytes) {
		errs = append(errs, fmt.Errorf("`max_bytes_in_flight` must be 0 or at least `max_profile_bytes` (%d), found %d",
			c.MaxProfileBytes, c.MaxBytesInFlight))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *ServerConfig) Validate() error {
	var errs []error
	if c.HTTP.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` must be set"))
	}
	for _, name := range c.HTTP.CompressionAlgorithms {
		if name != "" && !slices.Contains(httpserver.Encodings, name) {
			errs = append(errs, fmt.Errorf("`compression_algorithms` must be among %s, found %q", strings.Join(httpserver.Encodings, ", "), name))
		}
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *RemoteConfig) Validate() error {
	errs := []error{validateIntervals(c.CollectionInterval, c.InitialDelay, c.Client.Timeout)}
	target, err := url.Parse(c.Client.Endpoint)
	switch {
	case c.Client.Endpoint == "":
		errs = append(errs, errors.New("`endpoint` must be set"))
	case err != nil:
		// The parser's error repeats the URL, which may carry a password.
		errs = append(errs, errors.New("`endpoint` must be a URL"))
	case (target.Scheme != "http" && target.Scheme != "https") || target.Host == "":
		errs = append(errs, fmt.Errorf("`endpoint` must be an http or https URL with a host, found %q", redact.URL(target)))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *FileConfig) Validate() error {
	errs := []error{validateIntervals(c.CollectionInterval, c.InitialDelay, c.Timeout)}
	switch {
	case c.Include == "":
		errs = append(errs, errors.New("`include` must be set"))
	case !doublestar.ValidatePathPattern(c.Include):
		errs = append(errs, fmt.Errorf("`include` must be a glob, found %q", c.Include))
	}
	if !slices.Contains([]string{afterReadKeep, afterReadDelete, afterReadMove}, c.AfterRead) {
		errs = append(errs, fmt.Errorf("`after_read` must be keep, delete or move, found %q", c.AfterRead))
	}
	if (c.AfterRead == afterReadMove) != (c.MoveTo != "") {
		errs = append(errs, fmt.Errorf("`move_to` must be set with `after_read: move` and only then, found %q with %q", c.MoveTo, c.AfterRead))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *SelfConfig) Validate() error {
	return validateIntervals(c.CollectionInterval, c.InitialDelay, c.Timeout)
}

func validateIntervals(interval, delay, timeout time.Duration) error {
	var errs []error
	if interval <= 0 {
		errs = append(errs, fmt.Errorf("`collection_interval` must be positive, found %v", interval))
	}
	if delay < 0 {
		errs = append(errs, fmt.Errorf("`initial_delay` must not be negative, found %v", delay))
	}
	if timeout < 0 {
		errs = append(errs, fmt.Errorf("`timeout` must not be negative, found %v", timeout))
	}
	return errors.Join(errs...)
}

func sortedKeys(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}
