// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// Config configures the scraping of many targets, which are discovered.
type Config struct {
	// MaxConcurrent bounds how many payloads are decoded and delivered at once.
	MaxConcurrent int `mapstructure:"max_concurrent"`
	// Configs are the jobs, with the keys of Prometheus' `scrape_configs`.
	Configs []*targets.Config `mapstructure:"configs"`
	// Status serves a page that lists the targets.
	Status configoptional.Optional[StatusConfig] `mapstructure:"status"`
}

// Validate returns all faults of the section; each job validates itself.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.MaxConcurrent > 0, "`max_concurrent` must be positive, found %d", c.MaxConcurrent)
	faults.Require(len(c.Configs) > 0, "`configs` must have a job")
	faults.Add(targets.ValidateJobs(c.Configs))
	return faults.Err()
}

// StatusConfig configures the page that lists the targets of `scrape`. The zpages extension does not support pages of
// components, so that the receiver serves its own.
type StatusConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are the DNS names that a request for the page may have as host, besides addresses and names without a
	// dot.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
}

// Validate returns all faults.
func (c *StatusConfig) Validate() error { return httpserver.CheckConfig(&c.HTTP) }
