// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/file"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/remote"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
)

// Config configures the receiver. At least one of the five sources must be set.
type Config struct {
	// Server receives profiles that are pushed over HTTP.
	Server configoptional.Optional[push.Config] `mapstructure:"server"`
	// Remote scrapes one URL.
	Remote configoptional.Optional[remote.Config] `mapstructure:"remote"`
	// Scrape finds many targets and scrapes them.
	Scrape configoptional.Optional[scrape.Config] `mapstructure:"scrape"`
	// File reads profiles from files.
	File configoptional.Optional[file.Config] `mapstructure:"file"`
	// Self profiles the collector.
	Self configoptional.Optional[self.Config] `mapstructure:"self"`

	// Config has the keys that the sources share.
	ingest.Config `mapstructure:",squash"`
	// Limits bound what payloads may cost.
	Limits LimitsConfig `mapstructure:"limits"`
}

// LimitsConfig bounds what payloads may cost.
type LimitsConfig struct {
	// MaxProfileBytes is the largest size of one payload, as sent and after decompression.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
}

// limits returns the limits of payloads. An entry of an OTLP table takes up to a hundred bytes, one of a pprof as
// little as two. The limit on entries follows from the size of the largest payload, so that lowering max_profile_bytes
// lowers the memory.
func (c *LimitsConfig) limits() scan.Limits {
	const bytesPerEntry, leastEntries = 32, 64 << 10
	limits := scan.DefaultLimits()
	limits.MaxProfileBytes = c.MaxProfileBytes
	limits.MaxSamples = max(leastEntries, limits.MaxProfileBytes/bytesPerEntry)
	limits.MaxTableEntries = limits.MaxSamples
	return limits
}

// Validate returns all faults of the receiver's own keys; each section validates itself.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Server.HasValue() || c.Remote.HasValue() || c.Scrape.HasValue() || c.File.HasValue() ||
		c.Self.HasValue(), "at least one of `server`, `remote`, `scrape`, `file` and `self` must be configured")
	for _, key := range slices.Sorted(maps.Keys(c.ResourceAttributes)) {
		faults.Require(key != "", "`resource_attributes` must not have an empty key")
		switch value := c.ResourceAttributes[key].(type) {
		case string, bool, int, int64, uint64, float64:
		default:
			faults.Add(fmt.Errorf("`resource_attributes` must have scalar values, found %T for %q", value, key))
		}
	}
	faults.Require(len(c.Formats) > 0, "`formats` must name a format")
	all := ingest.AllFormats()
	for _, name := range c.Formats {
		faults.Require(slices.Contains(all, name), "`formats` must be among %s, found %q", strings.Join(all, ", "), name)
	}
	faults.Require(!c.Self.HasValue() || slices.Contains(c.Formats, string(formats.Pprof)),
		"`formats` must have pprof if `self` is configured")
	faults.RequireKeys("timestamp_labels", c.TimestampLabels)
	return faults.Err()
}

// Validate returns all faults.
func (c *LimitsConfig) Validate() error {
	var faults config.Faults
	faults.RequireProfileBytes(c.MaxProfileBytes)
	return faults.Err()
}
