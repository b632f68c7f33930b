// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkAcknowledge compares the two values of dictionary_dedup's `acknowledge`. It reports how long senders wait,
// how many requests per second an agent and a gateway accept, and the processor time of a request.
func BenchmarkAcknowledge(b *testing.B) {
	for config, timeout := range map[string]string{agentConfig: "5s", gatewayConfig: "1s"} {
		for _, senders := range []int{1, 64, 512} {
			for _, moment := range []string{"batched", "delivered"} {
				b.Run(fmt.Sprintf("%s/senders=%d/impl=%s", filepath.Base(config), senders, moment), func(b *testing.B) {
					benchAcknowledge(b, config, senders, "--set=processors.dictionary_dedup.timeout="+timeout,
						"--set=processors.dictionary_dedup.acknowledge="+moment, "--set=processors.dictionary_dedup.max_wait=1m")
				})
			}
		}
	}
}

func benchAcknowledge(b *testing.B, config string, senders int, flags ...string) {
	to := newBackend(b, newLedger())
	to.start(b)
	n := newNode(b, config, to.address, flags...)
	n.start(b)
	send := exports(b, n.otlp, 5_000)
	if config == agentConfig {
		send = pushes(n.pprof, 5_000)
	}
	require.NoError(b, send(b.Context(), "first", 0))
	var mu sync.Mutex
	var waits []time.Duration
	sent := 0
	began, usedBefore := time.Now(), n.cpu(b)
	for b.Loop() {
		var running sync.WaitGroup
		for range senders {
			running.Go(func() {
				for range 4 {
					start := time.Now()
					if err := send(b.Context(), "bench", 0); err != nil {
						b.Error(err)
					}
					wait := time.Since(start)
					mu.Lock()
					waits = append(waits, wait)
					mu.Unlock()
				}
			})
		}
		running.Wait()
		sent += 4 * senders
	}
	took, used := time.Since(began), n.cpu(b)-usedBefore
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(sent)/took.Seconds(), "requests/s")
	b.ReportMetric(float64(used.Microseconds())/float64(sent), "cpu-µs/request")
}
