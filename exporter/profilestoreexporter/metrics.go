// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// metrics are the exporter's own. Callbacks observe those of the store.
type metrics struct{ *metadata.TelemetryBuilder }

func newMetrics(settings component.TelemetrySettings, s *store.Store) (*metrics, error) {
	b, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	observe := func(value func(*model.Stats) int) metric.Int64Callback {
		return telemetry.Observe(func() int {
			stats := s.Stats()
			return value(&stats)
		})
	}
	started := time.Now()
	return &metrics{b}, errors.Join(
		b.RegisterExporterProfileStoreMaintenanceAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			last := started
			if at := s.Stats().Maintained; at.After(last) {
				last = at
			}
			o.Observe(time.Since(last).Seconds())
			return nil
		}),
		b.RegisterExporterProfileStoreSeriesCallback(observe(func(s *model.Stats) int { return s.Series })),
		b.RegisterExporterProfileStoreProfilesCallback(observe(func(s *model.Stats) int { return s.Profiles })),
		b.RegisterExporterProfileStoreBytesCallback(observe(func(s *model.Stats) int { return s.Bytes })),
		b.RegisterExporterProfileStoreDiskBlocksCallback(observe(func(s *model.Stats) int { return s.DiskBlocks })),
		b.RegisterExporterProfileStoreDiskBytesCallback(observe(func(s *model.Stats) int { return int(s.DiskBytes) })),
		b.RegisterExporterProfileStoreDiskFailingCallback(observe(func(s *model.Stats) int { return s.DiskFailing })),
		b.RegisterExporterProfileStoreDamagedBlocksCallback(observe(func(s *model.Stats) int { return s.Damaged })),
		b.RegisterExporterProfileStoreEvictedProfilesCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i, n := range s.Stats().Evicted {
				o.Observe(int64(n), telemetry.Attributes("reason", model.Evicted(i).String()))
			}
			return nil
		}),
		b.RegisterExporterProfileStoreRefusedItemsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i, n := range s.Stats().Refused {
				o.Observe(int64(n), telemetry.Attributes("reason", model.Refused(i).String()))
			}
			return nil
		}),
	)
}

// query counts an answer. endpoint is one of the API's, outcome ok, refused or failed.
func (m *metrics) query(ctx context.Context, endpoint, outcome string, took time.Duration) {
	m.ExporterProfileStoreQueries.Add(ctx, 1, telemetry.Attributes("endpoint", endpoint, "outcome", outcome))
	m.ExporterProfileStoreQueryDuration.Record(ctx, took.Seconds(), telemetry.Attributes("endpoint", endpoint))
}
