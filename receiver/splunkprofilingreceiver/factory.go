// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shared"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver `splunk_profiling`, for profiles pipelines and, in addition, logs
// pipelines.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xreceiver.WithProfiles(createProfiles, metadata.ProfilesStability),
		xreceiver.WithLogs(createLogs, metadata.LogsStability),
	)
}

// createDefaultConfig and what it calls are the only place for defaults; a test compares the README with them.
func createDefaultConfig() component.Config {
	return &Config{
		Protocols: Protocols{
			GRPC: configoptional.Default(otlpserver.DefaultGRPC("localhost:4317")),
			HTTP: configoptional.Default(otlpserver.DefaultHTTP("localhost:4318")),
			HEC:  configoptional.Default(otlpserver.DefaultHTTP("localhost:8088")),
		},
		Translation: delivery.DefaultConfig(),
	}
}

// instances are one receiver for each configuration: its pipelines share the ports.
var instances shared.Components[*Config, *splunkReceiver]

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config,
	next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return instances.Get(cfg.(*Config), set, newReceiver, func(r *splunkReceiver) { r.profiles = next })
}

func createLogs(
	_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	return instances.Get(cfg.(*Config), set, newReceiver, func(r *splunkReceiver) { r.logs = next })
}
