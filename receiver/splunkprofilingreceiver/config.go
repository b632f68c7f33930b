// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/configcheck"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config configures the receiver.
type Config struct {
	Protocols   Protocols             `mapstructure:"protocols"`
	Translation splunkdelivery.Config `mapstructure:",squash"`
	// DrainTimeout bounds the time that Shutdown waits for requests under way.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`
}

// Validate names every fault.
func (c *Config) Validate() error {
	if c.DrainTimeout <= 0 {
		return fmt.Errorf("`drain_timeout` must be positive, found %v", c.DrainTimeout)
	}
	return nil
}

// Protocols are the servers. At least one must be configured.
type Protocols struct {
	// GRPC receives OTLP logs over gRPC.
	GRPC configoptional.Optional[GRPCConfig] `mapstructure:"grpc"`
	// HTTP receives OTLP logs over HTTP.
	HTTP configoptional.Optional[HTTPConfig] `mapstructure:"http"`
	// HEC receives events of Splunk's HTTP Event Collector.
	HEC configoptional.Optional[HTTPConfig] `mapstructure:"hec"`
}

// GRPCConfig configures the server that speaks gRPC.
type GRPCConfig struct {
	Server configgrpc.ServerConfig `mapstructure:",squash"`
	// ReadTimeout bounds the time from the start of a request to the end of its message; 0 means none.
	ReadTimeout time.Duration `mapstructure:"read_timeout"`
}

// HTTPConfig configures a server that speaks HTTP.
type HTTPConfig struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`
}

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *HTTPConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Validate returns an error if no server is configured.
func (c *Protocols) Validate() error {
	if !c.GRPC.HasValue() && !c.HTTP.HasValue() && !c.HEC.HasValue() {
		return errors.New("at least one of `grpc`, `http` and `hec` must be configured")
	}
	return nil
}

// Validate names every fault.
func (c *GRPCConfig) Validate() error {
	var faults configcheck.Faults
	faults.Require(c.Server.NetAddr.Endpoint != "", "`endpoint` must be set")
	faults.Require(c.ReadTimeout >= 0, "`read_timeout` must not be negative, found %v", c.ReadTimeout)
	return faults.Err()
}

// Validate names every fault.
func (c *HTTPConfig) Validate() error {
	var faults configcheck.Faults
	faults.Require(c.Server.NetAddr.Endpoint != "", "`endpoint` must be set")
	err := httpserver.CheckEncodings(c.Server.CompressionAlgorithms)
	faults.Require(err == nil, "`compression_algorithms` %w", err)
	return faults.Err()
}
