// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/internal/metadata"
)

// NewFactory returns the factory of the exporter `profile_store`, for profiles pipelines.
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
	// Nothing is uploaded. Requests of dashboards and assistants are short, and have their own limits.
	server.HTTP.MaxRequestBodySize, server.HTTP.CompressionAlgorithms = 512<<10, []string{"", "gzip"}
	client := confighttp.NewDefaultClientConfig()
	client.Endpoint, client.Timeout = "http://localhost:8123", 0 // `server.query_timeout` bounds queries
	return &Config{
		Server: server,
		Keep:   KeepConfig{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20},
		Storage: StorageConfig{Retention: 14 * 24 * time.Hour, MaxBytes: 10 << 30,
			Downsample: DownsampleConfig{Step: time.Minute}},
		ClickHouse: configoptional.Default(ClickHouseConfig{
			Client: client, Database: "default", Table: "otel_profiles", Username: "default", Window: 24 * time.Hour,
			MaxResultRows: 2_000_000, MaxResultBytes: 256 << 20,
		}),
		MCP: configoptional.Default(MCPConfig{DefaultTime: time.Hour}),
	}
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	e, err := newStoreExporter(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	return e.wrapped(ctx)
}

// wrapped returns the exporter with the Collector's own metrics. There is no queue: consume returns when the store has
// the message, and senders retry the messages that it refuses.
func (e *storeExporter) wrapped(ctx context.Context) (xexporter.Profiles, error) {
	return xexporterhelper.NewProfiles(ctx, e.set, e.config, e.consume,
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	)
}
