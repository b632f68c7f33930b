// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter/internal/metadata"
)

// NewFactory returns the factory of the exporter `pprof_file`, for profiles pipelines.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

// createDefaultConfig is the only place for defaults; the README's table is compared with it.
func createDefaultConfig() component.Config {
	queue := exporterhelper.NewDefaultQueueConfig()
	// A number of messages would not bound their memory.
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, 32<<20
	return &Config{
		Directory: "./profiles-out/pprof",
		Name:      "{service.name}/{profile}/{time}-{instance}.pb.gz",
		MaxAge:    24 * time.Hour,
		MaxBytes:  1 << 30,
		Queue:     configoptional.Some(queue),
		Retry:     configretry.NewDefaultBackOffConfig(),
	}
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	config := cfg.(*Config)
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &fileExporter{config: config, logger: set.Logger, metrics: metrics}
	e.Profiles, err = xexporterhelper.NewProfiles(ctx, set, config, e.write,
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithRetry(config.Retry),
		exporterhelper.WithQueue(config.Queue),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	)
	return e, err
}
