// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// checkTables checks all entries of the dictionary, reached or not.
func (c *checker) checkTables() {
	r, d := c.resolver, c.dict
	tableCheck[pprofile.Mapping]{
		"mapping_table", d.MappingTable(), r.mappings, r.mappingID(pprofile.NewMapping()), c.checkMapping,
	}.run(c)
	tableCheck[pprofile.Location]{
		"location_table", d.LocationTable(), r.locations, r.locationID(pprofile.NewLocation()), c.checkLocation,
	}.run(c)
	tableCheck[pprofile.Function]{
		"function_table", d.FunctionTable(), r.functions, r.functionID(pprofile.NewFunction()), c.checkFunction,
	}.run(c)
	tableCheck[pprofile.Link]{
		"link_table", d.LinkTable(), r.links, r.noLink, c.checkLink,
	}.run(c)
	tableCheck[string]{
		"string_table", d.StringTable(), r.strings, r.stringID(""), c.utf8,
	}.run(c)
	tableCheck[pprofile.KeyValueAndUnit]{
		"attribute_table", d.AttributeTable(), r.attributes, r.attributeID(pprofile.NewKeyValueAndUnit()), c.checkAttribute,
	}.run(c)
	tableCheck[pprofile.Stack]{
		"stack_table", d.StackTable(), r.stacks, r.stackID(pprofile.NewStack()), c.checkStack,
	}.run(c)
}

// tableCheck is what differs between the seven tables: ids are the ids of the entries, zero is the id of the zero
// value, and entry checks an entry by itself.
type tableCheck[T any] struct {
	name    string
	entries table[T]
	ids     []ID
	zero    ID
	entry   func(path, T)
}

func (t tableCheck[T]) run(c *checker) {
	if t.entries.Len() == 0 {
		c.fault(at(t.name, -1), "is empty, so index 0 is not the zero value")
		return
	}
	if t.ids[0] != t.zero {
		c.fault(at(t.name, 0), "is not the zero value")
	}
	first := make(map[ID]int, t.entries.Len())
	for i := range t.entries.Len() {
		p := at(t.name, i)
		t.entry(p, t.entries.At(i))
		if earlier, seen := first[t.ids[i]]; !seen {
			first[t.ids[i]] = i
		} else if !c.options.duplicates {
			c.fault(p, "equals %s[%d]", t.name, earlier)
		}
	}
}

func (c *checker) checkMapping(p path, m pprofile.Mapping) {
	start, limit := m.MemoryStart(), m.MemoryLimit()
	if start >= limit && (start != 0 || limit != 0) {
		c.fault(p, "memory_start 0x%x is not below memory_limit 0x%x", start, limit)
	}
	c.stringIndex(p.child("filename_strindex"), m.FilenameStrindex())
	c.attributeIndices(p.child("attribute_indices"), m.AttributeIndices())
}

func (c *checker) checkLocation(p path, l pprofile.Location) {
	c.index(p.child("mapping_index"), l.MappingIndex(), c.dict.MappingTable().Len())
	c.attributeIndices(p.child("attribute_indices"), l.AttributeIndices())
	for i, line := range l.Lines().All() {
		p := p.item("lines", i)
		c.index(p.child("function_index"), line.FunctionIndex(), c.dict.FunctionTable().Len())
		c.notNegative(p.child("line"), line.Line())
		c.notNegative(p.child("column"), line.Column())
	}
}

func (c *checker) checkFunction(p path, f pprofile.Function) {
	c.stringIndex(p.child("name_strindex"), f.NameStrindex())
	c.stringIndex(p.child("system_name_strindex"), f.SystemNameStrindex())
	c.stringIndex(p.child("filename_strindex"), f.FilenameStrindex())
	c.notNegative(p.child("start_line"), f.StartLine())
}

// checkLink ignores entry 0, the zero value, whose ids are zeros.
func (c *checker) checkLink(p path, l pprofile.Link) {
	if p.index == 0 {
		return
	}
	if l.TraceID().IsEmpty() {
		c.fault(p.child("trace_id"), "is zero")
	}
	if l.SpanID().IsEmpty() {
		c.fault(p.child("span_id"), "is zero")
	}
}

func (c *checker) checkAttribute(p path, a pprofile.KeyValueAndUnit) {
	c.stringIndex(p.child("key_strindex"), a.KeyStrindex())
	c.stringIndex(p.child("unit_strindex"), a.UnitStrindex())
	c.value(p.child("value"), a.Value())
}

func (c *checker) checkStack(p path, s pprofile.Stack) {
	for i, index := range s.LocationIndices().All() {
		c.index(p.item("location_indices", i), index, c.dict.LocationTable().Len())
	}
}

func (c *checker) stringIndex(p path, index int32) {
	c.index(p, index, c.dict.StringTable().Len())
}

func (c *checker) notNegative(p path, v int64) {
	if v < 0 {
		c.fault(p, "is %d, below 0", v)
	}
}

// attributeIndices checks that all references to attributes are in the table, and that no key occurs twice.
func (c *checker) attributeIndices(p path, indices pcommon.Int32Slice) {
	n := indices.Len()
	if n == 0 {
		return
	}
	attributes := c.dict.AttributeTable()
	occurrences := make(map[ID]int, n)
	for i, index := range indices.All() {
		// An index 0 into an empty table passes c.index but has no key.
		if !c.index(p.nth(i), index, attributes.Len()) || attributes.Len() == 0 {
			continue
		}
		strindex := attributes.At(int(index)).KeyStrindex()
		key := c.resolver.ref(c.resolver.strings, strindex)
		if occurrences[key]++; occurrences[key] == 2 {
			c.fault(p, "key %s occurs more than once", c.word(strindex))
		}
	}
}
