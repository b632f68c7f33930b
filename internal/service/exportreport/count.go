// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package exportreport

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The counters of exporterhelper (v0.165), and the attributes that it adds to failed samples.
const (
	sentSamples   = "otelcol_exporter_sent_profile_samples"
	failedSamples = "otelcol_exporter_send_failed_profile_samples"

	errorType      = "error.type"
	errorPermanent = "error.permanent"
)

// Settings returns settings for exporterhelper with which it counts what attempts report. exporterhelper starts a span
// for each message that leaves the queue, makes all attempts with its context, and counts with that context in the end.
// So the span's context carries the message's tally, by which the two counters divide the samples.
func Settings(set component.TelemetrySettings) component.TelemetrySettings {
	set.TracerProvider = tracerProvider{set.TracerProvider}
	set.MeterProvider = meterProvider{set.MeterProvider}
	return set
}

// tally adds up the attempts to send a message. All its numbers are of samples.
type tally struct {
	// whole is the number of the first attempt. It differs from the message's if the exporter combined samples, or split
	// some.
	whole      int
	sent, lost int
	// left is what had to be sent again after the last attempt.
	left int
}

type tallyKey struct{}

// tallyOf returns the tally of the message that ctx belongs to, or a new one if there is none.
func tallyOf(ctx context.Context) *tally {
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		return t
	}
	return &tally{}
}

// add adds an attempt, and reports whether anything of the message was sent so far.
func (t *tally) add(sent, lost, left int) (anySent bool) {
	if t.whole == 0 {
		t.whole = sent + lost + left
	}
	t.sent += sent
	t.lost += lost
	t.left = left
	return t.sent > 0
}

// failed returns how many of a message's samples were not sent. It is exact unless the exporter combined or split
// samples.
func (t *tally) failed(samples int64) int64 {
	failed, whole := int64(t.lost+t.left), int64(t.whole)
	return min(samples, (samples*failed+whole-1)/whole)
}

type tracerProvider struct{ trace.TracerProvider }

func (p tracerProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return tracer{p.TracerProvider.Tracer(name, options...)}
}

type tracer struct{ trace.Tracer }

func (t tracer) Start(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	return t.Tracer.Start(context.WithValue(ctx, tallyKey{}, &tally{}), name, options...)
}

type meterProvider struct{ metric.MeterProvider }

func (p meterProvider) Meter(name string, options ...metric.MeterOption) metric.Meter {
	return &meter{Meter: p.MeterProvider.Meter(name, options...)}
}

// meter wraps the two counters that it makes.
type meter struct {
	metric.Meter
	sent, failed metric.Int64Counter
}

func (m *meter) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c, err := m.Meter.Int64Counter(name, options...)
	switch name {
	case sentSamples:
		m.sent = c
	case failedSamples:
		m.failed = c
	default:
		return c, err
	}
	return counter{c, m, name == failedSamples}, err
}

// counter is told the number of a message's samples: the one of sent samples after a success, the one of failed samples
// after a failure.
type counter struct {
	metric.Int64Counter
	meter    *meter
	isFailed bool
}

func (c counter) Add(ctx context.Context, samples int64, options ...metric.AddOption) {
	failed := int64(0)
	if c.isFailed {
		failed = samples
	}
	if t := tallyOf(ctx); t.whole > 0 {
		failed = t.failed(samples)
	}
	all := metric.NewAddConfig(options).Attributes()
	ofExporter, ofFailure := all.Filter(func(a attribute.KeyValue) bool {
		return a.Key != errorType && a.Key != errorPermanent
	})
	if !c.isFailed {
		ofFailure = []attribute.KeyValue{attribute.String(errorType, "_OTHER"), attribute.Bool(errorPermanent, true)}
	}
	if sent := samples - failed; sent > 0 || !c.isFailed {
		c.meter.sent.Add(ctx, sent, metric.WithAttributeSet(ofExporter))
	}
	if failed > 0 || c.isFailed {
		c.meter.failed.Add(ctx, failed, metric.WithAttributeSet(ofExporter), metric.WithAttributes(ofFailure...))
	}
}
