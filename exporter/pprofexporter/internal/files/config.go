// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"time"
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

// DefaultConfig returns the defaults of a section that is there.
func DefaultConfig() Config {
	return Config{
		Directory: "./profiles-out/pprof",
		Name:      "{service.name}/{profile}/{time}-{instance}.pb.gz",
		MaxAge:    24 * time.Hour,
		MaxBytes:  1 << 30,
	}
}

// Validate names every fault.
func (c *Config) Validate() error {
	var errs []error
	if c.Directory == "" {
		errs = append(errs, errors.New("`directory` must be set"))
	}
	if _, err := parseName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("`name` %w, found %q", err, c.Name))
	}
	if c.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("`max_age` must not be negative, found %s", c.MaxAge))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("`max_bytes` must not be negative, found %d", c.MaxBytes))
	}
	return errors.Join(errs...)
}
