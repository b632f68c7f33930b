// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var costSink [][]byte

func TestMeasureCost(t *testing.T) {
	const mib = 1 << 20
	keep := func(n int) func() {
		return func() {
			for range n {
				costSink = append(costSink, make([]byte, mib))
			}
		}
	}
	cost := measureCost(firstGCPercent, keep(64))
	assert.InDelta(t, 64*mib, cost.AllocatedBytes, 2*mib)
	assert.InDelta(t, 64*mib, cost.PeakHeapBytes, 4*mib)
	costSink = nil

	// Garbage does not count.
	cost = RequireCost(t, Bound{HeapBytes: 48 * mib}, func() {
		for range 64 {
			keep(1)()
			costSink = costSink[:0]
		}
	})
	assert.InDelta(t, 64*mib, cost.AllocatedBytes, 2*mib)

	cost = measureCost(firstGCPercent, func() {
		keep(64)()
		costSink = nil
		time.Sleep(50 * sampleInterval)
		runtime.GC()
	})
	assert.Greater(t, cost.PeakHeapBytes, int64(48*mib), "a peak in between counts")
	assert.Less(t, cost.CPU, time.Second)

	cost = measureCost(firstGCPercent, func() {
		for start := ProcessCPU(); ProcessCPU()-start < 50*time.Millisecond && ProcessCPU() > 0; {
		}
	})
	if ProcessCPU() > 0 {
		assert.GreaterOrEqual(t, cost.CPU, 50*time.Millisecond)
	}
}

func TestBound(t *testing.T) {
	bound := BoundOf(10, 100, 3)
	bound.AllocatedBytes = 1000
	most := Cost{PeakHeapBytes: 130, AllocatedBytes: 1000, CPU: raceSlowdown * (cpuConstant + 10*cpuPerByte)}
	assert.True(t, bound.holds(most))
	for name, change := range map[string]func(*Cost){
		"heap": func(c *Cost) { c.PeakHeapBytes++ }, "allocated": func(c *Cost) { c.AllocatedBytes++ },
		"CPU": func(c *Cost) { c.CPU++ },
	} {
		cost := most
		change(&cost)
		assert.False(t, bound.holds(cost), name)
		assert.True(t, Bound{}.holds(cost), name)
	}
}

// A run that is above its bound once is repeated, and one that always is fails.
func TestRequireCost(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		large, runs int
		want        string
	}{
		"within":         {0, 1, ""},
		"above it once":  {1, 2, ""},
		"above it twice": {2, 3, ""},
		"always above":   {3, 3, "the cost is peak heap 16"},
	} {
		t.Run(name, func(t *testing.T) {
			f, runs := &standIn{TB: t}, 0
			RequireCostOfEach(f, Bound{HeapBytes: 8 * mib}, func() func() {
				costSink = nil
				runs++
				return func() {
					if runs <= tc.large {
						costSink = append(costSink, make([]byte, 16*mib))
					}
				}
			})
			costSink = nil
			assert.Equal(t, tc.runs, runs)
			assert.Contains(t, f.failure, tc.want)
			assert.Equal(t, tc.want == "", f.failure == "")
		})
	}
}

// What a decoder takes must be reserved.
func TestRequireReserved(t *testing.T) {
	const mib = 1 << 20
	for reserved, want := range map[int]string{10 * mib: "", 9 * mib: "the bound is peak heap 14.5 MiB"} {
		f := &standIn{TB: t}
		RequireReserved(f, Bound{}, mib, func(reserve func(int) error) {
			require.NoError(t, reserve(reserved))
			costSink = [][]byte{make([]byte, 15*mib)}
		})
		costSink = nil
		assert.Contains(t, f.failure, want)
		assert.Equal(t, want == "", f.failure == "")
	}
}
