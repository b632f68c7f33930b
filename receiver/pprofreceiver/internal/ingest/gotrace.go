// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// GoTraceConfig configures the decoding of Go execution traces.
type GoTraceConfig struct {
	// Mode is events or aggregated.
	Mode string `mapstructure:"mode"`
	// MinDuration is the shortest interval that becomes an event.
	MinDuration time.Duration `mapstructure:"min_duration"`
	// Period is the interval at which the CPU profiler sampled.
	Period time.Duration `mapstructure:"period"`
	// SystemGoroutines keeps the waits of the runtime's own goroutines.
	SystemGoroutines bool `mapstructure:"system_goroutines"`
	// GCWorkers keeps the workers of the garbage collector.
	GCWorkers bool `mapstructure:"gc_workers"`
	// ForeverBlocked keeps goroutines that wait from the beginning of a trace to its end.
	ForeverBlocked bool `mapstructure:"forever_blocked"`
	// MaxThreads is the largest number of threads in a part of a trace.
	MaxThreads int `mapstructure:"max_threads"`
	// MaxLegacyBytes is the largest trace of a version before Go 1.22.
	MaxLegacyBytes int `mapstructure:"max_legacy_bytes"`
}

// The modes of GoTraceConfig.
const (
	goTraceEvents     = "events"
	goTraceAggregated = "aggregated"
)

// DefaultGoTrace returns the default configuration.
func DefaultGoTrace() GoTraceConfig {
	o := gotrace.DefaultOptions()
	return GoTraceConfig{
		Mode: goTraceEvents, MinDuration: o.MinDuration, Period: o.Period, MaxThreads: o.MaxThreads, MaxLegacyBytes: o.MaxLegacyBytes,
	}
}

// Validate returns all faults.
func (c *GoTraceConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.Mode == goTraceEvents || c.Mode == goTraceAggregated, "`mode` must be events or aggregated, found %q", c.Mode)
	faults.Require(c.MinDuration >= 0, "`min_duration` must not be negative, found %v", c.MinDuration)
	faults.Require(c.Period > 0, "`period` must be positive, found %v", c.Period)
	faults.Require(c.MaxThreads > 0, "`max_threads` must be positive, found %d", c.MaxThreads)
	faults.Require(c.MaxLegacyBytes > 0, "`max_legacy_bytes` must be positive, found %d", c.MaxLegacyBytes)
	return faults.Err()
}

func (c *GoTraceConfig) options() gotrace.Options {
	return gotrace.Options{
		Aggregate: c.Mode == goTraceAggregated, MinDuration: c.MinDuration, Period: c.Period,
		SystemGoroutines: c.SystemGoroutines, GCWorkers: c.GCWorkers, ForeverBlocked: c.ForeverBlocked,
		MaxThreads: c.MaxThreads, MaxLegacyBytes: c.MaxLegacyBytes,
	}
}
