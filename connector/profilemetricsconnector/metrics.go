// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// metrics are the connector's own, with the attributes of measurements of each message made once.
type metrics struct {
	*metadata.TelemetryBuilder
	own     metric.MeasurementOption
	reasons telemetry.Each
}

func newMetrics(settings component.TelemetrySettings, id component.ID, c *profileMetrics) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	own := []string{"connector", id.String()}
	m := &metrics{
		TelemetryBuilder: builder, own: telemetry.Attributes(own...),
		reasons: telemetry.EachOf[reduce.Reason](int(reduce.NumReasons), "reason", own...),
	}
	observe := func(read func() int) metric.Int64Callback {
		return telemetry.Observe(func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return read()
		}, m.own)
	}
	return m, errors.Join(
		m.RegisterConnectorProfileMetricsSeriesCallback(observe(func() int { return c.table.Len() + c.functions.Len() })),
		m.RegisterConnectorProfileMetricsBytesCallback(observe(func() int { return c.table.Bytes() + c.functions.Bytes() })),
	)
}

func (m *metrics) count(ctx context.Context, result *reduce.Result) {
	m.ConnectorProfileMetricsSamples.Add(ctx, int64(result.Samples), m.own)
	m.reasons.Add(ctx, m.ConnectorProfileMetricsDroppedSamples, result.Dropped[:])
	if result.Overflow > 0 {
		m.ConnectorProfileMetricsOverflowSamples.Add(ctx, int64(result.Overflow), m.own)
	}
}
