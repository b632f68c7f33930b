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
	// CPU is the processor time of the whole process without that of garbage collection, which the measurement makes
	// frequent. Unlike elapsed time, it does not depend much on other processes. It is 0 if the system does not report it.
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
	// firstGCPercent is Go's own. Each repetition has a quarter of it, which keeps garbage small against what is alive,
	// what other tests left included.
	firstGCPercent = 100
	// maxRuns is how often a run that is above its bound is measured.
	maxRuns = 3
	// maxGarbageBefore is how much garbage there may be when a measurement begins.
	maxGarbageBefore = 1 << 20
)

// IsRace tells whether the race detector is on, under which everything takes about ten times as long.
const IsRace = raceSlowdown > 1

// Bound is what a run may cost at most. What is 0 has no bound.
type Bound struct {
	HeapBytes, AllocatedBytes int
	CPU                       time.Duration
}

// BoundOf returns the bound of a run that reads so many bytes of input, after decompression: constantBytes and
// perByte × inputBytes of heap, and the processor time that any linear reader of so many bytes needs (half a second
// and 1 µs for each byte; ten times that under the race detector).
//
// The goal is 32 bytes of heap for each plain byte, beside a constant. What needs more
// says why beside its constants. There are four reasons. Some inputs become pdata and a dictionary at once: a line
// `a12345 1` of folded stacks has 9 bytes and becomes 297 of pdata, so the budget reserves all of it before it is
// taken. Old layouts of OTLP have several values in a sample, each of which is a sample today. JSON and Go's reader of
// traces make objects of small strings. And steps behind the entries have the message, a dictionary of it and their
// result in memory together, or repeat for each sample what profiles share; these limit what they write, too.
func BoundOf(inputBytes, constantBytes int, perByte float64) Bound {
	return Bound{
		HeapBytes: constantBytes + int(perByte*float64(inputBytes)),
		CPU:       raceSlowdown * (cpuConstant + time.Duration(inputBytes)*cpuPerByte),
	}
}

func (b Bound) String() string {
	return fmt.Sprintf("peak heap %.1f MiB, allocated %.1f MiB, CPU %v (0 is no bound)",
		float64(b.HeapBytes)/(1<<20), float64(b.AllocatedBytes)/(1<<20), b.CPU)
}

func (b Bound) holds(c Cost) bool {
	return (b.HeapBytes == 0 || c.PeakHeapBytes <= int64(b.HeapBytes)) &&
		(b.AllocatedBytes == 0 || c.AllocatedBytes <= int64(b.AllocatedBytes)) && (b.CPU == 0 || c.CPU <= b.CPU)
}

// RequireCost runs a function and fails the test if it costs more than the bound. To bound a byte entry, measure each
// call with input made to be as costly as possible:
//
//	func TestDecodeIsBounded(t *testing.T) {
//		payload := worst()
//		var result Result // keep the result until the measurement ends
//		profiletest.RequireCost(t, profiletest.BoundOf(plainBytes, 8<<20, 60), func() { result, _ = Decode(payload) })
//	}
//
// In a fuzz target do the same inside f.Fuzz, after f.Add of the worst cases. It is cheap enough for that: garbage is
// collected only after four megabytes of it. If one run takes less than about a millisecond, the peak is what is on the
// heap at its end.
//
// A run above its bound is repeated twice, with more frequent garbage collection, and the least of each kind of cost
// counts: garbage depends on what other tests left in the heap and on how busy the machine is, and what the function
// needs is there each time. A run that changes its input, or drops the result of the last run before its own is there,
// needs RequireCostOfEach.
//
// Under -short it skips the test: the race detector multiplies both time and memory, so there is nothing to bound.
func RequireCost(tb testing.TB, bound Bound, run func()) Cost {
	tb.Helper()
	return RequireCostOfEach(tb, bound, func() func() { return run })
}

// RequireCostOfEach is RequireCost of a function that cannot run twice: prepare returns a new one for each
// measurement, and drops what the last one kept. What prepare itself does is not measured.
func RequireCostOfEach(tb testing.TB, bound Bound, prepare func() (run func())) Cost {
	tb.Helper()
	return requireCost(tb, func() Bound { return bound }, prepare)
}

// requireCost asks for the bound after each run.
func requireCost(tb testing.TB, bound func() Bound, prepare func() func()) Cost {
	tb.Helper()
	SkipLarge(tb)
	least := measureCost(firstGCPercent, prepare())
	for n := 1; n < maxRuns && !bound().holds(least); n++ {
		run := prepare()
		runtime.GC()
		runtime.GC() // the second collection takes what pools have, which the first run had to allocate
		cost := measureCost(firstGCPercent>>(2*n), run)
		least = Cost{
			AllocatedBytes: min(least.AllocatedBytes, cost.AllocatedBytes),
			PeakHeapBytes:  min(least.PeakHeapBytes, cost.PeakHeapBytes),
			CPU:            min(least.CPU, cost.CPU),
		}
	}
	if !bound().holds(least) {
		tb.Fatalf("the cost is %v; the bound is %v", least, bound())
	}
	tb.Logf("%v", least)
	return least
}

// keptByLast is what the last measured run left in the heap. It can be garbage now.
var keptByLast int64

func measureCost(gcPercent int, run func()) Cost {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	heap := newHeapReader()
	if objects, live := heap.read(); objects > live+maxGarbageBefore || keptByLast > maxGarbageBefore {
		runtime.GC()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := processCPUWithoutGC()
	sampler := startSampler()

	run()

	peak := sampler.stop()
	cpu = max(0, processCPUWithoutGC()-cpu)
	runtime.ReadMemStats(&after)
	cost := Cost{AllocatedBytes: int64(after.TotalAlloc - before.TotalAlloc), CPU: cpu}
	keptByLast = int64(after.HeapAlloc) - int64(before.HeapAlloc)
	peak = max(peak, after.HeapAlloc)
	cost.PeakHeapBytes = min(max(0, int64(peak)-int64(before.HeapAlloc)), cost.AllocatedBytes)
	return cost
}

// processCPUWithoutGC subtracts what the runtime estimates that its collections took, up to the last one that ended.
func processCPUWithoutGC() time.Duration {
	collections := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(collections)
	return ProcessCPU() - time.Duration(collections[0].Value.Float64()*float64(time.Second))
}

// HeapBytes collects garbage, with what pools hold, and returns the size of all objects.
func HeapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
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
