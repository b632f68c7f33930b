// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// Cost is what one run of a function used. The process is measured, not the goroutine: a test that measures
// must not run beside others (no t.Parallel).
type Cost struct {
	// AllocatedBytes is everything that was allocated, freed since or not.
	AllocatedBytes int64
	// PeakHeapBytes is how much the heap grew at most, sampled about every millisecond. Garbage is collected
	// often meanwhile, so that little of it is garbage.
	PeakHeapBytes int64
	// CPU is the processor time of the whole process, garbage collection included. Unlike elapsed time, it does
	// not depend much on other processes. It is 0 if the system does not report it.
	CPU time.Duration
}

func (c Cost) String() string {
	return fmt.Sprintf("peak heap %.1f MiB, allocated %.1f MiB, CPU %v",
		float64(c.PeakHeapBytes)/(1<<20), float64(c.AllocatedBytes)/(1<<20), c.CPU.Round(10*time.Microsecond))
}

const (
	// Processor time may grow by this much for a byte of input, over a constant: about fifty times what the
	// translators need for ordinary input, so that a busy machine does not matter, and far less than what a
	// quadratic loop needs for a megabyte.
	cpuPerByte  = time.Microsecond
	cpuConstant = 500 * time.Millisecond

	sampleInterval = time.Millisecond
	// gcPercentWhileMeasuring keeps garbage small against what is alive.
	gcPercentWhileMeasuring = 25
	// maxGarbageBefore is how much garbage there may be when a measurement begins.
	maxGarbageBefore = 1 << 20
)

// MeasureCost runs a function and returns what it used. To bound a byte entry, measure each call with input made
// to be as costly as possible, and compare the cost with the bytes that arrived, after decompression:
//
//	func TestDecodeIsBounded(t *testing.T) {
//		payload := worst()
//		var result Result // keep the result until the measurement ends
//		cost := profiletest.MeasureCost(t, func() { result, _ = Decode(payload) })
//		profiletest.RequireBounded(t, cost, plainBytes, 8<<20, 60)
//	}
//
// In a fuzz target do the same inside f.Fuzz, after f.Add of the worst cases. It is cheap enough for that: garbage is
// collected only after a megabyte of it. If one run takes less than about a millisecond, the
// peak is what is on the heap at its end.
//
// The goal is 32 bytes of heap for each plain byte, beside a constant, and 1 µs of processor time. What needs more
// says why beside its constants. There are four reasons. Some inputs become pdata and a dictionary at once: a line
// `a12345 1` of folded stacks has 9 bytes and becomes 297 of pdata, so the budget reserves all of it before it is
// taken. Old layouts of OTLP have several values in a sample, each of which is a sample today. JSON and Go's reader of
// traces make objects of small strings. And steps behind the entries have the message, a dictionary of it and their
// result in memory together, or repeat for each sample what profiles share; these limit what they write, too.
//
// Under -short it skips the test: the race detector multiplies both time and memory, so there is nothing to bound.
func MeasureCost(tb testing.TB, run func()) Cost {
	tb.Helper()
	SkipLarge(tb)
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercentWhileMeasuring))
	heap := newHeapReader()
	if objects, live := heap.read(); objects > live+maxGarbageBefore {
		runtime.GC()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := ProcessCPU()
	sampler := startSampler()

	run()

	peak := sampler.stop()
	cpu = ProcessCPU() - cpu
	runtime.ReadMemStats(&after)
	cost := Cost{AllocatedBytes: int64(after.TotalAlloc - before.TotalAlloc), CPU: cpu}
	peak = max(peak, after.HeapAlloc)
	cost.PeakHeapBytes = min(max(0, int64(peak)-int64(before.HeapAlloc)), cost.AllocatedBytes)
	return cost
}

// RequireCost measures run and requires what RequireBounded does. A run that took more memory is repeated twice, as by
// MeasureReserved.
func RequireCost(tb testing.TB, inputBytes, constantBytes int, factor float64, run func()) (cost Cost) {
	tb.Helper()
	for range 3 {
		cost = MeasureCost(tb, run)
		if float64(cost.PeakHeapBytes) <= float64(constantBytes)+factor*float64(inputBytes) {
			break
		}
	}
	RequireBounded(tb, cost, inputBytes, constantBytes, factor)
	return cost
}

// IsRace tells whether the race detector is on, under which everything takes about ten times as long.
const IsRace = raceSlowdown > 1

// RequireBounded fails the test if the peak of the heap is above constantBytes + factor × inputBytes, or if the
// processor time is above what any linear reader of so many bytes needs (half a second + 1 µs for each byte;
// ten times that under the race detector).
func RequireBounded(tb testing.TB, cost Cost, inputBytes, constantBytes int, factor float64) {
	tb.Helper()
	if limit := float64(constantBytes) + factor*float64(inputBytes); float64(cost.PeakHeapBytes) > limit {
		tb.Fatalf("%d bytes of input: heap above %.1f MiB (%.1f MiB + %g × input): %v",
			inputBytes, limit/(1<<20), float64(constantBytes)/(1<<20), factor, cost)
	}
	if limit := raceSlowdown * (cpuConstant + time.Duration(inputBytes)*cpuPerByte); cost.CPU > limit {
		tb.Fatalf("%d bytes of input: processor time above %v: %v", inputBytes, limit, cost)
	}
}

// heapReader reads the size of the heap without stopping the world.
type heapReader []metrics.Sample

func newHeapReader() heapReader {
	return heapReader{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
}

// read returns the bytes of all objects, garbage included, and of those that survived the last collection.
func (r heapReader) read() (objects, live uint64) {
	metrics.Read(r)
	return r[0].Value.Uint64(), r[1].Value.Uint64()
}

// sampler records the largest size of the heap.
type sampler struct {
	done chan struct{}
	peak chan uint64
}

func startSampler() *sampler {
	s := &sampler{done: make(chan struct{}), peak: make(chan uint64)}
	go func() {
		heap := newHeapReader()
		ticker := time.NewTicker(sampleInterval)
		defer ticker.Stop()
		peak := uint64(0)
		for {
			select {
			case <-s.done:
				s.peak <- peak
				return
			case <-ticker.C:
				objects, _ := heap.read()
				peak = max(peak, objects)
			}
		}
	}()
	return s
}

func (s *sampler) stop() uint64 {
	close(s.done)
	return <-s.peak
}

// SkipLarge skips a test of large inputs, of bounds or of peers under -short. That is how `make test` runs the race
// detector: small inputs show a race as well, and without the detector the test runs anyway.
func SkipLarge(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out large inputs, bounds and peers")
	}
}
