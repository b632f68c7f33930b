// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	querypkg "github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	mib = 1 << 20
	// memoryLimit is the limit of the process in these tests, and queryShare the part of it that all queries may take.
	memoryLimit, queryShare = 1024 * mib, memoryLimit / 8
)

// listen serves a store of functions that hardly any two samples share, over HTTP. Ten of its samples are of a service
// of their own.
func listen(t *testing.T, samples int, settings api.Settings) (address string) {
	t.Helper()
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 256 * mib, MaxSeries: 100})
	for i := 0; i < samples; i += 10_000 {
		var list []profiletest.Sample
		for k := i; k < i+10_000; k++ {
			list = append(list, profiletest.Value(1, fmt.Sprintf("%s%d", strings.Repeat("long name ", 20), k), "main").
				With(profiletest.Attr("key", fmt.Sprint(k%33))))
		}
		require.NotZero(t, s.Add(build(list...), noon).Profiles)
	}
	require.NotZero(t, s.Add(profiletest.New().Resource("service.name", "small").Profile("cpu", "nanoseconds").
		Time(uint64(noon.UnixNano()), 1e9).Sample(profiletest.Value(1, "leaf", "main")).Build(), noon).Profiles)
	settings.Store, settings.Page, settings.MaxConcurrent = s.Querier, fstest.MapFS{}, 4
	settings.Now = func() time.Time { return noon }
	server := httptest.NewServer(api.New(settings))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u.Host
}

func limitMemory(t *testing.T) {
	t.Helper()
	budget.SetMemoryLimit(memoryLimit)
	t.Cleanup(func() {
		assert.Zero(t, budget.Queries().HeldBytes())
		budget.SetMemoryLimit(math.MaxInt64)
	})
}

// ask asks for a path and returns the answer: its status, the delay after which to ask again, and its body.
func ask(t *testing.T, address, path string) (status int, retryAfter, body string) {
	t.Helper()
	answer := collectortest.Ask(t, http.MethodGet, "http://"+address+path, http.NoBody)
	return answer.StatusCode, answer.Header.Get("Retry-After"), answer.Body
}

func sizeOf(t *testing.T, address, path string) int {
	t.Helper()
	_, _, text := ask(t, address, path)
	return len(text)
}

// doNotRead asks for a path, and reads nothing until it is closed.
func doNotRead(t *testing.T, address, path string) (closed func()) {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	closed = func() { _ = connection.Close() }
	t.Cleanup(closed)
	require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	require.NoError(t, err)
	return closed
}

const large = "/api/flamegraph" + query + "&max_nodes=500000"

// Thirty readers that do not read take no more than the share of queries, and others have their answers meanwhile.
func TestReadersWhoDoNotRead(t *testing.T) {
	profiletest.SkipLarge(t)
	limitMemory(t)
	address := listen(t, 50_000, api.Settings{Limits: querypkg.Limits{Timeout: time.Minute}})
	require.Greater(t, sizeOf(t, address, large), 8*mib)
	profiletest.RequireCost(t, profiletest.Bound{HeapBytes: queryShare * 3 / 2}, func() {
		for range 30 {
			defer doNotRead(t, address, large)()
		}
		for range 10 {
			start := time.Now()
			status, _, text := ask(t, address, "/api/flamegraph?service=small&profile=process_cpu")
			assert.Equal(t, http.StatusOK, status, text)
			t.Logf("a small answer after %v", time.Since(start))
			time.Sleep(200 * time.Millisecond)
		}
	})
}

// Queries at the same time share the memory. What does not fit at the moment is refused for the moment. What never fits
// has fewer nodes, or is refused with both numbers.
func TestQueriesShareTheMemory(t *testing.T) {
	profiletest.SkipLarge(t)
	limitMemory(t)
	address := listen(t, 50_000, api.Settings{Limits: querypkg.Limits{Timeout: time.Minute}})
	var mu sync.Mutex
	answers := map[string]int{}
	profiletest.RequireCost(t, profiletest.Bound{HeapBytes: queryShare * 3 / 2}, func() {
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				status, retryAfter, text := ask(t, address, large+"&group_by=key")
				mu.Lock()
				defer mu.Unlock()
				switch status {
				case http.StatusOK:
					text = ""
				case http.StatusServiceUnavailable:
					assert.Equal(t, "5", retryAfter)
				}
				answers[fmt.Sprint(status, text)]++
			})
		}
		readers.Wait()
	})
	t.Log(answers)

	address = listen(t, 500_000, api.Settings{Limits: querypkg.Limits{Timeout: time.Minute}})
	for _, path := range []string{large, "/api/flamegraph" + query, large + "&group_by=key", "/api/table" + query} {
		status, _, text := ask(t, address, path)
		assert.Equal(t, http.StatusOK, status, "%s: %.200s", path, text)
		assert.Contains(t, text[:min(len(text), 300)], `"total":500000,`, path)
		assert.Contains(t, text[:min(len(text), 300)], `"pruned":true`, path)
	}
	sum := 0
	status, _, text := ask(t, address, "/profiles/shop/process_cpu.collapsed")
	require.Equal(t, http.StatusOK, status, "%.200s", text)
	assert.Contains(t, text, "main;(left out) ")
	for line := range strings.Lines(text) {
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
		require.NoError(t, err)
		sum += n
	}
	assert.Equal(t, 500_000, sum)

	// A pprof has the largest samples, and the values of all; the header and a comment tell how many are left out.
	pprof := collectortest.Ask(t, http.MethodGet, "http://"+address+"/profiles/shop/process_cpu", http.NoBody)
	require.Equal(t, http.StatusOK, pprof.StatusCode)
	leftOut, err := strconv.Atoi(pprof.Header.Get("X-Profile-Left-Out"))
	require.NoError(t, err)
	p := profiletest.ParsePprof(t, []byte(pprof.Body))
	require.Len(t, p.Comments, 1)
	assert.Contains(t, p.Comments[0], fmt.Sprintf("The %d smallest samples are left out", leftOut))
	value := int64(0)
	for _, sample := range p.Sample {
		value += sample.Value[0]
	}
	assert.EqualValues(t, 500_000, value)
	assert.Greater(t, len(p.Sample), 5000)
	assert.Equal(t, 500_000, leftOut+len(p.Sample)-1, "one sample has what is left out")
}

// All memory is in use: a query gets 503 with a delay, not before it has waited for a while.
func TestQueriesWaitForMemory(t *testing.T) {
	limitMemory(t)
	address := listen(t, 10_000, api.Settings{Limits: querypkg.Limits{Timeout: time.Minute}})
	reservation := budget.Queries().Begin()
	require.NoError(t, reservation.Reserve(t.Context(), budget.Queries().MaxProfileBytes()))
	other := make([]*budget.Reservation, 4)
	for i := range other {
		other[i] = budget.Queries().Begin()
		require.NoError(t, other[i].Reserve(t.Context(), budget.Queries().SmallBytes()))
		if i > 0 {
			defer other[i].Release()
		}
	}
	status, retryAfter, text := ask(t, address, large)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "5", retryAfter)
	assert.Contains(t, text, "other queries take all the memory that queries may use at the moment")
	time.AfterFunc(100*time.Millisecond, func() {
		reservation.Release()
		other[0].Release()
	})
	status, _, _ = ask(t, address, large)
	assert.Equal(t, http.StatusOK, status)
}

// The time of a query ends while its answer is built; that of its reader begins afterwards.
func TestTimesOfAQuery(t *testing.T) {
	address := listen(t, 50_000, api.Settings{Limits: querypkg.Limits{
		Timeout: 5 * time.Millisecond, TimeoutHint: "`query_timeout` can be raised"}})
	for _, path := range []string{large, "/profiles/shop/process_cpu", "/profiles/shop/process_cpu.collapsed",
		"/api/table" + query} {
		status, _, text := ask(t, address, path)
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, "the query took longer than 5ms")
		assert.Contains(t, text, "`query_timeout` can be raised")
	}
	address = listen(t, 50_000, api.Settings{Limits: querypkg.Limits{Timeout: time.Minute}, ReadTimeout: time.Second})
	start := time.Now()
	doNotRead(t, address, large)
	require.Eventually(t, func() bool { return budget.Queries().HeldBytes() > 0 }, 30*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return budget.Queries().HeldBytes() == 0 }, 30*time.Second, time.Millisecond)
	assert.Greater(t, time.Since(start), 900*time.Millisecond)
}

// A misspelt parameter is refused before the query runs: the query itself would find nothing.
func TestMisspeltParametersAreRefusedFirst(t *testing.T) {
	get := serve(t, build(profiletest.Value(1, "leaf")))
	for _, path := range []string{
		"/api/status", "/api/services", "/api/profiles", "/api/attributes", "/api/timeline", "/api/flamegraph", "/api/table",
		"/api/diff",
		"/api/heatmap", "/api/events", "/profiles/none/none", "/profiles/none/none.collapsed",
		"/services/none/debug/pprof/heap",
	} {
		parameters := "?tpye=x"
		if path[:5] == "/api/" && path != "/api/status" && path != "/api/services" {
			parameters += "&service=none"
		}
		if path[:5] == "/api/" && path != "/api/status" && path != "/api/services" && path != "/api/profiles" {
			parameters += "&profile=none"
		}
		status, body := get(path + parameters)
		assert.Equal(t, http.StatusBadRequest, status, path)
		assert.Regexp(t, `unknown parameter \\?"tpye`, body, path)
	}
}

// A stopping server says so.
func TestQueriesOfAStoppingServer(t *testing.T) {
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: mib, MaxSeries: 100})
	handler := api.New(api.Settings{Store: s.Querier, Page: fstest.MapFS{},
		Limits: querypkg.Limits{MaxConcurrent: 1, Timeout: time.Minute}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/services", http.NoBody))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "the server is stopping")
}
