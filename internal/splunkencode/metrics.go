// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkencode

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// Metrics counts what became log records. It is safe for concurrent use.
type Metrics struct {
	records, samples, bytes, oversized, leftOut, dropped metric.Int64Counter
	format                                               metric.MeasurementOption
}

// NewMetrics makes the metrics of a component, of a kind such as exporter.
func NewMetrics(kind, format string, meter metric.Meter) (*Metrics, error) {
	var errs []error
	counter := func(noun, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter("otelcol_"+kind+"_profiles_to_logs_"+noun, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	return &Metrics{
		records:   counter("records", "{record}", "Number of log records that were taken."),
		samples:   counter("samples", "{sample}", "Number of samples in them, each time at which one was taken."),
		bytes:     counter("bytes", "By", "Encoded size of the log records that were taken."),
		oversized: counter("oversized_records", "{record}", "Number of log records above max_record_bytes that could not be split."),
		leftOut:   counter("left_out_samples", "{sample}", "Number of samples left out since Splunk has no such type."),
		dropped:   counter("dropped_samples", "{sample}", "Number of samples left out since they cannot be understood or expand too far."),
		format:    metric.WithAttributeSet(attribute.NewSet(attribute.String("format", format))),
	}, errors.Join(errs...)
}

// Counters are the counters of a component whose instruments are generated.
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
