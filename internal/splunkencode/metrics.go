// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkencode

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// Metrics counts what became log records. It is safe for concurrent use.
type Metrics struct {
	records, samples, bytes, oversized, leftOut, dropped metric.Int64Counter
	format                                               metric.MeasurementOption
}

// Counters are the counters of a component, which are generated.
type Counters struct {
	Records, Samples, Bytes, Oversized, LeftOut, Dropped metric.Int64Counter
}

// Count counts by the counters of a component.
func Count(format string, c Counters) *Metrics {
	return &Metrics{
		records: c.Records, samples: c.Samples, bytes: c.Bytes, oversized: c.Oversized, leftOut: c.LeftOut, dropped: c.Dropped,
		format: metric.WithAttributeSet(attribute.NewSet(attribute.String("format", format))),
	}
}

// Taken counts a part that was taken.
func (m *Metrics) Taken(ctx context.Context, part *splunklog.EncodedPart) {
	add := func(c metric.Int64Counter, n int) {
		if n > 0 {
			c.Add(ctx, int64(n), m.format)
		}
	}
	add(m.records, part.Records)
	add(m.samples, part.Samples)
	add(m.bytes, part.Bytes)
	add(m.oversized, part.Oversized)
	add(m.leftOut, part.LeftOut)
	add(m.dropped, part.Dropped)
}

// Dropped counts samples that cannot be understood.
func (m *Metrics) Dropped(ctx context.Context, n int) {
	if n > 0 {
		m.dropped.Add(ctx, int64(n), m.format)
	}
}
