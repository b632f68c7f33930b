// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// GRPCConfig configures a gRPC server.
type GRPCConfig struct {
	Server configgrpc.ServerConfig `mapstructure:",squash"`
	// ReadTimeout bounds the time from the start of a request to the end of its message; 0 means none.
	ReadTimeout time.Duration `mapstructure:"read_timeout"`
}

// HTTPConfig configures an HTTP server.
type HTTPConfig struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`
}

// The defaults of both servers. gRPC's own 4 MiB are below what agents send from large applications.
const (
	maxMessageMiB = 20
	readTimeout   = 30 * time.Second
)

// DefaultGRPC returns the defaults of a gRPC server.
func DefaultGRPC(endpoint string) GRPCConfig {
	c := GRPCConfig{Server: configgrpc.NewDefaultServerConfig(), ReadTimeout: readTimeout}
	c.Server.NetAddr.Endpoint = endpoint
	c.Server.MaxRecvMsgSizeMiB = maxMessageMiB
	return c
}

// DefaultHTTP returns the defaults of an HTTP server.
func DefaultHTTP(endpoint string) HTTPConfig {
	c := HTTPConfig{Server: confighttp.NewDefaultServerConfig()}
	c.Server.NetAddr.Endpoint = endpoint
	c.Server.MaxRequestBodySize = maxMessageMiB << 20
	c.Server.ReadTimeout = readTimeout
	return c
}

// Validate names every fault.
func (c *GRPCConfig) Validate() error {
	var faults config.Faults
	faults.RequireListener(&c.Server.NetAddr)
	faults.Require(c.ReadTimeout >= 0, "`read_timeout` must not be negative, found %v", c.ReadTimeout)
	return faults.Err()
}

// Validate names every fault.
func (c *HTTPConfig) Validate() error { return httpserver.CheckConfig(&c.Server) }
