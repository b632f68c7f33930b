// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// TestScrapeAmongBadTargets has as many targets that hang, drip, send garbage, bombs and endless answers as good ones,
// and few slots. The good ones are scraped as if there were no others.
func TestScrapeAmongBadTargets(t *testing.T) {
	t.Parallel()
	const each, interval = 6, time.Second
	bomb := profiletest.Gzip(make([]byte, 8<<20))
	var hanging atomic.Int64
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{
		"/memory":  sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")),
		"/drips":   drip,
		"/garbage": sourcetest.Serve([]byte("hello"), "Content-Type", "x/y"),
		"/bomb":    sourcetest.Serve(bomb, "Content-Type", "x/y"),
		"/endless": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "x/y")
			for block := make([]byte, 1<<16); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
		"/hangs": func(_ http.ResponseWriter, r *http.Request) {
			hanging.Add(1)
			defer hanging.Add(-1)
			<-r.Context().Done()
		},
	}))
	var found []*targets.Target
	for i := range each {
		for _, path := range []string{"/memory", "/memory", "/memory", "/memory", "/memory", "/hangs", "/drips", "/garbage",
			"/bomb", "/endless"} {
			target := scrapeTargetOf(t, site.URL, fmt.Sprintf("%s?%d", path, i))
			target.Key, target.Interval = fmt.Sprint(len(found)), interval
			target.Endpoints[0].Timeout = time.Hour
			found = append(found, target)
		}
	}
	f := newFixture(t, 1000000, nil)
	f.scraper.slots = make(chan struct{}, 2)
	began := time.Now()
	f.begin(found...)
	// In vain, if what hangs and drips took the two places. Each round may take as long as the machine needs for it.
	for round := range 3 {
		f.Await(5 * each * (round + 1))
	}
	f.eventually(func() bool { return hanging.Load() == each }) // and they keep on hanging
	for _, outcome := range []ingest.Reason{ingest.NotPprof, ingest.TooLarge} {
		f.eventually(func() bool { return f.Sum(metricScrapes, "outcome", string(outcome)) > 0 })
	}
	assert.Zero(t, f.Sum(metricScrapes, "profile", "memory", "outcome", outcomeRefused))
	assert.LessOrEqual(t, f.scraper.ingest.Budget.HeldBytes(), 2*f.scraper.ingest.MaxBytes())
	periods := 1 + int(time.Since(began)/logLimits.Period)
	assert.LessOrEqual(t, f.Logs.Len(), periods*(logLimits.Lines+2))
}
