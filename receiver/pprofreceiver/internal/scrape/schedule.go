// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// schedule holds all targets, and which endpoint is due next. An endpoint that waits costs only an entry in a heap: one
// goroutine and one timer serve all.
type schedule struct {
	jobs map[string]*scrapeJob
	seed string
	now  func() time.Time

	mu      sync.Mutex
	waiting dueHeap
	byKey   map[string]*scrapedTarget
	// reports are those of the last update.
	reports []targets.JobReport
	// changed signals that the first of waiting may be another one.
	changed chan struct{}
}

func newSchedule(jobs map[string]*scrapeJob, seed string) *schedule {
	return &schedule{jobs: jobs, seed: seed, now: time.Now, byKey: map[string]*scrapedTarget{},
		changed: make(chan struct{}, 1)}
}

// run calls begin for each endpoint when it is due, until ctx ends. begin must return at once.
func (s *schedule) run(ctx context.Context, begin func(scrapeTask)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.changed:
		}
		now := s.now()
		for {
			task, found := s.nextDue(ctx, now)
			if !found {
				break
			}
			begin(task)
		}
		timer.Reset(max(s.untilNext(), grain))
	}
}

// grain is how late a scrape may begin, so that scrapes that are due within it begin together. Waking up for each of
// 160 scrapes a second takes nearly half of their processor time (docs/benchmarks.md).
const grain = 50 * time.Millisecond

// scrapeTask is one scrape of an endpoint as it was when it became due.
type scrapeTask struct {
	*scrapedEndpoint
	// ctx ends with the scrape's timeout, or when the target vanishes.
	ctx      context.Context
	endpoint targets.Endpoint
	identity ingest.Identity
}

// nextDue removes an endpoint that is due from the heap and returns its task, if there is one.
func (s *schedule) nextDue(ctx context.Context, now time.Time) (scrapeTask, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.waiting[0].due.After(now) {
		return scrapeTask{}, false
	}
	e := heap.Pop(&s.waiting).(*scrapedEndpoint)
	e.job.requests++
	ctx, e.cancel = context.WithTimeout(ctx, e.Timeout)
	return scrapeTask{scrapedEndpoint: e, ctx: ctx, endpoint: e.Endpoint, identity: e.owner.identity}, true
}

func (s *schedule) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return time.Minute
	}
	return min(time.Minute, max(0, s.waiting[0].due.Sub(s.now())))
}

// scrapeReport is the state of the schedule when a scrape was done.
type scrapeReport struct {
	// gone means that the endpoint has vanished.
	gone bool
	// skipped is the number of ticks during the scrape.
	skipped int64
	change  stateChange
}

// done records the result of a scrape and queues the endpoint for its next tick.
func (s *schedule) done(e *scrapedEndpoint, result scrapeResult) scrapeReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.job.requests--
	e.cancel()
	e.cancel = nil
	if e.gone {
		return scrapeReport{gone: true}
	}
	interval := e.owner.target.Interval
	report := scrapeReport{skipped: max(0, int64(s.now().Sub(e.due)/interval))}
	if !result.isCancelled() {
		report.change = e.record(result)
	}
	ticks := report.skipped + 1
	if e.unserved > 0 {
		ticks = max(ticks, backoffTicks(e.unserved, interval))
	}
	e.due = e.due.Add(time.Duration(ticks) * interval)
	heap.Push(&s.waiting, e)
	if e.position == 0 {
		s.wake()
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

func (s *schedule) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// dueHeap has the endpoint that is due first at its top.
type dueHeap []*scrapedEndpoint

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

// Push adds x at the end; container/heap calls it.
func (h *dueHeap) Push(x any) {
	e := x.(*scrapedEndpoint)
	e.position = len(*h)
	*h = append(*h, e)
}

// Pop removes the last element; container/heap calls it.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.position = notWaiting
	return e
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
	before := s.byKey
	s.byKey = make(map[string]*scrapedTarget, len(update.Targets))
	for _, t := range update.Targets {
		job, known := s.jobs[t.Job], before[t.Key]
		if known == nil || !known.target.Equal(t) {
			known = s.carryOver(known, t, job)
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
	s.wake()
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
	now, interval := s.now(), owner.target.Interval
	e.due = now.Add(untilTick(now, offsetOf(s.seed, owner.target.Key, endpoint.Profile.Name, interval), interval))
	heap.Push(&s.waiting, e)
	return e
}

// forget ends the scraping of an endpoint. If a scrape is in progress, it drops the endpoint's baseline when it ends.
func (s *schedule) forget(e *scrapedEndpoint) {
	e.gone = true
	switch {
	case e.cancel != nil:
		e.cancel()
	case e.position != notWaiting:
		heap.Remove(&s.waiting, e.position)
		e.delta.drop(e.job)
	}
}
