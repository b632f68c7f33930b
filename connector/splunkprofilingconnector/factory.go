// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
)

// Config configures the connector.
type Config struct {
	Translation delivery.Config `mapstructure:",squash"`
}

// NewFactory returns the factory of the connector `splunk_profiling`, from logs to profiles and from logs to logs.
func NewFactory() connector.Factory {
	return xconnector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xconnector.WithLogsToProfiles(createLogsToProfiles, metadata.LogsToProfilesStability),
		xconnector.WithLogsToLogs(createLogsToLogs, metadata.LogsToLogsStability),
	)
}

// createDefaultConfig and what it calls are the only place for defaults; a test compares the README with them.
func createDefaultConfig() component.Config {
	return &Config{Translation: delivery.DefaultConfig()}
}

func createLogsToProfiles(_ context.Context, set connector.Settings, cfg component.Config,
	next xconsumer.Profiles) (connector.Logs, error) {
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	metrics := &delivery.Metrics{
		Records:  b.ConnectorSplunkProfilingRecords,
		Profiles: b.ConnectorSplunkProfilingProfiles,
		Samples:  b.ConnectorSplunkProfilingSamples,
		Rejected: b.ConnectorSplunkProfilingRejectedRecords,
		Dropped:  b.ConnectorSplunkProfilingDroppedSamples,
		Repaired: b.ConnectorSplunkProfilingRepaired,
	}
	return newFromLogs(toProfiles(&delivery.Path{
		Options:  cfg.(*Config).Translation.Options(),
		Budget:   budget.Process(),
		Metrics:  metrics,
		Profiles: next.ConsumeProfiles,
		// Other records are not lost: the pipeline that they came from can have other consumers.
		IgnoreOthers: true,
	}, set.Logger))
}

func createLogsToLogs(
	_ context.Context, _ connector.Settings, _ component.Config, next consumer.Logs,
) (connector.Logs, error) {
	return newFromLogs(toLogs(next))
}
