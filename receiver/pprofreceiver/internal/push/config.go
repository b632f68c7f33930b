// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// Config configures the HTTP server that profiles are pushed to.
type Config struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// Pyroscope configures the routes for Pyroscope's clients, on the same address.
	Pyroscope PyroscopeConfig `mapstructure:"pyroscope"`
}

// PyroscopeConfig configures the routes of Pyroscope's clients.
type PyroscopeConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// Formats are the accepted formats of POST /ingest.
	Formats []string `mapstructure:"formats"`
	// Labels renames labels to resource attributes; an empty name drops one. Other labels keep their names.
	Labels map[string]string `mapstructure:"labels"`
	// SessionID is the resource attribute for the client's session id; empty drops it. pyroscope-go derives the id from
	// the host's name. Without it, processes of one service would be one, and their states would not be added up.
	SessionID string `mapstructure:"session_id"`
	// TenantAttribute is the resource attribute for the header X-Scope-OrgID; empty ignores the header.
	TenantAttribute string `mapstructure:"tenant_attribute"`
}

// DefaultPyroscope returns the defaults of the section `pyroscope`.
func DefaultPyroscope() PyroscopeConfig {
	return PyroscopeConfig{
		Enabled: true, Formats: slices.Clone(ingestFormats),
		Labels:    map[string]string{"service_name": "service.name"},
		SessionID: ingest.AttributeServiceInstanceID,
	}
}

// Validate returns all faults.
func (c *Config) Validate() error { return httpserver.CheckConfig(&c.HTTP) }

// Validate returns all faults. Two keys must not set the same attribute: one would hide the other.
func (c *PyroscopeConfig) Validate() error {
	if !c.Enabled {
		return nil
	}
	var faults config.Faults
	faults.Require(len(c.Formats) > 0, "`formats` must not be empty: to turn the routes off, set `enabled` to false")
	for _, name := range c.Formats {
		faults.Require(slices.Contains(ingestFormats, name), "`formats` must be among %s, found %q",
			strings.Join(ingestFormats, ", "), name)
	}
	faults.Require(c.SessionID != "drop",
		"`session_id` must be the name of an attribute; without it the session id is dropped")
	setBy := map[string]string{}
	requireUnique := func(attribute, key string) {
		other, isSet := setBy[attribute]
		faults.Require(attribute == "" || !isSet, "%s must differ from %s, found %q in both", key, other, attribute)
		setBy[attribute] = key
	}
	for _, label := range slices.Sorted(maps.Keys(c.Labels)) {
		requireUnique(c.Labels[label], fmt.Sprintf("`labels.%s`", label))
	}
	requireUnique(c.TenantAttribute, "`tenant_attribute`")
	if c.SessionID != ingest.AttributeServiceInstanceID { // the default, which a label may set as well
		requireUnique(c.SessionID, "`session_id`")
	}
	return faults.Err()
}
