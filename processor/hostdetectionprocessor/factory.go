// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/collector/processor/processorhelper/xprocessorhelper"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/processor/hostdetectionprocessor/internal/metadata"
)

// contribAlias is the other name of contrib's processor.
var contribAlias = component.MustNewType("resourcedetection")

// NewFactory returns the factory of the processor `resource_detection`.
func NewFactory() processor.Factory {
	return xprocessor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xprocessor.WithDeprecatedTypeAlias(contribAlias),
		xprocessor.WithProfiles(createProfiles, metadata.ProfilesStability),
		xprocessor.WithTraces(createTraces, metadata.TracesStability),
		xprocessor.WithMetrics(createMetrics, metadata.MetricsStability),
		xprocessor.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createProfiles(ctx context.Context, set processor.Settings, cfg component.Config,
	next xconsumer.Profiles) (xprocessor.Profiles, error) {
	p := &hostDetection{cfg: cfg.(*Config)}
	return xprocessorhelper.NewProfiles(ctx, set, cfg, next, p.profiles, xprocessorhelper.WithStart(p.Start))
}

func createTraces(ctx context.Context, set processor.Settings, cfg component.Config,
	next consumer.Traces) (processor.Traces, error) {
	p := &hostDetection{cfg: cfg.(*Config)}
	return processorhelper.NewTraces(ctx, set, cfg, next, p.traces, processorhelper.WithStart(p.Start))
}

func createMetrics(ctx context.Context, set processor.Settings, cfg component.Config,
	next consumer.Metrics) (processor.Metrics, error) {
	p := &hostDetection{cfg: cfg.(*Config)}
	return processorhelper.NewMetrics(ctx, set, cfg, next, p.metrics, processorhelper.WithStart(p.Start))
}

func createLogs(
	ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs,
) (processor.Logs, error) {
	p := &hostDetection{cfg: cfg.(*Config)}
	return processorhelper.NewLogs(ctx, set, cfg, next, p.logs, processorhelper.WithStart(p.Start))
}
