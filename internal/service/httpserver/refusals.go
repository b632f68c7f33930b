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

// The counters of what servers refuse: because they have too much open, and for any reason.
const (
	refusedConnections = "otelcol_process_refused_connections"
	refusedRequests    = "otelcol_process_refused_requests"
	failedRequests     = "otelcol_process_failed_requests"
)

// RefusalMetric is one of these counters. Attributes has the values of each attribute, or nil if they are not fixed.
type RefusalMetric struct {
	Attributes        map[string][]string
	description, unit string
}

// RefusalMetrics has these counters by their names.
var RefusalMetrics = map[string]RefusalMetric{
	refusedConnections: {tooMuchOpen, "Connections that a server closed at once, because too many were open.",
		"{connection}"},
	refusedRequests: {tooMuchOpen, "Requests that a server refused for the moment, because too many were being handled.",
		"{request}"},
	failedRequests: {map[string][]string{"port": nil, "status": nil}, "Requests with data that were not accepted, by " +
		"the status of the answer: that of HTTP, or the one that corresponds to gRPC's.", "{request}"},
}

// The values of the attribute `reason`: the client's address has its share, or all clients together have what there is.
const refusedForAddress, refusedForAll = "address", "all"

var tooMuchOpen = map[string][]string{"reason": {refusedForAddress, refusedForAll}}

// refusalInterval is the least time between two log lines about refusals.
const refusalInterval = time.Minute

// refusals counts and logs the refused requests. A nil one does nothing.
type refusals struct {
	name    string
	logger  *zap.Logger
	counter metric.Int64Counter
}

func newRefusals(set component.TelemetrySettings, name string) *refusals {
	counter := newCounter(set, name)
	if counter == nil || set.Logger == nil {
		return nil
	}
	limits := telemetry.Limits{Lines: 1, Period: refusalInterval, Level: zap.WarnLevel}
	return &refusals{name: name, logger: limits.Apply(set.Logger), counter: counter}
}

// newCounter returns one of RefusalMetrics, or nil without a MeterProvider.
func newCounter(set component.TelemetrySettings, name string) metric.Int64Counter {
	if set.MeterProvider == nil {
		return nil
	}
	// An error is one of the name, which is a constant; the counter works regardless.
	counter, _ := set.MeterProvider.Meter("github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver").
		Int64Counter(name,
			metric.WithDescription(RefusalMetrics[name].description), metric.WithUnit(RefusalMetrics[name].unit))
	return counter
}

func (r *refusals) note(from netip.Addr, reason string) {
	if r == nil {
		return
	}
	r.counter.Add(context.Background(), 1, telemetry.Attributes("reason", reason))
	r.logger.Warn("a server refuses clients: too many connections, streams or requests are open; suppressing repeats for a minute",
		zap.String("metric", r.name), zap.String("reason", reason), zap.Stringer("last_address", from))
}
