// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Subset is the part of a Dictionary that some samples reach, in an order of its own. Use it as
// Reset, Use* for all that refers to the dictionary, Arrange, then the indices, Size and CopyTo.
// The Dictionary must not change from Reset on. Unlike CopyTo of the whole Dictionary it writes nothing
// that is not referred to.
type Subset struct {
	dict *profiledict.Dictionary

	strings, functions, mappings, locations, stacks, attributes, links tableUse

	// setUses[i] is how often attribute set i is referred to.
	setUses []uint32
	sets    []profiledict.AttributeSetIndex // those in use

	// isReordered reports that entries are in another order than in dict.
	isReordered   bool
	frequencies   frequencyScratch
	largest       int // entry, when last measured
	scratch       []int32
	stringScratch []string
}

// Reset makes the subset an empty one of dict.
func (s *Subset) Reset(dict *profiledict.Dictionary) {
	s.dict = dict
	s.strings.reset(dict.Strings.Len())
	s.functions.reset(dict.Functions.Len())
	s.mappings.reset(dict.Mappings.Len())
	s.locations.reset(dict.Locations.Len())
	s.stacks.reset(dict.Stacks.Len())
	s.attributes.reset(dict.Attributes.Len())
	s.links.reset(dict.Links.Len())
	if sets := dict.AttributeSets.Len(); cap(s.setUses) < sets {
		s.setUses = make([]uint32, sets)
	} else {
		s.setUses = s.setUses[:sets]
		clear(s.setUses)
	}
	s.sets = s.sets[:0]
}

// UseString counts a reference to a string.
func (s *Subset) UseString(i profiledict.StringIndex) { s.strings.uses[i]++ }

// UseLink counts a reference to a link.
func (s *Subset) UseLink(i profiledict.LinkIndex) { s.links.uses[i]++ }

// UseAttributes counts a reference to a set of attributes.
func (s *Subset) UseAttributes(i profiledict.AttributeSetIndex) {
	if i == 0 {
		return
	}
	if s.setUses[i]++; s.setUses[i] == 1 {
		s.sets = append(s.sets, i)
	}
}

// UseStack counts a reference to a stack, and, where it is the first, what the stack refers to.
func (s *Subset) UseStack(i profiledict.StackIndex) {
	if !s.stacks.add(int32(i)) {
		return
	}
	uses := s.locations.uses
	for _, l := range s.dict.Stacks.At(i) {
		if uses[l]++; uses[l] == 1 {
			s.reachLocation(profiledict.LocationIndex(l))
		}
	}
}

func (s *Subset) reachLocation(i profiledict.LocationIndex) {
	l, lines := s.dict.Locations.At(i)
	s.UseAttributes(l.Attributes)
	if s.mappings.add(int32(l.Mapping)) {
		m := s.dict.Mappings.At(l.Mapping)
		s.UseString(m.Filename)
		s.UseAttributes(m.Attributes)
	}
	for k := range lines {
		if f := lines[k].Function; s.functions.add(int32(f)) {
			function := s.dict.Functions.At(f)
			s.UseString(function.Name)
			s.UseString(function.SystemName)
			s.UseString(function.Filename)
		}
	}
}

// Arrange returns every entry its index: in the order they were interned in, or, byFrequency, with
// those referred to most at the indices that are encoded shortest. Mappings keep their order in any case: a reader takes
// the first for the main binary.
func (s *Subset) Arrange(byFrequency bool) {
	s.isReordered = byFrequency
	for _, set := range s.sets {
		for _, a := range s.dict.AttributeSets.At(set) {
			// Only whether the count is above others matters; it may not wrap.
			s.attributes.uses[a] += min(s.setUses[set], 1<<31-s.attributes.uses[a])
		}
	}
	for a, n := range s.attributes.uses {
		if n != 0 {
			attribute := s.dict.Attributes.At(profiledict.AttributeIndex(a))
			s.UseString(attribute.Key)
			s.UseString(attribute.Unit)
		}
	}
	for _, t := range s.tables() {
		t.collect()
		if byFrequency && t != &s.mappings {
			t.byFrequency(&s.frequencies)
		}
		t.number()
	}
}

// table returns what is used of a table, or nil if t is not one of the dictionary's seven tables.
func (s *Subset) table(t table) *tableUse {
	switch t {
	case tableString:
		return &s.strings
	case tableAttribute:
		return &s.attributes
	case tableFunction:
		return &s.functions
	case tableMapping:
		return &s.mappings
	case tableLocation:
		return &s.locations
	case tableStack:
		return &s.stacks
	case tableLink:
		return &s.links
	default:
		return nil
	}
}

// isUsed reports whether the subset has an entry. It is true for entries that are in no table of the dictionary.
func (s *Subset) isUsed(t table, i int32) bool {
	uses := s.table(t)
	return uses == nil || uses.uses[i] != 0
}

func (s *Subset) tables() [7]*tableUse {
	return [...]*tableUse{&s.mappings, &s.locations, &s.functions, &s.links, &s.strings, &s.attributes, &s.stacks}
}

// String returns the index of a string in the subset.
func (s *Subset) String(i profiledict.StringIndex) int32 { return s.strings.index[i] }

// Stack returns the index of a stack in the subset.
func (s *Subset) Stack(i profiledict.StackIndex) int32 { return s.stacks.index[i] }

// Link returns the index of a link in the subset.
func (s *Subset) Link(i profiledict.LinkIndex) int32 { return s.links.index[i] }

// HasString reports whether the subset has a string.
func (s *Subset) HasString(i profiledict.StringIndex) bool { return i == 0 || s.strings.uses[i] != 0 }

// Strings returns the number of strings in the subset.
func (s *Subset) Strings() int { return len(s.strings.order) }

// Entries returns the number of entries of each table, zero values included, in the order of Tables.
func (s *Subset) Entries() (n [7]int) {
	for i, t := range s.tables() {
		n[i] = len(t.order)
	}
	return n
}

// Tables names the seven tables as metrics do, in the order of ProfilesDictionary's fields.
var Tables = [7]string{"mapping", "location", "function", "link", "string", "attribute", "stack"}

// EntriesOf counts the entries of each table of a message, in the order of Tables.
func EntriesOf(d pprofile.ProfilesDictionary) [7]int {
	return [7]int{
		d.MappingTable().Len(), d.LocationTable().Len(), d.FunctionTable().Len(), d.LinkTable().Len(),
		d.StringTable().Len(), d.AttributeTable().Len(), d.StackTable().Len(),
	}
}

// attributeList returns the indices of a set in ascending order. They are borrowed until the next call.
func (s *Subset) attributeList(i profiledict.AttributeSetIndex) []int32 {
	s.scratch = s.scratch[:0]
	for _, a := range s.dict.AttributeSets.At(i) {
		s.scratch = append(s.scratch, s.attributes.index[a])
	}
	slices.Sort(s.scratch)
	return s.scratch
}

// CopyAttributes writes the attribute indices of a set over those of dst.
func (s *Subset) CopyAttributes(i profiledict.AttributeSetIndex, dst pcommon.Int32Slice) {
	if i != 0 {
		dst.FromRaw(s.attributeList(i))
	} else if dst.Len() > 0 {
		dst.FromRaw(nil)
	}
}

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

// isWhole reports whether every entry of the dictionary is used and keeps its index.
func (s *Subset) isWhole() bool {
	d := s.dict
	return !s.isReordered && len(s.strings.order) == d.Strings.Len() && len(s.functions.order) == d.Functions.Len() &&
		len(s.mappings.order) == d.Mappings.Len() && len(s.locations.order) == d.Locations.Len() &&
		len(s.stacks.order) == d.Stacks.Len() && len(s.attributes.order) == d.Attributes.Len() && len(s.links.order) == d.Links.Len()
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
