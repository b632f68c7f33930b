// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// checkTables checks all entries of the dictionary, reached or not.
func (c *checker) checkTables() {
	checkTable(c, mappingTable, c.dict.MappingTable(), c.checkMapping)
	checkTable(c, locationTable, c.dict.LocationTable(), c.checkLocation)
	checkTable(c, functionTable, c.dict.FunctionTable(), c.checkFunction)
	checkTable(c, linkTable, c.dict.LinkTable(), c.checkLink)
	checkTable(c, stringTable, c.dict.StringTable(), c.utf8)
	checkTable(c, attributeTable, c.dict.AttributeTable(), c.checkAttribute)
	checkTable(c, stackTable, c.dict.StackTable(), func(p path, s pprofile.Stack) { visitStack(c, p, s) })
}

// checkTable checks a table, and each entry by itself.
func checkTable[T any](c *checker, id tableID, entries table[T], checkEntry func(path, T)) {
	name, ids := tableNames[id], c.resolver.ids[id]
	if entries.Len() == 0 {
		c.fault(at(name, -1), "is empty, so index 0 is not the zero value")
		return
	}
	if ids[0] != c.resolver.zero[id] {
		c.fault(at(name, 0), "is not the zero value")
	}
	first := make(map[ID]int, len(ids))
	for i := range ids {
		p := at(name, i)
		checkEntry(p, entries.At(i))
		if earlier, seen := first[ids[i]]; !seen {
			first[ids[i]] = i
		} else if c.options&AllowDuplicates == 0 {
			c.fault(p, "equals %s[%d]", name, earlier)
		}
	}
}

func (c *checker) checkMapping(p path, m pprofile.Mapping) {
	start, limit := m.MemoryStart(), m.MemoryLimit()
	if start >= limit && (start != 0 || limit != 0) {
		c.fault(p, "memory_start 0x%x is not below memory_limit 0x%x", start, limit)
	}
	visitMapping(c, p, m)
}

func (c *checker) checkLocation(p path, l pprofile.Location) {
	visitLocation(c, p, l)
	for i, line := range l.Lines().All() {
		p := p.item("lines", i)
		c.notNegative(p, "line", line.Line())
		c.notNegative(p, "column", line.Column())
	}
}

func (c *checker) checkFunction(p path, f pprofile.Function) {
	visitFunction(c, p, f)
	c.notNegative(p, "start_line", f.StartLine())
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
	visitAttribute(c, p, a)
	c.value(p.child("value"), a.Value())
}

func (c *checker) notNegative(p path, field string, v int64) {
	if v < 0 {
		c.fault(p.child(field), "is %d, below 0", v)
	}
}

// index checks that an index is in its table. Index 0 is valid in an empty table, whose missing zero value is reported
// once, for the table.
func (c *checker) index(p path, field string, to tableID, i int32) {
	if i != 0 && !holds(i, c.lengths[to]) {
		c.outOfRange(p.child(field), to, i)
	}
}

func (c *checker) outOfRange(p path, to tableID, i int32) {
	c.fault(p, "index %d is out of range [0..%d)", i, c.lengths[to])
}

// indices checks that all indices are in their table, and of attributes that no key occurs twice.
func (c *checker) indices(p path, field string, to tableID, indices pcommon.Int32Slice) {
	occurrences := map[ID]int{}
	for i, index := range indices.All() {
		switch {
		case index != 0 && !holds(index, c.lengths[to]):
			c.outOfRange(p.item(field, i), to, index)
		case to == attributeTable && c.lengths[to] > 0: // in an empty table, index 0 has no key
			strindex := c.dict.AttributeTable().At(int(index)).KeyStrindex()
			key := c.resolver.ref(stringTable, strindex)
			if occurrences[key]++; occurrences[key] == 2 {
				c.fault(p.child(field), "key %s occurs more than once", c.word(strindex))
			}
		}
	}
}
