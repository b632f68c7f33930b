// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"container/heap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

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
			continue // discovery gives neither; a scrape without a job could not be asked for
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
	e.due = now.Add(untilTick(now, spread(s.seed, owner.target.Key, endpoint.Profile.Name, interval), interval))
	heap.Push(&s.waiting, e)
	return e
}

// forget ends the scraping of an endpoint. A scrape under way sees that and lets go of the rest.
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
