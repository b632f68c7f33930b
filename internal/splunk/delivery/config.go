// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// Config has the keys that all components that translate share.
type Config struct {
	// TextThreadMetadata is how much of the first line of a text stack is kept: basic or full.
	TextThreadMetadata string       `mapstructure:"text_thread_metadata"`
	Limits             LimitsConfig `mapstructure:"limits"`
}

// LimitsConfig bounds what one request may cost.
type LimitsConfig struct {
	// MaxProfileBytes bounds the bodies of one request together after decompression, in bytes.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
	// MaxStackDepth is the largest number of frames in one stack.
	MaxStackDepth int `mapstructure:"max_stack_depth"`
}

const (
	metadataBasic = "basic"
	metadataFull  = "full"
)

// DefaultConfig is the only place for these keys' defaults; the components' READMEs are compared with it.
func DefaultConfig() Config {
	return Config{
		TextThreadMetadata: metadataBasic,
		Limits:             LimitsConfig{MaxProfileBytes: scan.DefaultLimits().MaxProfileBytes, MaxStackDepth: 1024},
	}
}

// Validate names every fault, except for those in Limits, which has its own Validate.
func (c *Config) Validate() error {
	if c.TextThreadMetadata != metadataBasic && c.TextThreadMetadata != metadataFull {
		return fmt.Errorf("`text_thread_metadata` must be basic or full, found %q", c.TextThreadMetadata)
	}
	return nil
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
	return records.Options{FullThreadMetadata: c.TextThreadMetadata == metadataFull, Limits: limits}
}
