// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config configures the HTTP server that profiles are pushed to.
type Config struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
}

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Validate names every fault.
func (c *Config) Validate() error {
	var errs []error
	if c.HTTP.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` must be set"))
	}
	for _, name := range c.HTTP.CompressionAlgorithms {
		if name != "" && !slices.Contains(httpserver.Encodings, name) {
			errs = append(errs, fmt.Errorf("`compression_algorithms` must be among %s, found %q", strings.Join(httpserver.Encodings, ", "), name))
		}
	}
	return errors.Join(errs...)
}
