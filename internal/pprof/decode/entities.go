// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// interner turns the entries of a payload into those of a dictionary, when a sample reaches them.
type interner struct {
	stringTable
	labels labelSets
	// timestampLabels are the keys of labels that can be a sample's time, form the one that is.
	timestampLabels []string
	form            timestampForm
	// budget is the number of bytes that attribute values may still take.
	budget int64

	// Entries of the dictionary by their position in the payload, 0 if no sample has reached them yet.
	mappingIndices, functionIndices, locationIndices []int32
	// unnamed is the name of functions that have none.
	unnamed string
	// buildIDs are the attributes of build ids, by their index in string_table.
	buildIDs map[uint64]int32

	// Scratch of one location, and of one sample.
	lines []dictionary.Line
	set   []int32
}

// minBudget is what the attribute values of any payload may take, in bytes: small payloads repeat themselves the most.
const minBudget = 64 << 10

// reset prepares for the payload, which has been scanned.
func (in *interner) reset() {
	in.stringTable.reset()
	in.labels.reset(in.payload.Data)
	in.timestampLabels = nil
	in.budget = minBudget + int64(min(in.limits.MaxExpansion, math.MaxInt32))*int64(len(in.payload.Data))
	in.mappingIndices = dictionary.Zeroed(in.mappingIndices, len(in.payload.Mappings))
	in.functionIndices = dictionary.Zeroed(in.functionIndices, len(in.payload.Functions))
	in.locationIndices = dictionary.Zeroed(in.locationIndices, len(in.payload.Locations))
	clear(in.buildIDs)
}

// release forgets what belongs to the payload, and the dictionary, which can be the caller's.
func (in *interner) release() {
	in.payload.Data, in.dict, in.content, in.repaired, in.unnamed = nil, nil, "", nil, ""
	in.form = timestampForm{}
	in.labels.reset(nil)
}

// bytes estimates the memory in use, without the dictionary's.
func (in *interner) bytes() int {
	return dictionary.BytesOf(in.indices) + in.labels.bytes() + dictionary.BytesOf(in.mappingIndices) +
		dictionary.BytesOf(in.functionIndices) + dictionary.BytesOf(in.locationIndices) + dictionary.BytesOf(in.lines) +
		dictionary.BytesOf(in.set)
}

// spend subtracts bytes from the budget, and reports whether that many were left.
func (in *interner) spend(bytes int) bool {
	if int64(bytes) > in.budget {
		return false
	}
	in.budget -= int64(bytes)
	return true
}

// stack interns the locations at these positions, and then the stack.
func (in *interner) stack(positions []int32) dictionary.StackIndex {
	indices := in.locationIndices
	for k, position := range positions {
		known := indices[position]
		if known == 0 {
			known = in.location(position)
			indices[position] = known
		}
		positions[k] = known
	}
	return in.dict.Stacks.Intern(positions)
}

// location interns the location at this position with everything it refers to. The payload must have its strings.
func (in *interner) location(position int32) int32 {
	l := &in.payload.Locations[position]
	lines := in.lines[:0]
	for _, line := range in.payload.Lines[l.LineStart:l.LineEnd] {
		lines = append(lines, dictionary.Line{
			Function: in.function(line.FunctionID),
			Line:     in.notNegative(line.Line),
			Column:   in.notNegative(line.Column),
		})
	}
	in.lines = lines
	entry := dictionary.Location{Mapping: in.mapping(l.MappingID), Address: l.Address}
	if l.IsFolded {
		entry.Attributes = in.attributeSet(in.attribute(scan.AttributeIsFolded, dictionary.BoolValue(true)))
	}
	return int32(in.dict.Locations.Intern(entry, lines))
}

func (in *interner) notNegative(line int64) int64 {
	if line < 0 {
		in.counts.Repaired[scan.RepairNegativeLine]++
		return 0
	}
	return line
}

func (in *interner) function(id uint64) dictionary.FunctionIndex {
	if id == 0 {
		return 0
	}
	position, ok := in.payload.FunctionIDs.Find(id)
	if !ok {
		in.counts.Repaired[scan.RepairUnknownReference]++
		return 0
	}
	if known := in.functionIndices[position]; known != 0 {
		return dictionary.FunctionIndex(known)
	}
	f := &in.payload.Functions[position]
	name := in.intern(f.Name)
	if name == 0 {
		name = in.dict.Strings.Intern(in.unnamed)
	}
	i := in.dict.Functions.Intern(dictionary.Function{
		Name:       name,
		SystemName: in.intern(f.SystemName),
		Filename:   in.intern(f.Filename),
		StartLine:  in.notNegative(f.StartLine),
	})
	in.functionIndices[position] = int32(i)
	return i
}

func (in *interner) mapping(id uint64) dictionary.MappingIndex {
	position, ok := in.payload.MappingOf(id)
	if !ok {
		if id != 0 {
			in.counts.Repaired[scan.RepairUnknownReference]++
		}
		return 0
	}
	if known := in.mappingIndices[position]; known != 0 {
		return dictionary.MappingIndex(known)
	}
	m := &in.payload.Mappings[position]
	i := in.dict.Mappings.Intern(in.mappingEntry(m))
	in.mappingIndices[position] = int32(i)
	return i
}

func (in *interner) mappingEntry(m *scan.Mapping) dictionary.Mapping {
	entry := dictionary.Mapping{
		MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset, Filename: in.intern(m.Filename),
	}
	var attributes []int32
	if m.Start >= m.Limit && m.Start|m.Limit != 0 {
		entry.MemoryStart, entry.MemoryLimit = 0, 0
		attributes = append(attributes,
			in.attribute(scan.AttributeMappingStart, dictionary.IntValue(int64(m.Start))),
			in.attribute(scan.AttributeMappingLimit, dictionary.IntValue(int64(m.Limit))))
	}
	if id := in.buildID(m.BuildID); id != 0 {
		attributes = append(attributes, id)
	}
	for k, isSet := range m.Has {
		if isSet {
			attributes = append(attributes, in.attribute(scan.MappingFlags[k], dictionary.BoolValue(true)))
		}
	}
	entry.Attributes = in.attributeSet(attributes...)
	return entry
}

// buildID interns a build id as an attribute, once for each string: mappings may share a long one. It returns 0 for an
// empty one.
func (in *interner) buildID(i uint64) int32 {
	if attribute, ok := in.buildIDs[i]; ok {
		return attribute
	}
	id := in.at(i)
	if id == "" {
		return 0
	}
	key := scan.AttributeBuildIDGNU // hexadecimal digits
	if strings.Contains(id, "/") {
		key = scan.AttributeBuildIDGo // four hashes with slashes between them
	}
	attribute := in.attribute(key, dictionary.StringValue(id))
	in.buildIDs[i] = attribute
	return attribute
}

// attribute interns an attribute without a unit.
func (in *interner) attribute(key string, value dictionary.Value) int32 {
	return int32(in.dict.Attributes.Intern(dictionary.Attribute{Key: in.dict.Strings.Intern(key), Value: value}))
}

func (in *interner) attributeSet(attributes ...int32) dictionary.AttributeSetIndex {
	return in.dict.AttributeSets.Intern(attributes)
}

// orderMappings restores the payload's order of mappings: they were interned as samples
// reached them, and readers treat the first one as the main binary.
func (in *interner) orderMappings() {
	remap := make([]dictionary.MappingIndex, in.dict.Mappings.Len())
	next, moved := dictionary.MappingIndex(1), false
	for _, i := range in.mappingIndices {
		if remap[i] != 0 || i == 0 {
			continue
		}
		remap[i] = next
		moved = moved || next != dictionary.MappingIndex(i)
		next++
	}
	if moved {
		in.dict.OrderMappings(remap)
	}
}
