// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// StatusConfig configures the page that lists the targets of `scrape`. The zpages extension
// has no way in for pages of components, so that the receiver serves its own.
type StatusConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are the DNS names by which the page may be asked for, beside addresses and names without a dot.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
}

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *StatusConfig) Unmarshal(conf *confmap.Conf) error {
	return strictconfig.Unmarshal(conf, c)
}

// Validate names every fault.
func (c *StatusConfig) Validate() error {
	if c.HTTP.NetAddr.Endpoint == "" {
		return errors.New("`endpoint` must be set")
	}
	return nil
}
