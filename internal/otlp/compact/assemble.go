// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// Assembler builds a message from profiles in other formats than OTLP. A translator interns stacks, attributes and links
// in its Dictionary, and adds resources, scopes, profiles and observations in any order:
//
//	a.Reset()
//	scope := a.Scope(a.Resource(resource, schemaURL), instrumentationScope, schemaURL)
//	cpu := a.Profile(scope, compact.Shape{Timestamps: true}, compact.Header{SampleType: …})
//	a.Observe(cpu, compact.Identity{Stack: stack}, compact.Observation{Timestamp: t})
//	a.Header(cpu).Time = first // a header may be changed until Build
//	pd := a.Build()
//
// It combines equal resources, equal scopes, and samples of a profile with the same identity {stack, attributes, link}.
// The message is conformant if the headers and observations are; dictionary entries that nothing refers to are left out.
// An Assembler is not safe for concurrent use. Reset prepares it for the next message and keeps its memory.
type Assembler struct {
	batch    Batch
	profiles []assembled
	// Entry 0 of the lists is unused, so that 0 can end a list.
	samples      []assembledSample
	observations []listed
	identities   dictionary.HashIndex
}

type (
	// ResourceIndex is the index of a resource in an Assembler.
	ResourceIndex int32
	// ScopeIndex is the index of a scope in an Assembler.
	ScopeIndex int32
	// ProfileIndex is the index of a profile in an Assembler.
	ProfileIndex int32
)

// The memory of a sample and an observation: in the Assembler, in the Batch that Build makes, and as pdata.
const (
	buildSampleBytes      = 32 + 16 + 40 + size.SampleBytes
	buildObservationBytes = 24 + 16 + 2*size.NumberBytes
	// buildProfileBytes is that of a profile with a resource and a scope of its own, and a few attributes.
	buildProfileBytes = 2 << 10
)

// BuildBytes estimates the memory of all that has been added and of the message that Build makes of it, without texts. It takes
// no time.
func (a *Assembler) BuildBytes() int {
	return a.batch.dict.BuildBytes() + len(a.samples)*buildSampleBytes + len(a.observations)*buildObservationBytes +
		len(a.profiles)*buildProfileBytes
}

// Observation is one observation of a sample. A field that its profile's shape lacks is ignored.
type Observation struct {
	Timestamp uint64 // nanoseconds since the epoch
	Value     int64
}

// assembled is a profile with the first and last of its samples, which are a linked list.
type assembled struct {
	profile
	firstSample, lastSample int32
}

// assembledSample is a sample, the next one of its profile, and the first and last of its observations, which are a
// linked list.
type assembledSample struct {
	Identity
	profile     ProfileIndex
	next        int32
	first, last int32
}

type listed struct {
	Observation
	next int32
}

// maxKeptObservations bounds the memory that an Assembler keeps for the next use.
const maxKeptObservations = 1 << 18

// Reset empties the assembler and its dictionary.
func (a *Assembler) Reset() {
	if cap(a.observations) > maxKeptObservations {
		*a = Assembler{}
	}
	hint := min(len(a.samples), 1<<12) // the last use was probably as large
	a.batch.Reset(Options{})
	a.batch.isUnsized = true
	a.batch.dict.Reset(dictionary.Sizes{})
	a.batch.importer.Reset(&a.batch.dict)
	clear(a.profiles)
	a.profiles = a.profiles[:0]
	a.samples = append(a.samples[:0], assembledSample{})
	a.observations = append(a.observations[:0], listed{})
	a.identities.Reset(hint)
}

// Dictionary returns the dictionary that all indices refer to. Its strings must be valid UTF-8.
func (a *Assembler) Dictionary() *dictionary.Dictionary { return &a.batch.dict }

// Resource returns the index of a resource, which is only read. Text that is not UTF-8 is repaired.
func (a *Assembler) Resource(r pcommon.Resource, schemaURL string) ResourceIndex {
	return ResourceIndex(a.batch.resource(r, r.Attributes(), schemaURL))
}

// Scope returns the index of a scope of a resource. Text that is not UTF-8 is repaired.
func (a *Assembler) Scope(resource ResourceIndex, s pcommon.InstrumentationScope, schemaURL string) ScopeIndex {
	return ScopeIndex(a.batch.scope(int32(resource), s, s.Attributes(), schemaURL))
}

// Value returns the comparable form of a value, its text repaired. ok is false if the value is nested too deeply.
func (a *Assembler) Value(v pcommon.Value) (value dictionary.Value, ok bool) {
	clean, ok := a.batch.importer.CleanValue(v)
	if !ok {
		return dictionary.Value{}, false
	}
	return dictionary.ValueOf(clean), true
}

// Repairs returns how often resources, scopes and values were repaired, or left out, since Reset.
func (a *Assembler) Repairs() [NumRepairs]int { return a.batch.importer.Repairs }

// Profile adds a profile. Profiles of a scope keep the order in which they were added.
func (a *Assembler) Profile(scope ScopeIndex, s Shape, header Header) ProfileIndex {
	s.Values = s.Values || !s.Timestamps // an observation has one of them
	p := profile{Header: header, scope: int32(scope), shape: s, donated: pprofile.NewSampleSlice()}
	a.profiles = append(a.profiles, assembled{profile: p})
	return ProfileIndex(len(a.profiles)) - 1
}

// Header returns the header of a profile, to be changed until the next call of Profile.
func (a *Assembler) Header(p ProfileIndex) *Header { return &a.profiles[p].Header }

// Observe adds an observation to the sample of an identity. If the profile has only values, they are added up; a value
// with which the sum would overflow becomes a sample of its own.
func (a *Assembler) Observe(p ProfileIndex, id Identity, o Observation) {
	h := dictionary.Mix(uint64(uint32(id.Stack))<<32|uint64(uint32(id.Attributes)), uint64(uint32(id.Link))<<32|uint64(uint32(p)))
	probe := a.identities.Start(h)
	for i := a.identities.Next(&probe); i != 0; i = a.identities.Next(&probe) {
		if s := &a.samples[i]; s.profile == p && s.Identity == id {
			a.observe(i, o)
			return
		}
	}
	a.identities.Insert(probe, a.appendSample(p, id, o))
}

func (a *Assembler) appendSample(p ProfileIndex, id Identity, o Observation) int32 {
	i := int32(len(a.samples))
	at := a.appendObservation(o)
	a.samples = append(a.samples, assembledSample{Identity: id, profile: p, first: at, last: at})
	profile := &a.profiles[p]
	if profile.lastSample == 0 {
		profile.firstSample = i
	} else {
		a.samples[profile.lastSample].next = i
	}
	profile.lastSample = i
	profile.count++
	return i
}

func (a *Assembler) appendObservation(o Observation) int32 {
	a.observations = append(a.observations, listed{Observation: o})
	return int32(len(a.observations)) - 1
}

func (a *Assembler) observe(i int32, o Observation) {
	s := &a.samples[i]
	if !a.profiles[s.profile].shape.Timestamps {
		if sum := &a.observations[s.first].Value; !overflows(*sum, o.Value) {
			*sum += o.Value
		} else {
			a.appendSample(s.profile, s.Identity, o)
		}
		return
	}
	at := a.appendObservation(o)
	a.observations[s.last].next = at
	s.last = at
}

// ShiftTimestamps adds nanos to the timestamps of all observations, for formats that have the clock at the end.
func (a *Assembler) ShiftTimestamps(nanos uint64) {
	for i := range a.observations {
		a.observations[i].Timestamp += nanos
	}
}

// Build returns a message of all that has been added. It shares its strings with the Dictionary: if they are parts of
// something much larger, call DetachStrings on the Dictionary first.
func (a *Assembler) Build() pprofile.Profiles {
	b := &a.batch
	b.profiles, b.samples, b.values, b.timestamps = b.profiles[:0], b.samples[:0], b.values[:0], b.timestamps[:0]
	for i := range a.profiles {
		p := &a.profiles[i]
		p.first = int32(len(b.samples))
		for at := p.firstSample; at != 0; at = a.samples[at].next {
			a.flatten(&a.samples[at], p.shape)
		}
		b.profiles = append(b.profiles, p.profile)
	}
	return b.Whole()
}

// flatten appends a sample and its observations to those of the batch.
func (a *Assembler) flatten(s *assembledSample, shape Shape) {
	b := &a.batch
	to := sample{
		Identity:   s.Identity,
		firstValue: uint32(len(b.values)), firstTimestamp: uint32(len(b.timestamps)),
	}
	for i := s.first; i != 0; i = a.observations[i].next {
		o := &a.observations[i]
		if shape.Values {
			b.values = append(b.values, o.Value)
		}
		if shape.Timestamps {
			b.timestamps = append(b.timestamps, o.Timestamp)
		}
		to.count++
	}
	b.samples = append(b.samples, to)
}
