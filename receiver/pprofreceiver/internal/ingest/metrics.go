// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// CountRejected counts a payload if err is a *Rejection.
func (in *Ingester) CountRejected(ctx context.Context, err error) {
	if why := ReasonOf(err); why != "" {
		in.Metrics.ReceiverPprofRejectedPayloads.Add(ctx, 1, telemetry.Attributes("reason", string(why), "source", in.Source))
	}
}

// countFaults counts what was dropped or repaired in a payload that was decoded.
func (in *Ingester) countFaults(ctx context.Context, stats *decode.Stats) {
	telemetry.AddEach[scan.DropReason](ctx, in.Metrics.ReceiverPprofDroppedSamples, "reason", stats.Dropped[:])
	telemetry.AddEach[scan.Repair](ctx, in.Metrics.ReceiverPprofRepaired, "fault", stats.Repaired[:])
}

// countLeftOut counts what the options of a format left out.
func (in *Ingester) countLeftOut(ctx context.Context, stats *events.Stats) {
	if stats.TooShort > 0 {
		in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(stats.TooShort), telemetry.Attributes("reason", events.ReasonTooShort))
	}
	if stats.Filtered > 0 {
		in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(stats.Filtered), telemetry.Attributes("reason", events.ReasonFiltered))
	}
}
