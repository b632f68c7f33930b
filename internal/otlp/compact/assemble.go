// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// Assembler builds a message from profiles in other formats than OTLP. A translator interns stacks, attributes and
// links in its Dictionary, and adds resources, scopes, profiles and observations in any order:
//
//	a.Reset()
//	scope := a.Scope(a.Resource(resource, schemaURL), instrumentationScope, schemaURL)
//	cpu := a.Profile(scope, compact.Shape{Timestamps: true}, compact.Header{SampleType: …})
//	a.Observe(cpu, compact.Identity{Stack: stack}, compact.Observation{Timestamp: t})
//	a.Header(cpu).Time = first // a header may be changed until Build
//	pd := a.Build()
//
// It combines equal resources, equal scopes, and samples of a profile with the same identity {stack, attributes, link}.
// The message is conformant if the headers and observations are; dictionary entries that nothing refers to are left
// out. An Assembler is not safe for concurrent use. Reset prepares it for the next message and keeps its memory.
type Assembler struct {
	batch   Batch
	samples dictionary.ObservedSamples
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

// BuildBytes estimates the memory of all that has been added and of the message that Build makes of it, without
// strings. It takes no time.
func (a *Assembler) BuildBytes() int {
	return a.batch.dict.BuildBytes() + len(a.samples.Entries)*buildSampleBytes +
		len(a.samples.Observations)*buildObservationBytes +
		len(a.batch.profiles)*buildProfileBytes
}

// Observation is one observation of a sample. A field that its profile's shape lacks is ignored.
type Observation struct {
	Timestamp uint64 // nanoseconds since the epoch
	Value     int64
}

// maxKeptObservations bounds the memory that an Assembler keeps for the next use.
const maxKeptObservations = 1 << 18

// Reset empties the assembler and its dictionary.
func (a *Assembler) Reset() {
	if cap(a.samples.Observations) > maxKeptObservations {
		*a = Assembler{}
	}
	a.batch.Reset(Options{})
	a.batch.dict.Reset(dictionary.Sizes{})
	a.batch.importer.Reset(&a.batch.dict)
	a.samples.Reset(0, 1, 0)
}

// Dictionary returns the dictionary that all indices refer to. Its strings must be valid UTF-8.
func (a *Assembler) Dictionary() *dictionary.Dictionary { return &a.batch.dict }

// Resource returns the index of a resource, which is only read. Strings that are not UTF-8 are repaired.
func (a *Assembler) Resource(r pcommon.Resource, schemaURL string) ResourceIndex {
	return ResourceIndex(a.batch.resource(r, r.Attributes(), schemaURL))
}

// Scope returns the index of a scope of a resource. Strings that are not UTF-8 are repaired.
func (a *Assembler) Scope(resource ResourceIndex, s pcommon.InstrumentationScope, schemaURL string) ScopeIndex {
	return ScopeIndex(a.batch.scope(int32(resource), s, s.Attributes(), schemaURL))
}

// Value returns the comparable form of a value, its strings repaired. ok is false if the value is nested too deeply.
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
	all := &a.batch.profiles
	*all = append(*all, profile{Header: header, scope: int32(scope), shape: s, donated: pprofile.NewSampleSlice()})
	return ProfileIndex(len(*all)) - 1
}

// Header returns the header of a profile, to be changed until the next call of Profile.
func (a *Assembler) Header(p ProfileIndex) *Header { return &a.batch.profiles[p].Header }

// Observe adds an observation to the sample of an identity. If the profile has only values, they are added up; a value
// with which the sum would overflow becomes a sample of its own.
func (a *Assembler) Observe(p ProfileIndex, id Identity, o Observation) {
	if values := []int64{o.Value}; a.batch.profiles[p].shape.Timestamps {
		a.samples.Observe(int32(p), id, o.Timestamp, values)
	} else {
		a.samples.Add(int32(p), id, values)
	}
}

// ShiftTimestamps adds nanos to the timestamps of all observations, for formats that have the clock at the end.
func (a *Assembler) ShiftTimestamps(nanos uint64) {
	for i := range a.samples.Observations {
		a.samples.Observations[i].Timestamp += nanos
	}
}

// Build returns a message of all that has been added. It shares its strings with the Dictionary: if they are parts of
// something much larger, call DetachStrings on the Dictionary first.
func (a *Assembler) Build() pprofile.Profiles {
	b := &a.batch
	b.values, b.timestamps = b.values[:0], b.timestamps[:0]
	for i := range b.profiles {
		b.profiles[i].count = 0
	}
	for i := range a.samples.Entries {
		b.profiles[a.samples.Entries[i].Group].count++
	}
	next := int32(0)
	for i := range b.profiles {
		p := &b.profiles[i]
		p.first, next, p.count = next, next+p.count, 0
	}
	b.samples.Entries = slices.Grow(b.samples.Entries[:0], int(next))[:next]
	for i := range a.samples.Entries {
		s := &a.samples.Entries[i]
		p := &b.profiles[s.Group]
		b.samples.Entries[p.first+p.count] = sample{Identity: s.Identity, Observed: a.flatten(s.Observed, p.shape)}
		p.count++
	}
	return b.Whole()
}

// flatten appends the observations of a list to those of the batch.
func (a *Assembler) flatten(list dictionary.ObservationList, shape Shape) observations {
	b := &a.batch
	to := observations{firstValue: uint32(len(b.values)), firstTimestamp: uint32(len(b.timestamps))}
	for i := list.First; i >= 0; i = a.samples.Observations[i].Next {
		if shape.Values {
			b.values = append(b.values, a.samples.Values[i])
		}
		if shape.Timestamps {
			b.timestamps = append(b.timestamps, a.samples.Observations[i].Timestamp)
		}
		to.count++
	}
	return to
}
