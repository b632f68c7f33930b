// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilestologsconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/encode"
)

// Config configures the connector.
type Config struct {
	Encoding encode.Config `mapstructure:",squash"`
}

// NewFactory returns the factory of the connector `profiles_to_logs`.
func NewFactory() connector.Factory {
	return xconnector.NewFactory(metadata.Type, createDefaultConfig,
		xconnector.WithProfilesToLogs(createProfilesToLogs, metadata.ProfilesToLogsStability))
}

// createDefaultConfig and what it calls are the only place for defaults; a test compares the README with them.
func createDefaultConfig() component.Config { return &Config{Encoding: encode.DefaultConfig()} }

func createProfilesToLogs(_ context.Context, set connector.Settings, cfg component.Config,
	next consumer.Logs) (xconnector.Profiles, error) {
	encoding := cfg.(*Config).Encoding
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	metrics := &encode.Metrics{
		Format:    encoding.Format,
		Records:   b.ConnectorProfilesToLogsRecords,
		Samples:   b.ConnectorProfilesToLogsSamples,
		Bytes:     b.ConnectorProfilesToLogsBytes,
		Oversized: b.ConnectorProfilesToLogsOversizedRecords,
		LeftOut:   b.ConnectorProfilesToLogsLeftOutSamples,

		LeftOutAttributes: b.ConnectorProfilesToLogsLeftOutAttributes,
		DroppedSamples:    b.ConnectorProfilesToLogsDroppedSamples,
	}
	return &toLogs{options: encoding.Options(maxBatchBytes), metrics: metrics, next: next}, nil
}
