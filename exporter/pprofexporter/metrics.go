// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// metrics are the exporter's own.
type metrics struct {
	queries      metric.Int64Counter
	queryTime    metric.Float64Histogram
	filesWritten metric.Int64Counter
	filesDeleted metric.Int64Counter
	registration metric.Registration
}

func newMetrics(meter metric.Meter, s *store.Store) (*metrics, error) {
	var errs [10]error
	m := &metrics{}
	m.queries, errs[0] = meter.Int64Counter("otelcol_exporter_pprof_queries", metric.WithUnit("{query}"),
		metric.WithDescription("Number of queries that were answered."))
	m.queryTime, errs[1] = meter.Float64Histogram("otelcol_exporter_pprof_query_duration", metric.WithUnit("s"),
		metric.WithDescription("Time that a query took, waiting included."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30))
	m.filesWritten, errs[2] = meter.Int64Counter("otelcol_exporter_pprof_files_written", metric.WithUnit("{file}"),
		metric.WithDescription("Number of pprof files that were written."))
	m.filesDeleted, errs[3] = meter.Int64Counter("otelcol_exporter_pprof_files_deleted", metric.WithUnit("{file}"),
		metric.WithDescription("Number of pprof files that were deleted."))
	series, err := meter.Int64ObservableGauge("otelcol_exporter_pprof_series", metric.WithUnit("{series}"),
		metric.WithDescription("Number of series that are kept."))
	errs[4] = err
	profiles, err := meter.Int64ObservableGauge("otelcol_exporter_pprof_profiles", metric.WithUnit("{profile}"),
		metric.WithDescription("Number of profiles that are kept, one for each series and interval."))
	errs[5] = err
	bytes, err := meter.Int64ObservableGauge("otelcol_exporter_pprof_bytes", metric.WithUnit("By"),
		metric.WithDescription("Memory that the kept profiles occupy, dictionaries and indices included."))
	errs[6] = err
	evicted, err := meter.Int64ObservableCounter("otelcol_exporter_pprof_evicted_profiles", metric.WithUnit("{profile}"),
		metric.WithDescription("Number of profiles that were kept and are gone."))
	errs[7] = err
	refused, err := meter.Int64ObservableCounter("otelcol_exporter_pprof_refused_items", metric.WithUnit("{item}"),
		metric.WithDescription("Number of profiles, or samples where they are malformed, that were not kept."))
	errs[8] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	m.registration, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		stats := s.Stats()
		o.ObserveInt64(series, int64(stats.Series))
		o.ObserveInt64(profiles, int64(stats.Profiles))
		o.ObserveInt64(bytes, int64(stats.Bytes))
		for i, n := range stats.Evicted {
			o.ObserveInt64(evicted, int64(n), reason(store.Evicted(i).String()))
		}
		for i, n := range stats.Refused {
			o.ObserveInt64(refused, int64(n), reason(store.Refused(i).String()))
		}
		return nil
	}, series, profiles, bytes, evicted, refused)
	return m, err
}

func (m *metrics) shutdown() error { return m.registration.Unregister() }

func reason(value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
}

// query counts an answer. endpoint is one of the API's, outcome ok, refused or failed.
func (m *metrics) query(ctx context.Context, endpoint, outcome string, took time.Duration) {
	m.queries.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("endpoint", endpoint), attribute.String("outcome", outcome))))
	m.queryTime.Record(ctx, took.Seconds(), metric.WithAttributeSet(attribute.NewSet(attribute.String("endpoint", endpoint))))
}
