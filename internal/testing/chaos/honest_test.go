// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

const (
	honestService = "honest"
	// Honest senders and readers begin a request at these intervals, answered or not, so that a pause shows in as many of
	// them as it lasted.
	pushInterval  = 200 * time.Millisecond
	queryInterval = 500 * time.Millisecond
)

// honestProfile is a captured CPU profile of 164 kB.
var honestProfile = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile(filepath.Join(collectortest.Repository, "testdata", "pprof", "go-build-merged-cpu-large.pb.gz"))
})

// honest are the users of a node that send captured profiles, and read the page.
type honest struct {
	siege *siege
	// push sends a profile once; it is nil if nothing can be pushed. queries are the paths of an ordinary hour.
	push    func(context.Context) error
	queries []string
}

// warmUp pushes until a profile is accepted, and waits until the page shows it.
func (h *honest) warmUp(t testing.TB) {
	t.Helper()
	n := h.siege.node
	body, err := honestProfile()
	require.NoError(t, err)
	switch d := h.siege.doors; {
	case d.push > 0:
		h.push = func(ctx context.Context) error {
			return post(ctx, "http://"+n.pprof+"/v1/pprof?service.name="+honestService, "application/octet-stream", body)
		}
	case d.otlp > 0:
		pd, _, err := decode.Decode(body, decode.Options{})
		require.NoError(t, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", honestService)
		message, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
		require.NoError(t, err)
		h.push = func(ctx context.Context) error {
			return post(ctx, "http://"+n.otlpHTTP+"/v1development/profiles", "application/x-protobuf", message)
		}
	case d.hec:
		event := hecEvent(t, honestService, base64.StdEncoding.EncodeToString(body))
		h.push = func(ctx context.Context) error {
			return post(ctx, "http://"+n.hec+"/services/collector/event", "application/json", event)
		}
	default:
		return
	}
	var last error
	require.Eventually(t, func() bool { last = h.push(t.Context()); return last == nil }, deliveryTimeout,
		100*time.Millisecond, "%v", last)
	if !h.siege.doors.page {
		return
	}
	var list struct {
		Profiles []struct{ Service, Profile string }
	}
	require.Eventually(t, func() bool {
		text, err := get("http://" + n.page + "/api/profiles?service=" + honestService)
		return err == nil && json.Unmarshal([]byte(text), &list) == nil && len(list.Profiles) > 0
	}, deliveryTimeout, 100*time.Millisecond)
	selection := url.Values{"service": {honestService}, "profile": {list.Profiles[0].Profile},
		"seconds": {"3600"}}.Encode()
	h.queries = []string{"/api/services", "/api/flamegraph?" + selection, "/api/timeline?" + selection,
		"/api/table?" + selection}
}

// honestTraffic are requests under way.
type honestTraffic struct {
	stop            context.CancelFunc
	begins, answers sync.WaitGroup
	mu              sync.Mutex
	pushes, queries latencies
}

// start begins requests until end is called.
func (h *honest) start(ctx context.Context) *honestTraffic {
	begin, stop := context.WithCancel(ctx)
	tr := &honestTraffic{stop: stop}
	if h.push != nil {
		tr.every(begin, pushInterval, &tr.pushes, func(int) { h.untilAccepted(ctx) })
	}
	if len(h.queries) > 0 {
		tr.every(begin, queryInterval, &tr.queries, func(i int) {
			// a query that fails counts with the time that it took, or as the timeout
			_ = h.read(ctx, h.queries[i%len(h.queries)])
		})
	}
	return tr
}

// every begins a request at each interval until the context ends, and records how long it took.
func (tr *honestTraffic) every(ctx context.Context, interval time.Duration, to *latencies, request func(i int)) {
	tr.begins.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for i := 0; ; i++ {
			tr.answers.Go(func() {
				began := time.Now()
				request(i)
				tr.mu.Lock()
				defer tr.mu.Unlock()
				*to = append(*to, time.Since(began))
			})
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// end stops to begin requests, waits for those under way, and returns how long each took.
func (tr *honestTraffic) end() (pushes, queries latencies) {
	tr.stop()
	tr.begins.Wait()
	tr.answers.Wait()
	return tr.pushes, tr.queries
}

// untilAccepted pushes a profile until it is accepted, as a client that retries.
func (h *honest) untilAccepted(ctx context.Context) {
	for h.push(ctx) != nil && ctx.Err() == nil && h.siege.watch.why() == "" {
		time.Sleep(100 * time.Millisecond)
	}
}

// read reads a page to its end. A query that is refused for now is repeated.
func (h *honest) read(ctx context.Context, path string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.siege.node.page+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		_, err = io.Copy(&body, response.Body)
		_ = response.Body.Close()
		switch {
		case err != nil:
			return err
		case response.StatusCode == http.StatusOK:
			return nil
		case response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("%s: %s", response.Status, &body)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
