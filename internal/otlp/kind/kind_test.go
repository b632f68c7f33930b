// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestName(t *testing.T) {
	for _, c := range []struct{ stated, sampleType, periodType, want string }{
		{"cpu", "samples", "cpu", ProcessCPU},
		{"heap", "alloc_space", "space", Memory},
		{"block", "contentions", "contentions", Block},
		{"my_profile", "cpu", "cpu", "my_profile"},
		{"godeltaprof_memory", "alloc_space", "space", Memory},
		{"goroutines", "goroutine", "goroutine", Goroutine},
		{"", "samples", "cpu", ProcessCPU},
		{"", "alloc_objects", "space", Memory},
		{"", "inuse_space", "", Memory},
		{"", "objects", "", Memory},
		{"", "live_objects", "", Memory},
		{"", "delay", "contentions", Mutex},
		{"", "goroutine", "goroutine", Goroutine},
		{"", "samples", "wall", Wall},
		{"", "cpu", "wall", Wall},
		{"", "wall", "cpu", ProcessCPU},
		{"", "time", "wallclock", Wall},
		{"", "cpu-time", "", ProcessCPU},
		{"", "CPU", "CPU", ProcessCPU},
		{"", "lock-time", "", Mutex},
		{"", "resident_space", "space", Memory},
		{"", "goroutineleak", "goroutineleak", "goroutineleak"},
		{"", "samples", "", ProcessCPU},
		{"", "events", "", OffCPU},
		{"", "events", "cpu", ProcessCPU},
		{"", "Unreleased malloc size", "", Memory}, // heapprofd's
		{"", "Total allocation count", "", Memory},
		{"", "cache_misses", "", "cache_misses"},
		{"", "", "", Other},
	} {
		assert.Equal(t, c.want, Name(c.stated, c.sampleType, c.periodType), c)
	}
}

func TestDefault(t *testing.T) {
	assert.Equal(t, 1, Default([]string{"samples", "cpu"}))
	assert.Equal(t, 3, Default([]string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}))
	assert.Equal(t, 0, Default([]string{"x"}))
	assert.Equal(t, 1, Default([]string{"cpu-samples", "cpu-time", "wall-time"}))
	assert.Equal(t, 0, Default(nil))
}

// knownSampleTypes are the known values of Profile.sample_type that the specification proposes, with what this package
// makes of them: open-telemetry/opentelemetry-specification, pull request 5296, opened on 2026-09-03, with the two
// types of the eBPF profiler that its review of 2026-09-04 adds. Each type is a profile without a period type, and with
// a duration.
var knownSampleTypes = []struct {
	sampleType, unit, name string
	values                 Values
}{
	{"cpu", "nanoseconds", ProcessCPU, Delta},
	{"samples", "count", ProcessCPU, Delta},
	{"wall", "nanoseconds", Wall, Delta},
	{"off_cpu", "nanoseconds", OffCPU, Delta},
	{"events", "count", OffCPU, Delta},
	{"inuse_space", "bytes", Memory, Gauge},
	{"inuse_objects", "count", Memory, Gauge},
	{"alloc_space", "bytes", Memory, Delta},
	{"alloc_objects", "count", Memory, Delta},
	{"allocated_space", "bytes", Memory, Delta},
	{"allocated_objects", "count", Memory, Delta},
	{"space", "bytes", Memory, Gauge},
	{"block", "nanoseconds", Block, Delta},
	{"mutex", "nanoseconds", Mutex, Delta},
}

func TestKnownSampleTypes(t *testing.T) {
	for _, known := range knownSampleTypes {
		assert.Equal(t, known.name, Name("", known.sampleType, ""), known.sampleType)
		assert.Equal(t, known.values, ValuesOf(Declared{SampleType: known.sampleType, Unit: known.unit, DurationNanos: 1e9}),
			known.sampleType)
	}
}

func TestIsSeriesAttribute(t *testing.T) {
	assert.True(t, IsSeriesAttribute("profiling.instrumentation.source"))
	assert.True(t, IsSeriesAttribute("pprof.profiles"))
	assert.False(t, IsSeriesAttribute("otlp.aggregation_temporality"))
	assert.False(t, IsSeriesAttribute("pprof.profile.comment"))
	assert.False(t, IsSeriesAttribute("pprof.profile.doc_url"))
}

// What is neither a string nor a number is no name: the text of a list costs as much as all that it refers to.
func TestStated(t *testing.T) {
	scope := pcommon.NewMap()
	value, _ := scope.GetOrPutEmpty(NameAttribute)
	for _, tc := range []struct {
		set  func()
		want string
	}{
		{func() { value.SetStr("memory") }, "memory"},
		{func() { value.SetInt(7) }, "7"},
		{func() { value.SetEmptySlice().AppendEmpty().SetStr("memory") }, ""},
		{func() { value.SetEmptyMap().PutStr("memory", "memory") }, ""},
		{func() { value.SetStr(strings.Repeat("n", 2*MaxNameBytes)) }, strings.Repeat("n", MaxNameBytes)},
		{scope.Clear, ""},
	} {
		tc.set()
		assert.Equal(t, tc.want, Stated(scope))
	}
}
