// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// CopyTo writes all tables to dst. What dst holds is overwritten, and its memory used again: most of
// what writing a dictionary costs is memory, and a message that has been taken apart has some of the right shape.
func (s *Subset) CopyTo(dst pprofile.ProfilesDictionary) {
	s.copyStrings(dst)
	s.copyFunctions(dst.FunctionTable())
	s.copyMappings(dst.MappingTable())
	s.copyLocations(dst.LocationTable())
	s.copyStacks(dst.StackTable())
	s.copyLinks(dst.LinkTable())
	s.copyAttributes(dst.AttributeTable())
}

// entrySlice is what pdata's slices of entries have in common.
type entrySlice[T any] interface {
	Len() int
	EnsureCapacity(entries int)
	AppendEmpty() T
	RemoveIf(func(T) bool)
}

// resize makes t n entries long. It keeps the first of what t has, as they are.
func resize[T any, S entrySlice[T]](t S, n int) {
	if t.Len() > n {
		i := 0
		t.RemoveIf(func(T) bool {
			i++
			return i > n
		})
		return
	}
	t.EnsureCapacity(n)
	for range n - t.Len() {
		t.AppendEmpty()
	}
}

func (s *Subset) copyStrings(dst pprofile.ProfilesDictionary) {
	s.stringScratch = s.stringScratch[:0]
	for _, i := range s.strings.order {
		s.stringScratch = append(s.stringScratch, s.dict.Strings.At(profiledict.StringIndex(i)))
	}
	dst.StringTable().FromRaw(s.stringScratch)
	clear(s.stringScratch)
}

func (s *Subset) copyFunctions(dst pprofile.FunctionSlice) {
	resize(dst, len(s.functions.order))
	for k, i := range s.functions.order {
		f, entry := s.dict.Functions.At(profiledict.FunctionIndex(i)), dst.At(k)
		entry.SetNameStrindex(s.String(f.Name))
		entry.SetSystemNameStrindex(s.String(f.SystemName))
		entry.SetFilenameStrindex(s.String(f.Filename))
		entry.SetStartLine(f.StartLine)
	}
}

func (s *Subset) copyMappings(dst pprofile.MappingSlice) {
	resize(dst, len(s.mappings.order))
	for k, i := range s.mappings.order {
		m, entry := s.dict.Mappings.At(profiledict.MappingIndex(i)), dst.At(k)
		entry.SetMemoryStart(m.MemoryStart)
		entry.SetMemoryLimit(m.MemoryLimit)
		entry.SetFileOffset(m.FileOffset)
		entry.SetFilenameStrindex(s.String(m.Filename))
		s.CopyAttributes(m.Attributes, entry.AttributeIndices())
	}
}

func (s *Subset) copyLocations(dst pprofile.LocationSlice) {
	resize(dst, len(s.locations.order))
	for k, i := range s.locations.order {
		l, lines := s.dict.Locations.At(profiledict.LocationIndex(i))
		entry := dst.At(k)
		entry.SetMappingIndex(s.mappings.index[l.Mapping])
		entry.SetAddress(l.Address)
		s.CopyAttributes(l.Attributes, entry.AttributeIndices())
		to := entry.Lines()
		if to.Len() != len(lines) {
			resize(to, len(lines))
		}
		for k := range lines {
			line := to.At(k)
			line.SetFunctionIndex(s.functions.index[lines[k].Function])
			line.SetLine(lines[k].Line)
			line.SetColumn(lines[k].Column)
		}
	}
}

func (s *Subset) copyStacks(dst pprofile.StackSlice) {
	resize(dst, len(s.stacks.order))
	for k, i := range s.stacks.order {
		list := s.dict.Stacks.At(profiledict.StackIndex(i))
		s.scratch = slices.Grow(s.scratch[:0], len(list))[:len(list)]
		for k, l := range list {
			s.scratch[k] = s.locations.index[l]
		}
		dst.At(k).LocationIndices().FromRaw(s.scratch)
	}
}

func (s *Subset) copyLinks(dst pprofile.LinkSlice) {
	resize(dst, len(s.links.order))
	for k, i := range s.links.order {
		l, entry := s.dict.Links.At(profiledict.LinkIndex(i)), dst.At(k)
		entry.SetTraceID(l.TraceID)
		entry.SetSpanID(l.SpanID)
	}
}

func (s *Subset) copyAttributes(dst pprofile.KeyValueAndUnitSlice) {
	resize(dst, 0) // a value cannot be overwritten by an empty one
	resize(dst, len(s.attributes.order))
	for k, i := range s.attributes.order {
		a, entry := s.dict.Attributes.At(profiledict.AttributeIndex(i)), dst.At(k)
		entry.SetKeyStrindex(s.String(a.Key))
		entry.SetUnitStrindex(s.String(a.Unit))
		a.Value.CopyTo(entry.Value())
	}
}
