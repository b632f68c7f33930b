// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkdelivery

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// Why records are rejected, beside the reasons of splunklog.
const (
	// ReasonNotProfiling is a record without a profile where there is no logs pipeline.
	ReasonNotProfiling = "not_profiling"
	// ReasonRefused is a record that was read and that the pipeline refused permanently.
	ReasonRefused = "refused"
)

// FaultEventTime is the fault of a time or period that is no number or out of range.
const FaultEventTime = "event_time"

// Metrics counts what passes through a component, by its generated counters. One serves all the ways into it.
type Metrics struct {
	Records, Profiles, Samples, Rejected, Dropped, Repaired metric.Int64Counter
}

func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// count counts what was read of a request.
func (m *Metrics) count(ctx context.Context, r *splunklog.Result) {
	for f, types := range r.Records {
		for t, sources := range types {
			for s, n := range sources {
				if n > 0 {
					m.Records.Add(ctx, int64(n), with(
						attribute.String("format", splunklog.Format(f).String()),
						attribute.String("type", splunklog.Type(t).String()),
						attribute.String("source", splunklog.Source(s).String()),
					))
				}
			}
		}
	}
	var reasons [splunklog.NumReasons]int
	for _, rejection := range r.Rejected {
		reasons[rejection.Reason]++
	}
	for i, n := range reasons {
		m.reject(ctx, splunklog.Reason(i).String(), n)
	}
	for i, n := range r.Dropped {
		if n > 0 {
			m.Dropped.Add(ctx, int64(n), with(attribute.String("reason", pprofconv.DropReason(i).String())))
		}
	}
	for i, n := range r.Repaired {
		m.repair(ctx, pprofconv.Repair(i).String(), n)
	}
	m.repair(ctx, FaultEventTime, r.BadTimes)
}

func (m *Metrics) reject(ctx context.Context, why string, records int) {
	if records > 0 {
		m.Rejected.Add(ctx, int64(records), with(attribute.String("reason", why)))
	}
}

func (m *Metrics) repair(ctx context.Context, fault string, times int) {
	if times > 0 {
		m.Repaired.Add(ctx, int64(times), with(attribute.String("fault", fault)))
	}
}
