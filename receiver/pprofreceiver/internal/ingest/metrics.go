// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// Metrics are the receiver's own, which its sources share.
type Metrics struct {
	*metadata.TelemetryBuilder

	droppedBy  [pprofconv.NumDropReasons]metric.MeasurementOption
	repairedBy [pprofconv.NumRepairs]metric.MeasurementOption
}

// NewMetrics returns the instruments.
func NewMetrics(set component.TelemetrySettings) (*Metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	m := &Metrics{TelemetryBuilder: builder}
	for i := range m.droppedBy {
		m.droppedBy[i] = AttributesOption("reason", pprofconv.DropReason(i).String())
	}
	for i := range m.repairedBy {
		m.repairedBy[i] = AttributesOption("fault", pprofconv.Repair(i).String())
	}
	return m, nil
}

// AttributesOption makes the attributes of a measurement (key, value, ...).
func AttributesOption(keyValues ...string) metric.MeasurementOption {
	set := make([]attribute.KeyValue, 0, len(keyValues)/2)
	for i := 0; i < len(keyValues); i += 2 {
		set = append(set, attribute.String(keyValues[i], keyValues[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}

// Observe measures what the receivers of the process hold, until Shutdown.
func (m *Metrics) Observe(budget *admission.Budget) error {
	return m.RegisterReceiverPprofBytesInFlightCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(budget.HeldBytes())
		return nil
	})
}

func (m *Metrics) count(ctx context.Context, stats *pprofconv.DecodeStats) {
	for i, n := range stats.Dropped {
		if n > 0 {
			m.ReceiverPprofDroppedSamples.Add(ctx, int64(n), m.droppedBy[i])
		}
	}
	for i, n := range stats.Repaired {
		if n > 0 {
			m.ReceiverPprofRepaired.Add(ctx, int64(n), m.repairedBy[i])
		}
	}
}
