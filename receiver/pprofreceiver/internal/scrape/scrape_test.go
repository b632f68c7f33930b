// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// byPath returns a handler that has a handler for each path.
func byPath(handlers map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		handler := handlers[r.URL.Path]
		if handler == nil {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	}
}

func TestScrapeDelivers(t *testing.T) {
	heap, goroutine := sourcetest.Captured(t, "go-heap.pb.gz"), sourcetest.Captured(t, "go-goroutine.pb.gz")
	headers := make(chan http.Header, 1000)
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{
		"/memory": func(w http.ResponseWriter, r *http.Request) {
			select {
			case headers <- r.Header.Clone():
			default:
			}
			_, _ = w.Write(heap)
		},
		"/goroutine": sourcetest.Serve(goroutine),
	}))
	f := newFixture(t, 0, nil)
	f.begin(scrapeTargetOf(t, site.URL, "/memory", "/goroutine"))
	f.eventually(func() bool {
		return len(ofKind(f.Next.All(), "memory")) > 1 && len(ofKind(f.Next.All(), "goroutine")) > 1
	})
	memory := ofKind(f.Next.All(), "memory")[0]
	assert.Equal(t, 4, memory.ProfileCount())
	assert.Equal(t, map[string]any{"service.name": "till"}, sourcetest.ResourceOf(t, memory))

	header := <-headers
	assert.Equal(t, "otelcol-profiles/1.2.3", strings.Fields(header.Get("User-Agent"))[0])
	assert.Equal(t, "identity", header.Get("Accept-Encoding"))

	line := f.endpoint(0, "memory")
	assert.Equal(t, stateUp, line.State)
	assert.Equal(t, len(heap), line.Bytes)
	assert.Equal(t, memory.SampleCount(), line.Samples)
	assert.Equal(t, outcomeDelivered, line.Outcome)
	assert.Empty(t, line.Error)

	f.end()
	n := f.Sum(metricScrapes, "job", "shop", "profile", "memory", "outcome", outcomeDelivered)
	assert.Equal(t, int64(len(ofKind(f.Next.All(), "memory"))), n)
	assert.Equal(t, n*int64(len(heap)), f.Sum(metricScrapeBytes, "job", "shop", "profile", "memory"))
	assert.Positive(t, f.Sum("otelcol_receiver_accepted_profile_samples", "transport", "http"))
}

// A profile without samples is no fault, and nothing to deliver.
func TestScrapeOfNothing(t *testing.T) {
	site := sourcetest.NewSite(t, sourcetest.Serve(withValues(t, nil)))
	f := newFixture(t, 0, nil).begin(scrapeTargetOf(t, site.URL, "/block"))
	f.eventually(func() bool { return f.endpoint(0, "block").Outcome == outcomeNoSamples })
	assert.Equal(t, stateUp, f.endpoint(0, "block").State)
	assert.Empty(t, f.Next.All())
	assert.Zero(t, f.Logs.FilterMessageSnippet("scrape failed").Len())
}

// Each fault has its reason, is logged once, and does not affect other kinds of the same target.
func TestScrapeFaults(t *testing.T) {
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	fail := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "profiling is in use", code) }
	}
	breakOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(good[:100])
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		reason  ingest.Reason
		state   string
		says    string
	}{
		"500": {fail(500), ingest.HTTPStatus, stateDown,
			`status 500 Internal Server Error: it begins with "profiling is in use"`},
		"401": {fail(401), ingest.HTTPStatus, stateDown, "status 401"},
		"404": {fail(404), ingest.HTTPStatus, stateBackedOff, "status 404 Not Found"},
		"405": {fail(405), ingest.HTTPStatus, stateBackedOff, "status 405"},
		"410": {fail(410), ingest.HTTPStatus, stateBackedOff, "status 410"},
		"501": {fail(501), ingest.HTTPStatus, stateBackedOff, "status 501"},
		"a page": {sourcetest.Serve([]byte("<html>hello</html>")), ingest.ContentType, stateBackedOff,
			"text/html"},
		"JSON": {sourcetest.Serve([]byte("{}"), "Content-Type", "application/json; charset=utf-8"), ingest.ContentType,
			stateBackedOff, "application/json"},
		"a text of no type": {sourcetest.Serve(sourcetest.Captured(t, "go-goroutine-debug1.txt"), "Content-Type", ""),
			ingest.NotPprof, stateBackedOff, "seems to be"},
		"a debug page": {sourcetest.Serve([]byte("heap profile: 1: 2 [3: 4]"), "Content-Type", "text/plain"),
			ingest.ContentType, stateBackedOff, "heap profile"},
		"garbage": {sourcetest.Serve([]byte{8, 1, 255, 254}, "Content-Type", "x/y"), ingest.NotPprof,
			stateBackedOff, "pprof"},
		"nothing": {sourcetest.Serve(nil), ingest.Empty, stateDown, "empty"},
		"a bomb": {sourcetest.Serve(profiletest.Gzip(make([]byte, 1<<20)), "Content-Type", "x/y"),
			ingest.TooLarge, stateBackedOff, "max_profile_bytes"},
		"a bomb, Content-Encoding": {sourcetest.Serve(profiletest.Gzip(make([]byte, 1<<20)), "Content-Type", "x/y",
			"Content-Encoding", "gzip"), ingest.TooLarge, stateBackedOff, "max_profile_bytes"},
		"too much": {sourcetest.Serve(make([]byte, 100001), "Content-Type", "x/y"), ingest.TooLarge,
			stateBackedOff, "larger than 100000 bytes"},
		"an unknown encoding": {sourcetest.Serve(good, "Content-Type", "x/y", "Content-Encoding", "br"),
			ingest.Encoding, stateBackedOff, `"br"`},
		"no gzip behind that name": {sourcetest.Serve([]byte("hello, hello"), "Content-Type", "x/y", "Content-Encoding",
			"gzip"), ingest.NotPprof, stateBackedOff, "gzip"},
		"an answer that breaks off": {breakOff, ingest.Unreachable, stateDown, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, other := sourcetest.NewSite(t, sourcetest.Serve(good)), sourcetest.NewSite(t, sourcetest.Serve(good))
			f := newFixture(t, 100000, nil)
			f.begin(scrapeTargetOf(t, bad.URL, "/memory?token=hunter2"), scrapeTargetOf(t, other.URL, "/goroutine"))
			f.eventually(func() bool { return f.endpoint(0, "memory").State == stateUp })
			bad.Handler.Store(&tc.handler)
			bad.AwaitRequests(t, 2)
			f.eventually(func() bool { return f.endpoint(0, "memory").State == tc.state })
			assert.Contains(t, f.endpoint(0, "memory").Error, tc.says)
			f.eventually(func() bool { return f.endpoint(1, "goroutine").State == stateUp })
			assert.Positive(t, f.Sum(metricScrapes, "job", "shop", "profile", "memory", "outcome", string(tc.reason)))
			assert.Positive(t, f.Sum(sourcetest.MetricRejected, "reason", string(tc.reason), "source", "scrape"))

			working := sourcetest.Serve(good)
			bad.Handler.Store(&working)
			f.AwaitLog(1, "scrape succeeds again")
			f.eventually(func() bool { return f.endpoint(0, "memory").State == stateUp })
			begins := f.Logs.FilterMessageSnippet("scrape failed").Len() + f.Logs.FilterMessageSnippet("does not serve").Len()
			assert.Equal(t, 1, begins)
			for _, entry := range f.Logs.All() {
				assert.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), "hunter2")
			}
		})
	}
}

func TestScrapeUnreachable(t *testing.T) {
	site := sourcetest.NewSite(t, sourcetest.Serve(nil))
	site.Close()
	f := newFixture(t, 0, nil).begin(scrapeTargetOf(t, site.URL, "/a", "/b", "/c"))
	f.eventually(func() bool {
		return f.Sum(metricScrapes, "outcome", "unreachable") > 10
	})
	// The log names the target once, not each of its kinds.
	assert.Equal(t, 1, f.Logs.FilterMessageSnippet("scrape failed").Len())
	assert.Equal(t, stateDown, f.endpoint(0, "a").State, "it is scraped at every interval: it may be back soon")
	assert.Equal(t, int64(1), f.Sum(metricScrapeTargets, "job", "shop", "state", stateDown))
	assert.Zero(t, f.Sum(metricScrapeTargets, "state", stateUp))
}

// A target slower than its interval gets one request at a time, and the ticks that it missed are counted.
func TestScrapeNeverOverlaps(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	inside, most := map[string]int{}, map[string]int{}
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	site := sourcetest.NewSite(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		inside[r.URL.Path]++
		most[r.URL.Path] = max(most[r.URL.Path], inside[r.URL.Path])
		mu.Unlock()
		time.Sleep(3 * quickly)
		mu.Lock()
		inside[r.URL.Path]--
		mu.Unlock()
		_, _ = w.Write(good)
	})
	f := newFixture(t, 0, nil).begin(scrapeTargetOf(t, site.URL, "/a", "/b"))
	f.Await(10)
	f.end()
	mu.Lock()
	assert.Equal(t, map[string]int{"/a": 1, "/b": 1}, most)
	mu.Unlock()
	scrapes := f.Sum(metricScrapes, "outcome", outcomeDelivered)
	assert.GreaterOrEqual(t, f.Sum(metricScrapeSkipped, "job", "shop"), 2*scrapes)
}

// A target that never answers takes no slot.
func TestScrapeTimeout(t *testing.T) {
	t.Parallel()
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{
		"/hangs":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/drips":  drip,
		"/memory": sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")),
	}))
	var found []*targets.Target
	for i := range 20 {
		hanging := scrapeTargetOf(t, site.URL, fmt.Sprintf("/hangs?%d", i), fmt.Sprintf("/drips?%d", i))
		hanging.Endpoints[0].Timeout, hanging.Endpoints[1].Timeout = time.Second, time.Second
		found = append(found, hanging)
	}
	found = append(found, scrapeTargetOf(t, site.URL, "/memory"))
	f := newFixture(t, 0, nil).begin(found...)
	f.Await(20)
	f.eventually(func() bool {
		return f.endpoint(0, "hangs").Outcome == string(ingest.Timeout) &&
			f.endpoint(0, "drips").Outcome == string(ingest.Timeout)
	})
	assert.Equal(t, stateDown, f.endpoint(0, "hangs").State)
}

// drip sends a byte now and then.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "x/y")
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte{0}); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(5 * time.Millisecond)
	}
}

// A payload that the pipeline refuses for now is dropped and counted, and the target is up.
func TestScrapeRefused(t *testing.T) {
	site := sourcetest.NewSite(t, sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")))
	f := newFixture(t, 0, nil)
	f.Next.RefuseWith(errors.New("full"))
	f.begin(scrapeTargetOf(t, site.URL, "/memory"))
	site.AwaitRequests(t, 5)
	f.AwaitLog(1, "scrape failed")
	assert.Equal(t, stateUp, f.endpoint(0, "memory").State)
	assert.Equal(t, "full", f.endpoint(0, "memory").Error)
	assert.Positive(t, f.Sum("otelcol_receiver_refused_profile_samples", "transport", "http"))
	assert.Positive(t, f.Sum(metricScrapes, "outcome", outcomeRefused))
	assert.Zero(t, f.Sum(sourcetest.MetricRejected))
}

// Shutdown cancels requests at once, and delivers what was fetched.
func TestScrapeShutdown(t *testing.T) {
	entered := make(chan struct{}, 100)
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{
		"/hangs": func(_ http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
		},
		"/memory": sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")),
	}))
	f := newFixture(t, 0, nil)
	delivering, goOn := make(chan struct{}, 100), make(chan struct{})
	f.Next.Err = func(int) error {
		delivering <- struct{}{}
		<-goOn
		return nil
	}
	f.begin(scrapeTargetOf(t, site.URL, "/hangs"), scrapeTargetOf(t, site.URL, "/memory"))
	<-entered
	<-delivering
	begun, ended := time.Now(), make(chan struct{})
	go func() {
		f.end()
		close(ended)
	}()
	f.eventually(func() bool { return !f.endpoint(0, "hangs").InProgress })
	close(goOn)
	<-ended
	assert.Less(t, time.Since(begun), sourcetest.Patience/2)
	require.Len(t, f.Next.All(), 1)
	assert.Zero(t, f.Sum(sourcetest.MetricRejected))
	assert.Zero(t, f.Logs.FilterMessageSnippet("scrape failed").Len())
}
