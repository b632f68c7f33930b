// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

// SizeEstimate follows the encoded size of a growing Dictionary at a cost that depends on what was added
// since alone. It counts what nothing refers to, and takes indices for some of the last, those in stacks for
// three quarters as long, since a few locations are in most of the stacks.
type SizeEstimate struct {
	// What has been counted, and the bytes of it beside indices, which grow wider with the tables.
	strings, attributes, functions, locations, lines int
	fixed                                            int
}

// Update gives the estimate in bytes.
func (e *SizeEstimate) Update(d *Dictionary) int {
	for ; e.strings < d.Strings.Len(); e.strings++ {
		e.fixed += FieldLen(len(d.Strings.entries[e.strings]))
	}
	for ; e.attributes < d.Attributes.Len(); e.attributes++ {
		e.fixed += 8 + len(d.Attributes.entries[e.attributes].Value.text)
	}
	for ; e.functions < d.Functions.Len(); e.functions++ {
		e.fixed += 2 + numberLen(uint64(d.Functions.entries[e.functions].StartLine))
	}
	for ; e.locations < d.Locations.Len(); e.locations++ {
		l := &d.Locations.entries[e.locations]
		e.fixed += 2 + indexLen(int32(l.Mapping)) + numberLen(l.Address) + 2*len(d.AttributeSets.At(l.Attributes))
	}
	for ; e.lines < len(d.Locations.lines); e.lines++ {
		line := &d.Locations.lines[e.lines]
		e.fixed += 3 + numberLen(uint64(line.Line)) + numberLen(uint64(line.Column))
	}
	str := VarintLen(uint64(d.Strings.Len()))
	const mapping, link = 40, 30
	return e.fixed + d.Mappings.Len()*mapping + d.Links.Len()*link +
		3*(1+str)*d.Functions.Len() + 2*(1+str)*d.Attributes.Len() +
		VarintLen(uint64(d.Functions.Len()))*len(d.Locations.lines) +
		3*d.Stacks.Len() + VarintLen(uint64(d.Locations.Len()))*len(d.Stacks.lists.flat)*3/4
}
