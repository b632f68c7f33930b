// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// Config has the keys that all components that translate share.
type Config struct {
	Limits LimitsConfig `mapstructure:"limits"`
}

// LimitsConfig bounds what one request may cost.
type LimitsConfig struct {
	// MaxProfileBytes bounds the bodies of one request together after decompression, in bytes.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
	// MaxStackDepth is the largest number of frames in one stack.
	MaxStackDepth int `mapstructure:"max_stack_depth"`
}

// DefaultConfig is the only place for these keys' defaults; the components' READMEs are compared with it.
func DefaultConfig() Config {
	return Config{Limits: LimitsConfig{MaxProfileBytes: scan.DefaultLimits().MaxProfileBytes, MaxStackDepth: 1024}}
}

// Validate names every fault.
func (c *LimitsConfig) Validate() error {
	var faults config.Faults
	faults.RequireProfileBytes(c.MaxProfileBytes)
	faults.Require(c.MaxStackDepth > 0, "`max_stack_depth` must be positive, found %d", c.MaxStackDepth)
	return faults.Err()
}

// Options returns the translator's options.
func (c *Config) Options() records.Options {
	limits := scan.DefaultLimits()
	limits.MaxProfileBytes, limits.MaxStackDepth = c.Limits.MaxProfileBytes, c.Limits.MaxStackDepth
	return records.Options{Limits: limits}
}
