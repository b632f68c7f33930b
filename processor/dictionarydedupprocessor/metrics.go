// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
)

// reason says why a batch was sent: the value of a metric's attribute.
type reason int

// The reasons for which a batch is sent.
const (
	reasonSize     reason = iota // it has `send_batch_size` samples
	reasonBytes                  // the next request might not fit into `max_batch_bytes`
	reasonTimeout                // `timeout` has passed; with 0, at once
	reasonShutdown               // the processor stops
	numReasons     int    = iota
)

var reasonNames = [numReasons]string{"size", "bytes", "timeout", "shutdown"}

func (r reason) String() string { return reasonNames[r] }

// metricPrefix begins the name of all metrics, which metadata.yaml and the README declare.
const metricPrefix = "otelcol_processor_dictionary_dedup_"

// metrics are the processor's own.
type metrics struct {
	incomingSamples, outgoingSamples   metric.Int64Counter
	incomingProfiles, outgoingProfiles metric.Int64Counter
	incomingBytes, outgoingBytes       metric.Int64Counter
	incomingEntries, outgoingEntries   metric.Int64Counter
	batches, splits, oversized         metric.Int64Counter
	dropped, repaired, failed, retries metric.Int64Counter

	own     metric.MeasurementOption
	tables  [len(compact.Tables)]metric.MeasurementOption
	reasons [numReasons]metric.MeasurementOption
	losses  [numLosses]metric.MeasurementOption
	drops   [compact.NumDropReasons]metric.MeasurementOption
	repairs [compact.NumRepairs]metric.MeasurementOption
}

func newMetrics(settings component.TelemetrySettings, id component.ID, batchers func() int) (*metrics, error) {
	meter := settings.MeterProvider.Meter(scopeName)
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(metricPrefix+name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m := &metrics{
		incomingSamples:  counter("incoming_samples", "{sample}", "Number of samples that came in."),
		outgoingSamples:  counter("outgoing_samples", "{sample}", "Number of samples that the next component took."),
		incomingProfiles: counter("incoming_profiles", "{profile}", "Number of profiles that came in."),
		outgoingProfiles: counter("outgoing_profiles", "{profile}", "Number of profiles that the next component took."),
		incomingBytes:    counter("incoming_bytes", "By", "Encoded size of what came in."),
		outgoingBytes:    counter("outgoing_bytes", "By", "Encoded size of what the next component took."),
		incomingEntries:  counter("incoming_entries", "{entry}", "Number of dictionary entries that came in."),
		outgoingEntries:  counter("outgoing_entries", "{entry}", "Number of dictionary entries that the next component took."),
		batches:          counter("batches", "{batch}", "Number of batches that were sent."),
		splits:           counter("splits", "{split}", "Number of times that a batch was cut in two for its size."),
		oversized:        counter("oversized", "{message}", "Number of messages above max_batch_bytes, since their samples share too much to be split."),
		dropped:          counter("dropped_samples", "{sample}", "Number of samples that could not be understood."),
		repaired:         counter("repaired", "{fault}", "Number of faults that cost no sample."),
		failed:           counter("failed_samples", "{sample}", "Number of samples that were lost after they had been accepted."),
		retries:          counter("retries", "{retry}", "Number of times that the next component refused a message for the moment."),
		own:              attributes(id),
	}
	for i, name := range compact.Tables {
		m.tables[i] = attributes(id, attribute.String("table", name))
	}
	for i := range m.reasons {
		m.reasons[i] = attributes(id, attribute.String("reason", reason(i).String()))
	}
	for i := range m.losses {
		m.losses[i] = attributes(id, attribute.String("reason", loss(i).String()))
	}
	for i := range m.drops {
		m.drops[i] = attributes(id, attribute.String("reason", compact.DropReason(i).String()))
	}
	for i := range m.repairs {
		m.repairs[i] = attributes(id, attribute.String("fault", compact.Repair(i).String()))
	}
	_, err := meter.Int64ObservableUpDownCounter(metricPrefix+"batchers", metric.WithUnit("{batcher}"),
		metric.WithDescription("Number of combinations of client metadata that have something pending."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(batchers()), m.own)
			return nil
		}))
	return m, errors.Join(append(errs, err)...)
}

func attributes(id component.ID, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("processor", id.String()))...))
}

// countIncomingBytes measures a message, which takes a walk through all of it, where somebody wants to know.
func (m *metrics) countIncomingBytes(ctx context.Context, pd pprofile.Profiles) {
	if m.incomingBytes.Enabled(ctx) {
		m.incomingBytes.Add(ctx, int64(sizer.ProfilesSize(pd)), m.own)
	}
}

var sizer pprofile.ProtoMarshaler

// countIncoming counts what went into a batch.
func (m *metrics) countIncoming(ctx context.Context, s compact.Stats) {
	m.incomingSamples.Add(ctx, int64(s.Samples), m.own)
	m.incomingProfiles.Add(ctx, int64(s.Profiles), m.own)
	addAll(ctx, m.incomingEntries, s.Entries[:], m.tables[:])
	addAll(ctx, m.dropped, s.Dropped[:], m.drops[:])
	addAll(ctx, m.repaired, s.Repairs[:], m.repairs[:])
}

// countOutgoing counts a part, with its size, that the next component has taken; of its samples those taken last.
func (m *metrics) countOutgoing(ctx context.Context, part *compact.Part, samples, bytes int) {
	m.outgoingSamples.Add(ctx, int64(samples), m.own)
	m.outgoingProfiles.Add(ctx, int64(part.ProfileCount), m.own)
	m.outgoingBytes.Add(ctx, int64(bytes), m.own)
	addAll(ctx, m.outgoingEntries, part.Entries[:], m.tables[:])
}

// outgoingSize gives the size of a part before it is handed on, where somebody wants to know.
func (m *metrics) outgoingSize(ctx context.Context, part *compact.Part) int {
	if part.Bytes != 0 || !m.outgoingBytes.Enabled(ctx) {
		return part.Bytes
	}
	return sizer.ProfilesSize(part.Profiles)
}

func addAll(ctx context.Context, to metric.Int64Counter, counts []int, by []metric.MeasurementOption) {
	for i, n := range counts {
		if n != 0 {
			to.Add(ctx, int64(n), by[i])
		}
	}
}
