// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

const kib = 1 << 10

func noGrowth(pdatasize.Reserve) error { return nil }

// Of 1024 KiB, profiles have 768, of which 192 are reserved for reservations of at most 48; bodies have a third of
// each.
func newBudget() *Budget { return New(1024 * kib) }

func TestLargePayloadsLeaveRoomForSmallOnes(t *testing.T) {
	b := newBudget()
	large := b.Begin()
	require.NoError(t, large.Reserve(t.Context(), b.MaxProfileBytes()))
	for range 4 {
		small := b.Begin()
		require.NoError(t, small.Build(t.Context(), 48*kib, noGrowth))
		defer small.Release()
	}
	large.Release()
	assert.EqualValues(t, 192*kib, b.HeldBytes())
	// Small reservations use the rest, too.
	for range 12 {
		small := b.Begin()
		require.NoError(t, small.Reserve(t.Context(), 48*kib))
		defer small.Release()
	}
	assert.EqualValues(t, 768*kib, b.HeldBytes())
}

// A small payload that takes more than was expected does not wait for a large one that is being built.
func TestSmallPayloadsGrowBesideALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBudget(), time.Now()
		large := b.Begin()
		defer large.Release()
		require.NoError(t, large.Build(t.Context(), 500*kib, func(pdatasize.Reserve) error {
			small := b.Begin()
			defer small.Release()
			for _, expected := range []int64{0, 30 * kib} {
				require.NoError(t, small.Build(t.Context(), expected, func(reserve pdatasize.Reserve) error {
					return reserve(48 * kib)
				}))
				small.Built(0)
			}
			return nil
		}))
		assert.Zero(t, time.Since(began))
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget()
		var tooLarge *TooLargeError
		c := b.Begin()
		require.ErrorAs(t, c.Reserve(t.Context(), b.MaxProfileBytes()+1), &tooLarge)
		assert.Equal(t, TooLargeError{Need: 576*kib + 1, Limit: 576 * kib, IsMemory: true}, *tooLarge)
		err := c.Build(t.Context(), kib, func(reserve pdatasize.Reserve) error {
			assert.NoError(t, reserve(kib))
			return reserve(576 * kib)
		})
		require.ErrorAs(t, err, &tooLarge)
		assert.EqualValues(t, 577*kib, tooLarge.Need)
		assert.Zero(t, b.HeldBytes(), "a build that fails returns what it took")

		require.NoError(t, c.Reserve(t.Context(), b.MaxProfileBytes()))
		other := b.Begin()
		require.ErrorIs(t, other.Reserve(t.Context(), 100*kib), ErrBusy)
		require.ErrorIs(t, other.Build(t.Context(), 100*kib, noGrowth), ErrBusy)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, other.Reserve(ctx, 100*kib), context.Canceled)

		waiting := make(chan error)
		go func() { waiting <- other.Reserve(t.Context(), 100*kib) }()
		synctest.Wait()
		c.Release()
		require.NoError(t, <-waiting)
		other.Release()
		c.Release()
		assert.Zero(t, b.HeldBytes())
	})
}

// Whatever payloads grow to, together and in turn: none waits for another that waits, so that all of them end long
// before MaxWait, and the budget holds.
func TestGrowingPayloadsNeverWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBudget(), time.Now()
		var building, most atomic.Int64
		var senders sync.WaitGroup
		for i := range 64 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			senders.Go(func() {
				for range 100 {
					c := b.Begin()
					size, taken := random.Int64N(560*kib), int64(0)
					err := c.Build(t.Context(), random.Int64N(200*kib), func(reserve pdatasize.Reserve) error {
						for taken < size {
							n := random.Int64N(64 * kib)
							if err := reserve(int(n)); err != nil {
								building.Add(-taken) // Build releases these bytes before it returns
								return err
							}
							taken += n
							held := building.Add(n)
							for old := most.Load(); held > old && !most.CompareAndSwap(old, held); old = most.Load() {
							}
							runtime.Gosched()
						}
						return nil
					})
					var tooLarge *TooLargeError
					assert.False(t, errors.As(err, &tooLarge) && taken <= 500*kib, "%v", err)
					if err == nil {
						building.Add(-taken)
						c.Built(taken / 3)
					}
					c.Release()
				}
			})
		}
		senders.Wait()
		assert.Zero(t, b.HeldBytes())
		assert.LessOrEqual(t, most.Load(), int64(768*kib))
		assert.Less(t, time.Since(began), MaxWait, "time passes in here only if all of them wait")
		t.Logf("at most %d KiB in use", most.Load()/kib)
	})
}

func TestBuiltKeepsEarlierPayloads(t *testing.T) {
	b := newBudget()
	c := b.Begin()
	for range 3 {
		require.NoError(t, c.Build(t.Context(), 20*kib, func(reserve pdatasize.Reserve) error { return reserve(30 * kib) }))
		c.Built(10 * kib)
	}
	assert.EqualValues(t, 30*kib, b.HeldBytes())
	require.Error(t, c.Build(t.Context(), 0, func(pdatasize.Reserve) error { return io.ErrUnexpectedEOF }))
	assert.EqualValues(t, 30*kib, b.HeldBytes())
	c.Release()
	assert.Zero(t, b.HeldBytes())
}

func TestReadAll(t *testing.T) {
	const limit = 100 * kib
	for _, size := range []int{0, 1, 4095, 4096, 4097, 65536, limit} {
		for _, stated := range []int64{-1, int64(size)} {
			b := newBudget()
			c := b.Begin()
			body := bytes.Repeat([]byte("x"), size)
			data, err := c.ReadAll(t.Context(), iotest.HalfReader(bytes.NewReader(body)), stated, limit)
			require.NoError(t, err)
			assert.Equal(t, body, append([]byte{}, data...))
			assert.GreaterOrEqual(t, c.HeldBytes(), int64(size))
			assert.LessOrEqual(t, c.HeldBytes(), int64(max(firstBytes, 2*size)))
			c.Release()
			assert.Zero(t, b.HeldBytes())
		}
	}
	var tooLarge *TooLargeError
	c := newBudget().Begin()
	_, err := c.ReadAll(t.Context(), bytes.NewReader(make([]byte, limit+1)), -1, limit)
	require.ErrorAs(t, err, &tooLarge)
	assert.EqualError(t, err, "larger than 102400 bytes")
	_, err = c.ReadAll(t.Context(), nil, limit+1, limit)
	require.ErrorAs(t, err, &tooLarge)
	// What has been read of a body counts once in the error's number.
	large := make([]byte, 1024*kib)
	for _, stated := range []int64{-1, int64(len(large))} {
		_, err = newBudget().Begin().ReadAll(t.Context(), bytes.NewReader(large), stated, int64(len(large)))
		require.ErrorAs(t, err, &tooLarge)
		assert.Equal(t, max(stated, tooLarge.Limit+1), tooLarge.Need)
	}
}

// A body that has not begun to arrive holds nothing, and later at most twice what has arrived, whatever its sender
// states.
func TestABodyHoldsWhatHasArrived(t *testing.T) {
	for _, stated := range []int64{-1, 180 * kib} {
		b := newBudget()
		c := b.Begin()
		arrived := 0
		body := func(p []byte) (int, error) {
			if arrived == 0 {
				assert.Zero(t, b.HeldBytes())
			}
			assert.LessOrEqual(t, b.HeldBytes(), int64(max(firstBytes, 2*arrived)))
			n := min(len(p), 1000, 150*kib-arrived)
			arrived += n
			if n == 0 {
				return 0, io.ErrUnexpectedEOF
			}
			return n, nil
		}
		_, err := c.ReadAll(t.Context(), readerFunc(body), stated, 1<<20)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		c.Release()
		assert.Zero(t, b.HeldBytes())
	}
}

// Bodies that arrive at once and need more than there is: some are refused, at once, and the others are read with what
// they held.
func TestBodiesThatOutgrowTheRoomDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBudget(), time.Now()
		var accepted, refused atomic.Int64
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				c := b.Begin()
				defer c.Release()
				_, err := c.ReadAll(t.Context(), iotest.HalfReader(bytes.NewReader(make([]byte, 100*kib))), -1, 1<<20)
				if err == nil {
					accepted.Add(1)
				} else if assert.ErrorIs(t, err, ErrBusy) {
					refused.Add(1)
				}
			})
		}
		senders.Wait()
		assert.Positive(t, accepted.Load())
		assert.Less(t, time.Since(began), MaxWait)
		assert.Zero(t, b.HeldBytes())
		// Beside one that does not go on, another waits.
		other, c := b.Begin(), b.Begin()
		require.NoError(t, other.ReserveBody(t.Context(), 150*kib))
		began = time.Now()
		_, err := c.ReadAll(t.Context(), bytes.NewReader(make([]byte, 100*kib)), -1, 1<<20)
		require.ErrorIs(t, err, ErrBusy)
		assert.Equal(t, MaxWait, time.Since(began))
		c.Release()
		other.Release()
	})
}

// A large body does not hold what is reserved for small ones, although it begins as a small one.
func TestALargeBodyLeavesTheReserve(t *testing.T) {
	b := newBudget() // of 256 KiB for bodies, 64 are reserved
	for range 4 {
		c := b.Begin()
		defer c.Release()
		_, err := c.ReadAll(t.Context(), bytes.NewReader(make([]byte, 30*kib)), -1, 1<<20)
		require.NoError(t, err)
	}
	for range 4 {
		small := b.Begin()
		defer small.Release()
		require.NoError(t, small.ReserveBody(t.Context(), 16*kib))
	}
}

// Payloads that take more than was expected are built beside each other if there is room.
func TestPayloadsGrowTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBudget(), time.Now() // large profiles have 576 KiB
		var payloads sync.WaitGroup
		for range 8 {
			payloads.Go(func() {
				c := b.Begin()
				defer c.Release()
				assert.NoError(t, c.Build(t.Context(), 50*kib, func(reserve pdatasize.Reserve) error {
					time.Sleep(time.Millisecond)
					if err := reserve(60 * kib); err != nil {
						return err
					}
					time.Sleep(time.Millisecond)
					return nil
				}))
			})
		}
		payloads.Wait()
		assert.Less(t, time.Since(began), MaxWait)
	})
}

// net/http recovers from a panic of a handler: what its reservation held is free again.
func TestAPanicHoldsNothing(t *testing.T) {
	b := newBudget()
	func() {
		defer func() { _ = recover() }()
		c := b.Begin()
		defer c.Release()
		_ = c.Build(t.Context(), 500*kib, func(pdatasize.Reserve) error { panic("a fault of a decoder") })
	}()
	require.Zero(t, b.HeldBytes())
	c := b.Begin()
	defer c.Release()
	require.NoError(t, c.Build(t.Context(), 500*kib, noGrowth))
}

// What can never be reserved does not count: the work may go on with less, as a query that prunes its answer does.
func TestBuildGoesOnAfterARefusal(t *testing.T) {
	b := newBudget()
	c := b.Begin()
	defer c.Release()
	require.NoError(t, c.Build(t.Context(), 0, func(reserve pdatasize.Reserve) error {
		require.ErrorIs(t, reserve(4096*kib), pdatasize.ErrFull)
		return reserve(100 * kib)
	}))
	require.EqualValues(t, 100*kib, c.HeldBytes())
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	membership := filepath.Join(root, "membership")
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	assert.EqualValues(t, math.MaxInt64, groupLimit(root, membership))
	write("membership", "0::/pod/container\n")
	assert.EqualValues(t, math.MaxInt64, groupLimit(root, membership))
	write("pod/container/memory.max", "max\n")
	assert.EqualValues(t, math.MaxInt64, groupLimit(root, membership))
	write("pod/memory.max", "1000\n")
	assert.EqualValues(t, 1000, groupLimit(root, membership))
	write("membership", "4:memory:/docker\n3:cpu:/pod\n")
	write("memory/docker/memory.limit_in_bytes", "500\n")
	assert.EqualValues(t, 500, groupLimit(root, membership))
}

func TestForMemory(t *testing.T) {
	assert.EqualValues(t, 150<<20, forMemory(400<<20))
	assert.EqualValues(t, minProcessBytes, forMemory(1<<20))
	assert.EqualValues(t, maxProcessBytes, forMemory(math.MaxInt64))
}

func TestLimiterBytes(t *testing.T) {
	const allMemory = 4000 << 20
	for name, tc := range map[string]struct {
		limiters map[string]any
		want     int64
	}{
		"none":           {nil, math.MaxInt64},
		"without limits": {map[string]any{"memory_limiter": nil}, math.MaxInt64},
		"the least of all": {map[string]any{
			"memory_limiter":       map[string]any{"limit_mib": 1024},
			"memory_limiter/small": map[string]any{"limit_mib": 512},
			"memory_limiter/share": map[string]any{"limit_percentage": 50},
			"dictionary_dedup":     nil,
		}, 512 << 20},
		"a percentage": {map[string]any{"memory_limiter": map[string]any{"limit_percentage": 10}}, 400 << 20},
		"all": {map[string]any{"memory_limiter": map[string]any{"limit_mib": 0, "limit_percentage": 100}},
			allMemory},
		"MiB and a percentage": {map[string]any{"memory_limiter": map[string]any{"limit_mib": 512, "limit_percentage": 1}},
			512 << 20},
		"an invalid percentage": {map[string]any{"memory_limiter": map[string]any{"limit_percentage": 101}}, math.MaxInt64},
	} {
		conf := confmap.NewFromStringMap(map[string]any{"processors": tc.limiters})
		assert.Equal(t, tc.want, limiterBytes(conf, allMemory), name)
	}
	share := map[string]any{"memory_limiter": map[string]any{"limit_percentage": 10}}
	conf := confmap.NewFromStringMap(map[string]any{"processors": share})
	assert.EqualValues(t, math.MaxInt64, limiterBytes(conf, math.MaxInt64), "the machine's memory is unknown")
}

// A configuration that is loaded again can have another limit, or none.
func TestLimitOfAReload(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetMemoryLimit(before)
		SetMemoryLimit(math.MaxInt64)
	}()
	for _, limiter := range []map[string]any{{"limit_mib": 600}, {"limit_mib": 900}, {}} {
		conf := confmap.NewFromStringMap(map[string]any{"processors": map[string]any{"memory_limiter": limiter}})
		require.NoError(t, converter{}.Convert(t.Context(), conf))
		want := int64(math.MaxInt64)
		if mib, ok := limiter["limit_mib"].(int); ok {
			want = int64(mib) << 20
		}
		assert.Equal(t, want, debug.SetMemoryLimit(-1))
	}
}

func TestMachineMemory(t *testing.T) {
	meminfo := filepath.Join(t.TempDir(), "meminfo")
	assert.EqualValues(t, math.MaxInt64, machineMemory(meminfo), "not on Linux")
	for text, want := range map[string]int64{
		"MemFree: 5 kB\nMemTotal:       24689760 kB\n": 24689760 << 10,
		"MemTotal: 0 kB\n":                   math.MaxInt64,
		"MemTotal: x kB\n":                   math.MaxInt64,
		"MemTotal: 9223372036854775807 kB\n": math.MaxInt64,
	} {
		require.NoError(t, os.WriteFile(meminfo, []byte(text), 0o600))
		assert.Equal(t, want, machineMemory(meminfo), text)
	}
}
