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
}

// The modes of GoTraceConfig.
const (
	goTraceEvents     = "events"
	goTraceAggregated = "aggregated"
)

// DefaultGoTrace returns the default configuration.
func DefaultGoTrace() GoTraceConfig {
	return GoTraceConfig{Mode: goTraceEvents, MinDuration: gotrace.DefaultOptions().MinDuration}
}

// Validate returns all faults.
func (c *GoTraceConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.Mode == goTraceEvents || c.Mode == goTraceAggregated, "`mode` must be events or aggregated, found %q", c.Mode)
	faults.Require(c.MinDuration >= 0, "`min_duration` must not be negative, found %v", c.MinDuration)
	return faults.Err()
}

func (c *GoTraceConfig) options() gotrace.Options {
	o := gotrace.DefaultOptions()
	o.Aggregate, o.MinDuration = c.Mode == goTraceAggregated, c.MinDuration
	return o
}
