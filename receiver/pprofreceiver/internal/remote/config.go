// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// Config configures the scraping of one URL.
type Config struct {
	// Client configures the URL and the requests. Its timeout is raised above the recording time that the URL asks for.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// CollectionInterval is the time from the start of one scrape to the start of the next.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first scrape.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// Temporality of the values: delta, gauge or cumulative. If it is empty, it follows from the profile.
	Temporality string `mapstructure:"temporality"`
}

// Validate returns all faults.
func (c *Config) Validate() error {
	var faults config.Faults
	worker.RequireIntervals(&faults, c.CollectionInterval, c.InitialDelay, c.Client.Timeout)
	faults.RequireURL("endpoint", c.Client.Endpoint)
	if c.Temporality != "" {
		_, err := kind.ParseTemporality(c.Temporality)
		faults.Require(err == nil, "`temporality` %w", err)
	}
	return faults.Err()
}
