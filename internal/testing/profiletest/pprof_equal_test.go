// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// somePprof returns a profile with two samples. The first one uses everything that a sample can have.
func somePprof() *profile.Profile {
	inlined := &profile.Function{ID: 1, Name: "inlined", SystemName: "_inlined", Filename: "a.go", StartLine: 3}
	leaf := &profile.Function{ID: 2, Name: "leaf", Filename: "a.go"}
	binary := &profile.Mapping{
		ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 0x10, File: "/bin/a", BuildID: "abcd",
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
	}
	first := &profile.Location{
		ID: 1, Mapping: binary, Address: 0x1010, IsFolded: true,
		Line: []profile.Line{{Function: inlined, Line: 4, Column: 2}, {Function: leaf, Line: 12}},
	}
	second := &profile.Location{ID: 2, Line: []profile.Line{{Function: leaf, Line: 9}}}
	return &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "ns"}},
		DefaultSampleType: "cpu",
		Comments:          []string{"one", "two"}, DocURL: "https://example.test", DropFrames: "drop", KeepFrames: "keep",
		TimeNanos: 5, DurationNanos: 6, Period: 7, PeriodType: &profile.ValueType{Type: "cpu", Unit: "cycles"},
		Function: []*profile.Function{inlined, leaf}, Mapping: []*profile.Mapping{binary},
		Location: []*profile.Location{first, second},
		Sample: []*profile.Sample{
			{
				Location: []*profile.Location{first, second}, Value: []int64{1, 10},
				Label:    map[string][]string{"thread": {"main", "again"}},
				NumLabel: map[string][]int64{"bytes": {7, 8}}, NumUnit: map[string][]string{"bytes": {"By", ""}},
			},
			{Location: []*profile.Location{second}, Value: []int64{2, 20}},
		},
	}
}

// Each change alters one field.
func TestEqualPprofComparesEveryField(t *testing.T) {
	type (
		whole    = *profile.Profile
		sample   = *profile.Sample
		location = *profile.Location
	)
	for name, change := range map[string]func(p whole, s sample, l location){
		"sample types":     func(p whole, _ sample, _ location) { slices.Reverse(p.SampleType) },
		"default":          func(p whole, _ sample, _ location) { p.DefaultSampleType = "" },
		"comments":         func(p whole, _ sample, _ location) { slices.Reverse(p.Comments) },
		"doc url":          func(p whole, _ sample, _ location) { p.DocURL = "x" },
		"drop frames":      func(p whole, _ sample, _ location) { p.DropFrames = "x" },
		"keep frames":      func(p whole, _ sample, _ location) { p.KeepFrames = "x" },
		"time":             func(p whole, _ sample, _ location) { p.TimeNanos++ },
		"duration":         func(p whole, _ sample, _ location) { p.DurationNanos++ },
		"period":           func(p whole, _ sample, _ location) { p.Period++ },
		"period type":      func(p whole, _ sample, _ location) { p.PeriodType = nil },
		"period unit":      func(p whole, _ sample, _ location) { p.PeriodType.Unit = "x" },
		"a sample less":    func(p whole, _ sample, _ location) { p.Sample = p.Sample[:1] },
		"a sample more":    func(p whole, s sample, _ location) { p.Sample = append(p.Sample, s) },
		"value":            func(_ whole, s sample, _ location) { s.Value[1]++ },
		"fewer frames":     func(_ whole, s sample, _ location) { s.Location = s.Location[:1] },
		"order of frames":  func(_ whole, s sample, _ location) { slices.Reverse(s.Location) },
		"text":             func(_ whole, s sample, _ location) { s.Label["thread"][0] = "x" },
		"order of texts":   func(_ whole, s sample, _ location) { slices.Reverse(s.Label["thread"]) },
		"another text":     func(_ whole, s sample, _ location) { s.Label["x"] = []string{""} },
		"number":           func(_ whole, s sample, _ location) { s.NumLabel["bytes"][0] = 8 },
		"another number":   func(_ whole, s sample, _ location) { s.NumLabel["x"] = []int64{0} },
		"unit":             func(_ whole, s sample, _ location) { s.NumUnit["bytes"][0] = "" },
		"text as a number": func(_ whole, s sample, _ location) { s.Label, s.NumLabel["thread"] = nil, []int64{1, 2} },
		"address":          func(_ whole, _ sample, l location) { l.Address++ },
		"folded":           func(_ whole, _ sample, l location) { l.IsFolded = false },
		"order of lines":   func(_ whole, _ sample, l location) { slices.Reverse(l.Line) },
		"line":             func(_ whole, _ sample, l location) { l.Line[0].Line++ },
		"column":           func(_ whole, _ sample, l location) { l.Line[0].Column++ },
		"no function":      func(_ whole, _ sample, l location) { l.Line[0].Function = nil },
		"name":             func(_ whole, _ sample, l location) { l.Line[0].Function.Name = "x" },
		"system name":      func(_ whole, _ sample, l location) { l.Line[0].Function.SystemName = "x" },
		"file":             func(_ whole, _ sample, l location) { l.Line[0].Function.Filename = "x" },
		"start line":       func(_ whole, _ sample, l location) { l.Line[0].Function.StartLine++ },
		"no mapping":       func(_ whole, _ sample, l location) { l.Mapping = nil },
		"start":            func(_ whole, _ sample, l location) { l.Mapping.Start++ },
		"limit":            func(_ whole, _ sample, l location) { l.Mapping.Limit++ },
		"offset":           func(_ whole, _ sample, l location) { l.Mapping.Offset++ },
		"mapped file":      func(_ whole, _ sample, l location) { l.Mapping.File = "x" },
		"build id":         func(_ whole, _ sample, l location) { l.Mapping.BuildID = "x" },
		"has functions":    func(_ whole, _ sample, l location) { l.Mapping.HasFunctions = false },
		"has filenames":    func(_ whole, _ sample, l location) { l.Mapping.HasFilenames = false },
		"has lines":        func(_ whole, _ sample, l location) { l.Mapping.HasLineNumbers = false },
		"has inlined":      func(_ whole, _ sample, l location) { l.Mapping.HasInlineFrames = false },
	} {
		got := somePprof()
		change(got, got.Sample[0], got.Location[0])
		assert.Error(t, EqualPprof(somePprof(), got), name)
	}
	got := somePprof()
	got.Sample[1].Value[1]++
	require.ErrorContains(t, EqualPprof(somePprof(), got), `sample [] < "leaf" ("") "a.go":9:0 from 0, 0x0, `)
	require.ErrorContains(t, EqualPprof(somePprof(), got), "inlined false: is [2 21], want [2 20]")
}

func TestEqualPprofIgnoresTheLayout(t *testing.T) {
	got := somePprof()
	got.Function[0].ID, got.Function[1].ID = 90, 3
	got.Location[0].ID, got.Location[1].ID = 2, 1
	slices.Reverse(got.Location)
	slices.Reverse(got.Sample)
	got.Mapping = append(got.Mapping, &profile.Mapping{ID: 7, File: "nothing refers to it"})
	got.Sample = append(got.Sample, &profile.Sample{
		Location: got.Sample[0].Location, Value: []int64{math.MaxInt64, 1},
		Label: map[string][]string{"none": nil}, NumLabel: map[string][]int64{"none": {}},
	})
	got.Sample[0].Value = []int64{2 - math.MaxInt64, 19}
	got.Sample[1].NumUnit["bytes"] = []string{"By"}
	empty := &profile.Function{ID: 4}
	got.Location[0].Line = append(got.Location[0].Line, profile.Line{Function: empty})
	got.Location[0].Mapping = &profile.Mapping{ID: 9}
	want := somePprof()
	want.Location[1].Line = append(want.Location[1].Line, profile.Line{})
	require.NoError(t, EqualPprof(want, got, StrictZero()))
}

// Without separators between the parts of a key, each pair would have the same key.
func TestEqualPprofKeepsPartsApart(t *testing.T) {
	named := func(name, systemName string) *profile.Profile {
		p := somePprof()
		p.Function[0].Name, p.Function[0].SystemName = name, systemName
		return p
	}
	require.Error(t, EqualPprof(named("ab", "c"), named("a", "bc")))

	texts, numbers := somePprof(), somePprof()
	texts.Sample[1].Label = map[string][]string{"": {"\x00"}}
	numbers.Sample[1].NumLabel = map[string][]int64{"\x00": {-1}}
	require.Error(t, EqualPprof(texts, numbers))
}

func TestEqualPprofStrictZero(t *testing.T) {
	want, got := somePprof(), somePprof()
	got.Sample = append(got.Sample, &profile.Sample{Value: []int64{0, 0}})
	require.NoError(t, EqualPprof(want, got))
	require.ErrorContains(t, EqualPprof(want, got, StrictZero()), "sample []: is [0 0], want none")

	// Two samples whose sum is 0 are ignored too, as in profile.Merge.
	got = somePprof()
	got.Sample = append(got.Sample, &profile.Sample{Value: []int64{0, 4}}, &profile.Sample{Value: []int64{0, -4}})
	require.NoError(t, EqualPprof(want, got))
	require.Error(t, EqualPprof(want, got, StrictZero()))
}

func TestEqualPprofCanonicalLinks(t *testing.T) {
	labelled := func(traceID, spanID string) *profile.Profile {
		p := somePprof()
		p.Sample[1].Label = map[string][]string{"trace_id": {traceID}, "span_id": {spanID}}
		return p
	}
	full := labelled("0000000000000000000000000000abcd", "000000000000000f")
	for _, ids := range [][2]string{{"abcd", "f"}, {"ABCD", "0F"}, {"00000000000000000000000000000000000000abCD", "f"}} {
		p := labelled(ids[0], ids[1])
		require.Error(t, EqualPprof(full, p))
		require.NoError(t, EqualPprof(full, p, CanonicalLinks()))
	}
	for _, ids := range [][2]string{
		{"abcd", "0"}, {"0", "f"}, {"", "f"}, {"ab cd", "f"}, {"abcd", "g"}, {"abcd", "1000000000000000f"},
		{"10000000000000000000000000000abcd0", "f"},
	} {
		p := labelled(ids[0], ids[1])
		padded := labelled("0"+ids[0], ids[1])
		require.Error(t, EqualPprof(p, padded, CanonicalLinks()), "%v is no link", ids)
	}
	for name, spoil := range map[string]func(*profile.Sample){
		"half":       func(s *profile.Sample) { delete(s.Label, "span_id") },
		"two texts":  func(s *profile.Sample) { s.Label["trace_id"] = append(s.Label["trace_id"], "1") },
		"and number": func(s *profile.Sample) { s.NumLabel = map[string][]int64{"span_id": {1}} },
	} {
		p, padded := labelled("abcd", "f"), labelled("0abcd", "f")
		spoil(p.Sample[1])
		spoil(padded.Sample[1])
		require.Error(t, EqualPprof(p, padded, CanonicalLinks()), name)
	}
}
