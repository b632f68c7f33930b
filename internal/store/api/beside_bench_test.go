// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	querypkg "github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkPushBesideQueries compares the slowest hundredth of pushes over HTTP while four clients ask for flame graphs
// and tables of an hour, one after the other, with that while nobody asks: 2,000 pushes of each, in alternation.
func BenchmarkPushBesideQueries(b *testing.B) {
	const rounds, pushes, clients = 20, 100, 4
	payload := profiletest.FileBytes(b, "../../../testdata/pprof/go-cpu-labels.pb.gz")
	pd, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(b, err)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "shop")
	at := func(now time.Time) pprofile.Profiles {
		for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			p.SetTime(pcommon.NewTimestampFromTime(now))
		}
		return pd
	}
	s := store.New(store.Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20,
		Disk: store.DiskConfig{Directory: b.TempDir(), Retention: 24 * time.Hour, MaxBytes: 1 << 30,
			Report: func(message string, err error) { b.Error(message, err) }}})
	require.NoError(b, s.Open())
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	for i := range 720 {
		now := noon.Add(time.Duration(i) * 5 * time.Second)
		require.NoError(b, s.Add(at(now), now).Err)
	}
	end := noon.Add(time.Hour)
	s.Maintain(end)
	mux := http.NewServeMux()
	mux.Handle("/", api.New(api.Settings{
		Store: s.Querier, Page: fstest.MapFS{}, Limits: querypkg.Limits{MaxConcurrent: 4, Timeout: time.Minute},
		Now: func() time.Time { return end },
	}))
	mux.HandleFunc("/push", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(body)
		if err != nil || s.Add(pd, end).Err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	wire := profiletest.Marshal(b, at(end))
	push := func() time.Duration {
		begun := time.Now()
		answer, err := server.Client().Post(server.URL+"/push", "application/x-protobuf", bytes.NewReader(wire))
		took := time.Since(begun)
		require.NoError(b, err)
		require.NoError(b, answer.Body.Close())
		require.Equal(b, http.StatusOK, answer.StatusCode)
		return took
	}
	ask := func(ctx context.Context) (answers int) {
		for {
			for _, path := range []string{"/api/flamegraph" + query, "/api/table" + query} {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
				require.NoError(b, err)
				answer, err := server.Client().Do(request)
				if err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				if err != nil { // ctx has ended
					return answers
				}
				answers++
			}
		}
	}
	for b.Loop() {
		var alone, beside []time.Duration
		var mu sync.Mutex
		answers := 0
		for range rounds {
			for range pushes {
				alone = append(alone, push())
			}
			ctx, cancel := context.WithCancel(b.Context())
			var asking sync.WaitGroup
			for range clients {
				asking.Go(func() {
					n := ask(ctx)
					mu.Lock()
					defer mu.Unlock()
					answers += n
				})
			}
			for range pushes {
				beside = append(beside, push())
			}
			cancel()
			asking.Wait()
		}
		require.Positive(b, answers)
		p99 := func(list []time.Duration) float64 {
			slices.Sort(list)
			return 1000 * list[len(list)*99/100].Seconds()
		}
		b.ReportMetric(p99(alone), "p99-ms-alone")
		b.ReportMetric(p99(beside)/p99(alone), "p99/alone")
		b.ReportMetric(float64(answers)/float64(len(beside)), "answers/push")
	}
}
