// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// scrape does one task, from the request to the delivery, and passes the result to the schedule.
func (s *Scraper) scrape(deliver context.Context, task scrapeTask) {
	e, profile := task.scrapedEndpoint, task.endpoint.Profile.Name
	result := s.collect(deliver, &task)
	s.ingest.CountRejected(deliver, result.err)
	report := s.schedule.done(e, result)
	if report.gone {
		return
	}
	e.job.count(deliver, profile, &result)
	if report.skipped > 0 {
		e.job.metrics.ReceiverPprofScrapeSkipped.Add(deliver, report.skipped,
			telemetry.Attributes("job", e.job.name, "profile", profile))
	}
	e.job.note(report.change, profile, e.shown, result.err)
}

// collect fetches, decodes and delivers one payload.
func (s *Scraper) collect(deliver context.Context, task *scrapeTask) scrapeResult {
	result := scrapeResult{began: time.Now()}
	reservation := s.ingest.Begin()
	defer reservation.Release()
	data, err := task.job.fetcher.Get(task.ctx, task.endpoint.URL, task.shown, reservation)
	fetched := time.Now()
	result.took, result.bodyBytes = fetched.Sub(result.began), len(data)
	if err != nil {
		if errors.Is(task.ctx.Err(), context.Canceled) {
			return result // the target has vanished or the receiver stops
		}
		return result.failed(err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-deliver.Done():
		return result
	}
	p := ingest.Payload{Data: data, Identity: task.identity, ProfileName: task.endpoint.Profile.Name,
		Reservation: reservation}
	p.Temporality = cmp.Or(task.endpoint.Profile.Temporality, ingest.TemporalityOfPath(task.endpoint.URL.Path))
	p.IsDifference = fetch.HasRecorded(task.endpoint.Recording, result.took)
	if task.endpoint.Profile.Delta && (p.Temporality == "" || p.Temporality == kind.StatedCumulative) {
		if task.baseline == nil { // a target that never answers has none
			task.baseline = decode.NewBaseline(0)
		}
		p.Baseline, p.Fetched = task.baseline, fetched
	}
	pd, stats, err := s.ingest.Decode(deliver, p)
	if err != nil {
		task.settle(false)
		return result.failed(err)
	}
	reservation.DropBody()
	task.job.countRestart(deliver, task.endpoint.Profile.Name, &stats)
	task.noteRestarts(&stats.Delta)
	result.samples = pd.SampleCount()
	if result.samples == 0 {
		// Nothing to deliver: for example, nothing has blocked since the last scrape.
		result.outcome = outcomeNoSamples
		task.settle(true)
		return result
	}
	err = s.ingest.Deliver(deliver, pd, 0)
	// What is refused permanently would be refused again as a part of the next difference.
	task.settle(err == nil || otlpstatus.IsPermanent(err))
	if err != nil {
		return result.failed(err)
	}
	result.outcome = outcomeDelivered
	return result
}

func (r scrapeResult) failed(err error) scrapeResult {
	r.err, r.outcome = err, outcomeRefused
	if why := ingest.ReasonOf(err); why != "" {
		r.outcome = string(why)
	}
	return r
}

// restartTooManyStacks is the reason for which a payload has too many stacks to be compared with the next.
const restartTooManyStacks = "too_many_stacks"

// countRestart counts totals that do not continue those before them.
func (j *scrapeJob) countRestart(ctx context.Context, profile string, stats *decode.Stats) {
	why := stats.Delta.Reason.String()
	if stats.Delta.Overflowed {
		why = restartTooManyStacks
	}
	if why != "" {
		j.metrics.ReceiverPprofScrapeRestarts.Add(ctx, 1,
			telemetry.Attributes("job", j.name, "profile", profile, "reason", why))
	}
}

// manyRestarts is how many of the last eight payloads are restarts if a target restarts too often.
const manyRestarts = 3

// noteRestarts logs that totals of a target restart again and again.
func (e *scrapedEndpoint) noteRestarts(stats *decode.DeltaStats) {
	if e.baseline == nil || stats.First {
		return
	}
	e.restarts <<= 1
	if stats.Restarted {
		e.restarts |= 1
	}
	if !stats.Restarted || bits.OnesCount8(e.restarts) < manyRestarts {
		return
	}
	e.restarts = 0
	e.job.log.Warn("totals of a target fall again and again: it restarts, or several processes answer at its address (a "+
		"load balancer), so that some differences are wrong and others missing; scrape each process at its own address",
		zap.String("profile", e.Profile.Name), zap.String("url", e.shown), zap.Stringer("reason", stats.Reason))
}

// settle keeps a payload as the baseline of the next one, if it was accepted. Otherwise the next difference covers this
// one too, so that nothing is lost.
func (e *scrapedEndpoint) settle(isAccepted bool) {
	switch {
	case e.baseline == nil:
	case isAccepted:
		e.baseline.Commit()
	default:
		e.baseline.Discard()
	}
}
