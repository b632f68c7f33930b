// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// latencyPushes is the time for which BenchmarkLatency pushes in each iteration.
const latencyPushes = 5 * time.Second

// BenchmarkLatency pushes profiles to config/agent.yaml at an even rate. It reports how long a push waits for its
// answer, and how long after the push and after the answer the next hop has the profile: median and 99th percentile.
func BenchmarkLatency(b *testing.B) {
	for _, rate := range []int{10, 1000} {
		for _, acknowledge := range []string{"batched", "delivered"} {
			b.Run(fmt.Sprintf("rate=%d/acknowledge=%s", rate, acknowledge), func(b *testing.B) {
				b.Setenv("ACKNOWLEDGE", acknowledge)
				benchLatency(b, rate)
			})
		}
	}
}

func benchLatency(b *testing.B, rate int) {
	to := &latencySink{at: map[int64]time.Time{}}
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(b, err)
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, to)
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(server.Stop)
	_, agent := startBenchCollector(b, agentConfig, "PPROF_ENDPOINT", "BACKEND_ENDPOINT="+listener.Addr().String())
	payloads := slices.Concat(benchPayloads(b)...)
	for i := range payloads {
		payloads[i].body = withoutTime(b, payloads[i].body)
	}

	type push struct{ sent, answered time.Time }
	pushes := map[int64]push{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for b.Loop() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		for range int(latencyPushes.Seconds()) * rate {
			<-tick.C
			id := timeOfPush(len(pushes))
			p := payloads[len(pushes)%len(payloads)]
			p.body = append(slices.Clip(p.body), timeMember(b, id)...)
			mu.Lock()
			pushes[id] = push{}
			mu.Unlock()
			running.Go(func() {
				sent := time.Now()
				pushBench(b, agent, p)
				mu.Lock()
				pushes[id] = push{sent, time.Now()}
				mu.Unlock()
			})
		}
		tick.Stop()
	}
	running.Wait()
	require.Eventually(b, func() bool { return to.has(len(pushes)) }, startTimeout, 50*time.Millisecond,
		"every profile arrives: %d of %d", len(to.at), len(pushes))

	var answers, arrivals, afterAnswer []time.Duration
	for id, p := range pushes {
		answers = append(answers, p.answered.Sub(p.sent))
		arrivals = append(arrivals, to.at[id].Sub(p.sent))
		afterAnswer = append(afterAnswer, to.at[id].Sub(p.answered))
	}
	for name, durations := range map[string][]time.Duration{"answer": answers, "arrival": arrivals,
		"arrival-after-answer": afterAnswer} {
		slices.Sort(durations)
		for _, percent := range []int{50, 99} {
			b.ReportMetric(float64(durations[len(durations)*percent/100].Microseconds())/1e3,
				fmt.Sprintf("%s-p%d-ms", name, percent))
		}
	}
}

// timeOfPush returns the time of a push's profiles, in nanoseconds. It identifies the push at the next hop.
func timeOfPush(n int) int64 {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() + int64(n)*1e6
}

// withoutTime returns a pprof without its time.
func withoutTime(b *testing.B, body []byte) []byte {
	p, err := profile.ParseData(body)
	require.NoError(b, err)
	p.TimeNanos = 0
	var without bytes.Buffer
	require.NoError(b, p.Write(&without))
	return without.Bytes()
}

// timeMember returns a gzip member with the field time_nanos of a pprof, to append to a pprof without a time.
func timeMember(b *testing.B, nanos int64) []byte {
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	const timeNanos = 9 // in pprof's profile.proto
	_, err := w.Write(protowire.AppendVarint(protowire.AppendTag(nil, timeNanos, protowire.VarintType), uint64(nanos)))
	require.NoError(b, err)
	require.NoError(b, w.Close())
	return body.Bytes()
}

// latencySink is a backend that records when the profiles of each time arrived first.
type latencySink struct {
	pprofileotlp.UnimplementedGRPCServer
	mu sync.Mutex
	at map[int64]time.Time
}

func (a *latencySink) Export(
	_ context.Context, request pprofileotlp.ExportRequest,
) (pprofileotlp.ExportResponse, error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range otlp.Profiles(request.Profiles()) {
		if _, found := a.at[int64(p.Time())]; !found {
			a.at[int64(p.Time())] = now
		}
	}
	return pprofileotlp.NewExportResponse(), nil
}

// has reports whether the profiles of the first n pushes have arrived.
func (a *latencySink) has(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range n {
		if _, found := a.at[timeOfPush(i)]; !found {
			return false
		}
	}
	return true
}
