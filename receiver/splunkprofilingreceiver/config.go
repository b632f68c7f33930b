// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"errors"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
)

// Config configures the receiver.
type Config struct {
	Protocols   Protocols       `mapstructure:"protocols"`
	Translation delivery.Config `mapstructure:",squash"`
}

// Protocols are the servers. At least one must be configured.
type Protocols struct {
	// GRPC receives OTLP logs over gRPC.
	GRPC configoptional.Optional[otlpserver.GRPCConfig] `mapstructure:"grpc"`
	// HTTP receives OTLP logs over HTTP.
	HTTP configoptional.Optional[otlpserver.HTTPConfig] `mapstructure:"http"`
	// HEC receives events of Splunk's HTTP Event Collector.
	HEC configoptional.Optional[otlpserver.HTTPConfig] `mapstructure:"hec"`
}

// Validate returns an error if no server is configured.
func (c *Protocols) Validate() error {
	if !c.GRPC.HasValue() && !c.HTTP.HasValue() && !c.HEC.HasValue() {
		return errors.New("at least one of `grpc`, `http` and `hec` must be configured")
	}
	return nil
}
