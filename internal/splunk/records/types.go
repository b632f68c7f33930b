// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
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
	// resources and scopes number those of the profiles, so that a resource's attributes are kept and hashed once, not once
	// for each of its scopes, and a scope's texts not once for each of its profiles.
	resources map[dictionary.Value]int32
	scopes    map[recountScope]int32
}

type recountScope struct {
	resource      int32
	name, version string
}

// valueOfMap returns a map in a comparable form.
func valueOfMap(m pcommon.Map) dictionary.Value {
	v := pcommon.NewValueMap()
	m.CopyTo(v.Map())
	return dictionary.ValueOf(v)
}

type profileKey struct {
	scope               int32
	time, durationNanos uint64
	sampleType          valueType
}

// resource returns the number of a resource.
func (r *recounts) resource(rp pprofile.ResourceProfiles) int32 {
	return numberOf(r.resources, valueOfMap(rp.Resource().Attributes()))
}

// scope returns the number of a scope of a resource.
func (r *recounts) scope(resource int32, sp pprofile.ScopeProfiles) int32 {
	return numberOf(r.scopes, recountScope{resource, sp.Scope().Name(), sp.Scope().Version()})
}

// numberOf returns the number of a key: keys are numbered in the order in which they first occur.
func numberOf[K comparable](numbers map[K]int32, key K) int32 {
	i, ok := numbers[key]
	if !ok {
		i = int32(len(numbers))
		numbers[key] = i
	}
	return i
}

// counted is a profile of a type that Splunk knows as cpu, with its type and the number of its timestamps.
type counted struct {
	pprofile.Profile
	sampleType valueType
	times      int
}

// maxSampleTypes is how many profiles findRecounts looks back for another sample type of the same pprof. Real ones have a
// handful.
const maxSampleTypes = 16

// findRecounts returns the recounts among conformant profiles.
func findRecounts(pd pprofile.Profiles) recounts {
	found := recounts{profiles: map[profileKey]bool{}, resources: map[dictionary.Value]int32{}, scopes: map[recountScope]int32{}}
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		resource := int32(-1)
		for _, sp := range rp.ScopeProfiles().All() {
			scope := int32(-1)
			var cpu []counted // one of each set that counts the same samples
			for _, p := range sp.Profiles().All() {
				typ := sampleTypeOf(texts, p)
				if splunkType(typ) != TypeCPU {
					continue
				}
				next := counted{p, typ, timesOf(p)}
				recent := cpu[max(0, len(cpu)-maxSampleTypes):]
				i := slices.IndexFunc(recent, func(other counted) bool { return sameObservations(other, next) })
				if i < 0 {
					cpu = append(cpu, next)
					continue
				}
				other := next
				if next.sampleType.unit == cpuSamples.unit && recent[i].sampleType.unit != cpuSamples.unit {
					recent[i], other = next, recent[i] // Splunk's cpu is a number of stacks
				}
				if resource < 0 {
					resource = found.resource(rp)
				}
				if scope < 0 {
					scope = found.scope(resource, sp)
				}
				found.profiles[keyOf(texts, scope, other.Profile)] = true
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
func sameObservations(a, b counted) bool {
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
