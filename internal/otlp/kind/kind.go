// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package kind has the names that the whole distribution uses for profiles: which service and which profile it is (`process_cpu`,
// `memory`, `goroutine` …), which of its sample types is shown first, and what its values are over time.
package kind

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// NameAttribute is the scope attribute in which a producer names the profile that its sample types belong to.
const NameAttribute = "pprof.scope.profile_name"

// The names of the common profiles. A producer's own word is a name too.
const (
	ProcessCPU = "process_cpu"
	Memory     = "memory"
	Goroutine  = "goroutine"
	Mutex      = "mutex"
	Block      = "block"
	Wall       = "wall"
	OffCPU     = "off_cpu"
	GPUMemory  = "gpu_memory"
	// Other is the name of a profile whose kind is unknown.
	Other = "other"
)

// aliases are other producers' words for the common profiles.
var aliases = map[string]string{
	"cpu": ProcessCPU, "profile": ProcessCPU, "on_cpu": ProcessCPU, "itimer": ProcessCPU, "process_cpu": ProcessCPU,
	"heap": Memory, "allocs": Memory, "alloc": Memory, "allocation": Memory, "mem": Memory, "memory": Memory,
	"goroutines": Goroutine, "goroutine": Goroutine, "contentions": Mutex, "mutex": Mutex, "block": Block,
	"off-cpu": OffCPU, "offcpu": OffCPU, "off_cpu": OffCPU, "wall": Wall,
}

// Canonical returns the common name for a producer's word: process_cpu for cpu, memory for heap and allocs. It removes the
// prefix with which Grafana Alloy marks differences. Other words are returned as they are.
func Canonical(name string) string {
	name = strings.TrimPrefix(name, "godeltaprof_")
	if common, ok := aliases[strings.ToLower(name)]; ok {
		return common
	}
	return name
}

// Name returns the profile that a sample type belongs to: stated if it is not empty, otherwise what the sample type and
// the period type imply.
func Name(stated, sampleType, periodType string) string {
	if stated != "" {
		return Canonical(stated)
	}
	switch {
	case periodType == GPUMemory:
		return GPUMemory
	case periodType == "wall": // Node's profilers add CPU time to samples of the wall clock
		return Wall
	case sampleType == "cpu", periodType == "cpu":
		return ProcessCPU
	case strings.HasPrefix(sampleType, "inuse_"), strings.HasPrefix(sampleType, "alloc"), strings.HasPrefix(sampleType, "live_"),
		sampleType == "space", sampleType == "objects", periodType == "space":
		return Memory
	case sampleType == "contentions", sampleType == "delay":
		// The Go runtime's mutex and block profiles cannot be told apart by their types.
		return Mutex
	case sampleType == "wall":
		return Wall
	case sampleType == "off_cpu", periodType == "off_cpu", sampleType == "events":
		return OffCPU
	case sampleType == "samples", sampleType == "sample":
		if periodType != "" {
			return Canonical(periodType)
		}
		return ProcessCPU
	case sampleType == "":
		return Other
	default:
		return Canonical(sampleType)
	}
}

// preferred are the sample types that a reader most likely wants to see, in order.
var preferred = []string{"cpu", "on_cpu", "wall", "off_cpu", "inuse_space", "alloc_space", "delay", "goroutine", "samples"}

// Default returns the index of the sample type to show first, or 0 if there are no types.
func Default(sampleTypes []string) int {
	for _, want := range preferred {
		if i := slices.Index(sampleTypes, want); i >= 0 {
			return i
		}
	}
	return 0
}

// Values is what the values of a sample type are over time, which decides how profiles are merged. The words are those of OTLP's
// metrics.
type Values uint8

const (
	// Delta is what happened in [time, time+duration): values are added up.
	Delta Values = iota
	// Gauge is the state at one time: values are averaged, or the last one is used.
	Gauge
	// Cumulative is what has happened since the process began: values are subtracted from each other.
	Cumulative
)

// String returns delta, gauge or cumulative.
func (v Values) String() string { return [...]string{"delta", "gauge", "cumulative"}[v] }

// ValuesOf returns what the values of a sample type are. A type that the runtime counts from the start of the process
// is cumulative if the profile has no duration, and otherwise what happened in that time.
func ValuesOf(sampleType string, durationNanos uint64) Values {
	switch {
	case strings.HasPrefix(sampleType, "inuse"), strings.HasPrefix(sampleType, "live_"), sampleType == "live", sampleType == "reserved_space",
		sampleType == "goroutine", sampleType == "goroutines", sampleType == "threadcreate",
		sampleType == "objects", sampleType == "space":
		return Gauge
	case durationNanos == 0 && (strings.HasPrefix(sampleType, "alloc") || sampleType == "contentions" || sampleType == "delay"):
		return Cumulative
	default:
		return Delta
	}
}

// The profile attribute for the aggregation temporality, which layouts up to 1.8 had a field for, and its one value.
const (
	TemporalityAttribute  = "otlp.aggregation_temporality"
	TemporalityCumulative = "cumulative"
)

// ValuesOfProfile returns what the values of a profile are: what the profile states itself, otherwise ValuesOf its type.
// Indices may be out of range.
func ValuesOfProfile(p pprofile.Profile, d pprofile.ProfilesDictionary, sampleType string) Values {
	table, strs := d.AttributeTable(), d.StringTable()
	for _, i := range p.AttributeIndices().All() {
		if uint(i) >= uint(table.Len()) {
			continue
		}
		attribute := table.At(int(i))
		if key := attribute.KeyStrindex(); uint(key) < uint(strs.Len()) && strs.At(int(key)) == TemporalityAttribute &&
			attribute.Value().Str() == TemporalityCumulative {
			return Cumulative
		}
	}
	return ValuesOf(sampleType, p.DurationNano())
}
