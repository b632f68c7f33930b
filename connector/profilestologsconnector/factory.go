// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkencode"
)

// scopeName names this package in metrics.
const scopeName = "github.com/otelcol-profiles/otelcol-profiles/connector/profilestologsconnector"

var componentType = component.MustNewType("profiles_to_logs")

// Config configures the connector.
type Config struct {
	Encoding splunkencode.Config `mapstructure:",squash"`
}

// NewFactory makes the factory of the connector `profiles_to_logs`.
func NewFactory() connector.Factory {
	return xconnector.NewFactory(
		componentType,
		createDefaultConfig,
		xconnector.WithProfilesToLogs(createProfilesToLogs, component.StabilityLevelAlpha),
	)
}

// createDefaultConfig is, with what it calls, the only place for defaults; the README's table is compared with it.
func createDefaultConfig() component.Config { return &Config{Encoding: splunkencode.DefaultConfig()} }

func createProfilesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (xconnector.Profiles, error) {
	encoding := cfg.(*Config).Encoding
	metrics, err := splunkencode.NewMetrics("connector", encoding.Format, set.MeterProvider.Meter(scopeName))
	if err != nil {
		return nil, err
	}
	return &toLogs{options: encoding.Options(maxBatchBytes), metrics: metrics, next: next}, nil
}
