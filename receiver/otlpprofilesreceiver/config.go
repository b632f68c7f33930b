// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
)

// Config configures the receiver. Its `protocols` are those of the receiver `otlp`.
type Config struct {
	Protocols Protocols `mapstructure:"protocols"`
}

// Protocols are the servers: either or both.
type Protocols struct {
	GRPC configoptional.Optional[otlpserver.GRPCConfig] `mapstructure:"grpc"`
	HTTP configoptional.Optional[otlpserver.HTTPConfig] `mapstructure:"http"`
}

// createDefaultConfig is the only place for defaults; a test compares the README with it.
func createDefaultConfig() component.Config {
	return &Config{
		Protocols: Protocols{
			GRPC: configoptional.Default(otlpserver.DefaultGRPC("localhost:4317")),
			HTTP: configoptional.Default(otlpserver.DefaultHTTP("localhost:4318")),
		},
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Protocols.GRPC.HasValue() || c.Protocols.HTTP.HasValue(),
		"`protocols` must have `grpc`, `http` or both")
	return faults.Err()
}
