// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkdelivery

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// Kind is the kind of component, a part of its metrics' names.
type Kind string

// The kinds of component that deliver.
const (
	Receiver  Kind = "receiver"
	Connector Kind = "connector"
)

// Name gives the name of a metric of the component.
func (k Kind) Name(noun string) string { return "otelcol_" + string(k) + "_splunk_profiling_" + noun }

// The nouns of the metrics' names, as the components' metadata.yaml and README declare them.
const (
	NounRecords  = "records"
	NounProfiles = "profiles"
	NounSamples  = "samples"
	NounRejected = "rejected_records"
	NounDropped  = "dropped_samples"
	NounRepaired = "repaired"
)

// Why records are rejected, beside the reasons of splunklog.
const (
	// ReasonNotProfiling is a record without a profile where there is no logs pipeline.
	ReasonNotProfiling = "not_profiling"
	// ReasonRefused is a record that was read and that the pipeline refused for good.
	ReasonRefused = "refused"
)

// FaultEventTime is the fault of a time or period that is no number or out of range.
const FaultEventTime = "event_time"

// Metrics counts what passes through a component. One serves all the ways into it.
type Metrics struct {
	records, profiles, samples, rejected, dropped, repaired metric.Int64Counter
}

// NewMetrics makes the metrics of a component.
func NewMetrics(kind Kind, meter metric.Meter) (*Metrics, error) {
	var errs []error
	counter := func(noun, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(kind.Name(noun), metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m := &Metrics{
		records:  counter(NounRecords, "{record}", "Number of log records that carry or claim to carry profiles."),
		profiles: counter(NounProfiles, "{profile}", "Number of profiles that were made of them."),
		samples:  counter(NounSamples, "{sample}", "Number of samples in them, each time at which one was taken."),
		rejected: counter(NounRejected, "{record}", "Number of log records that were not taken."),
		dropped:  counter(NounDropped, "{sample}", "Number of samples left out of records that were otherwise taken."),
		repaired: counter(NounRepaired, "{fault}", "Number of faults in records that were read in spite of them."),
	}
	return m, errors.Join(errs...)
}

func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// count counts what was read of a request.
func (m *Metrics) count(ctx context.Context, r *splunklog.Result) {
	for f, types := range r.Records {
		for t, sources := range types {
			for s, n := range sources {
				if n > 0 {
					m.records.Add(ctx, int64(n), with(
						attribute.String("format", splunklog.Format(f).String()),
						attribute.String("type", splunklog.Type(t).String()),
						attribute.String("source", splunklog.Source(s).String()),
					))
				}
			}
		}
	}
	var reasons [splunklog.NumReasons]int
	for _, rejection := range r.Rejected {
		reasons[rejection.Reason]++
	}
	for i, n := range reasons {
		m.reject(ctx, splunklog.Reason(i).String(), n)
	}
	for i, n := range r.Dropped {
		if n > 0 {
			m.dropped.Add(ctx, int64(n), with(attribute.String("reason", pprofconv.DropReason(i).String())))
		}
	}
	for i, n := range r.Repaired {
		m.repair(ctx, pprofconv.Repair(i).String(), n)
	}
	m.repair(ctx, FaultEventTime, r.BadTimes)
}

func (m *Metrics) reject(ctx context.Context, why string, records int) {
	if records > 0 {
		m.rejected.Add(ctx, int64(records), with(attribute.String("reason", why)))
	}
}

func (m *Metrics) repair(ctx context.Context, fault string, times int) {
	if times > 0 {
		m.repaired.Add(ctx, int64(times), with(attribute.String("fault", fault)))
	}
}
