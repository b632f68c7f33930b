// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// AttributesOption returns the attributes of a measurement (key, value, ...).
func AttributesOption(keyValues ...string) metric.MeasurementOption {
	set := make([]attribute.KeyValue, 0, len(keyValues)/2)
	for i := 0; i < len(keyValues); i += 2 {
		set = append(set, attribute.String(keyValues[i], keyValues[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}

// CountRejected counts a payload if err is a *Rejection.
func (in *Ingester) CountRejected(ctx context.Context, err error) {
	if why := ReasonOf(err); why != "" {
		in.Metrics.ReceiverPprofRejectedPayloads.Add(ctx, 1, AttributesOption("reason", string(why), "source", in.Source))
	}
}

// countFaults counts what was dropped or repaired in a payload that was decoded.
func (in *Ingester) countFaults(ctx context.Context, stats *decode.Stats) {
	for i, n := range stats.Dropped {
		if n > 0 {
			in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(n), AttributesOption("reason", scan.DropReason(i).String()))
		}
	}
	for i, n := range stats.Repaired {
		if n > 0 {
			in.Metrics.ReceiverPprofRepaired.Add(ctx, int64(n), AttributesOption("fault", scan.Repair(i).String()))
		}
	}
}

// countLeftOut counts what the options of a format left out.
func (in *Ingester) countLeftOut(ctx context.Context, stats *events.Stats) {
	if stats.TooShort > 0 {
		in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(stats.TooShort), AttributesOption("reason", events.ReasonTooShort))
	}
	if stats.Filtered > 0 {
		in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(stats.Filtered), AttributesOption("reason", events.ReasonFiltered))
	}
}
