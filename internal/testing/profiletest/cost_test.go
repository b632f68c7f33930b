// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	cost := MeasureCost(t, keep(64))
	assert.InDelta(t, 64*mib, cost.AllocatedBytes, 2*mib)
	assert.InDelta(t, 64*mib, cost.PeakHeapBytes, 4*mib)
	costSink = nil

	cost = MeasureCost(t, func() {
		for range 64 {
			keep(1)()
			costSink = costSink[:0]
		}
	})
	assert.InDelta(t, 64*mib, cost.AllocatedBytes, 2*mib)
	assert.Less(t, cost.PeakHeapBytes, int64(48*mib), "garbage does not count")

	cost = MeasureCost(t, func() {
		keep(64)()
		costSink = nil
		time.Sleep(50 * sampleInterval)
		runtime.GC()
	})
	assert.Greater(t, cost.PeakHeapBytes, int64(48*mib), "a peak in between counts")
	assert.Less(t, cost.CPU, time.Second)

	cost = MeasureCost(t, func() {
		for start := ProcessCPU(); ProcessCPU()-start < 50*time.Millisecond && ProcessCPU() > 0; {
		}
	})
	if ProcessCPU() > 0 {
		assert.GreaterOrEqual(t, cost.CPU, 50*time.Millisecond)
	}
}

// failure replaces a test, and records why it would have failed.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper() {}

func (f *failure) Fatalf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

func TestRequireBounded(t *testing.T) {
	for name, test := range map[string]struct {
		cost Cost
		want string
	}{
		"at both limits": {Cost{PeakHeapBytes: 100 + 30, CPU: raceSlowdown * (cpuConstant + 10*cpuPerByte)}, ""},
		"heap":           {Cost{PeakHeapBytes: 100 + 31}, "10 bytes of input: heap above"},
		"CPU": {Cost{CPU: 1 + raceSlowdown*(cpuConstant+10*cpuPerByte)},
			"10 bytes of input: processor time above"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failure{TB: t}
			RequireBounded(f, test.cost, 10, 100, 3)
			if test.want == "" {
				assert.Empty(t, f.text)
				return
			}
			assert.Contains(t, f.text, test.want)
		})
	}
}
