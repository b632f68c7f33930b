// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Everything that a captured pprof measures is restored from the format pprof: types, values, times, periods; also in
// parts.
func TestEveryTypeComesBack(t *testing.T) {
	for name, want := range pprofs(t) {
		for limit, opts := range map[string][]profiletest.EqualOption{
			"whole": {profiletest.IgnoreOrder()}, "in parts": {profiletest.IgnoreOrder(), profiletest.MergeProfiles()},
		} {
			t.Run(name+"/"+limit, func(t *testing.T) {
				encoding := EncodeOptions{Format: FormatPprof}
				if limit == "in parts" {
					encoding.MaxRecordBytes = max(4000, 10*want.SampleCount())
				}
				ld, parts := records(t, want, encoding)
				got := translated(t, ld, Options{}).Profiles
				assert.NoError(t, profiletest.Equal(asSent(want), withoutIDs(got), opts...))
				assert.Equal(t, want.ProfileCount(), got.ProfileCount(), "parts of one profile become one again")
				if limit == "whole" {
					assert.Len(t, parts, 1)
				}
			})
		}
	}
}

func types(t testing.TB, pd pprofile.Profiles, opts EncodeOptions) map[string]int {
	t.Helper()
	ld, _ := records(t, pd, opts)
	found := map[string]int{}
	eachRecord(ld, func(record plog.LogRecord) {
		typ, ok := record.Attributes().Get(keyType)
		require.True(t, ok)
		found[typ.Str()]++
	})
	return found
}

// Each type is sent under one of Splunk's words or another word, and is restored.
func TestTypes(t *testing.T) {
	builder := profiletest.New().Resource("service.name", "shop")
	want := map[string]int{"cpu": 4, "allocation": 2, "inuse_space": 1, "goroutine": 1, "unknown": 1,
		"allocation/count": 1}
	for i, typ := range [][2]string{
		{"cpu", "nanoseconds"}, {"wall", "nanoseconds"}, {"samples", "count"}, {"off_cpu", "nanoseconds"},
		{"alloc_space", "bytes"},
		{"allocated_space", "bytes"}, {"inuse_space", "bytes"}, {"goroutine", "count"}, {"", ""}, {"allocation", "count"},
	} {
		builder.Profile(typ[0], typ[1]).Time(start+uint64(i), 5).Period(512, "space", "bytes").
			Sample(profiletest.Value(3, typ[0]+typ[1]+"_leaf", "main"))
	}
	pd := builder.Build()
	assert.Equal(t, want, types(t, pd, EncodeOptions{Format: FormatPprof}))
	ld, _ := records(t, pd, EncodeOptions{Format: FormatPprof})
	got := translated(t, ld, Options{}).Profiles
	assert.NoError(t, profiletest.Equal(asSent(pd), withoutIDs(got), profiletest.IgnoreOrder()))

	_, parts := records(t, pd, EncodeOptions{Format: FormatPprof, SplunkTypesOnly: true})
	require.Len(t, parts, 1)
	assert.Equal(t, 4, parts[0].LeftOut)
	assert.Equal(t, 6, parts[0].Samples)
	_, parts = records(t, pd, EncodeOptions{Format: FormatOTLP, SplunkTypesOnly: true})
	assert.Equal(t, 10, parts[0].Samples, "OTLP carries all")
}

// Each shape of samples is restored.
func TestShapes(t *testing.T) {
	for _, typ := range []valueType{cpuSamples, allocatedSpace, {"contentions", "count"}} {
		for name, sample := range map[string]profiletest.Sample{
			"values":     profiletest.Value(0, "leaf", "main"),
			"timestamps": profiletest.Observed([]uint64{start, start + 3}, "leaf", "main"),
			"timestamps+values": {Stack: profiletest.Stack("leaf", "main"), Timestamps: []uint64{start, start + 3},
				Values: []int64{1, -7}},
		} {
			pd := profiletest.New().Resource("service.name", "shop").Scope("otel.profiling", "").Profile(typ.typ, typ.unit).
				Time(start, 4).Sample(sample).Build()
			ld, _ := records(t, pd, EncodeOptions{Format: FormatPprof})
			got := translated(t, ld, Options{}).Profiles
			assert.NoError(t, profiletest.Equal(asSent(pd), withoutIDs(got)), "%v %s", typ, name)
		}
	}
}

// Of two sample types of one pprof that Splunk knows as cpu, only one is sent as cpu, and both are restored; profiles
// of different observations, such as those on and off CPU, are each sent as cpu.
func TestCPUIsCountedOnce(t *testing.T) {
	all := pprofs(t)
	for name, want := range map[string]map[string]int{
		"go-cpu-labels.pb.gz":         {"cpu": 1, "cpu/nanoseconds": 1},
		"node-datadog-wall-cpu.pb.gz": {"cpu": 1, "cpu/nanoseconds": 1, "wall": 1},
		// Totals since the process began, which Splunk would add up.
		"go-heap.pb.gz": {"alloc_space": 1, "alloc_objects": 1, "inuse_objects": 1, "inuse_space": 1},
	} {
		pd, ok := all[name]
		require.True(t, ok, name)
		assert.Equal(t, want, types(t, pd, EncodeOptions{Format: FormatPprof}), name)
	}
	// Also in parts that do not have both.
	split := types(t, all["go-build-merged-cpu-large.pb.gz"], EncodeOptions{Format: FormatPprof, MaxRecordBytes: 20_000})
	assert.Greater(t, split["cpu"], 10)
	assert.Len(t, split, 2)
	assert.Equal(t, split["cpu"], split["cpu/nanoseconds"])
	two := profiletest.New().Resource("service.name", "shop").
		Profile("samples", "count").Time(start, 5).Sample(profiletest.Observed([]uint64{start}, "leaf")).
		Profile("events", "nanoseconds").Time(start, 5).Sample(profiletest.Observed([]uint64{start + 1}, "leaf")).
		Build()
	assert.Equal(t, map[string]int{"cpu": 2}, types(t, two, EncodeOptions{Format: FormatPprof}))
	// Resources that occur twice become one, which changes the order of profiles.
	apart := profiletest.New().
		Resource("service.name", "shop").Profile("samples", "count").Time(start, 5).Sample(profiletest.Value(1, "leaf")).
		Resource("service.name", "cellar").Profile("samples", "count").Time(start, 5).Sample(profiletest.Value(1, "leaf")).
		Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(start, 5).Sample(profiletest.Value(1, "leaf")).
		Build()
	assert.Equal(t, map[string]int{"cpu": 2, "cpu/nanoseconds": 1}, types(t, apart, EncodeOptions{Format: FormatPprof}))
	ld, _ := records(t, apart, EncodeOptions{Format: FormatPprof})
	for _, rl := range ld.ResourceLogs().All() {
		service, _ := rl.Resource().Attributes().Get("service.name")
		typ, _ := rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().Get(keyType)
		assert.Equal(t, "cpu", typ.Str(), service.Str())
	}
}

// A description can contain anything. It is read as far as it makes sense, and the result is conformant.
func TestDescriptionsThatMakeNoSense(t *testing.T) {
	ld, _ := newRecord(javaStack, keyFormat, "text", keyType, "wall", keySampleType, "wall\xff", keySampleUnit, 7,
		keySampleShape, "round",
		keyPeriod, int64(-9_223_372_036_854_775_808), keyPeriodUnit, "nanoseconds", keyDuration, -5)
	onlyRecord(ld).SetTimestamp(1 << 62)
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	appendRecord(sl, javaStack, keyFormat, "text", keySampleType, "x", keySampleShape, "values", keyDuration, int64(1<<62),
		keyPeriod, "many")
	late := &rawPprof{}
	late.str("")
	late.sample(nil, nil, keyEventTime, int64(1<<43))
	late.sample(nil, []int64{4}, keyEventTime, 5)
	appendRecord(sl, late.encode(), keyType, "wall", keySampleType, "wall", keySampleShape, "timestamps+values",
		keyDuration, 6).SetTimestamp(9_000_000)
	got := translated(t, ld, Options{}).Profiles
	require.Equal(t, 3, got.ProfileCount())
	p := profiletest.ProfileAt(got, 2)
	assert.EqualValues(t, 5_000_000, p.Time())
	assert.EqualValues(t, int64(1<<43)*1_000_000+1-5_000_000, p.DurationNano())

	// A value and a time are both kept if the shape is missing.
	ld, record := newRecord(javaStack, keyFormat, "text", keySampleType, "wall")
	record.SetTimestamp(7)
	both := profiletest.SampleAt(translated(t, ld, Options{}).Profiles, 0)
	assert.Equal(t, []int64{1}, both.Values().AsRaw())
	assert.Equal(t, []uint64{7}, both.TimestampsUnixNano().AsRaw())

	// Without a sample type a record of an unknown type is rejected, whatever other attributes it has.
	ld, _ = newRecord(javaStack, keyFormat, "text", keyType, "wall", keySampleUnit, "nanoseconds", keySampleShape,
		"values")
	result := Translate(ld, Options{})
	require.Len(t, result.Rejected, 1)
	assert.Equal(t, ReasonType, result.Rejected[0].Reason)
}

// A record's time that has lost its nanoseconds on the way, as in HEC, can have them in an attribute.
func TestTimeOfARecordInNanoseconds(t *testing.T) {
	for stamp, want := range map[uint64]uint64{start - 123: start, start - 123 + millisecond: start, start + 1e9: start +
		1e9} {
		ld, record := newRecord(javaStack, keyFormat, "text", keyType, "cpu", KeyEventTimeNanos, "1700000000000000123")
		record.SetTimestamp(pcommon.Timestamp(stamp))
		got := translated(t, ld, Options{}).Profiles
		assert.Equal(t, []uint64{want}, profiletest.SampleAt(got, 0).TimestampsUnixNano().AsRaw())
	}
}

// The specification has milliseconds. Seconds are recognised by the year.
func TestTimesOfSamples(t *testing.T) {
	for _, test := range []struct {
		label any
		want  uint64
	}{
		{int64(1_700_000_000_123), 1_700_000_000_123e6}, {"1700000000123", 1_700_000_000_123e6},
		{int64(1_700_000_000), 1_700_000_000e9}, {"1700000000.25", 1_700_000_000e9}, {int64(5), 5e6},
		{int64(946_684_799), 946_684_799e6},
	} {
		p := &rawPprof{}
		p.str("")
		p.sample(nil, nil, keyEventTime, test.label)
		ld, _ := newRecord(p.encode(), keyType, "cpu")
		got := translated(t, ld, Options{}).Profiles
		assert.Equal(t, []uint64{test.want}, profiletest.SampleAt(got, 0).TimestampsUnixNano().AsRaw(), "%v", test.label)
	}
}

// A profile without a time is restored without one, and a period that is too long is restored too.
func TestOddTimes(t *testing.T) {
	pd := profiletest.New().Resource("service.name", "shop").Scope("otel.profiling", "").
		Profile("samples", "count").Period(1<<62, "cpu", "nanoseconds").Time(start, 1<<62).
		Sample(profiletest.Observed([]uint64{start}, "leaf")).
		Profile("goroutine", "count").Sample(profiletest.Value(1, "leaf")).
		Build()
	ld, _ := records(t, pd, EncodeOptions{Format: FormatPprof})
	eachRecord(ld, func(record plog.LogRecord) { record.SetObservedTimestamp(9) })
	assert.NoError(t, profiletest.Equal(asSent(pd), withoutIDs(translated(t, ld, Options{}).Profiles)))
}

// Profile ids depend on the content, of which the description is a part.
func TestDescriptionIsContent(t *testing.T) {
	ids := map[pprofile.ProfileID]bool{}
	for _, unit := range []string{"bytes", "count", "bytes"} {
		ld, _ := newRecord(javaStack, keyFormat, "text", keySampleType, "x", keySampleUnit, unit, keySampleShape, "values")
		ids[profiletest.ProfileAt(translated(t, ld, Options{}).Profiles, 0).ProfileID()] = true
	}
	assert.Len(t, ids, 2)
}

// The page of the format has every attribute of a description.
func TestPageHasDescriptions(t *testing.T) {
	page := profiletest.FileBytes(t, filepath.Join("..", "..", "..", "receiver", "splunkprofilingreceiver", "docs", "records.md"))
	for _, key := range []string{
		keySampleType, keySampleUnit, keySampleShape, keyPeriod, keyPeriodType, keyPeriodUnit, keyDuration,
		KeyEventTimeNanos, keyEventPeriodNanos, keyBodyVersion,
		onlyTimes, onlyValues, timesAndValue,
	} {
		assert.Contains(t, string(page), "`"+key+"`")
	}
}

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
