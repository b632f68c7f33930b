// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// This file is for a Dictionary that outlives the messages it was filled from.

// arena holds copies of texts in large blocks.
type arena struct {
	block strings.Builder
	bytes int
}

const (
	arenaBlockBytes = 16 << 10
	// arenaOwnBytes is the size from which a text has an allocation of its own.
	arenaOwnBytes = arenaBlockBytes / 8
)

func (a *arena) clone(s string) string {
	if len(s) >= arenaOwnBytes {
		a.bytes += len(s) + len(s)/8 // the allocator rounds up
		return strings.Clone(s)
	}
	if a.block.Cap()-a.block.Len() < len(s) {
		a.block = strings.Builder{}
		a.block.Grow(arenaBlockBytes)
		a.bytes += arenaBlockBytes
	}
	start := a.block.Len()
	a.block.WriteString(s)
	return a.block.String()[start:]
}

// NewCopying returns a dictionary that copies the texts that it interns, so that it keeps nothing else of a message alive.
func NewCopying() *Dictionary {
	d := New()
	texts := &arena{}
	d.Strings.kept, d.Attributes.kept = texts, texts
	return d
}

// MemoryBytes estimates what the dictionary occupies: its tables, their indices, and the texts if it keeps copies.
func (d *Dictionary) MemoryBytes() int {
	n := d.Strings.MemoryBytes() + d.Functions.MemoryBytes() + d.Mappings.MemoryBytes() + d.Locations.MemoryBytes()
	n += d.Stacks.MemoryBytes() + d.Links.MemoryBytes() + d.Attributes.MemoryBytes() + d.AttributeSets.MemoryBytes()
	if d.Strings.kept != nil {
		n += d.Strings.kept.bytes
	}
	return n
}

func (x *HashIndex) bytes() int { return BytesOf(x.slots) + BytesOf(x.spare) }

// BytesOf returns the size of the memory behind a slice.
func BytesOf[T any](s []T) int {
	var entry T
	return cap(s) * int(unsafe.Sizeof(entry))
}

// Freeze frees the memory that only Intern needs. Afterwards the dictionary is read-only; Strings.Lookup still works.
func (d *Dictionary) Freeze() {
	d.Strings.entries = clip(d.Strings.entries)
	d.Strings.index.spare = nil
	d.Functions.freeze()
	d.Mappings.freeze()
	d.Locations.freeze()
	d.Stacks.freeze()
	d.Links.freeze()
	d.Attributes.freeze()
	d.AttributeSets.freeze()
}

// Snapshot returns the dictionary as it is now, for readers that go on while entries are interned into d: tables only grow, and what
// they have does not change. OrderMappings and Reset must not be called.
func (d *Dictionary) Snapshot() *Dictionary {
	s := *d
	s.Strings.index, s.Functions.index, s.Mappings.index, s.Locations.index = HashIndex{}, HashIndex{}, HashIndex{}, HashIndex{}
	s.Stacks.index, s.Links.index, s.Attributes.index, s.AttributeSets.index = HashIndex{}, HashIndex{}, HashIndex{}, HashIndex{}
	s.Strings.kept, s.Attributes.kept = nil, nil
	return &s
}

// clip copies s if much of its memory is unused.
func clip[T any](s []T) []T {
	if cap(s)-len(s) < len(s)/16 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// Text returns a value as text: a string as it is, an array or a map as JSON.
func (v Value) Text() string {
	switch v.kind {
	case pcommon.ValueTypeStr:
		return v.text
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(int64(v.bits), 10)
	default:
		value := pcommon.NewValueEmpty()
		v.CopyTo(value)
		return value.AsString()
	}
}

// Mover copies entries of one dictionary into another, each once, with all that they refer to.
type Mover struct {
	from, to *Dictionary

	strings, functions, mappings, locations, stacks, attributes, sets, links []int32

	list  []int32
	lines []Line
}

// NewMover returns a Mover of entries of from, which must not change meanwhile, into to.
func NewMover(from, to *Dictionary) *Mover {
	return &Mover{
		from: from, to: to,
		strings: make([]int32, from.Strings.Len()), functions: make([]int32, from.Functions.Len()),
		mappings: make([]int32, from.Mappings.Len()), locations: make([]int32, from.Locations.Len()),
		stacks: make([]int32, from.Stacks.Len()), attributes: make([]int32, from.Attributes.Len()),
		sets: make([]int32, from.AttributeSets.Len()), links: make([]int32, from.Links.Len()),
	}
}

// String returns a string's index in the other dictionary.
func (m *Mover) String(i StringIndex) StringIndex {
	if i != 0 && m.strings[i] == 0 {
		m.strings[i] = int32(m.to.Strings.Intern(m.from.Strings.At(i)))
	}
	return StringIndex(m.strings[i])
}

// Link returns a link's index in the other dictionary.
func (m *Mover) Link(i LinkIndex) LinkIndex {
	if i != 0 && m.links[i] == 0 {
		m.links[i] = int32(m.to.Links.Intern(m.from.Links.At(i)))
	}
	return LinkIndex(m.links[i])
}

// Attribute returns an attribute's index in the other dictionary.
func (m *Mover) Attribute(i AttributeIndex) AttributeIndex {
	if i != 0 && m.attributes[i] == 0 {
		entry := m.from.Attributes.At(i)
		entry.Key, entry.Unit = m.String(entry.Key), m.String(entry.Unit)
		m.attributes[i] = int32(m.to.Attributes.Intern(entry))
	}
	return AttributeIndex(m.attributes[i])
}

// AttributeSet returns a set's index in the other dictionary.
func (m *Mover) AttributeSet(i AttributeSetIndex) AttributeSetIndex {
	if i == 0 || m.sets[i] != 0 {
		return AttributeSetIndex(m.sets[i])
	}
	set := make([]int32, 0, len(m.from.AttributeSets.At(i)))
	for _, a := range m.from.AttributeSets.At(i) {
		set = append(set, int32(m.Attribute(AttributeIndex(a))))
	}
	m.sets[i] = int32(m.to.AttributeSets.Intern(set))
	return AttributeSetIndex(m.sets[i])
}

// Stacks moves stacks, and their mappings in the order of the dictionary: readers treat the first one as the main binary.
func (m *Mover) Stacks(stacks []StackIndex) {
	used := make([]bool, m.from.Mappings.Len())
	for _, s := range stacks {
		for _, l := range m.from.Stacks.At(s) {
			used[m.from.Locations.entries[l].Mapping] = true
		}
	}
	for i, isUsed := range used {
		if isUsed {
			m.mapping(MappingIndex(i))
		}
	}
	for _, s := range stacks {
		m.Stack(s)
	}
}

// Stack returns a stack's index in the other dictionary.
func (m *Mover) Stack(i StackIndex) StackIndex {
	if i == 0 || m.stacks[i] != 0 {
		return StackIndex(m.stacks[i])
	}
	from := m.from.Stacks.At(i)
	m.list = slices.Grow(m.list[:0], len(from))
	for _, l := range from {
		m.list = append(m.list, m.location(l))
	}
	m.stacks[i] = int32(m.to.Stacks.Intern(m.list))
	return StackIndex(m.stacks[i])
}

func (m *Mover) location(i int32) int32 {
	if i == 0 || m.locations[i] != 0 {
		return m.locations[i]
	}
	entry, lines := m.from.Locations.At(LocationIndex(i))
	m.lines = m.lines[:0]
	for _, line := range lines {
		line.Function = m.function(line.Function)
		m.lines = append(m.lines, line)
	}
	entry.Mapping, entry.Attributes = m.mapping(entry.Mapping), m.AttributeSet(entry.Attributes)
	m.locations[i] = int32(m.to.Locations.Intern(entry, m.lines))
	return m.locations[i]
}

func (m *Mover) mapping(i MappingIndex) MappingIndex {
	if i != 0 && m.mappings[i] == 0 {
		entry := m.from.Mappings.At(i)
		entry.Filename, entry.Attributes = m.String(entry.Filename), m.AttributeSet(entry.Attributes)
		m.mappings[i] = int32(m.to.Mappings.Intern(entry))
	}
	return MappingIndex(m.mappings[i])
}

func (m *Mover) function(i FunctionIndex) FunctionIndex {
	if i != 0 && m.functions[i] == 0 {
		entry := m.from.Functions.At(i)
		entry.Name, entry.SystemName, entry.Filename = m.String(entry.Name), m.String(entry.SystemName), m.String(entry.Filename)
		m.functions[i] = int32(m.to.Functions.Intern(entry))
	}
	return FunctionIndex(m.functions[i])
}
