// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config is the section `files`.
type Config struct {
	Directory string `mapstructure:"directory"`
	// Name is a path below Directory. {profile}, {time}, {instance} and the keys of resource attributes in braces are
	// replaced.
	Name string `mapstructure:"name"`
	// MaxAge and MaxBytes bound the files that Name describes; the oldest are deleted. 0 is no limit.
	MaxAge   time.Duration `mapstructure:"max_age"`
	MaxBytes int64         `mapstructure:"max_bytes"`
}

// DefaultConfig returns the defaults for a section that is present.
func DefaultConfig() Config {
	return Config{
		Directory: "./profiles-out/pprof",
		Name:      "{service.name}/{profile}/{time}-{instance}.pb.gz",
		MaxAge:    24 * time.Hour,
		MaxBytes:  1 << 30,
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Directory != "", "`directory` must be set")
	_, err := parseName(c.Name)
	faults.Require(err == nil, "`name` %w, found %q", err, c.Name)
	faults.Require(c.MaxAge >= 0, "`max_age` must not be negative, found %s", c.MaxAge)
	faults.Require(c.MaxBytes >= 0, "`max_bytes` must not be negative, found %d", c.MaxBytes)
	return faults.Err()
}
