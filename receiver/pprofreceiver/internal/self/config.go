// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// Config configures the profiling of the collector itself.
type Config struct {
	// CollectionInterval is the length of a CPU profile, and the time between two profiles of the other kinds.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the start of the first profile.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// Timeout bounds the delivery of one profile to the pipeline; 0 sets no bound.
	Timeout time.Duration `mapstructure:"timeout"`
	// BlockProfileFraction is passed to runtime.SetBlockProfileRate; at 0 or below there is no block profile.
	BlockProfileFraction int `mapstructure:"block_profile_fraction"`
	// MutexProfileFraction is passed to runtime.SetMutexProfileFraction; at 0 or below there is no mutex profile.
	MutexProfileFraction int `mapstructure:"mutex_profile_fraction"`
}

// Validate returns all faults.
func (c *Config) Validate() error {
	var faults config.Faults
	worker.RequireIntervals(&faults, c.CollectionInterval, c.InitialDelay, c.Timeout)
	return faults.Err()
}
