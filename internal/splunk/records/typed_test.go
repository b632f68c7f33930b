// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// What contrib's exporter splunk_hec writes are whole pprofs, whose types are not Splunk's: the record's type is the
// name of the first.
func TestPprofsThatStateTheirTypes(t *testing.T) {
	function := &profile.Function{ID: 1, Name: "main"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function}}}
	of := func(values []int64, types ...*profile.ValueType) string {
		var b bytes.Buffer
		require.NoError(t, (&profile.Profile{
			SampleType: types, Function: []*profile.Function{function}, Location: []*profile.Location{location},
			Sample: []*profile.Sample{{Location: []*profile.Location{location}, Value: values}}, DurationNanos: 5e9,
		}).WriteUncompressed(&b))
		return encoded(b.Bytes())
	}
	samples, cpu := &profile.ValueType{Type: "samples", Unit: "count"}, &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	space := &profile.ValueType{Type: "inuse_space", Unit: "bytes"}
	for typ, tc := range map[string]struct {
		body string
		want map[string]int64
	}{
		"samples":     {of([]int64{7, 70e6}, samples, cpu), map[string]int64{"samples/count": 7, "cpu/nanoseconds": 70e6}},
		"cpu":         {of([]int64{70e6}, cpu), map[string]int64{"cpu/nanoseconds": 70e6}},
		"inuse_space": {of([]int64{4096}, space), map[string]int64{"inuse_space/bytes": 4096}},
	} {
		ld, record := newRecord(tc.body, keyFormat, FormatPprof.String(), keyType, typ)
		record.SetTimestamp(1700000000e9)
		result := translated(t, ld, Options{})
		got := map[string]int64{}
		strs := result.Profiles.Dictionary().StringTable()
		for p := range otlp.Profiles(result.Profiles) {
			name := sampleTypeOf(strs, p)
			got[name.typ+"/"+name.unit] += p.Samples().At(0).Values().At(0)
			require.EqualValues(t, 1699999995e9, p.Time(), "the record has the time")
		}
		require.Equal(t, tc.want, got)
		require.Equal(t, len(tc.want), result.Samples)
		require.Equal(t, ld.ResourceLogs().At(0).Resource().Attributes().AsRaw(),
			result.Profiles.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
		require.NoError(t, profiletest.Check(result.Profiles))
	}
}
