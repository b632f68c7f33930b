// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config configures the exporter.
type Config struct {
	Server ServerConfig                          `mapstructure:"server"`
	Keep   KeepConfig                            `mapstructure:"keep"`
	Files  configoptional.Optional[files.Config] `mapstructure:"files"`

	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	Retry configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
}

// ServerConfig is the page and the API.
type ServerConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are names by which the server may be asked, beside addresses and names without a dot.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// MaxConcurrentQueries bounds the queries that are computed at once; others wait.
	MaxConcurrentQueries int `mapstructure:"max_concurrent_queries"`
	// QueryTimeout bounds a query, the waiting included.
	QueryTimeout time.Duration `mapstructure:"query_timeout"`
	// DrainTimeout bounds how long a shutdown waits for answers under way.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`
}

// KeepConfig bounds what is kept in memory.
type KeepConfig struct {
	Window     time.Duration `mapstructure:"window"`
	Resolution time.Duration `mapstructure:"resolution"`
	// MaxBytes is what the process may grow by.
	MaxBytes  int `mapstructure:"max_bytes"`
	MaxSeries int `mapstructure:"max_series"`
}

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *ServerConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Validate names every fault.
func (c *ServerConfig) Validate() error {
	var errs []error
	if c.HTTP.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` must be set"))
	}
	if c.MaxConcurrentQueries < 1 {
		errs = append(errs, fmt.Errorf("`max_concurrent_queries` must be positive, found %d", c.MaxConcurrentQueries))
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, fmt.Errorf("`query_timeout` must be positive, found %s", c.QueryTimeout))
	}
	if c.DrainTimeout <= 0 {
		errs = append(errs, fmt.Errorf("`drain_timeout` must be positive, found %s", c.DrainTimeout))
	}
	return errors.Join(errs...)
}

const (
	minKeptBytes = 1 << 20
	maxWindow    = 7 * 24 * time.Hour
)

// Validate names every fault.
func (c *KeepConfig) Validate() error {
	var errs []error
	if c.Resolution < time.Second || c.Resolution > time.Hour {
		errs = append(errs, fmt.Errorf("`resolution` must be from 1s to 1h, found %s", c.Resolution))
	}
	if c.Window < c.Resolution || c.Window > maxWindow {
		errs = append(errs, fmt.Errorf("`window` must be from `resolution` to %s, found %s", maxWindow, c.Window))
	}
	if c.MaxBytes < minKeptBytes {
		errs = append(errs, fmt.Errorf("`max_bytes` must be at least %d, found %d", minKeptBytes, c.MaxBytes))
	}
	if c.MaxSeries < 1 {
		errs = append(errs, fmt.Errorf("`max_series` must be positive, found %d", c.MaxSeries))
	}
	return errors.Join(errs...)
}
