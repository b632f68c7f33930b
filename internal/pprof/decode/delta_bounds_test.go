// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

func TestDeltaBounds(t *testing.T) {
	small := heapOf(t, 100, [2]int64{10, 1}, [2]int64{10, 1})
	large := heapOf(t, 200, [2]int64{11, 1}, [2]int64{11, 0}, [2]int64{11, 1})
	s := newDeltaSteps(t, 2)
	empty := s.baseline.Bytes()
	s.next(small)
	held := s.baseline.Bytes()
	assert.Equal(t, empty+2*(16+8), held)
	pd, stats := s.decode(large)
	assert.Equal(t, DeltaStats{Overflowed: true}, stats.Delta)
	assert.Equal(t, 3, stats.Samples)
	assert.Nil(t, valuesOf(pd, "alloc_space"))
	assert.Equal(t, byName{"f0": 1, "f2": 1}, valuesOf(pd, "inuse_space"))
	assert.Equal(t, held, s.baseline.Bytes())
	s.baseline.Discard()
	_, stats = s.next(small)
	assert.Equal(t, DeltaStats{}, stats.Delta, "the large payload was not committed")
	s.next(large)
	assert.Equal(t, empty, s.baseline.Bytes())
	_, stats = s.next(small)
	assert.Equal(t, DeltaStats{First: true}, stats.Delta)
}

func TestDeltaBoundsOfManyTypes(t *testing.T) {
	p := identityProfile(0)
	p.SampleType = slices.Repeat(p.SampleType, 6)
	p.Sample[0].Value = make([]int64, 6)
	for _, fits := range []bool{true, true, false} {
		s := newDeltaSteps(t, 4)
		_, stats := s.next(written(t, p))
		assert.Equal(t, !fits, stats.Delta.Overflowed)
		another := *p.Sample[0]
		another.Label = map[string][]string{"n": {string(rune('0' + len(p.Sample)))}}
		p.Sample = append(p.Sample, &another)
	}
}

// A sample that was dropped from one payload and is in the next is not new.
func TestDeltaOfPayloadsWithDroppedSamples(t *testing.T) {
	const locationUnknown = 9
	payload := func(samples ...profiletest.PprofWire) []byte {
		w := oddBase()
		for _, s := range samples {
			w = w.Message(profiletest.PprofSample, s)
		}
		return w
	}
	whole := func(a, b int64) []byte { return payload(oddSample(a, 1), oddSample(b, 2)) }
	s := newDeltaSteps(t, 0)
	s.next(whole(10, 1000))
	pd, stats := s.next(payload(oddSample(12, 1), oddSample(1001, locationUnknown)))
	assert.Equal(t, 1, stats.Dropped[scan.DropUnknownLocation])
	assert.Equal(t, 1, stats.Samples)
	assert.Equal(t, DeltaStats{}, stats.Delta, "the stack was dropped, it did not vanish")
	assert.Equal(t, byName{"main": 2}, valuesOf(pd, "cpu"))
	pd, stats = s.next(whole(15, 1002))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"main": 3}, valuesOf(pd, "cpu"))
	pd, _ = s.next(whole(15, 1003))
	assert.Equal(t, byName{"work": 1}, valuesOf(pd, "cpu"))
}

// The same samples are dropped with a Baseline as without, for all limits and faults.
func TestDeltaDropsWhatDecodeDrops(t *testing.T) {
	manyLabels := oddBase()
	for i := range int64(200) {
		manyLabels = manyLabels.Message(profiletest.PprofSample,
			oddSample(1, 1).Label(profiletest.PprofLabel{Key: sThread, Num: 1 + i}))
	}
	payloads := oddPayloads()
	payloads["many labels"] = manyLabels
	payloads["function with id 0 and unknown string"] = oddBase().Function(profiletest.PprofFunctionFields{Name: 99}).
		Location(profiletest.PprofLocationFields{ID: 3, Lines: []profiletest.PprofLine{{Line: 1}}}).
		Message(profiletest.PprofSample, oddSample(1, 3))
	payloads["deep"] = oddBase().Message(profiletest.PprofSample, oddSample(1, 1, 1, 1, 1)).
		Message(profiletest.PprofSample, profiletest.PprofWire(nil).Packed(profiletest.PprofSampleLocation, 1, 1, 1, 1).
			Int(profiletest.PprofSampleValue, 2)).
		Message(profiletest.PprofSample, oddSample(1, 1, 1, 1))
	dropped := map[scan.DropReason]bool{scan.DropOverBudget: true} // only samples that are emitted use the budget
	for name, payload := range payloads {
		t.Run(name, func(t *testing.T) {
			for _, limits := range []scan.Limits{{}, {MaxTableEntries: len(oddStrings) + 4, MaxStackDepth: 3}} {
				_, want, wantErr := Decode(payload, Options{Limits: limits})
				b := NewBaseline(0)
				for range 2 {
					pd, stats, err := Decode(payload, Options{Limits: limits, Temporality: kind.StatedCumulative, Baseline: b})
					require.Equal(t, wantErr == nil, err == nil, "%v, without a Baseline %v", err, wantErr)
					require.NoError(t, profiletest.Check(pd))
					assert.Equal(t, want.Dropped, stats.Dropped)
					assert.Equal(t, want.Samples, stats.Samples)
					for repair, n := range stats.Repaired {
						assert.LessOrEqual(t, n, want.Repaired[repair], scan.Repair(repair))
					}
					if pd.ProfileCount() == 0 {
						assert.Zero(t, stats.Repaired[scan.RepairValueCount], "repairs of samples that are not emitted do not count")
					}
					b.Commit()
				}
				for reason, n := range want.Dropped {
					dropped[scan.DropReason(reason)] = dropped[scan.DropReason(reason)] || n > 0
				}
			}
		})
	}
	for reason := range scan.DropReason(scan.NumDropReasons) {
		assert.True(t, dropped[reason], "nothing here is dropped as %s", reason)
	}
}

// endsAfter is a context that ends when it has been asked so many times.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A payload is compared with a Baseline before anything is made of it: that ends with the context, too.
func TestComparisonEndsWithItsContext(t *testing.T) {
	w := oddBase()
	for range 10_000 {
		w = w.Message(profiletest.PprofSample, oddSample(1, 1))
	}
	asked := 0
	for ; ; asked++ {
		baseline := NewBaseline(0)
		_, _, err := Decode(w,
			Options{Temporality: kind.StatedCumulative, Baseline: baseline,
				Meter: &size.Meter{Context: &endsAfter{t.Context(), asked}}})
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, NewBaseline(0).Bytes(), baseline.Bytes(), "nothing is remembered of it")
	}
	require.Greater(t, asked, 10_000/1024)
}

// Each of many sample types names the same long string.
func TestComparisonCopiesNoTypes(t *testing.T) {
	payload := worst.PProf["text as sample types"](1 << 20)
	profiletest.RequireCost(t, profiletest.Bound{AllocatedBytes: 64 << 20}, func() {
		_, _, err := Decode(payload, Options{Temporality: kind.StatedCumulative, Baseline: NewBaseline(0)})
		require.NoError(t, err)
	})
}

// Many cumulative types take no more memory than two.
func TestBaselineBoundsItsMemory(t *testing.T) {
	const maxStacks = 1 << 12
	worst := 0
	for _, values := range []int{1, 2, 3, 7, 1000} {
		stacks := NewBaseline(maxStacks).stacksOf(values)
		worst = max(worst, stacks*(fingerprintBytes+8*values))
	}
	assert.Equal(t, maxStacks*(fingerprintBytes+8*2), worst)
}
