// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
)

// NewFactory returns the factory of the exporter `pprof`, for profiles pipelines.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

// createDefaultConfig is the only place for defaults; the README's table is compared with it.
func createDefaultConfig() component.Config {
	server := ServerConfig{
		HTTP:                 confighttp.NewDefaultServerConfig(),
		MaxConcurrentQueries: 4,
		QueryTimeout:         30 * time.Second,
	}
	// Profiles can be confidential: by default only this machine can read them.
	server.HTTP.NetAddr.Endpoint = "localhost:4042"
	server.HTTP.MaxRequestBodySize = 1 // nothing is uploaded
	queue := exporterhelper.NewDefaultQueueConfig()
	// A number of messages would not bound their memory.
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, 32<<20
	return &Config{
		Server:  server,
		Keep:    KeepConfig{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20, MaxSeries: 2000},
		Storage: StorageConfig{Retention: 14 * 24 * time.Hour, MaxBytes: 10 << 30},
		Files:   configoptional.Default(files.DefaultConfig()),
		Queue:   configoptional.Some(queue),
		Retry:   configretry.NewDefaultBackOffConfig(),
	}
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	config := cfg.(*Config)
	e, err := newPprofExporter(config, set)
	if err != nil {
		return nil, err
	}
	return e.withQueue(ctx)
}

// withQueue returns the exporter with the queue of its files. Without files there is nothing to wait for, and no queue.
func (e *pprofExporter) withQueue(ctx context.Context) (xexporter.Profiles, error) {
	queue := e.config.Queue
	if !e.config.Files.HasValue() {
		queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	}
	queued, err := xexporterhelper.NewProfiles(ctx, e.set, e.config, e.writeFiles,
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithRetry(e.config.Retry),
		exporterhelper.WithQueue(queue),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	)
	if err != nil {
		return nil, err
	}
	return pageFirst{queued, e}, nil
}
