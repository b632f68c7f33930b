// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// metrics are the processor's own metrics, with the attribute sets of all measurements.
type metrics struct {
	*metadata.TelemetryBuilder

	own              metric.MeasurementOption
	sources, reasons telemetry.Each
	results          map[string]metric.MeasurementOption
}

// requestResults are the results of a request to a debuginfod server.
var requestResults = []string{"found", "not_found", "too_large", "error"}

func newMetrics(settings component.TelemetrySettings, id component.ID) (*metrics, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	own := []string{"processor", id.String()}
	m := &metrics{
		TelemetryBuilder: builder,
		own:              telemetry.Attributes(own...),
		sources:          telemetry.EachOf[sources.Kind](sources.NumKinds, "source", own...),
		reasons:          telemetry.EachOf[lookup.Reason](lookup.NumReasons, "reason", own...),
		results:          map[string]metric.MeasurementOption{},
	}
	for _, result := range requestResults {
		m.results[result] = telemetry.Attributes("result", result, "processor", id.String())
	}
	return m, nil
}

// observe registers the sizes of a Resolver and a Finder.
func (m *metrics) observe(resolver *lookup.Resolver, finder *sources.Finder) error {
	own := func(value func() int64) metric.Int64Callback { return telemetry.Observe(value, m.own) }
	return errors.Join(
		m.RegisterProcessorSymbolizeCacheBytesCallback(own(func() int64 { return resolver.Sizes().CacheBytes })),
		m.RegisterProcessorSymbolizeCacheEntriesCallback(own(func() int64 { return resolver.Sizes().CacheEntries })),
		m.RegisterProcessorSymbolizeModulesCallback(own(func() int64 { return resolver.Sizes().Modules })),
		m.RegisterProcessorSymbolizeQueuedModulesCallback(own(func() int64 { return resolver.Sizes().Queued })),
		m.RegisterProcessorSymbolizeOpenFilesCallback(own(func() int64 { return resolver.Sizes().OpenFiles })),
		m.RegisterProcessorSymbolizeOpenBytesCallback(own(func() int64 { return resolver.Sizes().OpenBytes })),
		m.RegisterProcessorSymbolizeDebuginfodCacheBytesCallback(own(finder.DebuginfodCacheBytes)),
	)
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
	m.sources.Add(ctx, m.ProcessorSymbolizeResolvedLocations, t.resolved[:])
	m.reasons.Add(ctx, m.ProcessorSymbolizeUnresolvedLocations, t.unresolved[:])
}
