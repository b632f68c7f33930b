// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package dictionary builds the dictionary of OTLP profiles: seven tables whose entries are
// interned by value, each with its zero value at index 0 (opentelemetry-proto,
// profiles/v1development/profiles.proto, message ProfilesDictionary).
//
// Entries are kept in flat slices of comparable structs and found again by hash plus equality;
// pdata is written once, at the end. A Dictionary is not safe for concurrent use. It may be
// used again after Reset, which keeps its memory.
package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Dictionary is the set of tables that the samples of one message refer to.
type Dictionary struct {
	Strings       Strings
	Functions     Functions
	Mappings      Mappings
	Locations     Locations
	Stacks        Stacks
	Links         Links
	Attributes    Attributes
	AttributeSets AttributeSets
}

// TableID names a table. Entries refer only to entries of lower tables.
type TableID int8

// The tables. In OTLP a set of attributes is not an entry: it has neither an index nor a size.
const (
	StringTable TableID = iota
	AttributeTable
	SetTable
	FunctionTable
	MappingTable
	LocationTable
	StackTable
	LinkTable
	NumTables
)

type anyTable interface {
	Len() int
	MemoryBytes() int
	// freeze frees the memory that only Intern needs.
	freeze()
}

func (d *Dictionary) tables() [NumTables]anyTable {
	return [...]anyTable{
		&d.Strings, &d.Attributes, &d.AttributeSets, &d.Functions, &d.Mappings, &d.Locations, &d.Stacks, &d.Links,
	}
}

// Lens returns the number of entries in each table.
func (d *Dictionary) Lens() (lens [NumTables]int) {
	for t, table := range d.tables() {
		lens[t] = table.Len()
	}
	return lens
}

// References calls visit for each entry that an entry refers to.
func (d *Dictionary) References(t TableID, i int32, visit func(TableID, int32)) {
	switch t {
	case AttributeTable:
		a := &d.Attributes.entries[i]
		visit(StringTable, int32(a.Key))
		visit(StringTable, int32(a.Unit))
	case SetTable:
		for _, a := range d.AttributeSets.At(AttributeSetIndex(i)) {
			visit(AttributeTable, a)
		}
	case FunctionTable:
		f := &d.Functions.entries[i]
		visit(StringTable, int32(f.Name))
		visit(StringTable, int32(f.SystemName))
		visit(StringTable, int32(f.Filename))
	case MappingTable:
		m := &d.Mappings.entries[i]
		visit(StringTable, int32(m.Filename))
		visit(SetTable, int32(m.Attributes))
	case LocationTable:
		l, lines := d.Locations.At(LocationIndex(i))
		visit(MappingTable, int32(l.Mapping))
		visit(SetTable, int32(l.Attributes))
		for k := range lines {
			visit(FunctionTable, int32(lines[k].Function))
		}
	case StackTable:
		for _, l := range d.Stacks.At(StackIndex(i)) {
			visit(LocationTable, l)
		}
	default: // refers to nothing
	}
}

// Sizes are the numbers of entries to make room for. They are hints.
type Sizes struct {
	Strings, Functions, Locations, Stacks int
	// Lines are those of all locations, StackLocations the location indices of all stacks.
	Lines, StackLocations int
}

// room returns an empty slice with room for n entries, in the memory of s if that is large enough.
func room[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, 0, n)
	}
	return s[:0]
}

// Zeroed returns a slice of n zero values, in the memory of s if that suffices.
func Zeroed[S ~[]E, E any](s S, n int) S {
	if cap(s) < n {
		return make(S, n)
	}
	clear(s[:n])
	return s[:n]
}

// Sizes returns the numbers of entries that the dictionary has.
func (d *Dictionary) Sizes() Sizes {
	return Sizes{
		Strings: d.Strings.Len(), Functions: d.Functions.Len(), Locations: d.Locations.Len(), Stacks: d.Stacks.Len(),
	}
}

// New returns a dictionary that holds only the zero values.
func New() *Dictionary {
	d := &Dictionary{}
	d.Reset(Sizes{})
	return d
}

// Reset empties all tables but keeps their memory.
func (d *Dictionary) Reset(sizes Sizes) {
	d.Strings.Reset(sizes.Strings)
	d.Functions.Reset(sizes.Functions)
	d.Mappings.Reset(0)
	d.Locations.Reset(sizes.Locations, sizes.Lines)
	d.Stacks.Reset(sizes.Stacks, sizes.StackLocations)
	d.Links.Reset(0)
	d.Attributes.Reset(0)
	d.AttributeSets.Reset(0, 0)
}

// OrderMappings moves mapping i to remap[i], a permutation that leaves 0 where it is.
// It must be the last change before CopyTo: readers treat the first mapping as the main binary,
// and which one that is may be known late.
func (d *Dictionary) OrderMappings(remap []MappingIndex) {
	for i, m := range slices.Clone(d.Mappings.entries) {
		d.Mappings.entries[remap[i]] = m
	}
	for i := range d.Locations.entries {
		l := &d.Locations.entries[i]
		l.Mapping = remap[l.Mapping]
	}
}

// StringBytes returns the number of bytes of all strings and attribute values.
func (d *Dictionary) StringBytes() int { return d.Strings.bytes + d.Attributes.bytes }

// DetachStrings copies all strings, so that nothing they were cut from stays in memory.
func (d *Dictionary) DetachStrings() {
	d.Strings.detach()
	d.Attributes.detach()
}

// CopyTo writes all tables to dst, over what dst holds. The Dictionary keeps nothing of dst.
func (d *Dictionary) CopyTo(dst pprofile.ProfilesDictionary) { (&Writer{Dict: d}).Write(dst) }
