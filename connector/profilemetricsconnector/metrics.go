// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
)

// outcome is how sending points has ended.
type outcome int

const (
	accepted outcome = iota
	retried
	refused
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"accepted", "retried", "refused"}

// metrics are the connector's own, with the attributes of each measurement made once.
type metrics struct {
	*metadata.TelemetryBuilder
	own      metric.MeasurementOption
	reasons  [reduce.NumReasons]metric.MeasurementOption
	outcomes [numOutcomes]metric.MeasurementOption
}

func newMetrics(settings component.TelemetrySettings, id component.ID, c *profileMetrics) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	connector := attribute.String("connector", id.String())
	m := &metrics{TelemetryBuilder: builder, own: metric.WithAttributeSet(attribute.NewSet(connector))}
	for i := range m.reasons {
		m.reasons[i] = metric.WithAttributeSet(attribute.NewSet(connector, attribute.String("reason", reduce.Reason(i).String())))
	}
	for i, name := range outcomeNames {
		m.outcomes[i] = metric.WithAttributeSet(attribute.NewSet(connector, attribute.String("outcome", name)))
	}
	observe := func(read func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			o.Observe(int64(read()), m.own)
			return nil
		}
	}
	if err := m.RegisterConnectorProfileMetricsSeriesCallback(observe(func() int { return c.table.Len() + c.functions.Len() })); err != nil {
		return nil, err
	}
	return m, m.RegisterConnectorProfileMetricsBytesCallback(observe(func() int { return c.table.Bytes() + c.functions.Bytes() }))
}

func (m *metrics) count(ctx context.Context, samples int, added *series.Added) {
	m.ConnectorProfileMetricsSamples.Add(ctx, int64(samples), m.own)
	for reason, n := range added.Dropped {
		if n > 0 {
			m.ConnectorProfileMetricsDroppedSamples.Add(ctx, int64(n), m.reasons[reason])
		}
	}
	if added.Overflow > 0 {
		m.ConnectorProfileMetricsOverflowSamples.Add(ctx, int64(added.Overflow), m.own)
	}
}

func (m *metrics) countPoints(ctx context.Context, result outcome, n int) {
	m.ConnectorProfileMetricsPoints.Add(ctx, int64(n), m.outcomes[result])
}
