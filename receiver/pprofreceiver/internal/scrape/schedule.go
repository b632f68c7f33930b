// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// schedule holds all targets, and begins their scrapes. An endpoint that waits costs only a timer.
type schedule struct {
	jobs map[string]*scrapeJob
	seed string
	// scrape does a task, and calls done with the result.
	scrape func(scrapeTask)
	// stopping is the context of scrapes; once it has ended, none begins.
	stopping context.Context
	running  sync.WaitGroup

	mu    sync.Mutex
	byKey map[string]*scrapedTarget
	// twice is how many endpoints are also those of another target.
	twice int
	// reports are those of the last update.
	reports []targets.JobReport
}

// run scrapes what discover finds until ctx ends, and returns when the scrapes in progress are done.
func (s *schedule) run(ctx context.Context, discover func(context.Context, func(targets.Update)),
	scrape func(scrapeTask)) {
	s.stopping, s.scrape = ctx, scrape
	discover(ctx, s.apply)
	s.mu.Lock()
	for _, t := range s.byKey {
		for _, e := range t.endpoints {
			e.timer.Stop()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
}

// scrapeTask is one scrape of an endpoint as it was when it became due.
type scrapeTask struct {
	*scrapedEndpoint
	// ctx ends with the scrape's timeout, or when the target vanishes.
	ctx      context.Context
	endpoint targets.Endpoint
	identity ingest.Identity
}

// begin scrapes an endpoint that is due.
func (s *schedule) begin(e *scrapedEndpoint) {
	s.mu.Lock()
	if e.gone || s.stopping.Err() != nil {
		s.mu.Unlock()
		return
	}
	task := scrapeTask{scrapedEndpoint: e, endpoint: e.Endpoint, identity: e.owner.identity}
	task.ctx, e.cancel = context.WithTimeout(s.stopping, e.Timeout)
	e.job.requests++
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	s.scrape(task)
}

// scrapeReport is the state of the schedule when a scrape was done.
type scrapeReport struct {
	// gone means that the endpoint has vanished.
	gone bool
	// skipped is the number of ticks during the scrape.
	skipped int64
	change  stateChange
}

// done records the result of a scrape and sets the timer of the next.
func (s *schedule) done(e *scrapedEndpoint, result scrapeResult) scrapeReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.job.requests--
	e.cancel()
	e.cancel = nil
	if e.gone {
		return scrapeReport{gone: true}
	}
	if e.baseline != nil {
		e.baselineBytes = e.baseline.Bytes()
	}
	interval := e.owner.target.Interval
	report := scrapeReport{skipped: max(0, int64(time.Since(e.due)/interval))}
	if !result.isCancelled() {
		report.change = e.record(result)
	}
	ticks := report.skipped + 1
	if e.unserved > 0 {
		ticks = max(ticks, backoffTicks(e.unserved, interval))
	}
	e.due = e.due.Add(time.Duration(ticks) * interval)
	if s.stopping.Err() == nil {
		e.timer.Reset(time.Until(e.due))
	}
	return report
}

func (e *scrapedEndpoint) record(result scrapeResult) stateChange {
	before := e.reason()
	e.last = result
	if isUnserved(result.err) {
		e.unserved++
	} else {
		e.unserved = 0
	}
	now := e.reason()
	// The reason is logged once for a target, not for each of its kinds.
	reason := before
	if now != "" {
		reason = now
	}
	return stateChange{
		reason: reason, begins: now != "", backedOff: e.unserved > 0,
		isLogged: before != now && !e.othersHave(reason),
	}
}

// apply replaces the targets that are scraped. Endpoints that are still there keep their place in time, their backoff
// and their baselines; scrapes of those that have vanished are cancelled.
func (s *schedule) apply(update targets.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = update.Jobs
	for _, report := range update.Jobs {
		job := s.jobs[report.Job]
		if report.Dropped[targets.DropInvalid] > job.dropped[targets.DropInvalid] {
			job.log.Warn("a target is not valid, and not scraped", zap.String("error", firstInvalid(report.Examples)))
		}
		job.dropped = report.Dropped
	}
	for _, job := range s.jobs {
		job.targets = nil
	}
	before, isNew := s.byKey, false
	s.byKey = make(map[string]*scrapedTarget, len(update.Targets))
	for _, t := range update.Targets {
		job, known := s.jobs[t.Job], before[t.Key]
		if known == nil || !known.target.Equal(t) {
			known, isNew = s.carryOver(known, t, job), true
		}
		s.byKey[t.Key] = known
		job.targets = append(job.targets, known)
		delete(before, t.Key)
	}
	for _, vanished := range before {
		for _, e := range vanished.endpoints {
			s.forget(e)
		}
	}
	if isNew {
		s.noteTwice(update.Targets)
	}
}

// noteTwice logs that endpoints are scraped for several targets, of two jobs for example, unless as many were before.
func (s *schedule) noteTwice(all []*targets.Target) {
	type place struct{ scheme, host, path, query string }
	known := map[place]*targets.Target{}
	twice := 0
	var log func()
	for _, t := range all {
		for _, e := range t.Endpoints {
			at := place{e.URL.Scheme, e.URL.Host, e.URL.Path, e.URL.RawQuery}
			other := known[at]
			if known[at] = t; other == nil {
				continue
			}
			if twice++; log == nil {
				log = func() {
					s.jobs[t.Job].log.Warn("a profile is scraped for several targets, and its values count each time; remove one of them",
						zap.String("url", redact.URL(e.URL)), zap.String("other_job", other.Job), zap.Int("profiles", twice))
				}
			}
		}
	}
	if twice > s.twice {
		log()
	}
	s.twice = twice
}

// firstInvalid returns the fault of the first target that is not valid.
func firstInvalid(dropped []targets.Dropped) string {
	for _, d := range dropped {
		if d.Reason == targets.DropInvalid {
			return d.Detail
		}
	}
	return ""
}

// carryOver returns the new state of a target. known is its old state, or nil.
func (s *schedule) carryOver(known *scrapedTarget, t *targets.Target, job *scrapeJob) *scrapedTarget {
	made := &scrapedTarget{target: t, identity: ingest.Identity{Derived: t.Resource, Stated: pcommon.NewMap()}}
	old := map[string]*scrapedEndpoint{}
	if known != nil {
		for _, e := range known.endpoints {
			old[e.Profile.Name] = e
		}
	}
	for _, endpoint := range t.Endpoints {
		kind := endpoint.Profile.Name
		e := old[kind]
		if e == nil || e.URL.String() != endpoint.URL.String() {
			e = s.newEndpoint(made, job, endpoint)
		} else {
			delete(old, kind)
			// A scrape in progress keeps the old timeout and identity.
			e.owner, e.Endpoint = made, endpoint
		}
		made.endpoints = append(made.endpoints, e)
	}
	for _, e := range old {
		s.forget(e)
	}
	return made
}

func (s *schedule) newEndpoint(owner *scrapedTarget, job *scrapeJob, endpoint targets.Endpoint) *scrapedEndpoint {
	e := &scrapedEndpoint{owner: owner, job: job, Endpoint: endpoint, shown: redact.URL(endpoint.URL)}
	now, interval := time.Now(), owner.target.Interval
	wait := untilTick(now, offsetOf(s.seed, owner.target.Key, endpoint.Profile.Name, interval), interval)
	e.due = now.Add(wait)
	e.timer = time.AfterFunc(wait, func() { s.begin(e) })
	return e
}

// forget ends the scraping of an endpoint.
func (s *schedule) forget(e *scrapedEndpoint) {
	e.gone = true
	e.timer.Stop()
	if e.cancel != nil {
		e.cancel()
	}
}
