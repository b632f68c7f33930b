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
	// MaxTextBytes is the longest text of a pprof, in bytes: the rest of a longer one is cut off.
	MaxTextBytes int `mapstructure:"max_text_bytes"`
	// MaxExpansion bounds the attribute values that a pprof becomes: 64 KiB and this many times its size.
	MaxExpansion int `mapstructure:"max_expansion"`
}

const (
	metadataBasic = "basic"
	metadataFull  = "full"
)

// DefaultConfig is the only place for these keys' defaults; the components' READMEs are compared with it.
func DefaultConfig() Config {
	return Config{
		TextThreadMetadata: metadataBasic,
		Limits: LimitsConfig{
			MaxProfileBytes: scan.DefaultLimits().MaxProfileBytes, MaxStackDepth: 1024,
			MaxTextBytes: scan.DefaultLimits().MaxTextBytes, MaxExpansion: scan.DefaultLimits().MaxExpansion,
		},
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
	for _, limit := range []struct {
		key   string
		value int
	}{
		{"max_profile_bytes", c.MaxProfileBytes}, {"max_stack_depth", c.MaxStackDepth},
		{"max_text_bytes", c.MaxTextBytes}, {"max_expansion", c.MaxExpansion},
	} {
		faults.Require(limit.value > 0, "`%s` must be positive, found %d", limit.key, limit.value)
	}
	faults.Require(int64(c.MaxProfileBytes) <= config.MaxBytes,
		"`max_profile_bytes` must be at most %d, found %d", int64(config.MaxBytes), c.MaxProfileBytes)
	return faults.Err()
}

// Options returns the translator's options.
func (c *Config) Options() records.Options {
	l := &c.Limits
	return records.Options{
		FullThreadMetadata: c.TextThreadMetadata == metadataFull,
		Limits: scan.Limits{
			MaxProfileBytes: l.MaxProfileBytes, MaxStackDepth: l.MaxStackDepth, MaxTextBytes: l.MaxTextBytes, MaxExpansion: l.MaxExpansion,
		},
	}
}
