// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
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

const someSampleText = `sample {thread=["main" "again"], bytes=[7 in By, 8]} <inlined (_inlined) from line 3 a.go:4:2; ` +
	`leaf a.go:12:0 at 0x1010 in [/bin/a 0x1000-0x2000+0x10 build id abcd, has functions true, filenames true, ` +
	`lines true, inlined true] folded < leaf a.go:9:0>`

func TestEqualPprofNamesWhatDiffers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*profile.Profile)
		want   string
	}{
		"sample types": {
			func(p *profile.Profile) { slices.Reverse(p.SampleType) },
			"sample_type: is [cpu in ns, samples in count], want [samples in count, cpu in ns]",
		},
		"default":     {func(p *profile.Profile) { p.DefaultSampleType = "" }, `default_sample_type: is "", want cpu`},
		"comments":    {func(p *profile.Profile) { slices.Reverse(p.Comments) }, `comments: is ["two" "one"], want ["one" "two"]`},
		"doc url":     {func(p *profile.Profile) { p.DocURL = "x" }, "doc_url: is x, want https://example.test"},
		"drop frames": {func(p *profile.Profile) { p.DropFrames = "x" }, "drop_frames: is x, want drop"},
		"keep frames": {func(p *profile.Profile) { p.KeepFrames = "x" }, "keep_frames: is x, want keep"},
		"time":        {func(p *profile.Profile) { p.TimeNanos++ }, "time_nanos: is 6, want 5"},
		"duration":    {func(p *profile.Profile) { p.DurationNanos++ }, "duration_nanos: is 7, want 6"},
		"period":      {func(p *profile.Profile) { p.Period++ }, "period: is 8, want 7"},
		"period type": {func(p *profile.Profile) { p.PeriodType = nil }, `period_type: is "" in "", want cpu in cycles`},
		"value":       {func(p *profile.Profile) { p.Sample[0].Value[1]++ }, someSampleText + ": is [1 11], want [1 10]"},
		"a sample less": {
			func(p *profile.Profile) { p.Sample = p.Sample[:1] },
			"sample <leaf a.go:9:0>: is absent, want [2 20]",
		},
		"a sample more": {
			func(p *profile.Profile) { p.Sample = append(p.Sample, &profile.Sample{Value: []int64{0, 1}}) },
			"sample <>: is [0 1], want absent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := somePprof()
			tc.change(got)
			require.EqualError(t, EqualPprof(somePprof(), got), tc.want)
		})
	}
}

// Each change alters one field of what the first sample refers to.
func TestEqualPprofComparesEveryFieldOfASample(t *testing.T) {
	for name, change := range map[string]func(s *profile.Sample, l *profile.Location){
		"fewer frames":     func(s *profile.Sample, _ *profile.Location) { s.Location = s.Location[:1] },
		"order of frames":  func(s *profile.Sample, _ *profile.Location) { slices.Reverse(s.Location) },
		"text":             func(s *profile.Sample, _ *profile.Location) { s.Label["thread"][0] = "x" },
		"order of texts":   func(s *profile.Sample, _ *profile.Location) { slices.Reverse(s.Label["thread"]) },
		"another text":     func(s *profile.Sample, _ *profile.Location) { s.Label["x"] = []string{""} },
		"number":           func(s *profile.Sample, _ *profile.Location) { s.NumLabel["bytes"][0] = 8 },
		"another number":   func(s *profile.Sample, _ *profile.Location) { s.NumLabel["x"] = []int64{0} },
		"unit":             func(s *profile.Sample, _ *profile.Location) { s.NumUnit["bytes"][0] = "" },
		"text as a number": func(s *profile.Sample, _ *profile.Location) { s.Label, s.NumLabel["thread"] = nil, []int64{1, 2} },
		"address":          func(_ *profile.Sample, l *profile.Location) { l.Address++ },
		"folded":           func(_ *profile.Sample, l *profile.Location) { l.IsFolded = false },
		"order of lines":   func(_ *profile.Sample, l *profile.Location) { slices.Reverse(l.Line) },
		"line":             func(_ *profile.Sample, l *profile.Location) { l.Line[0].Line++ },
		"column":           func(_ *profile.Sample, l *profile.Location) { l.Line[0].Column++ },
		"no function":      func(_ *profile.Sample, l *profile.Location) { l.Line[0].Function = nil },
		"name":             func(_ *profile.Sample, l *profile.Location) { l.Line[0].Function.Name = "x" },
		"system name":      func(_ *profile.Sample, l *profile.Location) { l.Line[0].Function.SystemName = "x" },
		"file":             func(_ *profile.Sample, l *profile.Location) { l.Line[0].Function.Filename = "x" },
		"start line":       func(_ *profile.Sample, l *profile.Location) { l.Line[0].Function.StartLine++ },
		"no mapping":       func(_ *profile.Sample, l *profile.Location) { l.Mapping = nil },
		"start":            func(_ *profile.Sample, l *profile.Location) { l.Mapping.Start++ },
		"limit":            func(_ *profile.Sample, l *profile.Location) { l.Mapping.Limit++ },
		"offset":           func(_ *profile.Sample, l *profile.Location) { l.Mapping.Offset++ },
		"mapped file":      func(_ *profile.Sample, l *profile.Location) { l.Mapping.File = "x" },
		"build id":         func(_ *profile.Sample, l *profile.Location) { l.Mapping.BuildID = "x" },
		"has functions":    func(_ *profile.Sample, l *profile.Location) { l.Mapping.HasFunctions = false },
		"has filenames":    func(_ *profile.Sample, l *profile.Location) { l.Mapping.HasFilenames = false },
		"has lines":        func(_ *profile.Sample, l *profile.Location) { l.Mapping.HasLineNumbers = false },
		"has inlined":      func(_ *profile.Sample, l *profile.Location) { l.Mapping.HasInlineFrames = false },
	} {
		t.Run(name, func(t *testing.T) {
			got := somePprof()
			change(got.Sample[0], got.Location[0])
			require.ErrorContains(t, EqualPprof(somePprof(), got), someSampleText+": is absent, want [1 10]")
		})
	}
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
	require.EqualError(t, EqualPprof(want, got, StrictZero()), "sample <>: is [0 0], want absent")

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

func TestEqualPprofOfCapturedProfiles(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/pprof/*.pb.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := profile.ParseData(data)
		require.NoError(t, err)
		var wire bytes.Buffer
		require.NoError(t, want.WriteUncompressed(&wire))
		got, err := profile.ParseUncompressed(wire.Bytes())
		require.NoError(t, err)
		require.NoError(t, EqualPprof(want, got, StrictZero()), file)
		got.Sample[len(got.Sample)/2].Value[0] += 5
		require.Error(t, EqualPprof(want, got), file)
	}
}
