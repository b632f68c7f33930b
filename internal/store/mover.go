// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// dictionaryMover copies entries of one dictionary into another, each once, with all that they refer to.
type dictionaryMover struct {
	from, to *dictionary.Dictionary

	strings, functions, mappings, locations, stacks, attributes, sets, links []int32

	list  []int32
	lines []dictionary.Line
}

// newMover returns one of entries of from, which must not change meanwhile, into to.
func newMover(from, to *dictionary.Dictionary) *dictionaryMover {
	return &dictionaryMover{
		from: from, to: to,
		strings: make([]int32, from.Strings.Len()), functions: make([]int32, from.Functions.Len()),
		mappings: make([]int32, from.Mappings.Len()), locations: make([]int32, from.Locations.Len()),
		stacks: make([]int32, from.Stacks.Len()), attributes: make([]int32, from.Attributes.Len()),
		sets: make([]int32, from.AttributeSets.Len()), links: make([]int32, from.Links.Len()),
	}
}

// str returns a string's index in the other dictionary.
func (m *dictionaryMover) str(i dictionary.StringIndex) dictionary.StringIndex {
	if i != 0 && m.strings[i] == 0 {
		m.strings[i] = int32(m.to.Strings.Intern(m.from.Strings.At(i)))
	}
	return dictionary.StringIndex(m.strings[i])
}

// link returns a link's index in the other dictionary.
func (m *dictionaryMover) link(i dictionary.LinkIndex) dictionary.LinkIndex {
	if i != 0 && m.links[i] == 0 {
		m.links[i] = int32(m.to.Links.Intern(m.from.Links.At(i)))
	}
	return dictionary.LinkIndex(m.links[i])
}

// attribute returns an attribute's index in the other dictionary.
func (m *dictionaryMover) attribute(i dictionary.AttributeIndex) dictionary.AttributeIndex {
	if i != 0 && m.attributes[i] == 0 {
		entry := m.from.Attributes.At(i)
		entry.Key, entry.Unit = m.str(entry.Key), m.str(entry.Unit)
		m.attributes[i] = int32(m.to.Attributes.Intern(entry))
	}
	return dictionary.AttributeIndex(m.attributes[i])
}

// set returns a set's index in the other dictionary.
func (m *dictionaryMover) set(i dictionary.AttributeSetIndex) dictionary.AttributeSetIndex {
	if i == 0 || m.sets[i] != 0 {
		return dictionary.AttributeSetIndex(m.sets[i])
	}
	set := make([]int32, 0, len(m.from.AttributeSets.At(i)))
	for _, a := range m.from.AttributeSets.At(i) {
		set = append(set, int32(m.attribute(dictionary.AttributeIndex(a))))
	}
	m.sets[i] = int32(m.to.AttributeSets.Intern(set))
	return dictionary.AttributeSetIndex(m.sets[i])
}

// allStacks moves stacks, and their mappings in the order of the dictionary: readers treat the first one as the main binary.
func (m *dictionaryMover) allStacks(stacks []dictionary.StackIndex) {
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
		m.stack(s)
	}
}

// stack returns a stack's index in the other dictionary.
func (m *dictionaryMover) stack(i dictionary.StackIndex) dictionary.StackIndex {
	if i == 0 || m.stacks[i] != 0 {
		return dictionary.StackIndex(m.stacks[i])
	}
	from := m.from.Stacks.At(i)
	m.list = slices.Grow(m.list[:0], len(from))
	for _, l := range from {
		m.list = append(m.list, m.location(l))
	}
	m.stacks[i] = int32(m.to.Stacks.Intern(m.list))
	return dictionary.StackIndex(m.stacks[i])
}

func (m *dictionaryMover) location(i int32) int32 {
	if i == 0 || m.locations[i] != 0 {
		return m.locations[i]
	}
	entry, lines := m.from.Locations.At(dictionary.LocationIndex(i))
	m.lines = m.lines[:0]
	for _, line := range lines {
		line.Function = m.function(line.Function)
		m.lines = append(m.lines, line)
	}
	entry.Mapping, entry.Attributes = m.mapping(entry.Mapping), m.set(entry.Attributes)
	m.locations[i] = int32(m.to.Locations.Intern(entry, m.lines))
	return m.locations[i]
}

func (m *dictionaryMover) mapping(i dictionary.MappingIndex) dictionary.MappingIndex {
	if i != 0 && m.mappings[i] == 0 {
		entry := m.from.Mappings.At(i)
		entry.Filename, entry.Attributes = m.str(entry.Filename), m.set(entry.Attributes)
		m.mappings[i] = int32(m.to.Mappings.Intern(entry))
	}
	return dictionary.MappingIndex(m.mappings[i])
}

func (m *dictionaryMover) function(i dictionary.FunctionIndex) dictionary.FunctionIndex {
	if i != 0 && m.functions[i] == 0 {
		entry := m.from.Functions.At(i)
		entry.Name, entry.SystemName, entry.Filename = m.str(entry.Name), m.str(entry.SystemName), m.str(entry.Filename)
		m.functions[i] = int32(m.to.Functions.Intern(entry))
	}
	return dictionary.FunctionIndex(m.functions[i])
}
