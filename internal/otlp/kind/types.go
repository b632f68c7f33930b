// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// knownType is what is known of a sample type: what its values are, and the profile that it belongs to. Cumulative
// types are what a runtime counts from the start of the process; where their profile has a duration, it is what
// happened in it.
type knownType struct {
	values Values
	// profile is empty for types that are a profile of their own.
	profile string
}

// knownTypes are the sample types of the producers that we know, by PlainType. This is the one declaration of them:
// names, totals, pages and metrics follow from it.
var knownTypes = func() map[string]knownType {
	types := map[string]knownType{}
	for _, of := range []struct {
		knownType
		names string
	}{
		// Time on a processor, and samples of what was running: Go, Java, eBPF, perf, Datadog (cpu-time), Google's agents
		// (CPU). async-profiler's OTLP names its engines: perf_events, alloc_tracer.
		{knownType{Delta, ProcessCPU}, `cpu cpu_time cpu_samples cpu_sample on_cpu itimer ctimer task_clock cpu_clock perf_events
			cpu_clock_sample cpu_clock_samples cpu_clock_event task_clock_sample task_clock_samples task_clock_event`},
		// What these are samples of is the period type's to say.
		{knownType{Delta, ""}, `samples sample`},
		// fgprof calls it time.
		{knownType{Delta, Wall}, `wall wall_time wall_samples wallclock time j9_wall`},
		{knownType{Delta, OffCPU}, `off_cpu events`},

		// Go counts from the start of the process (heap, block, mutex).
		{knownType{Cumulative, Memory}, `alloc_objects alloc_space`},
		{knownType{Cumulative, Mutex}, `contentions delay`},
		// Everybody else reports what was allocated since the last profile: Java, Datadog, .NET, Splunk, Julia (allocs,
		// size), OpenTelemetry.
		{knownType{Delta, Memory}, `allocated_objects allocated_space alloc_samples alloc_samples_unscaled alloc_size alloc_bytes
			alloc_in_new_tlab_objects alloc_in_new_tlab_bytes alloc_outside_tlab_objects alloc_outside_tlab_bytes
			alloc_sample_objects alloc_sample_bytes malloc_objects malloc_bytes
			alloc_tracer object_sampler malloc_tracer allocs size`},
		{knownType{Delta, Block}, `block`},
		{knownType{Delta, Mutex}, `mutex lock_count lock_time lock_acquire lock_acquire_wait lock_release lock_release_hold lock_tracer native_lock_tracer`},
		// Datadog's: exceptions, requests, files, sockets, processors of graphics. Ours: collections of garbage.
		{knownType{Delta, ""}, `exception exceptions exception_samples timeline request_time
			file_io_read_size file_io_read_size_samples file_io_read_time file_io_read_time_samples
			file_io_write_size file_io_write_size_samples file_io_write_time file_io_write_time_samples
			socket_read_size socket_read_size_samples socket_read_time socket_read_time_samples
			socket_write_size socket_write_size_samples socket_write_time socket_write_time_samples
			gpu_time gpu_samples gpu_space gpu_alloc_samples gpu_flops gpu_flops_samples gc_pause_time gc_collections`},
		// Counters of processors and kernels.
		{knownType{Delta, ""}, `cycles cpu_cycles ref_cycles bus_cycles instructions branches branch_misses branch_instructions
			cache_references cache_misses faults page_faults minor_faults major_faults context_switches cpu_migrations
			alignment_faults emulation_faults syscalls`},

		// What exists now: Go, jemalloc, V8 and gperftools (objects, space), tcmalloc and Envoy (…_space), Datadog, Java
		// (live).
		{knownType{Gauge, Memory}, `inuse_objects inuse_space objects space resident_space swapped_space stale_space locked_space reserved_space
			heap_space heap_live_samples heap_live_size live live_objects live_space live_bytes retained_objects retained_space
			peak_objects peak_space`},
		{knownType{Gauge, Goroutine}, `goroutine goroutines`},
		// Go 1.26, Go's and gperftools' threads, and how long goroutines have been waiting by now (Datadog).
		{knownType{Gauge, ""}, `goroutineleak threadcreate thread threads waitduration`},
	} {
		for name := range strings.FieldsSeq(of.names) {
			types[name] = of.knownType
		}
	}
	return types
}()

// PlainType returns a sample type as it is compared: cpu-time, CPU_TIME and cpu_time are the same.
func PlainType(sampleType string) string {
	return strings.ReplaceAll(strings.ToLower(sampleType), "-", "_")
}

// CPUTime returns how values become nanoseconds of time on a processor: times nanos, and numbers of samples times their
// period, too. nanos is 0 for values of another kind.
func CPUTime(sampleType, unit, periodType, periodUnit string) (nanos int64, timesPeriod bool) {
	sampleType = PlainType(sampleType)
	isCPU := knownTypes[sampleType].profile == ProcessCPU
	switch {
	case isCPU && IsTime(unit):
		return NanosPer(unit), false
	case UnitName(unit) == "count" && (isCPU || sampleType == "samples") &&
		knownTypes[PlainType(periodType)].profile == ProcessCPU:
		return NanosPer(periodUnit), true
	}
	return 0, false
}

// CPURank returns how well the values of a type have the processor time of the profile process_cpu, 0 if they have
// not: a type that is known to be processor time, then samples of it, then types that are unknown. Others, such as the
// wall time and the locks that Datadog's libraries and .NET's write into the same pprof, have not.
func CPURank(sampleType, unit, periodUnit string) int {
	sampleType = PlainType(sampleType)
	known, isKnown := knownTypes[sampleType]
	isCPU := known.profile == ProcessCPU
	isCount := UnitName(unit) == "count" && IsTime(periodUnit)
	switch {
	case sampleType == "cpu" && IsTime(unit):
		return 5
	case isCPU && IsTime(unit):
		return 4
	case (isCPU || sampleType == "samples" || sampleType == "sample") && isCount:
		return 3
	case isKnown:
		return 0
	case IsTime(unit):
		return 2
	case isCount:
		return 1
	}
	return 0
}

// CPUTimeOf is CPUTime of a profile. Indices may be out of range.
func CPUTimeOf(p pprofile.Profile, d pprofile.ProfilesDictionary) (nanos int64, timesPeriod bool) {
	declared := DeclaredOf(p, d)
	return CPUTime(declared.SampleType, declared.Unit, declared.PeriodType, stringAt(d, p.PeriodType().UnitStrindex()))
}

// The words of names that tell what the values of an unknown type are.
var (
	flowWords  = []string{"alloc", "allocs", "allocated", "freed", "read", "written", "sent", "received"}
	stateWords = []string{
		"inuse", "live", "heap", "resident", "rss", "retained", "use", "used", "open", "current", "active", "leaked", "leak",
		"peak", "cached",
	}
	// perf_to_profile and simpleperf count samples and events of each event of perf: cycles_sample, cycles_event.
	eventWords = []string{"sample", "samples", "event", "events"}
)
