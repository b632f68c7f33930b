// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// The sources, as they are named in the configuration and in metrics.
const (
	sourceServer = "server"
	sourceScrape = "scrape"
	sourceRemote = "remote"
	sourceFile   = "file"
	sourceSelf   = "self"
)

// reason says why a payload was rejected: the value of a metric's attribute.
type reason string

// The reasons for which a payload is rejected before it reaches the pipeline.
const (
	reasonEmpty       reason = "empty"           // no bytes at all
	reasonNotPprof    reason = "not_pprof"       // something else, or a pprof too damaged to be read
	reasonTooLarge    reason = "too_large"       // over a limit
	reasonBadRequest  reason = "bad_request"     // a push whose query or form is wrong
	reasonEncoding    reason = "encoding"        // a push or a scrape whose Content-Encoding is unknown
	reasonContentType reason = "content_type"    // an answer that says it is text
	reasonStatus      reason = "http_status"     // an answer other than 200
	reasonUnreachable reason = "unreachable"     // no answer, or one that broke off
	reasonTimeout     reason = "timeout"         // a target that took too long
	reasonBusy        reason = "busy"            // no room in the admission budget
	reasonStopping    reason = "stopping"        // a body that had not arrived at shutdown
	reasonUnreadable  reason = "unreadable"      // a file or body that could not be read
	reasonOverrun     reason = "pipeline_behind" // the pipeline is slower than the collector profiles itself
)

var allReasons = []reason{
	reasonEmpty, reasonNotPprof, reasonTooLarge, reasonBadRequest, reasonEncoding,
	reasonContentType, reasonStatus, reasonUnreachable, reasonTimeout, reasonBusy, reasonStopping, reasonUnreadable, reasonOverrun,
}

// The receiver's own metrics, as metadata.yaml and the README declare them.
const (
	metricRejected = "otelcol_receiver_pprof_rejected_payloads"
	metricDropped  = "otelcol_receiver_pprof_dropped_samples"
	metricRepaired = "otelcol_receiver_pprof_repaired"
	metricInFlight = "otelcol_receiver_pprof_bytes_in_flight"
)

// metrics counts what standard receiver metrics have no name for.
type metrics struct {
	meter        metric.Meter
	inFlight     metric.Int64ObservableGauge
	registration metric.Registration

	rejected, dropped, repaired metric.Int64Counter

	droppedBy  [pprofconv.NumDropReasons]metric.MeasurementOption
	repairedBy [pprofconv.NumRepairs]metric.MeasurementOption
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	meter := provider.Meter(scopeName)
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	inFlight, err := meter.Int64ObservableGauge(metricInFlight, metric.WithUnit("By"),
		metric.WithDescription("Bytes of the payloads that the receivers of the process are receiving, as sent and decoded."))
	errs = append(errs, err)
	m := &metrics{
		meter: meter, inFlight: inFlight,
		rejected: counter(metricRejected, "{payload}", "Number of payloads that could not be fetched or read."),
		dropped:  counter(metricDropped, "{sample}", "Number of pprof samples left out of a payload that was otherwise taken."),
		repaired: counter(metricRepaired, "{fault}", "Number of faults in payloads that were read in spite of them."),
	}
	for i := range m.droppedBy {
		m.droppedBy[i] = attributeOption("reason", pprofconv.DropReason(i).String())
	}
	for i := range m.repairedBy {
		m.repairedBy[i] = attributeOption("fault", pprofconv.Repair(i).String())
	}
	return m, errors.Join(errs...)
}

// observe reads the gauge until close.
func (m *metrics) observe(budget *admission.Budget) error {
	var err error
	m.registration, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(m.inFlight, budget.HeldBytes())
		return nil
	}, m.inFlight)
	return err
}

func (m *metrics) close() error {
	if m.registration == nil {
		return nil
	}
	return m.registration.Unregister()
}

func attributeOption(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

func (m *metrics) reject(ctx context.Context, source string, why reason) {
	m.rejected.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("reason", string(why)), attribute.String("source", source),
	)))
}

func (m *metrics) count(ctx context.Context, stats *pprofconv.DecodeStats) {
	for i, n := range stats.Dropped {
		if n > 0 {
			m.dropped.Add(ctx, int64(n), m.droppedBy[i])
		}
	}
	for i, n := range stats.Repaired {
		if n > 0 {
			m.repaired.Add(ctx, int64(n), m.repairedBy[i])
		}
	}
}
