// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// metrics are the processor's own metrics, with the attribute sets of all measurements.
type metrics struct {
	*metadata.TelemetryBuilder

	own     metric.MeasurementOption
	sources [sources.NumKinds]metric.MeasurementOption
	reasons [lookup.NumReasons]metric.MeasurementOption
	results map[string]metric.MeasurementOption
}

// requestResults are the results of a request to a debuginfod server.
var requestResults = []string{"found", "not_found", "too_large", "error"}

func newMetrics(settings component.TelemetrySettings, id component.ID) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	m := &metrics{TelemetryBuilder: builder, own: attributes(id), results: map[string]metric.MeasurementOption{}}
	fill(m.sources[:], id, "source", func(i int) fmt.Stringer { return sources.Kind(i) })
	fill(m.reasons[:], id, "reason", func(i int) fmt.Stringer { return lookup.Reason(i) })
	for _, result := range requestResults {
		m.results[result] = attributes(id, attribute.String("result", result))
	}
	return m, nil
}

// observe registers the sizes of a Resolver and a Finder.
func (m *metrics) observe(resolver *lookup.Resolver, finder *sources.Finder) error {
	register := func(with func(metric.Int64Callback) error, value func() int64) error {
		return with(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(), m.own)
			return nil
		})
	}
	return errors.Join(
		register(m.RegisterProcessorSymbolizeCacheBytesCallback, func() int64 { return resolver.Sizes().CacheBytes }),
		register(m.RegisterProcessorSymbolizeCacheEntriesCallback, func() int64 { return resolver.Sizes().CacheEntries }),
		register(m.RegisterProcessorSymbolizeModulesCallback, func() int64 { return resolver.Sizes().Modules }),
		register(m.RegisterProcessorSymbolizeQueuedModulesCallback, func() int64 { return resolver.Sizes().Queued }),
		register(m.RegisterProcessorSymbolizeOpenFilesCallback, func() int64 { return resolver.Sizes().OpenFiles }),
		register(m.RegisterProcessorSymbolizeOpenBytesCallback, func() int64 { return resolver.Sizes().OpenBytes }),
		register(m.RegisterProcessorSymbolizeDebuginfodCacheBytesCallback, finder.DebuginfodCacheBytes),
	)
}

func fill(options []metric.MeasurementOption, id component.ID, key string, name func(int) fmt.Stringer) {
	for i := range options {
		options[i] = attributes(id, attribute.String(key, name(i).String()))
	}
}

func attributes(id component.ID, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("processor", id.String()))...))
}

// tally is what happened to the locations of a message.
type tally struct {
	lookups, cached int
	resolved        [sources.NumKinds]int
	unresolved      [lookup.NumReasons]int
}

func (m *metrics) count(ctx context.Context, t *tally) {
	m.ProcessorSymbolizeLookups.Add(ctx, int64(t.lookups), m.own)
	m.ProcessorSymbolizeCachedLookups.Add(ctx, int64(t.cached), m.own)
	addAll(ctx, m.ProcessorSymbolizeResolvedLocations, t.resolved[:], m.sources[:])
	addAll(ctx, m.ProcessorSymbolizeUnresolvedLocations, t.unresolved[:], m.reasons[:])
}

func addAll(ctx context.Context, to metric.Int64Counter, counts []int, by []metric.MeasurementOption) {
	for i, n := range counts {
		if n != 0 {
			to.Add(ctx, int64(n), by[i])
		}
	}
}
