// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/processor/dictionarydedupprocessor/internal/metadata"
)

// BenchmarkAcknowledge reports what `acknowledge: delivered` costs: senders that send one message of 100 samples after
// the other, each as soon as the one before is acknowledged. Run it with -benchtime 5s: what it reports does not depend
// on the number of iterations.
func BenchmarkAcknowledge(b *testing.B) {
	for _, timeout := range []time.Duration{time.Second, 200 * time.Millisecond, 50 * time.Millisecond} {
		for _, acknowledge := range []Acknowledge{AcknowledgeBatched, AcknowledgeDelivered} {
			for _, senders := range []int{1, 10, 100, 1000} {
				b.Run(fmt.Sprintf("timeout=%v/%s/senders=%d", timeout, acknowledge, senders), func(b *testing.B) {
					config := createDefaultConfig().(*Config)
					config.Timeout, config.Acknowledge = timeout, acknowledge
					acknowledgeCost(b, config, senders)
				})
			}
		}
	}
}

func acknowledgeCost(b *testing.B, config *Config, senders int) {
	const messageSamples = 100
	var batches, samples atomic.Int64
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		batches.Add(1)
		samples.Add(int64(pd.SampleCount()))
		return nil
	})
	require.NoError(b, err)
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(b.Context(), processortest.NewNopSettings(metadata.Type), config, next)
	require.NoError(b, err)
	template := message("shop", messageSamples)

	var mu sync.Mutex
	var waits []time.Duration
	var running sync.WaitGroup
	begin, end := time.Now(), time.Now().Add(3*time.Second)
	for range senders {
		running.Go(func() {
			var own []time.Duration
			for time.Now().Before(end) {
				pd := clone(template)
				sent := time.Now()
				if err := p.ConsumeProfiles(context.Background(), pd); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, own...)
		})
	}
	running.Wait()
	took := time.Since(begin).Seconds()
	require.NoError(b, p.Shutdown(context.Background()))
	for b.Loop() {
		continue
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(waits))/took, "messages/s")
	b.ReportMetric(float64(samples.Load())/messageSamples/float64(batches.Load()), "messages/batch")
}
