// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package mover copies entries of one dictionary into another, each once, with all that they refer to.
package mover

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Mover copies entries of one dictionary into another. It knows the new index of each that it has copied.
type Mover struct {
	from, to *dictionary.Dictionary

	// Mappings has the new index of each mapping, or 0.
	Mappings []dictionary.MappingIndex

	strings    []dictionary.StringIndex
	functions  []dictionary.FunctionIndex
	locations  []dictionary.LocationIndex
	stacks     []dictionary.StackIndex
	attributes []dictionary.AttributeIndex
	sets       []dictionary.AttributeSetIndex
	links      []dictionary.LinkIndex

	list  []int32
	lines []dictionary.Line
}

// New returns a Mover of entries of from, which may only grow meanwhile, into to.
func New(from, to *dictionary.Dictionary) *Mover {
	return &Mover{
		from: from, to: to,
		strings:    make([]dictionary.StringIndex, from.Strings.Len()),
		functions:  make([]dictionary.FunctionIndex, from.Functions.Len()),
		Mappings:   make([]dictionary.MappingIndex, from.Mappings.Len()),
		locations:  make([]dictionary.LocationIndex, from.Locations.Len()),
		stacks:     make([]dictionary.StackIndex, from.Stacks.Len()),
		attributes: make([]dictionary.AttributeIndex, from.Attributes.Len()),
		sets:       make([]dictionary.AttributeSetIndex, from.AttributeSets.Len()),
		links:      make([]dictionary.LinkIndex, from.Links.Len()),
	}
}

// End releases all that only copying needs. Entries that are not copied yet must not be asked for.
func (m *Mover) End() { *m = Mover{stacks: m.stacks, sets: m.sets} }

// moved returns the index in the other dictionary of an entry, which move moves the first time. Entry 0 is the same in
// all dictionaries.
func moved[I ~int32](known *[]I, i I, move func() I) I {
	if more := int(i) + 1 - len(*known); more > 0 {
		*known = append(*known, make([]I, more)...)
	}
	if i != 0 && (*known)[i] == 0 {
		to := move()
		(*known)[i] = to
	}
	return (*known)[i]
}

// String returns the new index of a string.
func (m *Mover) String(i dictionary.StringIndex) dictionary.StringIndex {
	return moved(&m.strings, i, func() dictionary.StringIndex { return m.to.Strings.Intern(m.from.Strings.At(i)) })
}

// Link returns the new index of a link.
func (m *Mover) Link(i dictionary.LinkIndex) dictionary.LinkIndex {
	return moved(&m.links, i, func() dictionary.LinkIndex { return m.to.Links.Intern(m.from.Links.At(i)) })
}

// Attribute returns the new index of an attribute.
func (m *Mover) Attribute(i dictionary.AttributeIndex) dictionary.AttributeIndex {
	return moved(&m.attributes, i, func() dictionary.AttributeIndex {
		entry := m.from.Attributes.At(i)
		entry.Key, entry.Unit = m.String(entry.Key), m.String(entry.Unit)
		return m.to.Attributes.Intern(entry)
	})
}

// Set returns the new index of a set of attributes.
func (m *Mover) Set(i dictionary.AttributeSetIndex) dictionary.AttributeSetIndex {
	return moved(&m.sets, i, func() dictionary.AttributeSetIndex {
		set := make([]int32, 0, len(m.from.AttributeSets.At(i)))
		for _, a := range m.from.AttributeSets.At(i) {
			set = append(set, int32(m.Attribute(dictionary.AttributeIndex(a))))
		}
		return m.to.AttributeSets.Intern(set)
	})
}

// Key moves what a sample refers to.
func (m *Mover) Key(key *model.RowKey) {
	key.Stack = int32(m.Stack(dictionary.StackIndex(key.Stack)))
	key.Attributes = int32(m.Set(dictionary.AttributeSetIndex(key.Attributes)))
	key.Link = int32(m.Link(dictionary.LinkIndex(key.Link)))
}

// Meta moves what the fields of a profile refer to.
func (m *Mover) Meta(meta *model.Meta) {
	for _, set := range meta.Sets() {
		*set = m.Set(*set)
	}
}

// Stacks moves stacks, and before them their mappings in the order of the dictionary: readers treat the first one as
// the main binary.
func (m *Mover) Stacks(stacks []dictionary.StackIndex) {
	used := make([]bool, m.from.Mappings.Len())
	for _, s := range stacks {
		for _, l := range m.from.Stacks.At(s) {
			location, _ := m.from.Locations.At(dictionary.LocationIndex(l))
			used[location.Mapping] = true
		}
	}
	for i, isUsed := range used {
		if isUsed {
			m.mapping(dictionary.MappingIndex(i))
		}
	}
	for _, s := range stacks {
		m.Stack(s)
	}
}

// Stack returns the new index of a stack.
func (m *Mover) Stack(i dictionary.StackIndex) dictionary.StackIndex {
	return moved(&m.stacks, i, func() dictionary.StackIndex {
		m.list = m.list[:0]
		for _, l := range m.from.Stacks.At(i) {
			m.list = append(m.list, int32(m.Location(dictionary.LocationIndex(l))))
		}
		return m.to.Stacks.Intern(m.list)
	})
}

// Location returns the new index of a location.
func (m *Mover) Location(i dictionary.LocationIndex) dictionary.LocationIndex {
	return moved(&m.locations, i, func() dictionary.LocationIndex {
		entry, lines := m.from.Locations.At(i)
		m.lines = m.lines[:0]
		for _, line := range lines {
			line.Function = m.function(line.Function)
			m.lines = append(m.lines, line)
		}
		entry.Mapping, entry.Attributes = m.mapping(entry.Mapping), m.Set(entry.Attributes)
		return m.to.Locations.Intern(entry, m.lines)
	})
}

func (m *Mover) mapping(i dictionary.MappingIndex) dictionary.MappingIndex {
	return moved(&m.Mappings, i, func() dictionary.MappingIndex {
		entry := m.from.Mappings.At(i)
		entry.Filename, entry.Attributes = m.String(entry.Filename), m.Set(entry.Attributes)
		return m.to.Mappings.Intern(entry)
	})
}

func (m *Mover) function(i dictionary.FunctionIndex) dictionary.FunctionIndex {
	return moved(&m.functions, i, func() dictionary.FunctionIndex {
		entry := m.from.Functions.At(i)
		entry.Name, entry.SystemName, entry.Filename = m.String(entry.Name), m.String(entry.SystemName),
			m.String(entry.Filename)
		return m.to.Functions.Intern(entry)
	})
}
