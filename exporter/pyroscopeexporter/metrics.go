// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scopeName names this package in metrics.
const scopeName = "github.com/otelcol-profiles/otelcol-profiles/exporter/pyroscopeexporter"

type metrics struct{ series, droppedLabels metric.Int64Counter }

func newMetrics(meter metric.Meter) (*metrics, error) {
	series, err1 := meter.Int64Counter("otelcol_exporter_pyroscope_series", metric.WithUnit("{series}"),
		metric.WithDescription("Number of series that were pushed, by outcome."))
	labels, err2 := meter.Int64Counter("otelcol_exporter_pyroscope_dropped_labels", metric.WithUnit("{label}"),
		metric.WithDescription("Number of attributes that did not become labels because a series had too many."))
	return &metrics{series: series, droppedLabels: labels}, errors.Join(err1, err2)
}

// The outcomes of a push.
const (
	outcomeAccepted = "accepted"
	outcomeRefused  = "refused"
	outcomeRetry    = "retry"
)

func (m *metrics) countSeries(ctx context.Context, err error) {
	outcome := outcomeRetry
	switch {
	case err == nil:
		outcome = outcomeAccepted
	case consumererror.IsPermanent(err):
		outcome = outcomeRefused
	}
	m.series.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

func (m *metrics) countDroppedLabels(ctx context.Context, n int) {
	if n > 0 {
		m.droppedLabels.Add(ctx, int64(n))
	}
}
