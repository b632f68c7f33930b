// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The strings of every odd payload; the second empty string is a string that is there and empty.
var oddStrings = []string{"", "cpu", "ns", "main", "work", "", "thread", "bytes", "trace_id", "span_id", "0000abc", "7",
	"kB", "x/y/z", "00ff"}

// The indices of oddStrings.
const (
	sCPU, sNs, sMain, sWork, sEmpty, sThread, sBytes, sTrace, sSpan, sTraceHex, sSpanHex, sKB, sGoID, sGNUID = 1, 2, 3, 4,
		5, 6, 7, 8, 9, 10, 11, 12, 13, 14
)

func oddBase() pt.PprofWire {
	return pt.PprofWire(nil).Strings(oddStrings...).
		ValueType(pt.PprofSampleType, sCPU, sNs).
		Function(pt.PprofFunctionFields{ID: 1, Name: sMain}).
		Function(pt.PprofFunctionFields{ID: 2, Name: sWork}).
		Location(pt.PprofLocationFields{ID: 1, Lines: []pt.PprofLine{{Function: 1, Line: 3}}}).
		Location(pt.PprofLocationFields{ID: 2, Lines: []pt.PprofLine{{Function: 2, Line: 4}}})
}

func oddSample(value int64, locations ...uint64) pt.PprofWire {
	return pt.PprofWire(nil).Unpacked(pt.PprofSampleLocation, locations...).Int(pt.PprofSampleValue, value)
}

// oddPayloads returns payloads as careless or unusual producers write them, by what is odd about them.
func oddPayloads() map[string]pt.PprofWire {
	with := func(samples ...pt.PprofWire) pt.PprofWire {
		w := oddBase()
		for _, s := range samples {
			w = w.Message(pt.PprofSample, s)
		}
		return w
	}
	good := oddSample(10, 1, 2)
	return map[string]pt.PprofWire{
		"unknown location":  with(oddSample(1, 9), good),
		"unknown string":    with(oddSample(1, 1).Label(pt.PprofLabel{Key: sThread, Str: 99}), good),
		"unknown label key": with(oddSample(1, 1).Label(pt.PprofLabel{Key: 99, Num: 1}), good),
		"unknown unit": with(oddSample(1, 1).Label(pt.PprofLabel{Key: sThread, Str: sMain, Unit: 99}),
			oddSample(2, 1).Label(pt.PprofLabel{Key: sThread, Num: 5, Unit: 99}), good),
		"malformed sample": with(pt.PprofWire{0x0a, 0x05, 0x01}, good),
		"function with unknown string": with(oddSample(1, 3), good).
			Function(pt.PprofFunctionFields{ID: 3, Name: 99}).
			Location(pt.PprofLocationFields{ID: 3, Lines: []pt.PprofLine{{Function: 3}}}),
		"unknown function and mapping": with(oddSample(1, 3)).
			Location(pt.PprofLocationFields{ID: 3, Mapping: 7, Address: 16, Lines: []pt.PprofLine{{Function: 77, Line: 5}}}),
		"too few and too many values": with(pt.PprofWire(nil).Unpacked(pt.PprofSampleLocation, 1),
			oddSample(1, 2).Int(pt.PprofSampleValue, 5)),
		"negative line": with(oddSample(1, 3)).
			Location(pt.PprofLocationFields{ID: 3, Lines: []pt.PprofLine{{Function: 1, Line: -1, Column: -2}}}),
		"negative time": with(good).Int(pt.PprofTimeNanos, -5).Int(pt.PprofDurationNanos, -6),
		"not UTF-8":     with(good, oddSample(2, 2).Label(pt.PprofLabel{Key: sThread, Str: 15})).Strings("a\xffb"),
		"duplicate ids": with(good).Location(pt.PprofLocationFields{ID: 1, Address: 5}),
		"sparse ids":    with(oddSample(1, 1<<40)).Location(pt.PprofLocationFields{ID: 1 << 40, Address: 5}),
		"zero location": with(oddSample(1, 3, 1)).Location(pt.PprofLocationFields{ID: 3}),
		"equal entries": with(oddSample(1, 3), oddSample(2, 4)).Location(pt.PprofLocationFields{ID: 3, Address: 5}).
			Location(pt.PprofLocationFields{ID: 4, Address: 5}),
		"overflowing sum": with(oddSample(math.MaxInt64, 1), oddSample(1, 1), oddSample(2, 2), oddSample(3, 2)),
		"unknown fields":  with(good).Fixed32(90, 1).Fixed64(91, 2).Varint(92, 3).Message(93, pt.PprofWire("abc")),
		"packed and unpacked": with(pt.PprofWire(nil).Packed(pt.PprofSampleLocation, 1, 2).Unpacked(pt.PprofSampleLocation,
			1).Packed(pt.PprofSampleValue, 3)),
		"labels": with(
			oddSample(1, 1).Label(pt.PprofLabel{Key: sThread, Str: sMain}),
			oddSample(2, 1).Label(pt.PprofLabel{Key: sThread, Str: sEmpty}),
			oddSample(3, 1).Label(pt.PprofLabel{Key: sBytes, Num: math.MinInt64}),
			oddSample(4, 1).Label(pt.PprofLabel{Key: sBytes, Num: 0}),
			oddSample(5, 1).Label(pt.PprofLabel{Key: sBytes, Num: 0, Unit: sEmpty}),
			oddSample(6, 1).Label(pt.PprofLabel{Key: sBytes, Num: 0, Unit: sKB}),
			oddSample(7, 1).Label(pt.PprofLabel{Key: sThread, Str: sMain}).Label(pt.PprofLabel{Key: sThread, Str: sWork}),
			oddSample(8, 1).Label(pt.PprofLabel{Key: sBytes, Num: 1, Unit: sKB}).
				Label(pt.PprofLabel{Key: sBytes, Num: 2, Unit: sKB}),
			oddSample(9, 1).Label(pt.PprofLabel{Key: sBytes, Num: 1, Unit: sKB}).
				Label(pt.PprofLabel{Key: sBytes, Num: 2, Unit: sNs}),
			oddSample(10, 1).Label(pt.PprofLabel{Key: sBytes, Num: 1, Unit: sKB}).Label(pt.PprofLabel{Key: sBytes, Str: sMain}),
			oddSample(11, 1).Label(pt.PprofLabel{Key: sTrace, Str: sTraceHex}).Label(pt.PprofLabel{Key: sThread, Str: sMain}).
				Label(pt.PprofLabel{Key: sSpan, Str: sSpanHex}),
			oddSample(12, 1).Label(pt.PprofLabel{Key: sTrace, Str: sTraceHex}),
			oddSample(13, 1).Label(pt.PprofLabel{Key: sTrace, Str: sMain}).Label(pt.PprofLabel{Key: sSpan, Str: sSpanHex}),
		),
		"mappings": with(oddSample(1, 3), oddSample(2, 4), oddSample(3, 5)).
			Location(pt.PprofLocationFields{ID: 3, Mapping: 2, Address: 5}).
			Location(pt.PprofLocationFields{ID: 4, Mapping: 1, Address: 5}).
			Location(pt.PprofLocationFields{ID: 5, Mapping: 1, Address: 5, IsFolded: true}).
			Mapping(pt.PprofMappingFields{ID: 1, Start: 1, Limit: 9, Offset: 4, File: sMain, BuildID: sGNUID, HasFunctions: true,
				HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}).
			Mapping(pt.PprofMappingFields{ID: 2, Start: 9, Limit: 9, File: sWork, BuildID: sGoID}),
		"profile fields": with(good).Unpacked(pt.PprofComment, sMain, sWork).Varint(pt.PprofDropFrames, sMain).
			Varint(pt.PprofKeepFrames, sWork).Varint(pt.PprofDocURL, sGoID).Int(pt.PprofPeriod, -4).
			ValueType(pt.PprofPeriodType, sCPU, sNs).Varint(pt.PprofDefaultSampleType, sCPU),
		"zero values": pt.PprofWire(nil).Strings(oddStrings...).
			ValueType(pt.PprofSampleType, sCPU, sNs).ValueType(pt.PprofSampleType, sBytes, sKB).
			Location(pt.PprofLocationFields{ID: 1, Address: 1}).Location(pt.PprofLocationFields{ID: 2, Address: 2}).
			Message(pt.PprofSample, oddSample(0, 1).Int(pt.PprofSampleValue, 0)).
			Message(pt.PprofSample, oddSample(5, 2).Int(pt.PprofSampleValue, 0)),
		"no sample types": pt.PprofWire(nil).Strings("source.event.time", "main").
			Location(pt.PprofLocationFields{ID: 1, Lines: []pt.PprofLine{{Function: 1}}}).
			Function(pt.PprofFunctionFields{ID: 1, Name: 1}).
			Message(pt.PprofSample, pt.PprofWire(nil).Unpacked(pt.PprofSampleLocation, 1).Label(pt.PprofLabel{Key: 0, Num: 77})),
		"sample without entities": pt.PprofWire(nil).Strings(oddStrings...).ValueType(pt.PprofSampleType, sCPU, sNs).
			Message(pt.PprofSample, oddSample(1, 1)),
		"line without functions": pt.PprofWire(nil).Strings(oddStrings...).ValueType(pt.PprofSampleType, sCPU, sNs).
			Location(pt.PprofLocationFields{ID: 1, Mapping: 1, Lines: []pt.PprofLine{{Function: 1, Line: 2}}}).
			Message(pt.PprofSample, oddSample(1, 1)),
		"nothing but strings": pt.PprofWire(nil).Strings(oddStrings...),
		"sample types alone":  pt.PprofWire(nil).Strings(oddStrings...).ValueType(pt.PprofSampleType, sCPU, sNs),
		"sample types that repeat": oddBase().ValueType(pt.PprofSampleType, sCPU, sNs).Message(pt.PprofSample,
			oddSample(1, 1).Int(pt.PprofSampleValue, 2)),
		"unknown string of the type": pt.PprofWire(nil).Strings("").ValueType(pt.PprofSampleType, 7, 8),
	}
}

func TestDecodeOddPayloads(t *testing.T) {
	for name, wire := range oddPayloads() {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode(wire, Options{})
			require.NoError(t, err)
			var opts []pt.CheckOption
			if name == "overflowing sum" {
				opts = append(opts, pt.AllowRepeatedSamples())
			}
			require.NoError(t, pt.Check(pd, opts...))
			pt.Golden(t, "testdata/odd/"+strings.ReplaceAll(name, " ", "-")+".golden", countsText(stats)+pt.Render(pd))
		})
	}
}

func countsText(stats Stats) string {
	text := ""
	for reason, n := range stats.Dropped {
		if n > 0 {
			text += "dropped " + scan.DropReason(reason).String() + "\n"
		}
	}
	for fault, n := range stats.Repaired {
		if n > 0 {
			text += "repaired " + scan.Repair(fault).String() + "\n"
		}
	}
	return text
}

func TestReadSharesOneDictionary(t *testing.T) {
	// Two payloads with the same stacks share their entries.
	for _, count := range []int{1, 2} {
		pd := pprofile.NewProfiles()
		n := readInto(t, pd, count)
		assert.Equal(t, 13*count, n)
		assert.Equal(t, 2, pd.Dictionary().LocationTable().Len())
		assert.Equal(t, 2, pd.Dictionary().StackTable().Len())
	}
}

func readInto(t *testing.T, pd pprofile.Profiles, times int) int {
	dict := dictionary.New()
	samples := 0
	for range times {
		stats, err := Read(oddPayloads()["labels"], dict, ReadOptions{}, func(s Sample) {
			samples++
			assert.Equal(t, []int64{int64((samples-1)%13 + 1)}, s.Values)
			assert.Equal(t, dictionary.StackIndex(1), s.Stack)
			if s.Values[0] == 11 {
				assert.Equal(t, []Label{{Key: "thread", Str: "main", IsStr: true}}, withoutNumbers(flat(s.Labels)))
				link, ok := dictionary.ParseLink("0000abc", "7")
				assert.True(t, ok)
				assert.Equal(t, link, dict.Links.At(s.Link))
			}
		})
		require.NoError(t, err)
		assert.Equal(t, 13, stats.Samples)
	}
	dict.CopyTo(pd.Dictionary())
	return samples
}

func flat(groups []LabelGroup) (labels []Label) {
	for _, group := range groups {
		labels = append(labels, group.Labels...)
	}
	return labels
}

func withoutNumbers(labels []Label) []Label {
	labels = slices.Clone(labels)
	for i := range labels {
		l := &labels[i]
		l.id, l.keyOrder, l.key, l.unit = 0, 0, 0, 0
	}
	return labels
}

// A stack of the same bytes is the same stack, unless its ids continue in another field.
func TestReadKnowsStacksByTheirBytes(t *testing.T) {
	packed := func(ids ...uint64) pt.PprofWire { return pt.PprofWire(nil).Packed(pt.PprofSampleLocation, ids...) }
	wire := oddBase()
	var want [][]int32
	for _, s := range []struct {
		sample pt.PprofWire
		stack  []int32
	}{
		{packed(1, 2), []int32{1, 2}},
		{packed(2), []int32{2}},
		{packed(1, 2), []int32{1, 2}},
		{packed(1, 2).Packed(pt.PprofSampleLocation, 2), []int32{1, 2, 2}},
		{packed(1, 2).Unpacked(pt.PprofSampleLocation, 1), []int32{1, 2, 1}},
		{packed(2).Packed(pt.PprofSampleLocation, 2).Packed(pt.PprofSampleLocation, 1), []int32{2, 2, 1}},
		{pt.PprofWire(nil).Unpacked(pt.PprofSampleLocation, 1).Packed(pt.PprofSampleLocation, 2), []int32{1, 2}},
		{packed(), nil},
		{packed(2), []int32{2}},
	} {
		wire = wire.Message(pt.PprofSample, s.sample)
		want = append(want, s.stack)
	}
	dict := dictionary.New()
	var got [][]int32
	_, err := Read(wire, dict, ReadOptions{}, func(s Sample) {
		got = append(got, slices.Clone(dict.Stacks.At(s.Stack)))
	})
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// Pyroscope's profiler for .NET writes id 0 for all functions, to which lines refer by position.
func TestFunctionsOfOneID(t *testing.T) {
	for name, tc := range map[string]struct {
		ids, lines []uint64
		want       []string
		repaired   int
	}{
		"all 0":                          {[]uint64{0, 0}, []uint64{1, 2}, []string{"main", "work"}, 2},
		"all 1":                          {[]uint64{1, 1}, []uint64{1, 2}, []string{"main", "work"}, 2},
		"one of 0":                       {[]uint64{0}, []uint64{1, 1}, []string{"main", "main"}, 1},
		"all 0, which nothing refers to": {[]uint64{0, 0}, []uint64{0, 0}, []string{"", ""}, 0},
		"all 0, beyond the last":         {[]uint64{0, 0}, []uint64{1, 3}, []string{"", ""}, 0},
		"their own ids":                  {[]uint64{2, 1}, []uint64{1, 2}, []string{"work", "main"}, 0},
	} {
		w := pt.PprofWire(nil).Strings(oddStrings...).ValueType(pt.PprofSampleType, sCPU, sNs)
		for i, id := range tc.ids {
			w = w.Function(pt.PprofFunctionFields{ID: id, Name: int64(sMain + i)})
		}
		for i, id := range tc.lines {
			w = w.Location(pt.PprofLocationFields{ID: uint64(i + 1), Lines: []pt.PprofLine{{Function: id}}})
		}
		pd, stats, err := Decode(w.Message(pt.PprofSample, oddSample(1, 1, 2)), Options{})
		require.NoError(t, err)
		require.NoError(t, pt.Check(pd))
		var got []string
		d := pd.Dictionary()
		for _, i := range d.StackTable().At(int(pt.SampleAt(pd, 0).StackIndex())).LocationIndices().All() {
			name := ""
			if lines := d.LocationTable().At(int(i)).Lines(); lines.Len() > 0 {
				name = d.StringTable().At(int(d.FunctionTable().At(int(lines.At(0).FunctionIndex())).NameStrindex()))
			}
			got = append(got, name)
		}
		assert.Equal(t, tc.want, got, name)
		assert.Equal(t, tc.repaired, stats.Repaired[scan.RepairFunctionIDs], name)
	}
}

// A pprof that begins with its doc_url has the first bytes of zlib.
func TestPprofThatBeginsWithItsURL(t *testing.T) {
	for _, index := range []string{"\x01", "\x9c\x01", "\xda\x01"} {
		_, stats, err := Decode(append([]byte("x"+index), oddPayloads()["labels"]...), Options{})
		require.NoError(t, err)
		assert.Positive(t, stats.Samples)
	}
}
