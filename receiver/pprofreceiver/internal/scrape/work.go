// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// scrape does one task, from the request to the delivery, and reports it to the schedule.
func (s *Scraper) scrape(deliver context.Context, task scrapeTask) {
	e, kind := task.scrapedEndpoint, task.endpoint.Profile.Name
	result := s.collect(deliver, &task)
	s.ingest.CountRejected(deliver, result.err)
	report := s.schedule.done(e, result)
	if report.gone {
		e.delta.drop(e.job)
		return
	}
	metrics := e.job.metrics
	metrics.count(deliver, kind, &result)
	if report.skipped > 0 {
		metrics.ReceiverPprofScrapeSkipped.Add(deliver, report.skipped, metrics.kind(kind))
	}
	e.job.log.note(report.change, kind, e.shown, result.err)
}

// collect fetches, decodes and delivers one payload.
func (s *Scraper) collect(deliver context.Context, task *scrapeTask) scrapeResult {
	result := scrapeResult{began: time.Now()}
	claim := s.ingest.Begin()
	defer claim.Release()
	data, err := task.job.fetcher.Get(task.ctx, task.endpoint.URL, task.shown, claim)
	fetched := time.Now()
	result.took, result.bodyBytes = fetched.Sub(result.began), len(data)
	if err != nil {
		if errors.Is(task.ctx.Err(), context.Canceled) {
			return result // the target is gone or the receiver stops, which is no fault
		}
		return result.failed(err)
	}
	if !acquire(deliver, s.slots) {
		return result
	}
	defer release(s.slots)

	p := ingest.Payload{Data: data, Identity: task.identity, ProfileName: task.endpoint.Profile.Name, Claim: claim}
	if task.endpoint.Profile.Delta {
		p.Baseline, p.Fetched = task.delta.get(), fetched
	}
	pd, stats, err := s.ingest.Decode(deliver, p)
	if err != nil {
		task.delta.finish(task.job, false)
		return result.failed(err)
	}
	s.noteRestart(deliver, task, &stats)
	result.samples = pd.SampleCount()
	if result.samples == 0 {
		// Nothing has blocked, or nothing was allocated since: that is worth no delivery.
		result.outcome = outcomeNoSamples
		task.delta.finish(task.job, true)
		return result
	}
	err = s.ingest.Deliver(deliver, pd, 0)
	// What is refused for good would be refused again as a part of the next difference.
	task.delta.finish(task.job, err == nil || httpserver.IsPermanent(err))
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

// acquire waits for a place and reports whether there is one before ctx ends.
func acquire(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func release(places chan struct{}) { <-places }

// noteRestart counts totals that do not continue those before them.
func (s *Scraper) noteRestart(ctx context.Context, task *scrapeTask, stats *pprofconv.DecodeStats) {
	why := stats.Delta.Reason.String()
	if stats.Delta.Overflowed {
		why = restartTooManyStacks
	}
	if why != "" {
		task.job.metrics.restart(ctx, task.endpoint.Profile.Name, why)
	}
}

// deltaState is what an endpoint with `delta` remembers of its last payload.
type deltaState struct {
	baseline *pprofconv.Baseline
	// bytes is what the job's sum holds of it.
	bytes int64
}

// get returns the baseline, which is made when the first payload is there: a target that never answers has none.
func (d *deltaState) get() *pprofconv.Baseline {
	if d.baseline == nil {
		d.baseline = pprofconv.NewBaseline(pprofconv.BaselineOptions{})
	}
	return d.baseline
}

// finish ends what a payload began. Where the pipeline did not take its difference, the next one
// covers that too, so that nothing is lost.
func (d *deltaState) finish(job *scrapeJob, taken bool) {
	if d.baseline == nil {
		return
	}
	if !taken {
		d.baseline.Discard()
		return
	}
	d.baseline.Commit()
	d.account(job, int64(d.baseline.Bytes()))
}

// drop forgets the last payload.
func (d *deltaState) drop(job *scrapeJob) {
	d.baseline = nil
	d.account(job, 0)
}

func (d *deltaState) account(job *scrapeJob, bytes int64) {
	job.baselineBytes.Add(bytes - d.bytes)
	d.bytes = bytes
}
