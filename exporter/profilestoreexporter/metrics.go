// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// metrics are the exporter's own. Callbacks observe those of the store.
type metrics struct{ *metadata.TelemetryBuilder }

func newMetrics(settings component.TelemetrySettings, s *store.Store) (*metrics, error) {
	b, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	observe := func(value func(*store.Stats) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			stats := s.Stats()
			o.Observe(int64(value(&stats)))
			return nil
		}
	}
	return &metrics{b}, errors.Join(
		b.RegisterExporterProfileStoreSeriesCallback(observe(func(s *store.Stats) int { return s.Series })),
		b.RegisterExporterProfileStoreProfilesCallback(observe(func(s *store.Stats) int { return s.Profiles })),
		b.RegisterExporterProfileStoreBytesCallback(observe(func(s *store.Stats) int { return s.Bytes })),
		b.RegisterExporterProfileStoreDiskBlocksCallback(observe(func(s *store.Stats) int { return s.DiskBlocks })),
		b.RegisterExporterProfileStoreDiskBytesCallback(observe(func(s *store.Stats) int { return int(s.DiskBytes) })),
		b.RegisterExporterProfileStoreDiskFailingCallback(observe(func(s *store.Stats) int { return s.DiskFailing })),
		b.RegisterExporterProfileStoreDamagedBlocksCallback(observe(func(s *store.Stats) int { return s.Damaged })),
		b.RegisterExporterProfileStoreEvictedProfilesCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i, n := range s.Stats().Evicted {
				o.Observe(int64(n), reason(store.Evicted(i).String()))
			}
			return nil
		}),
		b.RegisterExporterProfileStoreRefusedItemsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i, n := range s.Stats().Refused {
				o.Observe(int64(n), reason(store.Refused(i).String()))
			}
			return nil
		}),
	)
}

func reason(value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
}

// query counts an answer. endpoint is one of the API's, outcome ok, refused or failed.
func (m *metrics) query(ctx context.Context, endpoint, outcome string, took time.Duration) {
	m.ExporterProfileStoreQueries.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("endpoint", endpoint), attribute.String("outcome", outcome))))
	m.ExporterProfileStoreQueryDuration.Record(ctx, took.Seconds(),
		metric.WithAttributeSet(attribute.NewSet(attribute.String("endpoint", endpoint))))
}
