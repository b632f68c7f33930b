// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pyroscopeexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
)

// NewFactory returns the factory of the exporter `pyroscope`, for profiles pipelines.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(metadata.Type, createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability))
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	config := cfg.(*Config)
	e, err := newExporter(set, config)
	if err != nil {
		return nil, err
	}
	set.TelemetrySettings = exportreport.Settings(set.TelemetrySettings)
	return xexporterhelper.NewProfiles(ctx, set, cfg, e.push,
		// The client has a timeout for each request, and a push can be many.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithRetry(config.Retry),
		exporterhelper.WithQueue(config.Queue),
		exporterhelper.WithStart(e.client.Start),
		exporterhelper.WithShutdown(e.shutdown),
	)
}

func newExporter(set exporter.Settings, config *Config) (*pyroscopeExporter, error) {
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &pyroscopeExporter{
		cfg: config, logger: set.Logger, metrics: metrics, labeler: newLabeler(config),
		client: httpclient.Client{
			Config: config.Client, Telemetry: set.TelemetrySettings,
			UserAgent: httpclient.UserAgent(set.BuildInfo), MaxRetryAfter: config.MaxRetryAfter,
		},
	}, nil
}
