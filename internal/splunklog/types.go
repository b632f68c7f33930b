// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// kind is what a profile's samples measure: Splunk's type, and the word in its records.
type kind struct {
	typ  Type
	name string
}

// recounts has profiles of types that Splunk knows as cpu, if another profile already counts their samples: a Go profile
// has samples and cpu, and Splunk must count only one of them. They are identified by content, since a profile that is
// split becomes several.
type recounts struct {
	profiles map[profileKey]bool
	// scopes numbers the scopes, so that their texts are hashed once for each scope instead of each profile.
	scopes map[recountScope]int32
}

type recountScope struct {
	resource      profiledict.Value
	name, version string
}

// valueOfMap returns a map in a comparable form.
func valueOfMap(m pcommon.Map) profiledict.Value {
	v := pcommon.NewValueMap()
	m.CopyTo(v.Map())
	return profiledict.ValueOf(v)
}

type profileKey struct {
	scope               int32
	time, durationNanos uint64
	sampleType          valueType
}

// scope returns the number of a scope.
func (r *recounts) scope(rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles) int32 {
	key := recountScope{valueOfMap(rp.Resource().Attributes()), sp.Scope().Name(), sp.Scope().Version()}
	i, ok := r.scopes[key]
	if !ok {
		i = int32(len(r.scopes))
		r.scopes[key] = i
	}
	return i
}

// maxSampleTypes is how many profiles findRecounts looks back for another sample type of the same pprof. Real ones have a
// handful.
const maxSampleTypes = 16

// findRecounts returns the recounts among conformant profiles.
func findRecounts(pd pprofile.Profiles) recounts {
	found := recounts{profiles: map[profileKey]bool{}, scopes: map[recountScope]int32{}}
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			scope := int32(-1)
			var cpu []pprofile.Profile // one of each set that counts the same samples
			for _, p := range sp.Profiles().All() {
				if typ := sampleTypeOf(texts, p); splunkType(typ) != TypeCPU {
					continue
				}
				recent := cpu[max(0, len(cpu)-maxSampleTypes):]
				i := slices.IndexFunc(recent, func(other pprofile.Profile) bool { return sameObservations(texts, other, p) })
				if i < 0 {
					cpu = append(cpu, p)
					continue
				}
				other := p
				if sampleTypeOf(texts, p).unit == cpuSamples.unit && sampleTypeOf(texts, recent[i]).unit != cpuSamples.unit {
					recent[i], other = p, recent[i] // Splunk's cpu is a number of stacks
				}
				if scope < 0 {
					scope = found.scope(rp, sp)
				}
				found.profiles[keyOf(texts, scope, other)] = true
			}
		}
	}
	return found
}

func keyOf(texts pcommon.StringSlice, scope int32, p pprofile.Profile) profileKey {
	return profileKey{scope, uint64(p.Time()), p.DurationNano(), sampleTypeOf(texts, p)}
}

// sameObservations reports whether two profiles count the same observations in different types, as the sample types of
// one pprof do. If samples have no timestamps, those of one type can be 0 and thus missing; then the times of the
// profiles are compared.
func sameObservations(texts pcommon.StringSlice, a, b pprofile.Profile) bool {
	if sampleTypeOf(texts, a) == sampleTypeOf(texts, b) || a.Time() != b.Time() || a.DurationNano() != b.DurationNano() ||
		!a.AttributeIndices().Equal(b.AttributeIndices()) || timesOf(a) != timesOf(b) {
		return false
	}
	if timesOf(a) == 0 {
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

// kindOf classifies a profile of the current scope.
func (s *sink) kindOf(p pprofile.Profile) kind {
	texts := s.dict.StringTable()
	sampleType := sampleTypeOf(texts, p)
	typ := splunkType(sampleType)
	if typ == TypeCPU && len(s.recounts.profiles) > 0 && s.recounts.profiles[keyOf(texts, s.scope, p)] {
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
