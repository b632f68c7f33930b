// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

func TestOnePayloadAloneAlwaysFits(t *testing.T) {
	for _, size := range []int64{0, 1, 15 * mib, 16 * mib, 17 * mib} {
		b := New(16 * mib)
		c := b.Begin()
		require.NoError(t, c.Acquire(t.Context(), size), "%d bytes", size)
		require.NoError(t, c.Acquire(t.Context(), 1))
		assert.Equal(t, size+1, b.HeldBytes())
		c.Release()
		c.Release()
		assert.Zero(t, b.HeldBytes())
	}
}

func TestWhatIsChargedMakesOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * mib)
		for _, size := range []int64{1000, 2 * mib} { // in both parts of the budget
			c := b.Begin()
			require.NoError(t, c.Acquire(t.Context(), size))
			c.Complete()
			c.Charge(100 * mib)
			assert.Equal(t, size+100*mib, b.HeldBytes())
			other, third := b.Begin(), b.Begin()
			if size < mib {
				require.NoError(t, other.Acquire(t.Context(), 1000), "alone in the large part")
			} else {
				require.NoError(t, other.Acquire(t.Context(), 1000), "the small part is not concerned")
				other.Release()
			}
			require.ErrorIs(t, third.Acquire(t.Context(), 15*mib), ErrBusy)
			other.Release()
			c.Release()
			require.NoError(t, third.Acquire(t.Context(), 15*mib))
			third.Release()
			assert.Zero(t, b.HeldBytes())
		}
	})
}

func TestSmallPayloadsPassLargeOnes(t *testing.T) {
	b := New(256 * mib)
	large := b.Begin()
	require.NoError(t, large.Acquire(t.Context(), 256*mib))
	defer large.Release()
	// The eighth part for the small ones has room for 32 of them.
	for range 32 {
		small := b.Begin()
		defer small.Release()
		require.NoError(t, small.Acquire(t.Context(), mib))
	}
}

// Over gRPC, a message holds much until its size is known.
func TestAClaimBecomesSmall(t *testing.T) {
	b := New(16 * mib)
	small := b.Begin()
	require.NoError(t, small.Acquire(t.Context(), 10*mib))
	small.Resize(1000)
	large := b.Begin()
	require.NoError(t, large.Acquire(t.Context(), 14*mib), "all of the large part")
	require.NoError(t, small.Acquire(t.Context(), 1000), "the small part has room")
	assert.EqualValues(t, 14*mib+2000, b.HeldBytes())

	waiting := make(chan error)
	go func() { waiting <- b.Begin().Acquire(t.Context(), mib) }()
	large.Resize(100 * mib)
	large.Resize(mib)
	require.NoError(t, <-waiting)
	large.Release()
	small.Release()
	assert.EqualValues(t, mib, b.HeldBytes())
}

func TestAWaitingClaimIsRefusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * mib)
		holder := b.Begin()
		require.NoError(t, holder.Acquire(t.Context(), 14*mib))
		holder.Complete()

		waiter := b.Begin()
		began := time.Now()
		require.ErrorIs(t, waiter.Acquire(t.Context(), 8*mib), ErrBusy)
		assert.Equal(t, MaxWait, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, waiter.Acquire(ctx, 8*mib), context.DeadlineExceeded)

		time.AfterFunc(time.Second, holder.Release)
		began = time.Now()
		require.NoError(t, waiter.Acquire(t.Context(), 8*mib))
		assert.Equal(t, time.Second, time.Since(began))
		waiter.Release()
		assert.Zero(t, b.HeldBytes())
	})
}

// Two claims that each hold half of what both need would wait for ever. The younger one is refused.
func TestClaimsThatWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * mib)
		older, younger := b.Begin(), b.Begin()
		require.NoError(t, older.Acquire(t.Context(), 7*mib))
		require.NoError(t, younger.Acquire(t.Context(), 7*mib))
		began := time.Now()
		var refused error
		var done sync.WaitGroup
		done.Go(func() {
			refused = younger.Acquire(t.Context(), 5*mib)
			younger.Release()
		})
		require.NoError(t, older.Acquire(t.Context(), 5*mib))
		done.Wait()
		assert.ErrorIs(t, refused, ErrBusy)
		assert.Zero(t, time.Since(began), "nobody had to wait for a timeout")
		older.Release()
		assert.Zero(t, b.HeldBytes())
	})
}

// Two senders hold all of the budget and then send one byte a second. They must not block others.
func TestSlowSendersAreRefusedForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * mib)
		var interrupted atomic.Int32
		slow := func() *Claim {
			c := b.Begin()
			c.OnRefusal(func() { interrupted.Add(1) })
			require.NoError(t, c.Acquire(t.Context(), 7*mib))
			return c
		}
		first, second := slow(), slow()
		time.Sleep(time.Minute)
		assert.Zero(t, interrupted.Load(), "nobody else wants the budget")

		var done sync.WaitGroup
		for _, c := range []*Claim{first, second} {
			done.Go(func() {
				dribble := c.Count(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1000))))
				for !c.IsRefused() {
					_, _ = dribble.Read(make([]byte, 1))
					time.Sleep(patience - patience/10) // not at the very moment when waiting ends
				}
				c.Release()
			})
		}
		began := time.Now()
		honest := b.Begin()
		require.NoError(t, honest.Acquire(t.Context(), 6*mib))
		assert.LessOrEqual(t, time.Since(began), 2*patience+time.Second)
		assert.EqualValues(t, 1, interrupted.Load(), "one was enough")
		require.NoError(t, honest.Acquire(t.Context(), 8*mib))
		assert.EqualValues(t, 2, interrupted.Load())
		honest.Release()
		done.Wait()
		assert.Zero(t, b.HeldBytes())
	})
}

func TestFastSendersAreNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * mib)
		fast := b.Begin()
		require.NoError(t, fast.Acquire(t.Context(), 14*mib))
		sender := fast.Count(bytes.NewReader(make([]byte, 10*mib)))
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			for range 50 {
				_, _ = io.CopyN(io.Discard, sender, slowBytesPerSecond/5)
				time.Sleep(100 * time.Millisecond)
			}
		})
		time.Sleep(time.Second)
		require.ErrorIs(t, b.Begin().Acquire(t.Context(), 8*mib), ErrBusy)
		assert.False(t, fast.IsRefused())
	})
}

func TestReadAll(t *testing.T) {
	for name, tc := range map[string]struct{ size, stated, limit int64 }{
		"empty":             {0, -1, 100},
		"unknown length":    {3 * mib, -1, 3 * mib},
		"stated":            {3 * mib, 3 * mib, 4 * mib},
		"small and stated":  {30_000, 30_000, mib},
		"exactly the limit": {4 << 10, -1, 4 << 10},
		"tiny limit":        {10, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(2 * tc.limit)
			want := make([]byte, tc.size)
			for i := range want {
				want[i] = byte(i * 7)
			}
			for range 3 {
				c := b.Begin()
				got, err := c.ReadAll(t.Context(), bytes.NewReader(want), tc.stated, tc.limit)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(want, got))
				assert.GreaterOrEqual(t, b.HeldBytes(), tc.size)
				assert.LessOrEqual(t, b.HeldBytes(), max(2*tc.size, firstBytes, trustedBytes))
				c.Release()
			}

			c := b.Begin()
			defer c.Release()
			_, err := c.ReadAll(t.Context(), bytes.NewReader(append(want, make([]byte, tc.limit)...)), -1, tc.limit)
			var tooLarge *TooLargeError
			if tc.size > 0 {
				require.ErrorAs(t, err, &tooLarge)
				assert.Equal(t, tc.limit, tooLarge.Limit)
			}
		})
	}
	c := New(mib).Begin()
	defer c.Release()
	_, err := c.ReadAll(t.Context(), strings.NewReader(""), 101, 100)
	require.Error(t, err, "a stated length above the limit")
	_, err = c.ReadAll(t.Context(), iotest.ErrReader(io.ErrUnexpectedEOF), -1, 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Any mix of senders ends with no bytes held, and never holds more than the budget plus its small part.
func TestAnyMixEnds(t *testing.T) {
	const budget, limit = 64 << 10, 32 << 10
	b := New(budget)
	var wg sync.WaitGroup
	var busy, done atomic.Int64
	for worker := range 16 {
		random := rand.New(rand.NewPCG(uint64(worker), 7))
		wg.Go(func() {
			for range 60 {
				c := b.Begin()
				var err error
				for left := random.Int64N(2 * limit); left > 0 && err == nil; {
					n := min(left, 1+random.Int64N(limit))
					err = c.Acquire(t.Context(), n)
					left -= n
					if random.IntN(4) == 0 && err == nil {
						c.Return(n / 2)
					}
				}
				if held := b.HeldBytes(); held > budget+budget/smallPart {
					t.Errorf("%d bytes held", held)
				}
				if errors.Is(err, ErrBusy) {
					busy.Add(1)
				} else if assert.NoError(t, err) {
					done.Add(1)
				}
				c.Release()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, b.HeldBytes())
	assert.Empty(t, b.waiting)
	assert.Empty(t, b.claims)
	assert.Positive(t, done.Load())
	t.Logf("%d done, %d refused", done.Load(), busy.Load())
}

func TestWork(t *testing.T) {
	b := New(mib)
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			assert.NoError(t, b.Work(t.Context(), func() {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Millisecond)
				now.Add(-1)
			}))
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, most.Load(), int64(cap(b.workers)))

	most.Store(0)
	for range 10 {
		wg.Go(func() {
			c := b.Begin()
			defer c.Release()
			assert.NoError(t, c.Acquire(t.Context(), mib/largePart+1))
			assert.NoError(t, c.Work(t.Context(), func() {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Millisecond)
				now.Add(-1)
			}))
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, most.Load(), "large ones come one at a time")

	for range cap(b.workers) {
		b.workers <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, b.Work(ctx, func() { t.Error("worked") }), context.Canceled)
}

func TestShare(t *testing.T) {
	b, leave := Share(10 * mib)
	assert.Equal(t, int64(10*mib), b.maxBytes)
	again, leaveToo := Share(30 * mib)
	assert.Same(t, b, again)
	assert.Equal(t, int64(30*mib), b.maxBytes, "the largest counts")
	leaveToo()
	assert.Equal(t, int64(10*mib), b.maxBytes)
	leave()
	leave()
	assert.Zero(t, b.maxBytes)
}

// BenchmarkClaim reads a body of the size of a CPU profile, with all steps of a payload's claim.
func BenchmarkClaim(b *testing.B) {
	body := make([]byte, 17_000)
	budget := New(256 * mib)
	b.Run("impl=claim", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			c := budget.Begin()
			if _, err := c.ReadAll(b.Context(), c.Count(bytes.NewReader(body)), -1, mib); err != nil {
				b.Fatal(err)
			}
			c.Complete()
			_ = c.Acquire(b.Context(), 100_000)
			_ = c.Work(b.Context(), func() {})
			_ = c.Acquire(b.Context(), 100_000)
			c.Release()
		}
	})
	b.Run("impl=io.ReadAll", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := io.ReadAll(bytes.NewReader(body)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A buffer of a large body is not kept outside of the budget; buffers of ordinary bodies are reused.
func TestLargeBuffersAreNotKept(t *testing.T) {
	isKept := func(size int64) bool {
		buffer := make([]byte, 1, size)
		for range 100 { // a pool may drop what it gets
			keepBuffer(buffer)
			if again := newBuffer(size)[:1]; &again[0] == &buffer[0] {
				return true
			}
		}
		return false
	}
	assert.True(t, isKept(maxKeptBytes))
	assert.False(t, isKept(maxKeptBytes+1))
}
