// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package kind has the names that the whole distribution uses for profiles: which service and which profile it is
// (`process_cpu`, `memory`, `goroutine` …), which of its sample types is shown first, and what its values are over
// time (ValuesOf).
package kind

import (
	"slices"
	"strings"
)

// NameAttribute is the scope attribute in which a producer names the profile that its sample types belong to.
const NameAttribute = "pprof.scope.profile_name"

// The scope attributes that keep which sample types a pprof has: their order, if it is another than that of the
// profiles, and the default that it names.
const (
	AttributeSampleTypeOrder   = "pprof.scope.sample_type_order"
	AttributeDefaultSampleType = "pprof.scope.default_sample_type"
)

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

// Canonical returns the common name for a producer's word: process_cpu for cpu, memory for heap and allocs. It removes
// the prefix with which Grafana Alloy marks differences. Other words are returned as they are.
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
	known, period := knownTypes[PlainType(sampleType)], knownTypes[PlainType(periodType)]
	switch {
	case periodType == GPUMemory:
		return GPUMemory
	case period.profile == Wall: // Node's profilers add CPU time to samples of the wall clock
		return Wall
	case known.profile == ProcessCPU, period.profile == ProcessCPU:
		return ProcessCPU
	case known.profile != "":
		// The Go runtime's mutex and block profiles cannot be told apart by their types.
		return known.profile
	case hasAnyPrefix(PlainType(sampleType), "alloc", "inuse_", "live_",
		"unreleased malloc", "total malloc", "total alloc"), periodType == "space":
		return Memory
	case period.profile == OffCPU:
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

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// mainProfiles are the profiles after which a pprof of several is named, the most telling first.
var mainProfiles = []string{ProcessCPU, Wall, Memory, Mutex, Block, OffCPU, Goroutine}

// nameOfSet returns the name of a pprof with types of these names, whatever their order, or the first name if none is
// telling.
func nameOfSet(a, b string) string {
	for _, main := range mainProfiles {
		if a == main || b == main {
			return main
		}
	}
	return a
}

// preferred are the sample types that a reader most likely wants to see, in order.
var preferred = []string{
	"cpu", "cpu_time", "on_cpu", "wall", "wall_time", "off_cpu", "inuse_space", "space", "alloc_space", "delay",
	"goroutine", "samples",
}

// Default returns the index of the sample type to show first, or 0 if there are no types.
func Default(sampleTypes []string) int {
	for _, want := range preferred {
		if i := slices.IndexFunc(sampleTypes, func(t string) bool { return PlainType(t) == want }); i >= 0 {
			return i
		}
	}
	return 0
}
