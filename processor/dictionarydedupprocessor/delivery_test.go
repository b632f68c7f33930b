// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var errBusy = errors.New("busy")

// requireRetryLater requires that senders are asked to retry, and when.
func requireRetryLater(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	assert.False(t, consumererror.IsPermanent(err))
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.Positive(t, otlpstatus.RetryDelay(err))
}

// refuseFirst makes the sink refuse the first n messages with err.
func (s *sink) refuseFirst(n int64, err error) *atomic.Int64 {
	var calls atomic.Int64
	s.accept = func(context.Context, pprofile.Profiles) error {
		if calls.Add(1) <= n {
			return err
		}
		return nil
	}
	return &calls
}

func delivered(c *Config) {
	c.Acknowledge = AcknowledgeDelivered
	c.Timeout = 50 * time.Millisecond
	c.MaxWait = patience
}

func TestABatchRefusedForTheMomentIsKept(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 5
	})
	f.sink.refuseFirst(3, errBusy)
	f.consume(message("shop", 5))
	assert.Equal(t, 5, f.sink.samples())
	assert.EqualValues(t, 3, f.sum("retries"))
	assert.EqualValues(t, 5, f.sum("outgoing_samples"))
	assert.Zero(t, f.sum("failed_samples"))
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("temporarily refuses profiles").Len(), "repeats are suppressed")
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("accepts profiles again").Len())
}

// While the next component refuses, senders wait and are then told to retry; in the end, everything that was accepted
// arrives.
func TestRefusalsHoldSenders(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
		c.MaxWait = 20 * time.Millisecond
	})
	var busy atomic.Bool
	busy.Store(true)
	f.sink.accept = func(context.Context, pprofile.Profiles) error {
		if busy.Load() {
			return errBusy
		}
		return nil
	}
	accepted := lanes()
	for range accepted {
		f.consume(message("shop", 1))
	}
	requireRetryLater(t, f.processor.ConsumeProfiles(t.Context(), message("shop", 1)))
	busy.Store(false)
	require.Eventually(t, func() bool { return f.sink.samples() == accepted }, patience, time.Millisecond)
}

func TestTheDelayThatTheNextComponentAsksForIsKept(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
	})
	throttled, err := status.New(codes.ResourceExhausted, "slow down").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(100 * time.Millisecond)})
	require.NoError(t, err)
	f.sink.refuseFirst(1, fmt.Errorf("export: %w", throttled.Err()))
	begin := time.Now()
	f.consume(message("shop", 1))
	assert.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
	assert.Equal(t, 1, f.sink.samples())
}

func TestRetriesEndWhereTheyAreConfiguredTo(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"disabled": func(c *Config) { c.RetryOnFailure.Enabled = false },
		"max_elapsed_time": func(c *Config) {
			c.RetryOnFailure.MaxInterval, c.RetryOnFailure.MaxElapsedTime = time.Millisecond, 10*time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, func(c *Config) {
				slowly(c)
				c.SendBatchSize = 5
				change(c)
			})
			f.sink.refuseFirst(1<<40, errBusy)
			f.consume(message("shop", 5))
			assert.EqualValues(t, 5, f.sum("failed_samples", "reason", "gave_up"))
		})
	}
}

// If one of several parts of a batch is refused, only that part is sent again, also with timeout: 0.
func TestOnlyWhatWasNotTakenIsRepeated(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		f := start(t, func(c *Config) {
			c.Timeout = timeout
			c.SendBatchSize = 1
			c.MaxBatchBytes = minMaxBatchBytes
		})
		var calls atomic.Int64
		f.sink.accept = func(context.Context, pprofile.Profiles) error {
			if n := calls.Add(1); n == 2 || n == 3 {
				return errBusy
			}
			return nil
		}
		f.consume(message("shop", 15_000))
		parts := len(f.sink.all())
		require.Greater(t, parts, 2)
		assert.EqualValues(t, parts+2, calls.Load())
		assert.Equal(t, 15_000, f.sink.samples())
	}
}

func TestAPartialFailureRepeatsTheRest(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
	})
	var calls atomic.Int64
	f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
		if calls.Add(1) > 1 {
			return nil
		}
		rest := profiletest.Clone(pd)
		n := 0
		rest.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().RemoveIf(func(pprofile.Sample) bool {
			n++
			return n <= 4
		})
		return xconsumererror.NewProfiles(errBusy, rest)
	}
	f.consume(message("shop", 10))
	assert.Equal(t, 6, f.sink.samples())
	assert.EqualValues(t, 10, f.sum("outgoing_samples"))
}

// An error with timeout: 0 has all that was not accepted, whichever part was refused and how, so that a sender that
// repeats only that loses nothing and repeats nothing else.
func TestAloneAnErrorHasEverythingThatWasNotTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		refused int64 // the first call that is refused
		partial bool
	}{
		"some of the first part": {1, true}, "the second part": {2, false}, "some of the second part": {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, func(c *Config) {
				c.Timeout = 0
				c.MaxBatchBytes = minMaxBatchBytes
				c.RetryOnFailure.Enabled = false
			})
			var calls atomic.Int64
			var accepted []pprofile.Profiles
			f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
				if calls.Add(1) < tt.refused {
					return nil
				}
				if !tt.partial {
					return errBusy
				}
				taken, rest := profiletest.Clone(pd), profiletest.Clone(pd)
				keep := func(pd pprofile.Profiles, isFirst bool) {
					n := 0
					profiletest.ProfileAt(pd, 0).Samples().RemoveIf(func(pprofile.Sample) bool { n++; return (n == 1) != isFirst })
				}
				keep(taken, true)
				keep(rest, false)
				accepted = append(accepted, taken)
				return xconsumererror.NewProfiles(errBusy, rest)
			}
			want := message("shop", 15_000)
			err := f.processor.ConsumeProfiles(t.Context(), profiletest.Clone(want))
			require.ErrorIs(t, err, errBusy)
			var partial xconsumererror.Profiles
			require.ErrorAs(t, err, &partial)
			all := new(compact.Batch).Merge(slices.Concat(accepted, f.sink.all(), []pprofile.Profiles{partial.Data()}))
			require.NoError(t, profiletest.Equal(want, all, profiletest.MergeProfiles()))
			require.Equal(t, want.SampleCount(), all.SampleCount())
		})
	}
}

// With timeout: 0, a part that is refused permanently does not keep the others from being sent: the sender repeats
// nothing.
func TestAloneAPermanentRefusalLeavesTheOtherParts(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Timeout = 0
		c.MaxBatchBytes = minMaxBatchBytes
	})
	var calls, refused int
	f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
		if calls++; calls > 1 {
			return nil
		}
		refused = pd.SampleCount()
		return consumererror.NewPermanent(errors.New("no"))
	}
	err := f.processor.ConsumeProfiles(t.Context(), message("shop", 15_000))
	require.True(t, otlpstatus.IsPermanent(err))
	require.Greater(t, calls, 1)
	assert.EqualValues(t, refused, f.sum("failed_samples"))
	assert.EqualValues(t, 15_000-refused, f.sum("outgoing_samples"))
}

// If several components refused a batch, what one of them has left is not what the others need.
func TestTheRestOfOneOfSeveralComponentsIsNotTheirs(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
	})
	calls := 0
	f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
		if calls++; calls > 1 {
			return nil
		}
		return errors.Join(errBusy, xconsumererror.NewProfiles(consumererror.NewPermanent(errBusy), pprofile.NewProfiles()))
	}
	f.consume(message("shop", 10))
	assert.Equal(t, 10, f.sink.samples())
}

// A component that changes what it gets has a copy, so that a retry has the original.
func TestARetryDoesNotHaveWhatTheNextComponentChanged(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 1
	})
	var calls atomic.Int64
	f.sink.accept = func(_ context.Context, pd pprofile.Profiles) error {
		if calls.Add(1) == 1 {
			pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
			return errBusy
		}
		return nil
	}
	next, err := xconsumer.NewProfiles(f.sink.consume, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	f.processor.(*dedup).next = next
	f.consume(message("shop", 10))
	assert.Equal(t, 10, f.sink.samples())
}

// Senders that come at the same time share a batch, and none gets its answer before that is accepted.
func TestDeliveredSendersShareABatch(t *testing.T) {
	f := start(t, func(c *Config) {
		delivered(c)
		c.Timeout = time.Second // all come within it, on a busy machine too
	})
	var answered, early atomic.Int64
	f.sink.accept = func(context.Context, pprofile.Profiles) error {
		early.Add(answered.Load())
		return nil
	}
	const senders = 20
	var running sync.WaitGroup
	for i := range senders {
		running.Go(func() {
			assert.NoError(t, f.processor.ConsumeProfiles(t.Context(), message(fmt.Sprint("shop-", i), 3)))
			answered.Add(1)
		})
	}
	running.Wait()
	assert.Equal(t, 3*senders, f.sink.samples())
	if len(f.sink.all()) == 1 {
		assert.Zero(t, early.Load())
	}
	assert.Less(t, len(f.sink.all()), senders/2)
}

// By default an answer means that the next component has the profiles.
func TestSendersWaitForTheDeliveryByDefault(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Acknowledge = createDefaultConfig().(*Config).Acknowledge
		c.Timeout = 50 * time.Millisecond
	})
	f.consume(message("shop", 3))
	assert.Equal(t, 3, f.sink.samples())
}

func TestDeliveredSendersLearnOfARefusal(t *testing.T) {
	f := start(t, delivered)
	f.sink.refuseFirst(1<<40, consumererror.NewPermanent(errors.New("never")))
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			err := f.processor.ConsumeProfiles(t.Context(), message("shop", 3))
			assert.True(t, consumererror.IsPermanent(err), err)
			assert.ErrorContains(t, err, "never")
		})
	}
	running.Wait()
	assert.EqualValues(t, 9, f.sum("failed_samples", "reason", "refused"))
}

// A sender that cannot wait gets an error; its request is in the batch and arrives.
func TestDeliveredToASenderThatCannotWait(t *testing.T) {
	f := start(t, delivered)
	release := make(chan struct{})
	f.sink.accept = func(context.Context, pprofile.Profiles) error {
		<-release
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.processor.ConsumeProfiles(ctx, message("shop", 3)), context.DeadlineExceeded)
	f.config.MaxWait = 10 * time.Millisecond
	requireRetryLater(t, f.processor.ConsumeProfiles(t.Context(), message("shop", 4)))
	close(release)
	// Whether there was a place for the second depends on the number of cores.
	require.Eventually(t, func() bool { return f.sink.samples() >= 3 }, patience, time.Millisecond)
}

// A batch may wait for more for longer than a sender is held after that.
func TestDeliveredWaitsForTheBatchFirst(t *testing.T) {
	f := start(t, func(c *Config) {
		delivered(c)
		c.Timeout, c.MaxWait = 2*time.Second, time.Second
	})
	require.NoError(t, f.processor.ConsumeProfiles(t.Context(), message("shop", 3)))
	assert.Equal(t, 3, f.sink.samples())
}

// Shutdown ends in time although the next component blocks until its context ends, and tells everybody what became
// of their profiles.
func TestShutdownEndsThoughTheNextComponentBlocks(t *testing.T) {
	for _, acknowledge := range []Acknowledge{AcknowledgeBatched, AcknowledgeDelivered} {
		t.Run(string(acknowledge), func(t *testing.T) {
			f := start(t, func(c *Config) {
				slowly(c)
				c.Acknowledge = acknowledge
				c.SendBatchSize = 1
				c.MaxWait = patience
			})
			var entered atomic.Int64
			f.sink.accept = func(ctx context.Context, _ pprofile.Profiles) error {
				entered.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}
			lanes := lanes()
			var running sync.WaitGroup
			var told, accepted atomic.Int64
			for range lanes + 3 {
				running.Go(func() {
					if err := f.processor.ConsumeProfiles(context.Background(), message("shop", 1)); err != nil {
						requireRetryLater(t, err)
						told.Add(1)
					} else {
						accepted.Add(1)
					}
				})
			}
			require.Eventually(t, func() bool { return entered.Load() == int64(lanes) }, patience, time.Millisecond)
			require.Eventually(t, func() bool { return f.waiting() == 3 }, patience, time.Millisecond)
			begin := time.Now()
			f.stopWithin(100 * time.Millisecond)
			assert.Less(t, time.Since(begin), patience/2)
			running.Wait()
			assert.EqualValues(t, lanes, f.sum("failed_samples", "reason", "shutdown"))
			if acknowledge == AcknowledgeDelivered {
				assert.EqualValues(t, lanes+3, told.Load())
			} else {
				assert.EqualValues(t, lanes, accepted.Load())
			}
		})
	}
}

// waiting is the number of senders that wait for a lane while all lanes are being sent for others.
func (f *fixture) waiting() (n int) {
	all := f.processor.(*dedup).batchers
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, b := range all.byKey {
		n += b.users - 2*cap(b.tokens) // a lane's sender, and the goroutine that sends its batch
	}
	return n
}

// Pending batches and batches that are being retried are sent once more when the processor stops.
func TestShutdownHandsOverWhatItCan(t *testing.T) {
	f := start(t, func(c *Config) {
		slowly(c)
		c.SendBatchSize = 10
		c.MaxWait = time.Millisecond
		c.RetryOnFailure.InitialInterval, c.RetryOnFailure.MaxInterval = time.Hour, time.Hour
	})
	f.sink.refuseFirst(1, errBusy)
	f.consume(message("shop", 10)) // is being retried, an hour later
	f.consume(message("shop", 3))  // is pending
	require.Eventually(t, func() bool { return f.sum("retries") == 1 }, patience, time.Millisecond)
	f.stop()
	assert.EqualValues(t, f.sum("incoming_samples"), f.sink.samples())
	assert.Zero(t, f.sum("failed_samples"))
}

// Even a component that does not heed its context cannot keep the process from stopping.
func TestShutdownEndsThoughTheNextComponentHangs(t *testing.T) {
	f := start(t, slowly)
	hang := make(chan struct{})
	f.sink.accept = func(context.Context, pprofile.Profiles) error {
		<-hang
		return nil
	}
	f.consume(message("shop", 3))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, f.processor.Shutdown(ctx), "does not return")
	close(hang)
	require.Eventually(t, func() bool { return f.sink.samples() == 3 }, patience, time.Millisecond)
}

func TestMaxWaitEndsASenderAlone(t *testing.T) {
	f := start(t, func(c *Config) {
		alone(c)
		c.MaxWait = 20 * time.Millisecond
	})
	f.sink.accept = func(ctx context.Context, _ pprofile.Profiles) error {
		<-ctx.Done()
		return ctx.Err()
	}
	requireRetryLater(t, f.processor.ConsumeProfiles(t.Context(), message("shop", 3)))
}
