// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/procfs"
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

	own           metric.MeasurementOption
	sources       [numSources]metric.MeasurementOption
	outcomes      [procfs.NumOutcomes]metric.MeasurementOption
	contexts      [procfs.NumContextOutcomes]metric.MeasurementOption
	overResources metric.MeasurementOption
	overCopies    metric.MeasurementOption
}

func newMetrics(settings component.TelemetrySettings, id component.ID, p *processResource) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	with := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value), attribute.String("processor", id.String())))
	}
	m := &metrics{
		TelemetryBuilder: builder,
		own:              metric.WithAttributeSet(attribute.NewSet(attribute.String("processor", id.String()))),
		overResources:    with("reason", otherMaxResources),
		overCopies:       with("reason", otherMessageSize),
	}
	for i, name := range sourceNames {
		m.sources[i] = with("source", name)
	}
	for i := range m.outcomes {
		m.outcomes[i] = with("outcome", procfs.Outcome(i).String())
	}
	for i := range m.contexts {
		m.contexts[i] = with("outcome", procfs.ContextOutcome(i).String())
	}
	if err := m.RegisterProcessorProcessResourceResourcesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(p.resources.len()), m.own)
		return nil
	}); err != nil {
		return nil, err
	}
	return m, m.RegisterProcessorProcessResourceProcessesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(p.processes.Len()), m.own)
		return nil
	})
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
func (m *metrics) countSamples(ctx context.Context, bySource *[numSources]int, stats regroup.Stats) {
	for i, n := range bySource {
		if n != 0 {
			m.ProcessorProcessResourceSamples.Add(ctx, int64(n), m.sources[i])
		}
	}
	if stats.OverResources != 0 {
		m.ProcessorProcessResourceOtherSamples.Add(ctx, int64(stats.OverResources), m.overResources)
	}
	if stats.OverCopies != 0 {
		m.ProcessorProcessResourceOtherSamples.Add(ctx, int64(stats.OverCopies), m.overCopies)
	}
}
