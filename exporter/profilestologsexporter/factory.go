// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestologsexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/encode"
)

// NewFactory returns the factory of the exporter `profiles_to_logs`.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(metadata.Type, createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability))
}

// createDefaultConfig and what it calls are the only place for defaults; a test compares the README with them.
func createDefaultConfig() component.Config {
	grpc := configgrpc.NewDefaultClientConfig()
	grpc.Compression = configcompression.TypeGzip
	grpc.Keepalive = configoptional.None[configgrpc.KeepaliveClientConfig]()
	http := confighttp.NewDefaultClientConfig()
	http.Compression = configcompression.TypeGzip
	return &Config{
		Mode:            modeFallback,
		GRPC:            configoptional.Default(grpc),
		HTTP:            configoptional.Default(HTTPConfig{Client: http}),
		HEC:             configoptional.Default(HECConfig{Client: http, MaxRequestBytes: 2 << 20}),
		Encoding:        encode.DefaultConfig(),
		RecheckInterval: 5 * time.Minute,
		// Servers of gRPC accept 4 MiB if nothing else is configured.
		MaxRequestBytes: 4<<20 - 256<<10,
		MaxRetryAfter:   5 * time.Minute,
		Queue:           configoptional.Some(exporterhelper.NewDefaultQueueConfig()),
		Retry:           configretry.NewDefaultBackOffConfig(),
		Timeout:         5 * time.Second,
	}
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	config := cfg.(*Config)
	e, err := newExporter(set, config)
	if err != nil {
		return nil, err
	}
	userAgent := httpclient.UserAgent(set.BuildInfo)
	client := httpclient.Client{Telemetry: set.TelemetrySettings, UserAgent: userAgent,
		MaxRetryAfter: config.MaxRetryAfter}
	switch {
	case config.GRPC.HasValue():
		e.peer = &grpcPeer{
			config: config.GRPC.Get(), settings: set.TelemetrySettings, userAgent: userAgent, retry: config.Retry,
			maxDelay: config.MaxRetryAfter,
		}
	case config.HEC.HasValue():
		e.peer = newHECPeer(config.HEC.Get(), client)
	default:
		e.peer = newHTTPPeer(config.HTTP.Get(), client)
	}
	set.TelemetrySettings = exportreport.Settings(set.TelemetrySettings)
	e.Profiles, err = xexporterhelper.NewProfiles(ctx, set, cfg, e.push,
		// One push can send several requests, each of which has the timeout.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithRetry(config.Retry),
		exporterhelper.WithQueue(config.Queue),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	)
	return e, err
}

// newExporter returns an exporter without a peer.
func newExporter(set exporter.Settings, config *Config) (*profilesToLogs, error) {
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &profilesToLogs{config: config, logger: set.Logger, metrics: b, encoding: &encode.Metrics{
		Format:         config.Encoding.Format,
		Records:        b.ExporterProfilesToLogsRecords,
		Samples:        b.ExporterProfilesToLogsSamples,
		Bytes:          b.ExporterProfilesToLogsBytes,
		Oversized:      b.ExporterProfilesToLogsOversizedRecords,
		LeftOut:        b.ExporterProfilesToLogsLeftOutSamples,
		DroppedSamples: b.ExporterProfilesToLogsDroppedSamples,

		LeftOutAttributes: b.ExporterProfilesToLogsLeftOutAttributes,
	}}
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e, nil
}
