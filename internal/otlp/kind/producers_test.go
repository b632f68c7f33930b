// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// producers are profiles as known producers write them: their sample types in their order, the period type, whether
// they have a duration, and what is right for them.
var producers = map[string]struct {
	types, period string
	hasDuration   bool
	name          string
	// values are those of the types: d, g and c.
	values string
}{
	"Go: cpu": {"samples/count cpu/nanoseconds", "cpu/nanoseconds", true, ProcessCPU, "dd"},
	"Go: heap": {"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes",
		"space/bytes", false, Memory, "ccgg"},
	"Go: block or mutex":   {"contentions/count delay/nanoseconds", "contentions/count", false, Mutex, "cc"},
	"Go: ?seconds= of it":  {"contentions/count delay/nanoseconds", "contentions/count", true, Mutex, "dd"},
	"Go: goroutine":        {"goroutine/count", "goroutine/count", false, Goroutine, "g"},
	"Go 1.26: goroutines":  {"goroutineleak/count", "goroutineleak/count", false, "goroutineleak", "g"},
	"Go: threadcreate":     {"threadcreate/count", "threadcreate/count", false, "threadcreate", "g"},
	"Go: pprof.NewProfile": {"open.files/count", "open.files/count", false, "open.files", "g"},
	"fgprof":               {"samples/count time/nanoseconds", "wallclock/nanoseconds", true, Wall, "dd"},
	"pyroscope-go: heap": {"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes",
		"space/bytes", true, Memory, "ddgg"},
	"dd-trace-go: waiting": {"waitduration/nanoseconds", "waitduration/nanoseconds", false, "waitduration", "g"},
	"pprof-rs":             {"samples/count cpu/nanoseconds", "cpu/nanoseconds", true, ProcessCPU, "dd"},
	"jemalloc by Rust":     {"inuse_objects/count inuse_space/bytes", "space/bytes", false, Memory, "gg"},
	"tcmalloc, Envoy": {
		"objects/count space/bytes resident_space/bytes swapped_space/bytes stale_space/bytes locked_space/bytes",
		"space/bytes", false, Memory, "gggggg"},
	"tcmalloc, a new type": {"objects/count space/bytes cold_space/bytes", "space/bytes", false, Memory, "ggg"},
	"gperftools: threads":  {"thread/count", "thread/count", false, "thread", "g"},
	"Node: time":           {"samples/count wall/nanoseconds cpu/nanoseconds", "wall/nanoseconds", true, Wall, "ddd"},
	"Node: heap":           {"objects/count space/bytes", "space/bytes", true, Memory, "gg"},
	"dd-trace-py": {
		"cpu-time/nanoseconds cpu-samples/count wall-time/nanoseconds wall-samples/count exception-samples/count lock-acquire/count lock-acquire-wait/nanoseconds lock-release/count lock-release-hold/nanoseconds alloc-space/bytes alloc-samples/count heap-space/bytes gpu-time/nanoseconds gpu-samples/count gpu-space/bytes gpu-alloc-samples/count gpu-flops/count gpu-flops-samples/count", "cpu-time/nanoseconds", true, ProcessCPU, "dddddddddddgdddddd"},
	"dd-trace-rb": {
		"cpu-time/nanoseconds cpu-samples/count wall-time/nanoseconds alloc-samples/count alloc-samples-unscaled/count heap-live-samples/count heap-live-size/bytes timeline/nanoseconds", "", true, ProcessCPU, "dddddggd"},
	"dd-trace-php": {
		"sample/count wall-time/nanoseconds cpu-time/nanoseconds alloc-samples/count alloc-size/bytes timeline/nanoseconds exception-samples/count socket-read-time/nanoseconds file-io-read-size/bytes heap-live-samples/count heap-live-size/bytes", "wall-time/nanoseconds", true, Wall, "dddddddddgg"},
	"dd-trace-dotnet": {
		"cpu/nanoseconds cpu-samples/count wall/nanoseconds alloc-samples/count alloc-size/bytes exception/count lock-count/count lock-time/nanoseconds inuse-objects/count inuse-space/bytes request-time/nanoseconds", "", true, ProcessCPU, "ddddddddggd"},
	".NET by Pyroscope": {"cpu/nanoseconds exception/count lock_time/nanoseconds", "", false, ProcessCPU, "ddd"},
	"ddprof": {
		"cpu-samples/count cpu-time/nanoseconds alloc-samples/count alloc-space/bytes inuse-objects/count inuse-space/bytes",
		"cpu-time/nanoseconds", true, ProcessCPU, "ddddgg"},
	"Java by async-profiler": {
		"alloc_in_new_tlab_objects/count alloc_in_new_tlab_bytes/bytes alloc_outside_tlab_objects/count alloc_outside_tlab_bytes/bytes", "", false, Memory, "dddd"},
	"Java: live objects":    {"live/count", "", true, Memory, "g"},
	"async-profiler: cpu":   {"perf_events/count perf_events/ns", "perf_events/ns", true, ProcessCPU, "dd"},
	"async-profiler: alloc": {"object_sampler/count object_sampler/bytes", "object_sampler/bytes", true, Memory, "dd"},
	"async-profiler: locks": {"lock_tracer/count lock_tracer/ns", "lock_tracer/ns", true, Mutex, "dd"},
	"perf_to_profile":       {"cycles:ppp_sample/count cycles:ppp_event/count", "", false, "cycles:ppp_sample", "dd"},
	"perf_to_profile: time": {"cpu-clock_sample/count cpu-clock_event/count", "", false, ProcessCPU, "dd"},
	"Julia: CPU":            {"events/count", "cpu/nanoseconds", false, ProcessCPU, "d"},
	"Julia: allocations":    {"allocs/count size/bytes", "heap/bytes", false, Memory, "dd"},
	"Google's agents":       {"sample/count CPU/nanoseconds", "CPU/nanoseconds", true, ProcessCPU, "dd"},
	"Google's agents: wall": {"sample/count WALL/nanoseconds", "WALL/nanoseconds", true, Wall, "dd"},
	"JAX: memory":           {"allocations/count space/bytes", "", false, Memory, "gg"},
	"OpenTelemetry's eBPF":  {"samples/count", "cpu/nanoseconds", true, ProcessCPU, "d"},
	"OpenTelemetry: heap":   {"allocated_objects/count allocated_space/bytes", "", true, Memory, "dd"},
	"Splunk: allocations":   {"allocated_space/bytes", "", true, Memory, "d"},
	"perf":                  {"cache-misses/count", "cache-misses/count", true, "cache-misses", "d"},
	"perf without times":    {"page-faults/count", "", false, "page-faults", "d"},
	"unknown, a time":       {"stalls/nanoseconds", "", false, "stalls", "d"},
	"unknown, a state":      {"buffers/bytes", "", false, "buffers", "g"},
	"unknown, in a time":    {"buffers/bytes", "", true, "buffers", "d"},
	"unknown, by its words": {"used_buffers/bytes memory_in_use/bytes", "", true, "used_buffers", "gg"},
	"unknown flow":          {"bytes_sent/bytes", "", false, "bytes_sent", "d"},
}

// Each producer's profile has one name for all of its types, and each of its values is what the producer means, in
// whatever order the types come.
func TestProducers(t *testing.T) {
	for producer, want := range producers {
		pd, scope := pprofOf(want.types, want.period, want.hasDuration)
		var namer Namer
		namer.Begin(scope.Scope().Attributes(), scope.Profiles(), pd.Dictionary())
		values := ""
		for _, p := range scope.Profiles().All() {
			values += ValuesOfProfile(p, pd.Dictionary()).String()[:1]
			assert.Equal(t, want.name, namer.Name(p, ""), producer)
		}
		assert.Equal(t, want.values, values, producer)
	}
}

// pprofOf returns what a pprof of these types becomes.
func pprofOf(types, period string, hasDuration bool) (pprofile.Profiles, pprofile.ScopeProfiles) {
	b := profiletest.New().Scope("", "", "pprof.scope.sample_type_order", []any{int64(0)})
	for typ := range strings.FieldsSeq(types) {
		name, unit, _ := strings.Cut(typ, "/")
		periodType, periodUnit, _ := strings.Cut(period, "/")
		duration := uint64(0)
		if hasDuration {
			duration = 1e9
		}
		b.Profile(name, unit).Period(1, periodType, periodUnit).Time(1.8e18, duration)
	}
	pd := b.Build()
	return pd, pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
}

// What somebody states wins over names and durations, but a state beside totals and differences stays one.
func TestStatedTemporality(t *testing.T) {
	heap := []Declared{{SampleType: "alloc_space", Unit: "bytes"}, {SampleType: "inuse_space", Unit: "bytes"},
		{SampleType: "odd", Unit: "count", DurationNanos: 1}}
	for stated, want := range map[Temporality][3]Values{
		"":               {Cumulative, Gauge, Delta},
		StatedDelta:      {Delta, Gauge, Delta},
		StatedGauge:      {Gauge, Gauge, Gauge},
		StatedCumulative: {Cumulative, Gauge, Cumulative},
	} {
		for i, d := range heap {
			assert.Equal(t, want[i], stated.ValuesOf(d), "%s: %s", stated, d.SampleType)
		}
	}
	for word, want := range map[string]Values{"delta": Delta, "gauge": Gauge, "cumulative": Cumulative, "often": Gauge} {
		pd := profiletest.New().Profile("inuse_space", "bytes").Attributes(profiletest.Attr(TemporalityAttribute, word)).
			Build()
		assert.Equal(t, want, ValuesOfProfile(profiletest.ProfileAt(pd, 0), pd.Dictionary()), word)
	}
	_, err := ParseTemporality("total")
	assert.EqualError(t, err, `must be delta, gauge or cumulative, found "total"`)
}

// A statement is an attribute that is in the dictionary once, and only where it is news.
func TestStatement(t *testing.T) {
	pd := profiletest.New().Profile("a", "count").Profile("b", "count").Profile("inuse_space", "bytes").Build()
	s := Statement{Dictionary: pd.Dictionary()}
	for i := range 3 {
		p := profiletest.ProfileAt(pd, i)
		s.Put(p, DeclaredOf(p, pd.Dictionary()), StatedCumulative.ValuesOf(DeclaredOf(p, pd.Dictionary())))
	}
	assert.NoError(t, profiletest.Check(pd))
	for i, want := range []Values{Cumulative, Cumulative, Gauge} {
		assert.Equal(t, want, ValuesOfProfile(profiletest.ProfileAt(pd, i), pd.Dictionary()))
	}
	assert.Equal(t, 2, pd.Dictionary().AttributeTable().Len())
	assert.Zero(t, profiletest.ProfileAt(pd, 2).AttributeIndices().Len())
}
