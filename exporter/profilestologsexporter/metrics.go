// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkencode"
)

// metrics are the exporter's own. encoding counts what goes out as log records.
type metrics struct {
	encoding                               *splunkencode.Metrics
	switches, rejected, payloads, tooLarge metric.Int64Counter
	mode                                   metric.Int64Gauge
}

func newMetrics(meter metric.Meter, format string) (*metrics, error) {
	var errs [6]error
	m := &metrics{}
	m.encoding, errs[0] = splunkencode.NewMetrics("exporter", format, meter)
	m.switches, errs[1] = meter.Int64Counter("otelcol_exporter_profiles_to_logs_switches", metric.WithUnit("{switch}"),
		metric.WithDescription("Number of changes between profiles and log records."))
	m.rejected, errs[2] = meter.Int64Counter("otelcol_exporter_profiles_to_logs_rejected_items", metric.WithUnit("{item}"),
		metric.WithDescription("Number of profiles or log records that the peer rejected of requests that it took."))
	m.mode, errs[3] = meter.Int64Gauge("otelcol_exporter_profiles_to_logs_mode", metric.WithUnit("1"),
		metric.WithDescription("1 while profiles go out as log records, 0 while they go out as they are."))
	m.payloads, errs[4] = meter.Int64Counter("otelcol_exporter_profiles_to_logs_dropped_payloads", metric.WithUnit("{payload}"),
		metric.WithDescription("Number of original payloads left out since the peer takes nothing as large."))
	m.tooLarge, errs[5] = meter.Int64Counter("otelcol_exporter_profiles_to_logs_too_large_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Number of requests that the peer refused as too large."))
	return m, errors.Join(errs[:]...)
}

// The signals that go out, values of metrics' attributes.
const (
	signalProfiles = "profiles"
	signalLogs     = "logs"
)

func signal(name, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value)))
}

func (m *metrics) inMode(ctx context.Context, to string) {
	value := int64(0)
	if to == signalLogs {
		value = 1
	}
	m.mode.Record(ctx, value)
}

func (m *metrics) switched(ctx context.Context, to string) {
	m.switches.Add(ctx, 1, signal("to", to))
	m.inMode(ctx, to)
}
