// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/processor/dictionarydedupprocessor/internal/metadata"
)

// reason is why a batch was sent: the value of a metric's attribute.
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

// metrics are the processor's own metrics. The attributes of each measurement are made once.
type metrics struct {
	*metadata.TelemetryBuilder

	own                                     metric.MeasurementOption
	tables, reasons, losses, drops, repairs telemetry.Each
}

func newMetrics(settings component.TelemetrySettings, id component.ID, batchers func() int) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	own := []string{"processor", id.String()}
	m := &metrics{
		TelemetryBuilder: builder,
		own:              telemetry.Attributes(own...),
		reasons:          telemetry.EachOf[reason](numReasons, "reason", own...),
		losses:           telemetry.EachOf[loss](numLosses, "reason", own...),
		drops:            telemetry.EachOf[compact.DropReason](compact.NumDropReasons, "reason", own...),
		repairs:          telemetry.EachOf[compact.Repair](compact.NumRepairs, "fault", own...),
	}
	for _, name := range compact.Tables {
		m.tables = append(m.tables, telemetry.Attributes("table", name, "processor", id.String()))
	}
	return m, m.RegisterProcessorDictionaryDedupBatchersCallback(telemetry.Observe(batchers, m.own))
}

// countIncomingBytes measures a message if the metric is enabled: measuring reads all of the message.
func (m *metrics) countIncomingBytes(ctx context.Context, pd pprofile.Profiles) {
	if m.ProcessorDictionaryDedupIncomingBytes.Enabled(ctx) {
		m.ProcessorDictionaryDedupIncomingBytes.Add(ctx, int64(sizer.ProfilesSize(pd)), m.own)
	}
}

var sizer pprofile.ProtoMarshaler

// countIncoming counts what was added to a batch.
func (m *metrics) countIncoming(ctx context.Context, s compact.Stats) {
	m.ProcessorDictionaryDedupIncomingSamples.Add(ctx, int64(s.Samples), m.own)
	m.ProcessorDictionaryDedupIncomingProfiles.Add(ctx, int64(s.Profiles), m.own)
	m.tables.Add(ctx, m.ProcessorDictionaryDedupIncomingEntries, s.Entries[:])
	m.drops.Add(ctx, m.ProcessorDictionaryDedupDroppedSamples, s.Dropped[:])
	m.repairs.Add(ctx, m.ProcessorDictionaryDedupRepaired, s.Repairs[:])
}

// countOutgoing counts a part that the next component has accepted: its size, and the samples that it accepted last.
func (m *metrics) countOutgoing(ctx context.Context, part *compact.Part, samples, bytes int) {
	m.ProcessorDictionaryDedupOutgoingSamples.Add(ctx, int64(samples), m.own)
	m.ProcessorDictionaryDedupOutgoingProfiles.Add(ctx, int64(part.ProfileCount), m.own)
	m.ProcessorDictionaryDedupOutgoingBytes.Add(ctx, int64(bytes), m.own)
	m.tables.Add(ctx, m.ProcessorDictionaryDedupOutgoingEntries, part.Entries[:])
}

// outgoingSize returns the size of a part before it is passed on, or 0 if it is unknown and the metric is not enabled.
func (m *metrics) outgoingSize(ctx context.Context, part *compact.Part) int {
	if part.Bytes != 0 || !m.ProcessorDictionaryDedupOutgoingBytes.Enabled(ctx) {
		return part.Bytes
	}
	return sizer.ProfilesSize(part.Profiles)
}
