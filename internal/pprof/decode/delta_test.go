// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// deltaSteps decodes payloads with one Baseline, 15 seconds apart.
type deltaSteps struct {
	testing.TB
	baseline *Baseline
	at       time.Time
}

func newDeltaSteps(t testing.TB, maxStacks int) *deltaSteps {
	return &deltaSteps{TB: t, baseline: NewBaseline(maxStacks), at: time.Unix(1000, 0)}
}

// decode does not commit.
func (s *deltaSteps) decode(payload []byte) (pprofile.Profiles, Stats) {
	s.at = s.at.Add(15 * time.Second)
	pd, stats, err := Decode(payload,
		Options{Temporality: kind.StatedCumulative, Baseline: s.baseline, At: s.at, IncludeOriginalPayload: true})
	require.NoError(s, err)
	require.NoError(s, profiletest.Check(pd))
	return pd, stats
}

func (s *deltaSteps) next(payload []byte) (pprofile.Profiles, Stats) {
	pd, stats := s.decode(payload)
	s.baseline.Commit()
	return pd, stats
}

// heapOf is a profile of the functions f0, f1 …: for each alloc_space and inuse_space.
func heapOf(t testing.TB, timeNanos int64, values ...[2]int64) []byte {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 1024,
		TimeNanos: timeNanos,
	}
	for i, v := range values {
		id := uint64(i + 1)
		f := &profile.Function{ID: id, Name: "f" + string(rune('0'+i)), Filename: "f.go"}
		l := &profile.Location{ID: id, Line: []profile.Line{{Function: f, Line: 1}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: v[:]})
	}
	return written(t, p)
}

func written(t testing.TB, p *profile.Profile) []byte {
	var out bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&out))
	return out.Bytes()
}

// valuesOf returns the values of a type by function, or nil if the type has no profile.
func valuesOf(pd pprofile.Profiles, typ string) map[string]int64 {
	p, ok := profileOf(pd, typ)
	if !ok {
		return nil
	}
	d := pd.Dictionary()
	values := map[string]int64{}
	for _, s := range p.Samples().All() {
		l := d.LocationTable().At(int(d.StackTable().At(int(s.StackIndex())).LocationIndices().At(0)))
		f := d.FunctionTable().At(int(l.Lines().At(0).FunctionIndex()))
		values[d.StringTable().At(int(f.NameStrindex()))] += s.Values().At(0)
	}
	return values
}

func profileOf(pd pprofile.Profiles, typ string) (pprofile.Profile, bool) {
	for p := range otlp.Profiles(pd) {
		if pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) == typ {
			return p, true
		}
	}
	return pprofile.Profile{}, false
}

type byName = map[string]int64

func TestDeltaStepByStep(t *testing.T) {
	const second = int64(time.Second)
	s := newDeltaSteps(t, 0)
	pd, stats := s.next(heapOf(t, 100*second, [2]int64{10, 4}, [2]int64{20, 0}))
	assert.Equal(t, DeltaStats{First: true}, stats.Delta)
	assert.Equal(t, 2, stats.Samples)
	assert.Nil(t, valuesOf(pd, "alloc_space"), "the first payload has no delta")
	assert.Equal(t, byName{"f0": 4}, valuesOf(pd, "inuse_space"))
	assert.Equal(t, 1, pd.ResourceProfiles().At(0).ScopeProfiles().Len())

	pd, stats = s.next(heapOf(t, 115*second, [2]int64{10, 3}, [2]int64{27, 0}, [2]int64{5, 5}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, 3, stats.Samples)
	assert.Equal(t, byName{"f1": 7, "f2": 5}, valuesOf(pd, "alloc_space"))
	assert.Equal(t, byName{"f0": 3, "f2": 5}, valuesOf(pd, "inuse_space"))
	alloc, _ := profileOf(pd, "alloc_space")
	assert.Equal(t, 100*second, int64(alloc.Time()))
	assert.Equal(t, 15*second, int64(alloc.DurationNano()))
	inuse, _ := profileOf(pd, "inuse_space")
	assert.Equal(t, 115*second, int64(inuse.Time()))
	assert.Zero(t, inuse.DurationNano())
	assert.Empty(t, inuse.OriginalPayloadFormat(), "the payload has other values than the delta")

	pd, stats = s.next(heapOf(t, 130*second, [2]int64{10, 3}, [2]int64{27, 0}, [2]int64{5, 0}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Nil(t, valuesOf(pd, "alloc_space"), "no profile if nothing happened")
	assert.Equal(t, byName{"f0": 3}, valuesOf(pd, "inuse_space"))
}

func TestDeltaRestarts(t *testing.T) {
	before := heapOf(t, 50, [2]int64{10, 1}, [2]int64{20, 2})
	changed := func(change func(*profile.Profile)) []byte {
		p := profiletest.ParsePprof(t, before)
		change(p)
		return written(t, p)
	}
	for name, test := range map[string]struct {
		payload []byte
		want    RestartReason
	}{
		"the same":            {before, RestartNone},
		"a stack more":        {heapOf(t, 60, [2]int64{10}, [2]int64{20}, [2]int64{1}), RestartNone},
		"no time":             {heapOf(t, 0, [2]int64{10}, [2]int64{20}), RestartNone},
		"a value fell":        {heapOf(t, 60, [2]int64{11}, [2]int64{19}), RestartValueFell},
		"fell and vanished":   {heapOf(t, 60, [2]int64{9}), RestartValueFell},
		"a stack vanished":    {heapOf(t, 60, [2]int64{30}), RestartStackVanished},
		"all stacks":          {heapOf(t, 60), RestartStackVanished},
		"time went back":      {heapOf(t, 49, [2]int64{10}, [2]int64{20}), RestartTimeWentBack},
		"negative":            {heapOf(t, 60, [2]int64{-1}, [2]int64{20}), RestartValueFell},
		"another period":      {changed(func(p *profile.Profile) { p.Period = 1 }), RestartTypesChanged},
		"another unit":        {changed(func(p *profile.Profile) { p.SampleType[0].Unit = "KiB" }), RestartTypesChanged},
		"another period type": {changed(func(p *profile.Profile) { p.PeriodType.Type = "objects" }), RestartTypesChanged},
		"another type": {changed(func(p *profile.Profile) { p.SampleType[0].Type = "alloc_objects" }),
			RestartTypesChanged},
		"another build": {changed(func(p *profile.Profile) {
			p.Mapping = []*profile.Mapping{{ID: 1, File: "app", BuildID: "abc"}}
			p.Location[0].Mapping = p.Mapping[0]
		}), RestartStackVanished},
		"in-use stack vanished": {changed(func(p *profile.Profile) { p.Sample[1].Value[1] = 0 }), RestartNone},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeltaSteps(t, 0)
			s.next(before)
			pd, stats := s.next(test.payload)
			assert.Equal(t, DeltaStats{Restarted: test.want != RestartNone, Reason: test.want}, stats.Delta)
			if test.want == RestartNone {
				return
			}
			assert.Nil(t, valuesOf(pd, "alloc_space"))
			assert.NotNil(t, valuesOf(pd, "inuse_space"), "values in use are emitted without a delta too")
			_, stats = s.next(test.payload)
			assert.Equal(t, DeltaStats{}, stats.Delta, "the payload after a restart is compared with the one before")
		})
	}
}

// A stack whose values are all 0 has nothing to lose.
func TestDeltaOfAStackThatHadCountedNothing(t *testing.T) {
	s := newDeltaSteps(t, 0)
	s.next(heapOf(t, 1, [2]int64{5, 0}, [2]int64{0, 7}))
	held := s.baseline.Bytes()
	_, stats := s.next(heapOf(t, 2, [2]int64{6, 0}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	pd, stats := s.next(heapOf(t, 3, [2]int64{6, 0}, [2]int64{4, 0}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"f1": 4}, valuesOf(pd, "alloc_space"))
	assert.Greater(t, s.baseline.Bytes(), held)
}

func TestDeltaLosesNothingWhenDeliveryFails(t *testing.T) {
	s := newDeltaSteps(t, 0)
	s.next(heapOf(t, 100, [2]int64{10, 0}))
	held := s.baseline.Bytes()
	pd, _ := s.decode(heapOf(t, 200, [2]int64{13, 0}, [2]int64{1, 0}))
	assert.Equal(t, byName{"f0": 3, "f1": 1}, valuesOf(pd, "alloc_space"))
	s.baseline.Discard()
	assert.Equal(t, held, s.baseline.Bytes())
	// Decode discards what was not committed.
	pd, _ = s.decode(heapOf(t, 300, [2]int64{14, 0}, [2]int64{1, 0}))
	assert.Equal(t, byName{"f0": 4, "f1": 1}, valuesOf(pd, "alloc_space"))
	pd, stats := s.decode(heapOf(t, 400, [2]int64{15, 0}, [2]int64{2, 0}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"f0": 5, "f1": 2}, valuesOf(pd, "alloc_space"))
	alloc, _ := profileOf(pd, "alloc_space")
	assert.Equal(t, []uint64{100, 300}, []uint64{uint64(alloc.Time()), alloc.DurationNano()})
	s.baseline.Commit()
	s.baseline.Commit()
	s.baseline.Discard()
	pd, _ = s.next(heapOf(t, 500, [2]int64{16, 0}, [2]int64{2, 0}))
	assert.Equal(t, byName{"f0": 1}, valuesOf(pd, "alloc_space"))
}

func TestDeltaIsLeftAloneByAPayloadThatCannotBeDecoded(t *testing.T) {
	s := newDeltaSteps(t, 0)
	s.next(heapOf(t, 100, [2]int64{10, 0}))
	s.decode(heapOf(t, 200, [2]int64{99, 0}))
	for _, bad := range []string{"", "<html>", "\x0a\xff", "{}"} {
		_, stats, err := Decode([]byte(bad), Options{Temporality: kind.StatedCumulative, Baseline: s.baseline})
		require.Error(t, err)
		assert.Equal(t, DeltaStats{}, stats.Delta)
		s.baseline.Commit() // there is nothing to commit, not even what was pending before
	}
	pd, stats := s.next(heapOf(t, 300, [2]int64{12, 0}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"f0": 2}, valuesOf(pd, "alloc_space"))
}

func TestDeltaOfLargeValues(t *testing.T) {
	const large = int64(1) << 60
	for name, test := range map[string]struct {
		before, now int64
		want        any // a delta or a reason
	}{
		"rounding lowers it by a unit":   {large, large - 1<<8, int64(0)},
		"more than rounding":             {large, large - 1<<11, RestartValueFell},
		"no rounding there":              {1<<50 - 1, 1<<50 - 2, RestartValueFell},
		"all that there is":              {0, math.MaxInt64, int64(math.MaxInt64)},
		"at the end":                     {math.MaxInt64, math.MaxInt64, int64(0)},
		"below zero first":               {-5, 7, int64(0)},
		"further below":                  {-5, -6, RestartValueFell},
		"from one end to the other":      {math.MinInt64, math.MaxInt64, int64(0)},
		"from one end to the other back": {math.MaxInt64, math.MinInt64, RestartValueFell},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeltaSteps(t, 0)
			s.next(heapOf(t, 1, [2]int64{test.before, 1}))
			pd, stats := s.next(heapOf(t, 2, [2]int64{test.now, 1}))
			if want, isDelta := test.want.(int64); isDelta {
				assert.Equal(t, DeltaStats{}, stats.Delta)
				assert.Equal(t, want, valuesOf(pd, "alloc_space")["f0"])
				return
			}
			assert.Equal(t, DeltaStats{Restarted: true, Reason: test.want.(RestartReason)}, stats.Delta)
		})
	}
}

func TestDeltaOfANewStackBelowZero(t *testing.T) {
	s := newDeltaSteps(t, 0)
	s.next(heapOf(t, 1, [2]int64{1, 1}))
	pd, stats := s.next(heapOf(t, 2, [2]int64{2, 1}, [2]int64{-7, 1}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"f0": 1}, valuesOf(pd, "alloc_space"))
	pd, stats = s.next(heapOf(t, 3, [2]int64{2, 1}, [2]int64{9, 1}))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Nil(t, valuesOf(pd, "alloc_space"))
}

// What rounding took back is not counted twice.
func TestDeltaAfterRounding(t *testing.T) {
	const large = int64(1) << 60
	s := newDeltaSteps(t, 0)
	s.next(heapOf(t, 1, [2]int64{large, 1}))
	s.next(heapOf(t, 2, [2]int64{large - 100, 1}))
	pd, _ := s.next(heapOf(t, 3, [2]int64{large + 3, 1}))
	assert.Equal(t, byName{"f0": 3}, valuesOf(pd, "alloc_space"))
}

func TestDeltaSumsThatOverflow(t *testing.T) {
	payload := func(values ...int64) []byte {
		w := oddBase()
		for _, v := range values {
			w = w.Message(profiletest.PprofSample, oddSample(v, 1))
		}
		return w
	}
	s := newDeltaSteps(t, 0)
	s.next(payload(math.MaxInt64-10, 7))
	pd, _ := s.next(payload(math.MaxInt64-10, 9))
	assert.Equal(t, byName{"main": 2}, valuesOf(pd, "cpu"))
	pd, stats := s.next(payload(math.MaxInt64-10, 1000))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Equal(t, byName{"main": 1}, valuesOf(pd, "cpu"), "up to where it ends")
	pd, stats = s.next(payload(math.MaxInt64-10, 2000))
	assert.Equal(t, DeltaStats{}, stats.Delta)
	assert.Zero(t, pd.ProfileCount())
}

func TestDeltaWithoutCumulativeTypesIsNone(t *testing.T) {
	payload := captured(t)["node-datadog-heap.pb.gz"] // objects and space: what V8 holds
	want, _, err := Decode(payload, Options{IncludeOriginalPayload: true})
	require.NoError(t, err)
	s := newDeltaSteps(t, 0)
	for range 2 {
		pd, stats := s.next(payload)
		assert.Equal(t, DeltaStats{}, stats.Delta)
		assert.True(t, bytes.Equal(profiletest.Marshal(t, want), profiletest.Marshal(t, pd)))
	}
}

// An endpoint whose kind of profile changes for a while does not disturb the Baseline.
func TestDeltaOfASampleWithoutTypes(t *testing.T) {
	payload := func(samples int) []byte {
		var w profiletest.PprofWire
		for range samples {
			w = w.Message(profiletest.PprofSample, profiletest.PprofWire{})
		}
		return w.Int(profiletest.PprofPeriod, 1)
	}
	s := newDeltaSteps(t, 0)
	pd, stats := s.next(payload(0))
	assert.Zero(t, pd.ResourceProfiles().Len())
	assert.Equal(t, DeltaStats{}, stats.Delta, "there is nothing that could be compared")
	_, stats = s.next(payload(3))
	assert.Equal(t, DeltaStats{First: true}, stats.Delta)
	pd, _ = s.next(payload(5))
	require.Equal(t, 1, pd.ProfileCount())
	samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
	require.Equal(t, 1, samples.Len())
	assert.Equal(t, int64(2), samples.At(0).Values().At(0))
}
