// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/regroup"
)

// The reasons for which processes share the resource `other`.
const (
	otherMaxResources = "max_resources"
	otherMessageSize  = "message_size"
)

// metrics are the processor's own, with the attributes of each measurement made once.
type metrics struct {
	*metadata.TelemetryBuilder

	own                       metric.MeasurementOption
	outcomes, contexts        telemetry.Each
	sources                   map[Source]metric.MeasurementOption
	overResources, overCopies metric.MeasurementOption
}

func newMetrics(settings component.TelemetrySettings, id component.ID, p *processResource) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	own := []string{"processor", id.String()}
	m := &metrics{
		TelemetryBuilder: builder,
		own:              telemetry.Attributes(own...),
		outcomes:         telemetry.EachOf[procfs.Outcome](procfs.NumOutcomes, "outcome", own...),
		contexts:         telemetry.EachOf[procfs.ContextOutcome](procfs.NumContextOutcomes, "outcome", own...),
		overResources:    telemetry.Attributes("reason", otherMaxResources, "processor", id.String()),
		overCopies:       telemetry.Attributes("reason", otherMessageSize, "processor", id.String()),
		sources:          map[Source]metric.MeasurementOption{},
	}
	for _, source := range metricSources {
		m.sources[source] = telemetry.Attributes("source", string(source), "processor", id.String())
	}
	return m, errors.Join(
		m.RegisterProcessorProcessResourceResourcesCallback(telemetry.Observe(p.resources.len, m.own)),
		m.RegisterProcessorProcessResourceProcessesCallback(telemetry.Observe(func() int { return p.processes.Len() },
			m.own)),
	)
}

// countRead counts the reading of a process. It is not called for a message, so it has no context.
func (m *metrics) countRead(outcome procfs.Outcome) {
	m.ProcessorProcessResourceProcessReads.Add(context.Background(), 1, m.outcomes[outcome])
}

// countContext counts the reading of a process context, if the process has one.
func (m *metrics) countContext(outcome procfs.ContextOutcome) {
	if outcome != procfs.ContextNone {
		m.ProcessorProcessResourceContexts.Add(context.Background(), 1, m.contexts[outcome])
	}
}

// countSamples counts the samples of a message by the source of their service's name.
func (m *metrics) countSamples(ctx context.Context, bySource map[Source]int, stats regroup.Stats) {
	for source, n := range bySource {
		m.ProcessorProcessResourceSamples.Add(ctx, int64(n), m.sources[source])
	}
	if stats.OverResources != 0 {
		m.ProcessorProcessResourceOtherSamples.Add(ctx, int64(stats.OverResources), m.overResources)
	}
	if stats.OverCopies != 0 {
		m.ProcessorProcessResourceOtherSamples.Add(ctx, int64(stats.OverCopies), m.overCopies)
	}
}
