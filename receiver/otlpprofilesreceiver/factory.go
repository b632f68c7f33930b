// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shared"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/otlpprofilesreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver `otlp_profiles`, for profiles pipelines and logs pipelines.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(metadata.Type, createDefaultConfig,
		xreceiver.WithProfiles(createProfiles, metadata.ProfilesStability),
		xreceiver.WithLogs(createLogs, metadata.LogsStability))
}

// instances are one receiver for each configuration: its pipelines share the ports.
var instances shared.Components[*Config, *otlpReceiver]

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config,
	next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return instances.Get(cfg.(*Config), set, newReceiver, func(r *otlpReceiver) { r.profiles = next })
}

func createLogs(
	_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	return instances.Get(cfg.(*Config), set, newReceiver, func(r *otlpReceiver) { r.logs = next })
}
