// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
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
	const readTimeout = 30 * time.Second
	grpc := GRPCConfig{Server: configgrpc.NewDefaultServerConfig(), ReadTimeout: readTimeout}
	grpc.Server.NetAddr.Endpoint = "localhost:4317"
	// As much as confighttp accepts by default: gRPC's own 4 MiB is below what agents send from large applications.
	grpc.Server.MaxRecvMsgSizeMiB = 20

	httpAt := func(endpoint string) HTTPConfig {
		c := HTTPConfig{Server: confighttp.NewDefaultServerConfig()}
		c.Server.NetAddr.Endpoint = endpoint
		c.Server.MaxRequestBodySize = 20 << 20
		c.Server.ReadTimeout = readTimeout
		return c
	}

	return &Config{
		Protocols: Protocols{
			GRPC: configoptional.Default(grpc),
			HTTP: configoptional.Default(httpAt("localhost:4318")),
			HEC:  configoptional.Default(httpAt("localhost:8088")),
		},
		Translation:  splunkdelivery.DefaultConfig(),
		DrainTimeout: httpserver.DefaultDrainTimeout,
	}
}

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	r, err := sharedReceiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.profiles = next
	return r, nil
}

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := sharedReceiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.logs = next
	return r, nil
}
