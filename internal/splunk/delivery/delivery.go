// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery is the path of a request of log records through a component: translate, count, pass on the
// profiles and the other records, and report to the sender what was rejected.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	splunklog "github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// Path passes requests to pipelines. It is safe for concurrent use.
type Path struct {
	Options splunklog.Options
	// Budget is the budget of the requests' reservations.
	Budget  *budget.Budget
	Metrics *Metrics
	// Profiles and Logs are the next consumers. Logs is for the records that have nothing to do with profiling; without it
	// they are rejected.
	Profiles func(context.Context, pprofile.Profiles) error
	Logs     func(context.Context, plog.Logs) error
	// IgnoreOthers ignores the records that have nothing to do with profiling if Logs is nil.
	IgnoreOthers bool
}

// Report is what was rejected of a request whose other records were accepted.
type Report struct {
	// Rejected is the number of records that were rejected. First is the position of the first of them in the request.
	Rejected, First int
	// Incomplete is the number of other records, of which samples were dropped.
	Incomplete int
	// Message has the reasons of some of them.
	Message string
}

// Deliver translates one request and passes on what is in it. After an error the sender should repeat all of it. After
// a permanent error it should not: nothing was accepted, and nothing would be. reservation holds the memory of the
// request until Deliver returns; the caller releases it.
func (p *Path) Deliver(ctx context.Context, ld plog.Logs, reservation *budget.Reservation) (Report, error) {
	result, err := p.translate(ctx, ld, reservation)
	if err != nil {
		return Report{}, err
	}
	p.Metrics.count(ctx, &result)
	r := reporter{Report: Report{Incomplete: result.Incomplete}}
	if result.Incomplete > 0 {
		r.reasons = append(r.reasons, fmt.Sprintf("%d samples of %d records were dropped: %s", result.DroppedSamples(),
			result.Incomplete, httpserver.Reasons[scan.DropReason](result.Dropped[:])))
	}
	for _, rejection := range result.Rejected {
		r.add(1, rejection.Record, rejection.Error())
	}
	accepted := false
	var refused error
	if profiles := result.Profiles; profiles.ResourceProfiles().Len() > 0 {
		count := profiles.ProfileCount()
		switch err := p.Profiles(ctx, profiles); {
		case err == nil:
			accepted = true
			p.Metrics.Profiles.Add(ctx, int64(count))
			p.Metrics.Samples.Add(ctx, int64(result.Samples))
		case !otlpstatus.IsPermanent(err):
			return Report{}, err
		default:
			refused, r.Incomplete = err, 0
			records := result.Profiling - len(result.Rejected)
			p.Metrics.reject(ctx, ReasonRefused, records)
			r.add(records, result.FirstRead, "the profiles were refused: "+otlpstatus.Reason(err))
		}
	}
	if result.Others > 0 {
		err := p.others(ctx, ld, &result, &r)
		if err != nil && !otlpstatus.IsPermanent(err) {
			return Report{}, err
		}
		accepted = accepted || (err == nil && p.Logs != nil)
		refused = errors.Join(refused, err)
	}
	if refused != nil && !accepted {
		return Report{}, consumererror.NewPermanent(refused)
	}
	return r.report(), nil
}

// expectedFactor is how much memory most requests take while they are translated, for each byte of their bodies.
const expectedFactor = 40

// translate translates a request within what reservation can get.
func (p *Path) translate(ctx context.Context, ld plog.Logs, reservation *budget.Reservation) (result splunklog.Result,
	err error) {
	err = reservation.Build(ctx, expectedFactor*int64(splunklog.BodyBytes(ld)), func(reserve size.Reserve) error {
		options := p.Options
		options.Meter = &size.Meter{Context: ctx, Reserve: reserve}
		result = splunklog.Translate(ld, options)
		return result.Err
	})
	if _, isTooLarge := errors.AsType[*budget.TooLargeError](err); isTooLarge {
		err = consumererror.NewPermanent(err)
	}
	if err == nil {
		reservation.Built(int64(size.OfProfiles(result.Profiles))) // the pipeline may hold them for a while
	}
	return result, err
}

// others passes on the records that have nothing to do with profiling.
func (p *Path) others(ctx context.Context, ld plog.Logs, result *splunklog.Result, r *reporter) error {
	if p.Logs == nil {
		if !p.IgnoreOthers {
			p.Metrics.reject(ctx, ReasonNotProfiling, result.Others)
			r.add(result.Others, result.FirstOther, fmt.Sprintf(
				"%d records carry no profile, and there is no logs pipeline for them, the first: record %d", result.Others,
				result.FirstOther))
		}
		return nil
	}
	err := p.Logs(ctx, splunklog.Rest(ld))
	if otlpstatus.IsPermanent(err) {
		p.Metrics.reject(ctx, ReasonRefused, result.Others)
		r.add(result.Others, result.FirstOther, "the records without a profile were refused: "+otlpstatus.Reason(err))
	}
	return err
}

// maxReasons bounds how many reasons a report lists.
const maxReasons = 5

// reporter gathers a Report.
type reporter struct {
	Report
	reasons  []string
	unlisted int
}

func (r *reporter) add(records, first int, reason string) {
	if r.Rejected == 0 || first < r.First {
		r.First = first
	}
	r.Rejected += records
	if len(r.reasons) == maxReasons {
		r.unlisted++
		return
	}
	r.reasons = append(r.reasons, reason)
}

func (r *reporter) report() Report {
	if r.unlisted > 0 {
		r.reasons = append(r.reasons, fmt.Sprintf("and %d more", r.unlisted))
	}
	// OTLP/gRPC carries the message in a field that must be UTF-8.
	r.Message = strings.ToValidUTF8(strings.Join(r.reasons, "; "), "\uFFFD")
	return r.Report
}

// The reasons for which records are rejected, in addition to those of splunk/records.
const (
	// ReasonNotProfiling is a record without a profile if there is no logs pipeline.
	ReasonNotProfiling = "not_profiling"
	// ReasonRefused is a record that was read and that the pipeline refused permanently.
	ReasonRefused = "refused"
)

// FaultEventTime is a time or period that is not a number or out of range.
const FaultEventTime = "event_time"

// Metrics counts what passes through a component, by its generated counters. All servers of a component share one.
type Metrics struct {
	Records, Profiles, Samples, Rejected, Dropped, Repaired metric.Int64Counter
}

// count counts what was read of a request.
func (m *Metrics) count(ctx context.Context, r *splunklog.Result) {
	for f, types := range r.Records {
		for t, sources := range types {
			for s, n := range sources {
				if n > 0 {
					m.Records.Add(ctx, int64(n), telemetry.Attributes("format", splunklog.Format(f).String(),
						"type", splunklog.Type(t).String(), "source", splunklog.Source(s).String()))
				}
			}
		}
	}
	var reasons [splunklog.NumReasons]int
	for _, rejection := range r.Rejected {
		reasons[rejection.Reason]++
	}
	telemetry.AddEach[splunklog.Reason](ctx, m.Rejected, "reason", reasons[:])
	telemetry.AddEach[scan.DropReason](ctx, m.Dropped, "reason", r.Dropped[:])
	telemetry.AddEach[scan.Repair](ctx, m.Repaired, "fault", r.Repaired[:])
	telemetry.AddEach[compact.Repair](ctx, m.Repaired, "fault", r.Attributes[:])
	if r.BadTimes > 0 {
		m.Repaired.Add(ctx, int64(r.BadTimes), telemetry.Attributes("fault", FaultEventTime))
	}
}

func (m *Metrics) reject(ctx context.Context, why string, records int) {
	if records > 0 {
		m.Rejected.Add(ctx, int64(records), telemetry.Attributes("reason", why))
	}
}
