// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// isReadable reports whether all strings that a location refers to, through its mapping and its
// functions, are there. It is asked before anything is interned, so that a sample that is left
// out leaves nothing behind.
func (d *decoder) isReadable(l *rawLocation) bool {
	if d.hasString(d.maxString) {
		return true // as in all payloads but damaged ones
	}
	if i, ok := d.mappingIDs.find(l.mappingID); ok {
		if m := &d.mappings[i]; !d.hasString(m.filename) || !d.hasString(m.buildID) {
			return false
		}
	}
	for _, line := range d.lines[l.lineStart:l.lineEnd] {
		if i, ok := d.functionIDs.find(line.functionID); ok && line.functionID != 0 {
			if f := &d.functions[i]; !d.hasString(f.name) || !d.hasString(f.systemName) || !d.hasString(f.filename) {
				return false
			}
		}
	}
	return true
}

// location interns the location at this position, which must be readable, with all it refers to.
func (d *decoder) location(position int) int32 {
	l := &d.locations[position]
	lines := d.lineScratch[:0]
	for _, line := range d.lines[l.lineStart:l.lineEnd] {
		lines = append(lines, profiledict.Line{
			Function: d.function(line.functionID),
			Line:     d.notNegative(line.line),
			Column:   d.notNegative(line.column),
		})
	}
	d.lineScratch = lines
	entry := profiledict.Location{Mapping: d.mapping(l.mappingID), Address: l.address}
	if l.folded {
		entry.Attributes = d.set(d.attribute(pprofscan.AttributeIsFolded, profiledict.BoolValue(true)))
	}
	i := int32(d.dict.Locations.Intern(entry, lines))
	d.locationIndices[position] = i
	return i
}

func (d *decoder) notNegative(n int64) int64 {
	if n < 0 {
		d.stats.Repaired[RepairNegativeLine]++
		return 0
	}
	return n
}

func (d *decoder) function(id uint64) profiledict.FunctionIndex {
	if id == 0 {
		return 0
	}
	position, ok := d.functionIDs.find(id)
	if !ok {
		d.stats.Repaired[RepairUnknownReference]++
		return 0
	}
	if known := d.functionIndices[position]; known != unresolved {
		return profiledict.FunctionIndex(known)
	}
	f := &d.functions[position]
	i := d.dict.Functions.Intern(profiledict.Function{
		Name:       d.intern(f.name),
		SystemName: d.intern(f.systemName),
		Filename:   d.intern(f.filename),
		StartLine:  d.notNegative(f.startLine),
	})
	d.functionIndices[position] = int32(i)
	return i
}

func (d *decoder) mapping(id uint64) profiledict.MappingIndex {
	position, ok := d.mappingIDs.find(id)
	if !ok {
		if id != 0 {
			d.stats.Repaired[RepairUnknownReference]++
		}
		return 0
	}
	if known := d.mappingIndices[position]; known != unresolved {
		return profiledict.MappingIndex(known)
	}
	m := &d.mappings[position]
	i := d.dict.Mappings.Intern(d.mappingEntry(m))
	d.mappingIndices[position] = int32(i)
	return i
}

func (d *decoder) mappingEntry(m *rawMapping) profiledict.Mapping {
	entry := profiledict.Mapping{
		MemoryStart: m.start, MemoryLimit: m.limit, FileOffset: m.offset, Filename: d.intern(m.filename),
	}
	var attributes []int32
	if m.start >= m.limit && m.start|m.limit != 0 {
		entry.MemoryStart, entry.MemoryLimit = 0, 0
		attributes = append(attributes,
			d.attribute(pprofscan.AttributeMappingStart, profiledict.IntValue(int64(m.start))),
			d.attribute(pprofscan.AttributeMappingLimit, profiledict.IntValue(int64(m.limit))))
	}
	if id := d.buildID(m.buildID); id != 0 {
		attributes = append(attributes, id)
	}
	for _, has := range []struct {
		key string
		set bool
	}{
		{pprofscan.AttributeHasFunctions, m.hasFunctions},
		{pprofscan.AttributeHasFilenames, m.hasFilenames},
		{pprofscan.AttributeHasLineNumbers, m.hasLineNumbers},
		{pprofscan.AttributeHasInlineFrames, m.hasInlinings},
	} {
		if has.set {
			attributes = append(attributes, d.attribute(has.key, profiledict.BoolValue(true)))
		}
	}
	entry.Attributes = d.set(attributes...)
	return entry
}

// buildID interns a build id as an attribute, once for each string: mappings may share a long one. It returns 0 for an
// empty one.
func (d *decoder) buildID(i uint64) int32 {
	if attribute, ok := d.buildIDs[i]; ok {
		return attribute
	}
	id := d.str(i)
	if id == "" {
		return 0
	}
	key := pprofscan.AttributeBuildIDGNU // hexadecimal digits
	if strings.Contains(id, "/") {
		key = pprofscan.AttributeBuildIDGo // four hashes with slashes between them
	}
	attribute := d.attribute(key, profiledict.StringValue(id))
	d.buildIDs[i] = attribute
	return attribute
}

// attribute interns an attribute without a unit.
func (d *decoder) attribute(key string, value profiledict.Value) int32 {
	return int32(d.dict.Attributes.Intern(profiledict.Attribute{Key: d.dict.Strings.Intern(key), Value: value}))
}

func (d *decoder) set(attributes ...int32) profiledict.AttributeSetIndex {
	return d.dict.AttributeSets.Intern(attributes)
}

// orderMappings puts the mappings back into the payload's order: they were interned as samples
// reached them, and readers take the first one as the main binary.
func (d *decoder) orderMappings() {
	remap := make([]profiledict.MappingIndex, d.dict.Mappings.Len())
	next, moved := profiledict.MappingIndex(1), false
	for _, i := range d.mappingIndices {
		if i <= 0 || remap[i] != 0 {
			continue
		}
		remap[i] = next
		moved = moved || next != profiledict.MappingIndex(i)
		next++
	}
	if moved {
		d.dict.OrderMappings(remap)
	}
}
