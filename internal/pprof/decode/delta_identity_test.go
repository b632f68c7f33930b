// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// identityProfile returns a profile with one sample, and a value in every field that can matter.
func identityProfile(address uint64) *profile.Profile {
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 1, File: "app", BuildID: "b", HasFunctions: true}
	f := &profile.Function{ID: 1, Name: "n", SystemName: "s", Filename: "f.go", StartLine: 3}
	l := &profile.Location{ID: 1, Mapping: m, Address: address, Line: []profile.Line{{Function: f, Line: 4, Column: 5}}}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "delay", Unit: "nanoseconds"}},
		Mapping:    []*profile.Mapping{m}, Function: []*profile.Function{f}, Location: []*profile.Location{l},
		Sample: []*profile.Sample{{
			Location: []*profile.Location{l, l}, Value: []int64{10},
			Label:    map[string][]string{"k": {"a", "b"}, "other": {"c"}},
			NumLabel: map[string][]int64{"k": {7}}, NumUnit: map[string][]string{"k": {"ms"}},
		}},
	}
}

// Some changes make a stack a different one, others do not. To confuse different stacks would report what never
// happened; to miss that two are the same loses an interval.
func TestDeltaIdentity(t *testing.T) {
	const same, another = true, false
	location := func(p *profile.Profile) *profile.Location { return p.Location[0] }
	for name, test := range map[string]struct {
		change func(*profile.Profile)
		want   bool
	}{
		"nothing": {func(*profile.Profile) {}, same},
		"ids": {func(p *profile.Profile) {
			p.Mapping[0].ID, p.Function[0].ID, p.Location[0].ID = 9, 8, 7
		}, same},
		"what the mapping has": {
			func(p *profile.Profile) { p.Mapping[0].HasFunctions, p.Mapping[0].HasFilenames = false, true }, same},
		"mapping start":  {func(p *profile.Profile) { p.Mapping[0].Start++ }, another},
		"mapping limit":  {func(p *profile.Profile) { p.Mapping[0].Limit++ }, another},
		"mapping offset": {func(p *profile.Profile) { p.Mapping[0].Offset++ }, another},
		"mapping file":   {func(p *profile.Profile) { p.Mapping[0].File = "b" }, another},
		"build id":       {func(p *profile.Profile) { p.Mapping[0].BuildID = "app" }, another},
		"no mapping":     {func(p *profile.Profile) { location(p).Mapping = nil }, another},
		"address":        {func(p *profile.Profile) { location(p).Address++ }, another},
		"folded":         {func(p *profile.Profile) { location(p).IsFolded = true }, another},
		"line":           {func(p *profile.Profile) { location(p).Line[0].Line++ }, another},
		"column":         {func(p *profile.Profile) { location(p).Line[0].Column++ }, another},
		"a line more": {func(p *profile.Profile) { location(p).Line = append(location(p).Line, location(p).Line[0]) },
			another},
		"no line":     {func(p *profile.Profile) { location(p).Line = nil }, another},
		"name":        {func(p *profile.Profile) { p.Function[0].Name = "m" }, another},
		"system name": {func(p *profile.Profile) { p.Function[0].SystemName = "n" }, another},
		"start line":  {func(p *profile.Profile) { p.Function[0].StartLine++ }, another},
		"depth":       {func(p *profile.Profile) { p.Sample[0].Location = p.Sample[0].Location[:1] }, another},
		"no label":    {func(p *profile.Profile) { p.Sample[0].Label = nil }, another},
		"label":       {func(p *profile.Profile) { p.Sample[0].Label["other"][0] = "d" }, another},
		"label key": {func(p *profile.Profile) {
			p.Sample[0].Label["c"] = []string{"other"}
			delete(p.Sample[0].Label, "other")
		}, another},
		"order of values": {func(p *profile.Profile) { slices.Reverse(p.Sample[0].Label["k"]) }, another},
		"a value elsewhere": {
			func(p *profile.Profile) { p.Sample[0].Label = map[string][]string{"k": {"a"}, "other": {"b", "c"}} }, another},
		"number":                    {func(p *profile.Profile) { p.Sample[0].NumLabel["k"][0]++ }, another},
		"unit":                      {func(p *profile.Profile) { p.Sample[0].NumUnit["k"][0] = "s" }, another},
		"comments and other fields": {func(p *profile.Profile) { p.Comments, p.DocURL = []string{"c"}, "u" }, same},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeltaSteps(t, 0)
			s.next(written(t, identityProfile(0x1234)))
			p := identityProfile(0x1234)
			test.change(p)
			_, stats := s.next(written(t, p))
			assert.Equal(t, test.want, stats.Delta.Reason == RestartNone, stats.Delta)
		})
	}
}

// Go writes one file for a function, that of the frame it meets first. If a function has several because of //line, the
// order of the samples decides, and the mutex and block profiles are ordered by their values.
func TestDeltaIdentityOfAFunctionWithSeveralFiles(t *testing.T) {
	for address, want := range map[uint64]RestartReason{0x1234: RestartNone, 0: RestartStackVanished} {
		s := newDeltaSteps(t, 0)
		s.next(written(t, identityProfile(address)))
		p := identityProfile(address)
		p.Function[0].Filename = "generated.y"
		_, stats := s.next(written(t, p))
		assert.Equal(t, want, stats.Delta.Reason, "address 0x%x", address)
	}
}

// The two scopes are two pprofs, each with an order and a default of its own.
func TestDeltaScopes(t *testing.T) {
	types := func(names ...string) (types []*profile.ValueType) {
		for _, name := range names {
			types = append(types, &profile.ValueType{Type: name, Unit: "count"})
		}
		return types
	}
	goHeap := types("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
	for name, test := range map[string]struct {
		types       []*profile.ValueType
		defaultType string
		counts      [2][]int64
		want        string
	}{
		"heap": {goHeap, "", [2][]int64{{1, 1, 1, 1}, {2, 2, 1, 1}},
			"inuse_space inuse_objects order [1,0]; alloc_space alloc_objects order [1,0]"},
		"allocs": {goHeap, "alloc_space", [2][]int64{{1, 1, 1, 1}, {2, 2, 1, 1}},
			"alloc_space alloc_objects order [1,0] default alloc_space; inuse_space inuse_objects order [1,0]"},
		"default first": {goHeap, "alloc_objects", [2][]int64{{1, 1, 1, 1}, {2, 2, 1, 1}},
			"alloc_objects alloc_space default alloc_objects; inuse_space inuse_objects order [1,0]"},
		"a type without anything new": {goHeap, "alloc_space", [2][]int64{{1, 1, 1, 1}, {2, 1, 1, 1}},
			"alloc_objects; inuse_space inuse_objects order [1,0]"},
		"nothing new": {goHeap, "alloc_space", [2][]int64{{1, 1, 1, 1}, {1, 1, 1, 1}},
			"inuse_space inuse_objects order [1,0]"},
		"nothing in use": {goHeap, "alloc_space", [2][]int64{{1, 1, 1, 1}, {2, 2, 0, 0}},
			"alloc_space alloc_objects order [1,0] default alloc_space; inuse_space inuse_objects order [1,0]"},
		"types that repeat": {types("delay", "inuse", "delay"), "", [2][]int64{{1, 1, 1}, {2, 1, 3}},
			"delay delay order [1,0]; inuse"},
		"an unknown default": {types("delay", "inuse"), "cpu", [2][]int64{{1, 1}, {2, 1}}, "inuse; delay"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeltaSteps(t, 0)
			var got []string
			for i := range test.counts {
				p := identityProfile(0)
				p.SampleType, p.DefaultSampleType, p.Sample[0].Value = test.types, test.defaultType, test.counts[i]
				pd, _ := s.next(written(t, p))
				got = got[:0]
				for _, scope := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
					var text strings.Builder
					for _, p := range scope.Profiles().All() {
						text.WriteString(" " + pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())))
					}
					for _, a := range []struct{ word, key string }{{"order", kind.AttributeSampleTypeOrder},
						{"default", kind.AttributeDefaultSampleType}} {
						if v, ok := scope.Scope().Attributes().Get(a.key); ok {
							text.WriteString(" " + a.word + " " + v.AsString())
						}
					}
					got = append(got, text.String()[1:])
				}
			}
			assert.Equal(t, test.want, strings.Join(got, "; "))
		})
	}
}

// Two samples that are one in OTLP, since a link has no padding, can cancel each other out. Then there is no delta.
func TestDeltaOfSamplesThatBecomeOne(t *testing.T) {
	payload := func(delay int64) []byte {
		p := identityProfile(0)
		p.SampleType = []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}, {Type: "delay", Unit: "nanoseconds"}}
		linked := func(span string, inUse int64) *profile.Sample {
			return &profile.Sample{Location: p.Location, Value: []int64{inUse, 0},
				Label: map[string][]string{"trace_id": {"1"}, "span_id": {span}}}
		}
		p.Sample = []*profile.Sample{linked("1", 5), linked("01", -5), {Location: p.Location, Value: []int64{0, delay}}}
		return written(t, p)
	}
	s := newDeltaSteps(t, 0)
	s.next(payload(1))
	pd, _ := s.next(payload(3))
	delay, ok := profileOf(pd, "delay")
	require.True(t, ok)
	require.Equal(t, 1, delay.Samples().Len())
	assert.Equal(t, int64(2), delay.Samples().At(0).Values().At(0))
	inuse, _ := profileOf(pd, "inuse_space")
	assert.Equal(t, 1, inuse.Samples().Len(), "a sample that is 0 is still emitted")
}

func TestDeltaTimes(t *testing.T) {
	const second = int64(1e9)
	for name, test := range map[string]struct{ last, now, from, long int64 }{
		"the payloads' own":          {last: 100 * second, now: 130 * second, from: 100 * second, long: 30 * second},
		"the clock stood still":      {last: 100 * second, now: 100 * second, from: 1015 * second, long: 15 * second},
		"no time":                    {from: 1015 * second, long: 15 * second},
		"no time in the last one":    {now: 130 * second, from: 1015 * second, long: 15 * second},
		"no time in the second":      {last: 100 * second, from: 1015 * second, long: 15 * second},
		"negative times are ignored": {last: -5, now: -3, from: 1015 * second, long: 15 * second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeltaSteps(t, 0) // the first payload is fetched at 1015 s
			s.next(heapOf(t, test.last, [2]int64{1, 1}))
			pd, _ := s.next(heapOf(t, test.now, [2]int64{2, 1}))
			alloc, ok := profileOf(pd, "alloc_space")
			require.True(t, ok)
			assert.Equal(t, pcommon.Timestamp(test.from), alloc.Time())
			assert.Equal(t, uint64(test.long), alloc.DurationNano())
			inuse, _ := profileOf(pd, "inuse_space")
			assert.Equal(t, pcommon.Timestamp(max(0, test.now)), inuse.Time())
		})
	}
	// Neither the payloads nor the caller have times.
	b := NewBaseline(0)
	for i := range int64(2) {
		pd, _, err := Decode(heapOf(t, 0, [2]int64{1 + i, 0}), Options{Temporality: kind.StatedCumulative, Baseline: b})
		require.NoError(t, err)
		b.Commit()
		if alloc, ok := profileOf(pd, "alloc_space"); ok {
			assert.Equal(t, int64(1), i)
			assert.Zero(t, alloc.Time())
			assert.Zero(t, alloc.DurationNano())
		}
	}
}

// A delta's id depends on both payloads: it is the same for the same pair, and different for another pair.
func TestDeltaProfileIDs(t *testing.T) {
	payloads := [][]byte{heapOf(t, 1, [2]int64{1, 1}), heapOf(t, 2, [2]int64{2, 1}), heapOf(t, 3, [2]int64{4, 1})}
	ids := func(indices ...int) (alloc, inuse string) {
		s := newDeltaSteps(t, 0)
		for _, i := range indices {
			pd, _ := s.next(payloads[i])
			if p, ok := profileOf(pd, "alloc_space"); ok {
				id := p.ProfileID()
				alloc = string(id[:])
			}
			p, _ := profileOf(pd, "inuse_space")
			id := p.ProfileID()
			inuse = string(id[:])
		}
		return alloc, inuse
	}
	alloc, inuse := ids(0, 1, 2)
	sameAlloc, sameInuse := ids(0, 1, 2)
	assert.Equal(t, alloc, sameAlloc)
	assert.Equal(t, inuse, sameInuse)
	otherAlloc, sameInuse := ids(0, 2)
	assert.NotEqual(t, alloc, otherAlloc)
	assert.Equal(t, inuse, sameInuse)
	assert.NotEqual(t, alloc, inuse)
}
