// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// clock is the clock of a schedule in tests.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// newClockedSchedule returns a schedule with one job and a clock that the test sets.
func newClockedSchedule() (*schedule, *clock) {
	c := &clock{time.Unix(1_700_000_000, 0)}
	s := newSchedule(map[string]*scrapeJob{"shop": {name: "shop", log: zap.NewNop()}}, "seed")
	s.now = c.now
	return s, c
}

func targetNamed(key string, kinds ...string) *targets.Target {
	made := &targets.Target{Key: key, Job: "shop", Interval: 15 * time.Second, Resource: pcommon.NewMap()}
	for _, kind := range kinds {
		made.Endpoints = append(made.Endpoints, targets.Endpoint{
			Profile: targets.ProfileConfig{Name: kind}, URL: &url.URL{Scheme: "http", Host: key, Path: "/" + kind},
			Timeout: time.Minute,
		})
	}
	return made
}

// play advances the clock by d and returns the names of the endpoints that became due, in order. Each gets result at
// once.
func play(t *testing.T, s *schedule, c *clock, d time.Duration, result scrapeResult) []string {
	var begun []string
	for end := c.Add(d); ; {
		for {
			task, found := s.nextDue(t.Context(), c.now())
			if !found {
				break
			}
			begun = append(begun, task.endpoint.URL.Host+task.endpoint.URL.Path)
			s.done(task.scrapedEndpoint, result)
		}
		next := c.Add(s.untilNext())
		if next.After(end) {
			c.Time = end
			return begun
		}
		c.Time = next
	}
}

// Every endpoint is scraped once in each interval, at its own place, and the places are spread evenly.
func TestScheduleSpreads(t *testing.T) {
	s, c := newClockedSchedule()
	find := func() (update targets.Update) {
		for i := range 1000 {
			update.Targets = append(update.Targets, targetNamed(fmt.Sprintf("h%d", i), "memory", "mutex"))
		}
		return update
	}
	update := find()
	s.apply(update)
	good := scrapeResult{outcome: outcomeDelivered}
	var order []string
	for range 15 {
		second := play(t, s, c, time.Second, good)
		assert.InDelta(t, 2000/15, len(second), 60)
		order = append(order, second...)
	}
	require.Len(t, order, 2000)
	s.apply(find())
	assert.Equal(t, order, play(t, s, c, 15*time.Second, good), "the order is the same in the next interval")

	again, later := newClockedSchedule()
	later.Time = later.Add(time.Hour)
	again.apply(update)
	assert.Equal(t, order, play(t, again, later, 15*time.Second, good), "and after a restart")
	another, same := newClockedSchedule()
	another.seed = "another"
	another.apply(update)
	assert.NotEqual(t, order, play(t, another, same, 15*time.Second, good))
}

func TestScheduleSkipsMissedTicks(t *testing.T) {
	s, c := newClockedSchedule()
	s.apply(targets.Update{Targets: []*targets.Target{targetNamed("h", "memory")}})
	c.Time = c.Add(s.untilNext())
	due := c.Time
	task, found := s.nextDue(t.Context(), c.now())
	require.True(t, found)
	c.Time = c.Add(40 * time.Second)
	_, found = s.nextDue(t.Context(), c.now())
	assert.False(t, found, "one at a time")
	report := s.done(task.scrapedEndpoint, scrapeResult{outcome: outcomeDelivered})
	assert.Equal(t, int64(2), report.skipped)
	assert.Equal(t, due.Add(45*time.Second), c.Add(s.untilNext()), "the endpoint keeps its place")
}

func TestScheduleBacksOff(t *testing.T) {
	s, c := newClockedSchedule()
	s.apply(targets.Update{Targets: []*targets.Target{targetNamed("h", "memory")}})
	missing := scrapeResult{outcome: string(ingest.HTTPStatus),
		err: ingest.Reject(ingest.HTTPStatus, ingest.StatusError(http.StatusNotFound))}
	down := scrapeResult{outcome: string(ingest.Unreachable),
		err: ingest.Reject(ingest.Unreachable, errors.New("refused"))}
	c.Time = c.Add(s.untilNext())
	waits := func(results ...scrapeResult) (waits []time.Duration) {
		for _, result := range results {
			task, found := s.nextDue(t.Context(), c.now())
			require.True(t, found)
			s.done(task.scrapedEndpoint, result)
			waits = append(waits, s.waiting[0].due.Sub(c.now()))
			c.Time = s.waiting[0].due
		}
		return waits
	}
	seconds := func(s ...int) (waits []time.Duration) {
		for _, n := range s {
			waits = append(waits, time.Duration(n)*time.Second)
		}
		return waits
	}
	assert.Equal(t, seconds(30, 60, 120, 240, 480, 600, 600),
		waits(missing, missing, missing, missing, missing, missing, missing))
	assert.Equal(t, seconds(15, 30), waits(scrapeResult{outcome: outcomeDelivered}, missing))
	assert.Equal(t, seconds(15, 15), waits(down, down), "a target that is down may be back soon")
	assert.Equal(t, int64(1), backoffTicks(1, time.Hour), "an interval longer than maxBackoff does not change")
	assert.Equal(t, int64(600), backoffTicks(1000, time.Second))
}

// Endpoints that an update keeps go on as before; scrapes of others are cancelled.
func TestScheduleUpdates(t *testing.T) {
	s, c := newClockedSchedule()
	s.apply(targets.Update{Targets: []*targets.Target{targetNamed("a", "memory", "mutex"), targetNamed("b", "memory")}})
	missing := scrapeResult{outcome: string(ingest.HTTPStatus),
		err: ingest.Reject(ingest.HTTPStatus, ingest.StatusError(http.StatusNotFound))}
	play(t, s, c, 15*time.Second, missing)
	a := s.byKey["a"]
	kept := a.endpoints[0]
	due, unserved := kept.due, kept.unserved
	require.Equal(t, 1, unserved)

	// The same target with another identity keeps its endpoints. A kind with another URL is a new endpoint.
	changed := targetNamed("a", "memory", "mutex")
	changed.Resource.PutStr("service.version", "2")
	changed.Endpoints[1].URL = &url.URL{Scheme: "http", Host: "a", Path: "/elsewhere"}
	moved := a.endpoints[1]
	s.apply(targets.Update{Targets: []*targets.Target{changed}})
	require.Len(t, s.jobs["shop"].targets, 1)
	assert.Same(t, kept, s.byKey["a"].endpoints[0])
	assert.Equal(t, due, kept.due)
	assert.Equal(t, unserved, kept.unserved)
	assert.NotSame(t, moved, s.byKey["a"].endpoints[1])
	assert.True(t, moved.gone)
	assert.Len(t, s.waiting, 2)
	version, _ := kept.owner.identity.Derived.Get("service.version")
	assert.Equal(t, "2", version.Str())

	// If a target vanishes while it is scraped, the scrape is cancelled, and the endpoint does not wait any more.
	var task scrapeTask
	for found := false; !found; task, found = s.nextDue(t.Context(), c.now()) {
		c.Time = c.Add(time.Second)
	}
	require.NoError(t, task.ctx.Err())
	s.apply(targets.Update{})
	assert.ErrorIs(t, task.ctx.Err(), context.Canceled)
	assert.True(t, s.done(task.scrapedEndpoint, scrapeResult{}).gone)
	assert.Empty(t, s.waiting)
	assert.Empty(t, s.byKey)
	assert.Equal(t, time.Minute, s.untilNext())
}

// The same with a real request: the target sees that it is cancelled.
func TestScrapeOfAVanishedTarget(t *testing.T) {
	entered, left := make(chan struct{}, 10), make(chan struct{}, 10)
	site := sourcetest.NewSite(t, func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	f := newFixture(t, 0, nil).begin(scrapeTargetOf(t, site.URL, "/memory"))
	<-entered
	f.find()
	select {
	case <-left:
	case <-time.After(sourcetest.Patience):
		t.Fatal("the request was not cancelled")
	}
	assert.Empty(t, f.status().Jobs[0].Targets)
	assert.Zero(t, f.Sum(metricScrapes))
	assert.Zero(t, f.Logs.FilterMessageSnippet("scrape failed").Len())
}
