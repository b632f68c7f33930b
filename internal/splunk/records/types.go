// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// kind is what a profile's samples measure: Splunk's type, and the word in its records.
type kind struct {
	typ  Type
	name string
}

// cpuProfile is a profile of a type that Splunk knows as cpu, with its type and the number of its timestamps.
type cpuProfile struct {
	pprofile.Profile
	position   int
	sampleType valueType
	times      int
}

// maxSampleTypes is how many profiles findDoubleCounted looks back for another sample type of the same pprof. Real ones have a
// handful.
const maxSampleTypes = 16

// findDoubleCounted reports, by position, which of conformant profiles have a type that Splunk knows as cpu although another
// profile already counts their samples: a Go profile has samples and cpu, and Splunk must count only one of them.
func findDoubleCounted(pd pprofile.Profiles) []bool {
	found := make([]bool, 0, pd.ProfileCount())
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			var cpu []cpuProfile // one of each set that counts the same samples
			for _, p := range sp.Profiles().All() {
				found = append(found, false)
				typ := sampleTypeOf(texts, p)
				if splunkType(typ) != TypeCPU {
					continue
				}
				next := cpuProfile{p, len(found) - 1, typ, timesOf(p)}
				recent := cpu[max(0, len(cpu)-maxSampleTypes):]
				i := slices.IndexFunc(recent, func(other cpuProfile) bool { return sameObservations(other, next) })
				if i < 0 {
					cpu = append(cpu, next)
					continue
				}
				other := next
				if next.sampleType.unit == cpuSamples.unit && recent[i].sampleType.unit != cpuSamples.unit {
					recent[i], other = next, recent[i] // Splunk's cpu is a number of stacks
				}
				found[other.position] = true
			}
		}
	}
	return found
}

// sameObservations reports whether two profiles count the same observations in different types, as the sample types of
// one pprof do. If samples have no timestamps, those of one type can be 0 and thus missing; then the times of the
// profiles are compared.
func sameObservations(a, b cpuProfile) bool {
	if a.sampleType == b.sampleType || a.Time() != b.Time() || a.DurationNano() != b.DurationNano() ||
		a.times != b.times || !a.AttributeIndices().Equal(b.AttributeIndices()) {
		return false
	}
	if a.times == 0 {
		return true
	}
	if a.Samples().Len() != b.Samples().Len() {
		return false
	}
	for i, x := range a.Samples().All() {
		y := b.Samples().At(i)
		if x.StackIndex() != y.StackIndex() || x.LinkIndex() != y.LinkIndex() ||
			!x.AttributeIndices().Equal(y.AttributeIndices()) || !x.TimestampsUnixNano().Equal(y.TimestampsUnixNano()) {
			return false
		}
	}
	return true
}

func timesOf(p pprofile.Profile) (n int) {
	for _, sample := range p.Samples().All() {
		n += sample.TimestampsUnixNano().Len()
	}
	return n
}

// kindOf classifies a profile.
func (s *sink) kindOf(p pprofile.Profile, doubleCounted bool) kind {
	sampleType := sampleTypeOf(s.dict.StringTable(), p)
	typ := splunkType(sampleType)
	if doubleCounted {
		typ = TypeOther
	}
	if typ != TypeOther {
		return kind{typ, typ.String()}
	}
	switch sampleType.typ {
	case "":
		return kind{TypeOther, "unknown"}
	case TypeCPU.String(), TypeAllocation.String():
		// Splunk has no words for these.
		return kind{TypeOther, sampleType.typ + "/" + sampleType.unit}
	default:
		return kind{TypeOther, sampleType.typ}
	}
}

func sampleTypeOf(texts pcommon.StringSlice, p pprofile.Profile) valueType {
	return valueType{texts.At(int(p.SampleType().TypeStrindex())), texts.At(int(p.SampleType().UnitStrindex()))}
}

// splunkType classifies a sample type. Splunk knows where a thread was (cpu) and the bytes it allocated (allocation).
func splunkType(t valueType) Type {
	const longest = 64 // many profiles can share a long unit
	if len(t.unit) > longest {
		return TypeOther
	}
	switch t.typ {
	case "cpu", "wall", "samples", "sample", "on_cpu", "off_cpu", "on-cpu", "off-cpu", "offcpu", "oncpu",
		"events": // the eBPF profiler's word for off-CPU time
		return TypeCPU
	case "allocation", "allocated_space", "alloc_space", "alloc_bytes", "allocated_bytes", "alloc_in_new_tlab_bytes",
		"alloc_outside_tlab_bytes":
		if t.unit == "bytes" || t.unit == "By" {
			return TypeAllocation
		}
	}
	return TypeOther
}
