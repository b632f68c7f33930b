// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlplayouts"
)

// scopeName names this package in metrics.
const scopeName = "github.com/otelcol-profiles/otelcol-profiles/receiver/otlpprofilesreceiver"

type metrics struct{ requests, ambiguous, dropped, repaired metric.Int64Counter }

func newMetrics(meter metric.Meter) (*metrics, error) {
	var errs []error
	counter := func(noun, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter("otelcol_receiver_otlp_profiles_"+noun, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m := &metrics{
		requests:  counter("requests", "{request}", "Number of requests by the layout of their profiles."),
		ambiguous: counter("ambiguous_requests", "{request}", "Number of requests read as today's layout that could be of an older one."),
		dropped:   counter("dropped_samples", "{sample}", "Number of samples of old layouts that could not be read."),
		repaired:  counter("repaired", "{fault}", "Number of faults in old layouts that were read past."),
	}
	return m, errors.Join(errs...)
}

func (m *metrics) count(ctx context.Context, stats *otlplayouts.Stats) {
	m.requests.Add(ctx, 1, metric.WithAttributes(attribute.String("layout", stats.Layout.String())))
	if stats.Ambiguous {
		m.ambiguous.Add(ctx, 1)
	}
	for reason, n := range stats.Dropped {
		if n > 0 {
			m.dropped.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", otlplayouts.DropReason(reason).String())))
		}
	}
	for fault, n := range stats.Repaired {
		if n > 0 {
			m.repaired.Add(ctx, int64(n), metric.WithAttributes(attribute.String("fault", otlplayouts.Repair(fault).String())))
		}
	}
}
