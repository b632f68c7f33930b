// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

func TestPprofWireLaysOutAllOfAProfile(t *testing.T) {
	wire := PprofWire(nil).
		Strings("", "samples", "count", "cpu", "ns", "inlined", "_inlined", "a.go", "leaf", "/bin/a", "abcd", "thread",
			"main", "again", "bytes", "By", "one", "two", "https://example.test", "drop", "keep", "cycles").
		ValueType(PprofSampleType, 1, 2).
		ValueType(PprofSampleType, 3, 4).
		Message(PprofSample, PprofWire(nil).
			Packed(PprofSampleLocation, 1, 2).
			Packed(PprofSampleValue, 1, 10).
			Label(PprofLabel{Key: 11, Str: 12}).
			Label(PprofLabel{Key: 11, Str: 13}).
			Label(PprofLabel{Key: 14, Num: 7, Unit: 15}).
			Label(PprofLabel{Key: 14, Num: 8})).
		Message(PprofSample, PprofWire(nil).
			Unpacked(PprofSampleValue, 2, 20).
			Unpacked(PprofSampleLocation, 2)).
		Mapping(PprofMappingFields{
			ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 0x10, File: 9, BuildID: 10,
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
		}).
		Location(PprofLocationFields{
			ID: 1, Mapping: 1, Address: 0x1010, IsFolded: true,
			Lines: []PprofLine{{Function: 1, Line: 4, Column: 2}, {Function: 2, Line: 12}},
		}).
		Location(PprofLocationFields{ID: 2, Lines: []PprofLine{{Function: 2, Line: 9}}}).
		Function(PprofFunctionFields{ID: 1, Name: 5, SystemName: 6, File: 7, StartLine: 3}).
		Function(PprofFunctionFields{ID: 2, Name: 8, File: 7}).
		Int(PprofDropFrames, 19).Int(PprofKeepFrames, 20).
		Int(PprofTimeNanos, 5).Int(PprofDurationNanos, 6).
		ValueType(PprofPeriodType, 3, 21).Int(PprofPeriod, 7).
		Packed(PprofComment, 16, 17).
		Int(PprofDefaultSampleType, 3).Int(PprofDocURL, 18).
		Fixed32(100, 1).Fixed64(101, 2)
	got, err := profile.ParseUncompressed(wire)
	require.NoError(t, err)
	require.NoError(t, got.CheckValid())
	require.NoError(t, EqualPprof(somePprof(), got, StrictZero()))
}
