// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const patience = 20 * time.Second

func slowly(c *Config) { c.Timeout = time.Hour }

func TestABatchGoesAtItsSize(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 50
	})
	f.consume(message("shop", 30))
	assert.Empty(t, f.sink.all())
	f.consume(message("shop", 30))
	received := f.sink.all()
	require.Len(t, received, 1)
	assert.Equal(t, 60, received[0].SampleCount())
	assert.Equal(t, 1, received[0].ResourceProfiles().Len(), "equal resources become one")
	assert.Equal(t, 1, received[0].ResourceProfiles().At(0).ScopeProfiles().Len(), "and equal scopes")
	require.NoError(t, profiletest.Check(received[0]))
	assert.EqualValues(t, 1, f.sum("batches", "reason", "size"))
}

func TestProfilesWithoutSamplesAreNotHeldWithoutEnd(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 5
	})
	for range 5 {
		f.consume(message("shop", 0))
	}
	require.Len(t, f.sink.all(), 1)
	assert.Equal(t, 5, f.sink.all()[0].ProfileCount())
}

func TestABatchGoesBeforeItIsTooLong(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.MaxBatchBytes = minMaxBatchBytes
	})
	for i := range 60 {
		f.consume(message(fmt.Sprint("shop-", i), 200))
	}
	require.NotEmpty(t, f.sink.all())
	assert.EqualValues(t, len(f.sink.all()), f.sum("batches", "reason", "bytes"))
	assert.Zero(t, f.sum("splits"), "no batch had to be cut in two")
}

func TestABatchGoesAfterTheTimeout(t *testing.T) {
	f := start(t, func(c *Config) { c.Timeout = 30 * time.Millisecond })
	f.consume(message("shop", 3))
	f.consume(message("shop", 4))
	require.Eventually(t, func() bool { return f.sink.samples() == 7 }, patience, time.Millisecond)
	f.consume(message("shop", 5))
	require.Eventually(t, func() bool { return f.sink.samples() == 12 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return f.sum("batches", "reason", "timeout") >= 2 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return f.sum("batchers") == 0 }, patience, time.Millisecond,
		"nothing is pending, so nothing is kept")
}

func TestShutdownSendsWhatIsPending(t *testing.T) {
	f := start(t, slowly)
	f.consume(message("shop", 3))
	f.stop()
	assert.Equal(t, 3, f.sink.samples())
	assert.EqualValues(t, 1, f.sum("batches", "reason", "shutdown"))
	require.ErrorIs(t, f.processor.ConsumeProfiles(t.Context(), message("shop", 3)), errShutdown)
}

func TestARefusedBatchIsCountedAndLogged(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 5
	})
	f.sink.refuseFirst(1, consumererror.NewPermanent(errors.New("no")))
	f.consume(message("shop", 5))
	assert.EqualValues(t, 5, f.sum("failed_samples", "reason", "refused"))
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("dropping profiles").Len())
	f.consume(message("shop", 5))
	assert.Equal(t, 5, f.sink.samples())
	assert.EqualValues(t, 5, f.sum("outgoing_samples"))
}

// A sender whose context ends after its profiles were accepted loses nothing, and the batch continues without it.
func TestACancelledSenderLosesNothing(t *testing.T) {
	f := start(t, slowly)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, f.processor.ConsumeProfiles(ctx, message("shop", 3)))
	cancel()
	require.ErrorIs(t, f.processor.ConsumeProfiles(ctx, message("shop", 4)), context.Canceled)
	f.sink.accept = func(ctx context.Context, _ pprofile.Profiles) error { return ctx.Err() }
	f.stop()
	assert.Equal(t, 3, f.sink.samples())
}

// TestBackpressure lets the next component hang. No more messages are accepted than there are lanes for, the other
// senders wait, those that give up get an error, and in the end everything that was accepted arrives.
func TestBackpressure(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
	})
	hang := make(chan struct{})
	var entered atomic.Int64
	f.sink.accept = func(context.Context, pprofile.Profiles) error {
		entered.Add(1)
		<-hang
		return nil
	}
	lanes := lanes()
	var senders sync.WaitGroup
	var taken atomic.Int64
	for range lanes + 5 {
		senders.Go(func() {
			if f.processor.ConsumeProfiles(context.Background(), message("shop", 1)) == nil {
				taken.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return entered.Load() == int64(lanes) }, patience, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.processor.ConsumeProfiles(ctx, message("shop", 1)), context.DeadlineExceeded)
	assert.EqualValues(t, lanes, entered.Load())
	assert.Zero(t, taken.Load())
	close(hang)
	senders.Wait()
	assert.EqualValues(t, lanes+5, taken.Load())
	assert.Equal(t, lanes+5, f.sink.samples())
}

// Large messages that the next component does not accept leave a lane to the others.
func TestLargeMessagesLeaveALane(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Timeout = time.Millisecond
		c.SendBatchSize, c.MaxBatchBytes = 1<<30, 0
	})
	hang := make(chan struct{})
	var large atomic.Int64
	f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
		if isLarge(pd) {
			large.Add(1)
			<-hang
		}
		return nil
	}
	var senders sync.WaitGroup
	for i := range lanes() + 1 {
		pd := message("shop", 128<<10)
		senders.Go(func() { assert.NoError(t, f.processor.ConsumeProfiles(context.Background(), pd)) })
		require.Eventually(t, func() bool { return large.Load() == int64(min(i+1, lanes()-1)) }, patience, time.Millisecond)
	}
	require.Never(t, func() bool { return large.Load() >= int64(lanes()) }, 200*time.Millisecond, time.Millisecond)
	for range 10 {
		f.consume(message("shop", 1))
	}
	assert.EqualValues(t, lanes()-1, large.Load())
	close(hang)
	senders.Wait()
}

// TestConcurrentSenders sends from many goroutines with timers that fire meanwhile, and shuts down at the end.
func TestConcurrentSenders(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Timeout = time.Millisecond
		c.SendBatchSize = 100
		c.MetadataKeys = []string{"tenant"}
	})
	const senders, messages = 8, 60
	var running sync.WaitGroup
	for sender := range senders {
		running.Go(func() {
			ctx := withMetadata(context.Background(), "tenant", fmt.Sprint(sender%3))
			for i := range messages {
				pd := message(fmt.Sprintf("service-%d-%d", sender, i), 1+i%30)
				if err := f.processor.ConsumeProfiles(ctx, pd); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	f.stop()
	seen := map[string]int{}
	for _, pd := range f.sink.all() {
		require.NoError(t, profiletest.Check(pd))
		for _, rp := range pd.ResourceProfiles().All() {
			name, _ := rp.Resource().Attributes().Get("service.name")
			for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
				seen[name.Str()] += p.Samples().Len()
			}
		}
	}
	for sender := range senders {
		for i := range messages {
			assert.Equal(t, 1+i%30, seen[fmt.Sprintf("service-%d-%d", sender, i)])
		}
	}
	assert.Zero(t, f.sum("failed_samples"))
}

func withMetadata(ctx context.Context, key string, values ...string) context.Context {
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{key: values})})
}

func TestMetadataKeepsRequestsApart(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.MetadataKeys = []string{"Tenant"}
	})
	send := func(ctx context.Context, samples int) {
		t.Helper()
		require.NoError(t, f.processor.ConsumeProfiles(ctx, message("shop", samples)))
	}
	send(withMetadata(t.Context(), "tenant", "a"), 1)
	send(withMetadata(t.Context(), "tenant", "b"), 2)
	send(withMetadata(t.Context(), "tenant", "a"), 4)
	send(withMetadata(t.Context(), "tenant", ""), 8)
	send(withMetadata(t.Context(), "tenant", "a", "b"), 16)
	send(t.Context(), 32)
	assert.EqualValues(t, 5, f.sum("batchers"))
	f.stop()
	got := map[string]int{}
	for i, pd := range f.sink.all() {
		got[fmt.Sprintf("%q", client.FromContext(f.sink.contexts[i]).Metadata.Get("tenant"))] += pd.SampleCount()
	}
	assert.Equal(t, map[string]int{`["a"]`: 5, `["b"]`: 2, `[""]`: 8, `["a" "b"]`: 16, `[]`: 32}, got)
}

func TestMetadataCardinalityIsLimited(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 10
		c.MetadataKeys = []string{"tenant"}
		c.MetadataCardinalityLimit = 2
	})
	send := func(tenant string, samples int) error {
		return f.processor.ConsumeProfiles(withMetadata(t.Context(), "tenant", tenant), message("shop", samples))
	}
	require.NoError(t, send("a", 1))
	require.NoError(t, send("b", 1))
	require.ErrorContains(t, send("c", 1), "more than 2 combinations")
	require.NoError(t, send("a", 9), "its batch goes, and with it the batcher")
	require.NoError(t, send("c", 1))
	f.stop()
	assert.Equal(t, 12, f.sink.samples())
}
