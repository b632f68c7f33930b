// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/file"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/remote"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
)

// NewFactory returns the factory of the receiver `pprof`, for profiles pipelines only.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(metadata.Type, createDefaultConfig,
		xreceiver.WithProfiles(createProfiles, metadata.ProfilesStability))
}

// createDefaultConfig is the only place for defaults; a test compares the README's table with it.
func createDefaultConfig() component.Config {
	limits := scan.DefaultLimits()

	server := push.Config{HTTP: confighttp.NewDefaultServerConfig(), Pyroscope: push.DefaultPyroscope()}
	server.HTTP.NetAddr.Endpoint = "localhost:4040"
	server.HTTP.MaxRequestBodySize = int64(limits.MaxProfileBytes)
	server.HTTP.ReadTimeout = 30 * time.Second
	server.HTTP.CompressionAlgorithms = []string{"", "gzip", "zstd"}

	scraped := remote.Config{
		Client:             confighttp.NewDefaultClientConfig(),
		CollectionInterval: 10 * time.Second,
		InitialDelay:       time.Second,
	}
	scraped.Client.Timeout = 10 * time.Second

	// The page shows details of targets that are not for everybody, so by default only this machine can reach it.
	status := scrape.StatusConfig{HTTP: confighttp.NewDefaultServerConfig()}
	status.HTTP.NetAddr.Endpoint = "localhost:4041"
	status.HTTP.ReadTimeout = 10 * time.Second

	return &Config{
		Server: configoptional.Default(server),
		Remote: configoptional.Default(scraped),
		Scrape: configoptional.Default(scrape.Config{MaxConcurrent: 64, Status: configoptional.Default(status)}),
		File: configoptional.Default(file.Config{
			CollectionInterval: 10 * time.Second,
			InitialDelay:       time.Second,
			AfterRead:          file.AfterReadKeep,
			MaxEntries:         100_000,
		}),
		Self: configoptional.Default(self.Config{
			CollectionInterval:   10 * time.Second,
			BlockProfileFraction: 1,
			MutexProfileFraction: 1,
		}),
		Config: ingest.Config{
			Formats: ingest.AllFormats(), GoTrace: ingest.DefaultGoTrace(), TimestampLabels: decode.DefaultTimestampLabels(),
		},
		Limits: LimitsConfig{MaxProfileBytes: limits.MaxProfileBytes},
	}
}

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config,
	next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return newReceiver(set, cfg.(*Config), next)
}
