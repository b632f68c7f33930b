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

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// scopeName names this package in scopes and metrics.
const scopeName = "github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver"

var componentType = component.MustNewType("pprof")

// NewFactory makes the factory of the receiver `pprof`, which serves profiles pipelines only.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(
		componentType,
		createDefaultConfig,
		xreceiver.WithProfiles(createProfiles, component.StabilityLevelAlpha),
	)
}

// createDefaultConfig is the only place for defaults; the README's table is compared with it.
func createDefaultConfig() component.Config {
	limits := pprofconv.DefaultLimits()

	server := ServerConfig{HTTP: confighttp.NewDefaultServerConfig()}
	server.HTTP.NetAddr.Endpoint = "localhost:4040"
	server.HTTP.MaxRequestBodySize = int64(limits.MaxProfileBytes)
	server.HTTP.ReadTimeout = 30 * time.Second
	server.HTTP.CompressionAlgorithms = []string{"", "gzip", "zstd"}

	remote := RemoteConfig{
		Client:             confighttp.NewDefaultClientConfig(),
		CollectionInterval: 10 * time.Second,
		InitialDelay:       time.Second,
	}
	remote.Client.Timeout = 10 * time.Second

	// What the page says of targets is not for everybody, so that it is to be seen on this machine only.
	status := ScrapeStatusConfig{HTTP: confighttp.NewDefaultServerConfig()}
	status.HTTP.NetAddr.Endpoint = "localhost:4041"
	status.HTTP.ReadTimeout = 10 * time.Second

	return &Config{
		Server: configoptional.Default(server),
		Remote: configoptional.Default(remote),
		Scrape: configoptional.Default(ScrapeConfig{MaxConcurrent: 64, Status: configoptional.Default(status)}),
		File: configoptional.Default(FileConfig{
			CollectionInterval: 10 * time.Second,
			InitialDelay:       time.Second,
			AfterRead:          afterReadKeep,
		}),
		Self: configoptional.Default(SelfConfig{
			CollectionInterval:   10 * time.Second,
			BlockProfileFraction: 1,
			MutexProfileFraction: 1,
		}),
		Limits: LimitsConfig{
			MaxProfileBytes: limits.MaxProfileBytes, MaxTextBytes: limits.MaxTextBytes, MaxExpansion: limits.MaxExpansion,
		},
		DrainTimeout: httpserver.DefaultDrainTimeout,
	}
}

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return newReceiver(set, cfg.(*Config), next)
}
