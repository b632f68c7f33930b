// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/configcheck"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config configures the receiver. Its `protocols` are those of the receiver `otlp`.
type Config struct {
	Protocols Protocols `mapstructure:"protocols"`
	// DrainTimeout bounds how long a shutdown waits for requests.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`
}

// Protocols are the servers: either or both.
type Protocols struct {
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`
	HTTP configoptional.Optional[HTTPConfig]              `mapstructure:"http"`
}

// HTTPConfig configures the HTTP server.
type HTTPConfig struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`
}

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *HTTPConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// createDefaultConfig is the only place for defaults; a test compares the README with it.
func createDefaultConfig() component.Config {
	grpc := configgrpc.NewDefaultServerConfig()
	grpc.NetAddr.Endpoint = "localhost:4317"
	grpc.MaxRecvMsgSizeMiB = 20

	http := HTTPConfig{Server: confighttp.NewDefaultServerConfig()}
	http.Server.NetAddr.Endpoint = "localhost:4318"
	http.Server.MaxRequestBodySize = 20 << 20
	http.Server.ReadTimeout = 30 * time.Second
	return &Config{
		Protocols:    Protocols{GRPC: configoptional.Default(grpc), HTTP: configoptional.Default(http)},
		DrainTimeout: httpserver.DefaultDrainTimeout,
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults configcheck.Faults
	grpc, http := c.Protocols.GRPC.Get(), c.Protocols.HTTP.Get()
	faults.Require(grpc != nil || http != nil, "`protocols` must have `grpc`, `http` or both")
	if grpc != nil {
		faults.Require(grpc.NetAddr.Endpoint != "", "`protocols.grpc.endpoint` must be set")
	}
	if http != nil {
		faults.Require(http.Server.NetAddr.Endpoint != "", "`protocols.http.endpoint` must be set")
		err := httpserver.CheckEncodings(http.Server.CompressionAlgorithms)
		faults.Require(err == nil, "`protocols.http.compression_algorithms` %w", err)
	}
	faults.Require(c.DrainTimeout > 0, "`drain_timeout` must be positive, found %s", c.DrainTimeout)
	return faults.Err()
}
