// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// run runs a schedule of one job until the test ends. It is for the fake time of a bubble.
func run(t *testing.T, seed string, scrape func(*schedule, scrapeTask)) *schedule {
	s := &schedule{jobs: map[string]*scrapeJob{"shop": {name: "shop", log: zap.NewNop()}}, seed: seed}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go s.run(ctx, func(ctx context.Context, _ func(targets.Update)) { <-ctx.Done() },
		func(task scrapeTask) { scrape(s, task) })
	synctest.Wait()
	return s
}

var (
	delivered = scrapeResult{outcome: outcomeDelivered}
	missing   = scrapeResult{outcome: string(ingest.HTTPStatus),
		err: ingest.Reject(ingest.HTTPStatus, ingest.StatusError(http.StatusNotFound))}
	down = scrapeResult{outcome: string(ingest.Unreachable), err: ingest.Reject(ingest.Unreachable, errors.New("refused"))}
)

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

// Every endpoint is scraped once in each interval, at its own place, and the places are spread evenly.
func TestScheduleSpreads(t *testing.T) {
	const interval = 15 * time.Second
	places := func(t *testing.T, seed string) map[string]time.Duration {
		var mu sync.Mutex
		begun := map[string][]time.Duration{}
		s := run(t, seed, func(s *schedule, task scrapeTask) {
			mu.Lock()
			defer mu.Unlock()
			name := task.endpoint.URL.Host + task.endpoint.URL.Path
			begun[name] = append(begun[name], time.Duration(time.Now().UnixNano()))
			s.done(task.scrapedEndpoint, delivered)
		})
		for range 2 { // the second time nothing has changed
			var update targets.Update
			for i := range 1000 {
				update.Targets = append(update.Targets, targetNamed(fmt.Sprintf("h%d", i), "memory", "mutex"))
			}
			s.apply(update)
			time.Sleep(interval)
			synctest.Wait()
		}
		s.apply(targets.Update{})
		places := map[string]time.Duration{}
		for name, at := range begun {
			require.Len(t, at, 2)
			require.Equal(t, interval, at[1]-at[0])
			places[name] = at[0] % interval
		}
		return places
	}
	synctest.Test(t, func(t *testing.T) {
		first := places(t, "seed")
		require.Len(t, first, 2000)
		var seconds [15]int
		for _, at := range first {
			require.Zero(t, at%grain, "several begin together")
			seconds[at/time.Second]++
		}
		for _, n := range seconds {
			assert.InDelta(t, 2000/15, n, 60)
		}
		time.Sleep(time.Hour + 7*time.Second)
		assert.Equal(t, first, places(t, "seed"), "after a restart")
		assert.NotEqual(t, first, places(t, "another"))
	})
}

// begins returns when an endpoint with results is scraped, one after the other, each for as long as took.
func begins(t *testing.T, took time.Duration, results ...scrapeResult) (waits []time.Duration, skipped []int64) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var last time.Time
		s := run(t, "seed", func(s *schedule, task scrapeTask) {
			mu.Lock() // the next scrape may begin before this one has noted its result
			defer mu.Unlock()
			if !last.IsZero() {
				waits = append(waits, time.Since(last))
			}
			last = time.Now()
			if len(results) > 0 {
				time.Sleep(took)
				skipped = append(skipped, s.done(task.scrapedEndpoint, results[0]).skipped)
				results = results[1:]
			}
		})
		s.apply(targets.Update{Targets: []*targets.Target{targetNamed("h", "memory")}})
		time.Sleep(2 * time.Hour)
	})
	return waits, skipped
}

func TestScheduleSkipsMissedTicks(t *testing.T) {
	waits, skipped := begins(t, 40*time.Second, delivered, delivered)
	assert.Equal(t, []int64{2, 2}, skipped)
	assert.Equal(t, []time.Duration{45 * time.Second, 45 * time.Second}, waits, "the endpoint keeps its place")
}

func TestScheduleBacksOff(t *testing.T) {
	waits, _ := begins(t, 0, missing, missing, missing, missing, missing, missing, missing, delivered, missing, down, down)
	var seconds []float64
	for _, wait := range waits {
		seconds = append(seconds, wait.Seconds())
	}
	assert.Equal(t, []float64{30, 60, 120, 240, 480, 600, 600, 15, 30, 15, 15}, seconds,
		"a target that is down may be back soon")
	assert.Equal(t, int64(1), backoffTicks(1, time.Hour), "an interval longer than maxBackoff does not change")
	assert.Equal(t, int64(600), backoffTicks(1000, time.Second))
}

// Endpoints that an update keeps go on as before; scrapes of others are cancelled.
func TestScheduleUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scraped atomic.Int64
		var hangs, areGone atomic.Bool
		s := run(t, "seed", func(s *schedule, task scrapeTask) {
			if scraped.Add(1); hangs.Load() {
				<-task.ctx.Done()
				assert.ErrorIs(t, task.ctx.Err(), context.Canceled)
				areGone.Store(s.done(task.scrapedEndpoint, scrapeResult{}).gone)
				return
			}
			s.done(task.scrapedEndpoint, missing)
		})
		s.apply(targets.Update{Targets: []*targets.Target{targetNamed("a", "memory", "mutex"), targetNamed("b", "memory")}})
		time.Sleep(15 * time.Second)
		require.EqualValues(t, 3, scraped.Load())
		a := s.byKey["a"]
		kept, moved := a.endpoints[0], a.endpoints[1]
		due, unserved := kept.due, kept.unserved
		require.Equal(t, 1, unserved)

		// The same target with another identity keeps its endpoints. A kind with another URL is a new endpoint.
		changed := targetNamed("a", "memory", "mutex")
		changed.Resource.PutStr("service.version", "2")
		changed.Endpoints[1].URL = &url.URL{Scheme: "http", Host: "a", Path: "/elsewhere"}
		s.apply(targets.Update{Targets: []*targets.Target{changed}})
		require.Len(t, s.jobs["shop"].targets, 1)
		assert.Same(t, kept, s.byKey["a"].endpoints[0])
		assert.Equal(t, due, kept.due)
		assert.Equal(t, unserved, kept.unserved)
		assert.NotSame(t, moved, s.byKey["a"].endpoints[1])
		assert.True(t, moved.gone)
		version, _ := kept.owner.identity.Derived.Get("service.version")
		assert.Equal(t, "2", version.Str())

		// If a target vanishes while it is scraped, the scrapes are cancelled, and none follows.
		hangs.Store(true)
		time.Sleep(30 * time.Second)
		assert.EqualValues(t, 5, scraped.Load(), "those that vanished are not scraped")
		assert.False(t, areGone.Load())
		s.apply(targets.Update{})
		synctest.Wait()
		assert.True(t, areGone.Load())
		assert.Empty(t, s.byKey)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 5, scraped.Load())
	})
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

// Two jobs that scrape the same profiles are told once.
func TestScheduleNotesWhatIsScrapedTwice(t *testing.T) {
	const line = "a profile is scraped for several targets"
	site := sourcetest.NewSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(withValues(t, nil)) })
	target, other := scrapeTargetOf(t, site.URL, "/block", "/mutex"), scrapeTargetOf(t, site.URL, "/block?x=1", "/mutex")
	f := newFixture(t, 0, nil).begin(target)
	f.find(target, scrapeTargetOf(t, site.URL, "/block?seconds=1"))
	assert.Zero(t, f.Logs.FilterMessageSnippet(line).Len())
	for range 2 {
		f.find(target, other)
	}
	lines := f.Logs.FilterMessageSnippet(line).All()
	require.Len(t, lines, 1)
	assert.Equal(t, site.URL+"/mutex", lines[0].ContextMap()["url"])
	assert.EqualValues(t, 1, lines[0].ContextMap()["profiles"])
}
