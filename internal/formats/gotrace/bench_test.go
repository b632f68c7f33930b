// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	runtimetrace "runtime/trace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/trace"
)

func readAll(data []byte) error {
	reader, err := trace.NewReader(bytes.NewReader(data))
	for err == nil {
		_, err = reader.ReadEvent()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// measuredTrace returns the trace at the path GO_TRACE. If there is no file and GO_TRACE_SECONDS is set, it records one
// for that time. Without GO_TRACE it returns a small one.
func measuredTrace(tb testing.TB) []byte {
	tb.Helper()
	path := os.Getenv("GO_TRACE")
	if path == "" {
		return testTrace(tb, "go1.26")
	}
	if seconds := os.Getenv("GO_TRACE_SECONDS"); seconds != "" {
		if _, err := os.Stat(path); err != nil {
			n, err := strconv.Atoi(seconds)
			require.NoError(tb, err)
			recordBusyServer(tb, path, time.Duration(n)*time.Second)
		}
	}
	data, err := os.ReadFile(path)
	require.NoError(tb, err)
	return data
}

// recordBusyServer traces a server that 16 clients keep busy: each answer sorts a little, and every eighth waits for a
// lock.
func recordBusyServer(tb testing.TB, path string, duration time.Duration) {
	tb.Helper()
	file, err := os.Create(path)
	require.NoError(tb, err)
	var mu sync.Mutex
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		numbers := rand.Perm(200)
		slices.Sort(numbers)
		if asked.Add(1)%8 == 0 {
			mu.Lock()
			slices.Sort(rand.Perm(1000))
			mu.Unlock()
		}
		_, _ = fmt.Fprintln(w, numbers[:10])
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	require.NoError(tb, runtimetrace.Start(file))
	var clients sync.WaitGroup
	deadline := time.Now().Add(duration)
	for range 16 {
		clients.Go(func() {
			for time.Now().Before(deadline) {
				response, err := client.Get(server.URL)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	clients.Wait()
	runtimetrace.Stop()
	require.NoError(tb, file.Close())
	tb.Logf("%d requests in %v", asked.Load(), duration)
}

// BenchmarkDecode compares Decode with the reader alone, on measuredTrace.
func BenchmarkDecode(b *testing.B) {
	data := measuredTrace(b)
	everything := DefaultOptions()
	everything.MinDuration, everything.SystemGoroutines, everything.GCWorkers, everything.ForeverBlocked = 0, true, true,
		true
	for name, options := range map[string]Options{"default": DefaultOptions(), "everything": everything} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			n := 0
			for b.Loop() {
				_, stats, err := Decode(data, options)
				require.NoError(b, err)
				n = stats.Events
			}
			b.ReportMetric(float64(n), "events/op")
		})
	}
	b.Run("reader alone", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			require.NoError(b, readAll(data))
		}
	})
}
