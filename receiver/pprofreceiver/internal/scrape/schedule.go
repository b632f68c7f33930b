// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// schedule knows all targets, and which endpoint is due next. An endpoint that waits costs an entry
// in a heap; there is no goroutine and no timer but the schedule's own.
type schedule struct {
	jobs map[string]*scrapeJob
	seed string
	now  func() time.Time

	mu      sync.Mutex
	waiting dueHeap
	byKey   map[string]*scrapedTarget
	// latest is what discovery found last, in its order.
	latest []*scrapedTarget
	report []targets.JobReport
	// changed says that the first of waiting may be another one.
	changed chan struct{}
}

func newSchedule(jobs map[string]*scrapeJob, seed string) *schedule {
	return &schedule{jobs: jobs, seed: seed, now: time.Now, byKey: map[string]*scrapedTarget{}, changed: make(chan struct{}, 1)}
}

// run calls begin for each endpoint when it is due, and idle once in a while, until ctx ends. begin must
// return at once.
func (s *schedule) run(ctx context.Context, begin func(scrapeTask), idle func(now time.Time)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for lastIdle := s.now(); ; {
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
		if now.Sub(lastIdle) > time.Second {
			idle(now)
			lastIdle = now
		}
		timer.Reset(max(s.untilNext(), grain))
	}
}

// grain is how late a scrape may begin, so that those that are due within it begin together. Waking up for each of 160
// scrapes a second is nearly half of their processor time (docs/benchmarks/peers.md).
const grain = 50 * time.Millisecond

// scrapeTask is one scrape to be done: what the endpoint was when it became due.
type scrapeTask struct {
	*scrapedEndpoint
	// ctx ends with the scrape's timeout, and when the target vanishes.
	ctx      context.Context
	endpoint targets.Endpoint
	identity ingest.Identity
}

// nextDue removes an endpoint that is due from the heap.
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

// scrapeReport is what follows from a scrape.
type scrapeReport struct {
	// gone says that the endpoint vanished meanwhile.
	gone bool
	// skipped is the number of ticks that passed while the scrape was under way.
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
	if !result.brokenOff() {
		report.change = e.record(result)
	}
	ticks := report.skipped + 1
	if e.unserved > 0 {
		ticks = max(ticks, backoffTicks(e.unserved, interval))
	}
	e.due = e.due.Add(time.Duration(ticks) * interval)
	s.push(e)
	return report
}

// record makes result the endpoint's last one.
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

// push queues an endpoint.
func (s *schedule) push(e *scrapedEndpoint) {
	heap.Push(&s.waiting, e)
	if e.position == 0 {
		s.wake()
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

// Pop removes the last one; container/heap calls it.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.position = notWaiting
	return e
}

// apply makes update the targets that are scraped. What is still there keeps its place in time, its
// backoff and its baselines; what vanished is broken off and forgotten.
func (s *schedule) apply(update targets.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = update.Jobs
	s.latest = make([]*scrapedTarget, 0, len(update.Targets))
	before := s.byKey
	s.byKey = make(map[string]*scrapedTarget, len(update.Targets))
	for _, t := range update.Targets {
		job := s.jobs[t.Job]
		if job == nil || s.byKey[t.Key] != nil {
			continue // discovery returns neither
		}
		known := before[t.Key]
		if known == nil || known.target != t {
			known = s.carryOver(known, t, job)
		}
		s.byKey[t.Key] = known
		s.latest = append(s.latest, known)
		delete(before, t.Key)
	}
	for _, vanished := range before {
		for _, e := range vanished.endpoints {
			s.forget(e)
		}
	}
	s.wake()
}

// carryOver makes the new state of a target. known is its old one, or nil.
func (s *schedule) carryOver(known *scrapedTarget, t *targets.Target, job *scrapeJob) *scrapedTarget {
	made := newScrapedTarget(t)
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
			// A scrape under way ends by the old timeout and with the old identity.
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

// forget ends the scraping of an endpoint. A scrape under way releases the rest.
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
