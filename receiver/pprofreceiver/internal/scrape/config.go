// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// Config configures the scraping of many targets, which are discovered.
type Config struct {
	// MaxConcurrent bounds how many answers are decoded and delivered at once.
	MaxConcurrent int `mapstructure:"max_concurrent"`
	// Configs are the jobs, in the words of Prometheus' `scrape_configs`.
	Configs []*targets.Config `mapstructure:"configs"`
	// Status serves a page that lists the targets.
	Status configoptional.Optional[StatusConfig] `mapstructure:"status"`
}

// Validate names the faults of the section; each job names its own.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxConcurrent <= 0 {
		errs = append(errs, fmt.Errorf("`max_concurrent` must be positive, found %d", c.MaxConcurrent))
	}
	if len(c.Configs) == 0 {
		errs = append(errs, errors.New("`configs` must have a job"))
	}
	return errors.Join(append(errs, targets.ValidateJobs(c.Configs))...)
}
