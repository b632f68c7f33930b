// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestologsexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkencode"
)

// metrics are the exporter's own. encoding counts what goes out as log records.
type metrics struct {
	*metadata.TelemetryBuilder
	encoding *splunkencode.Metrics
}

func newMetrics(settings component.TelemetrySettings, format string) (*metrics, error) {
	b, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	return &metrics{b, &splunkencode.Metrics{
		Format:         format,
		Records:        b.ExporterProfilesToLogsRecords,
		Samples:        b.ExporterProfilesToLogsSamples,
		Bytes:          b.ExporterProfilesToLogsBytes,
		Oversized:      b.ExporterProfilesToLogsOversizedRecords,
		LeftOut:        b.ExporterProfilesToLogsLeftOutSamples,
		DroppedSamples: b.ExporterProfilesToLogsDroppedSamples,
	}}, nil
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
	m.ExporterProfilesToLogsMode.Record(ctx, value)
}

func (m *metrics) switched(ctx context.Context, to string) {
	m.ExporterProfilesToLogsSwitches.Add(ctx, 1, signal("to", to))
	m.inMode(ctx, to)
}
