// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"net/netip"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// The counters of what servers refuse because they have too much open.
const (
	refusedConnections = "otelcol_process_refused_connections"
	refusedRequests    = "otelcol_process_refused_requests"
)

// RefusalMetrics has the names of these counters, and what each is. Both have the attribute `reason`, with the values
// RefusalReasons.
var RefusalMetrics = map[string]struct{ description, unit string }{
	refusedConnections: {"Connections that a server closed at once, because too many were open.", "{connection}"},
	refusedRequests: {"Requests that a server refused for the moment, because too many were being handled.",
		"{request}"},
}

// The values of their attribute `reason`: the client's address has its share, or all clients together have what there
// is.
const refusedForAddress, refusedForAll = "address", "all"

// RefusalReasons are the values of the attribute `reason`.
var RefusalReasons = []string{refusedForAddress, refusedForAll}

// refusalInterval is the least time between two log lines about refusals.
const refusalInterval = time.Minute

// refusals counts and logs the refused requests. A nil one does nothing.
type refusals struct {
	name    string
	logger  *zap.Logger
	counter metric.Int64Counter
}

func newRefusals(set component.TelemetrySettings, name string) *refusals {
	if set.MeterProvider == nil || set.Logger == nil {
		return nil
	}
	// An error is one of the name, which is a constant; the counter works regardless.
	counter, _ := set.MeterProvider.Meter("github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver").
		Int64Counter(name,
			metric.WithDescription(RefusalMetrics[name].description), metric.WithUnit(RefusalMetrics[name].unit))
	limits := telemetry.Limits{Lines: 1, Period: refusalInterval, Level: zap.WarnLevel}
	return &refusals{name: name, logger: limits.Apply(set.Logger), counter: counter}
}

func (r *refusals) note(from netip.Addr, reason string) {
	if r == nil {
		return
	}
	r.counter.Add(context.Background(), 1, telemetry.Attributes("reason", reason))
	r.logger.Warn("a server refuses clients: too many connections, streams or requests are open; suppressing repeats for a minute",
		zap.String("metric", r.name), zap.String("reason", reason), zap.Stringer("last_address", from))
}
