// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofencode

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
)

// writeLocations writes the locations that the samples' stacks reached, and reaches for their
// functions and mappings.
func (e *encoder) writeLocations() {
	for _, i := range e.locations.order {
		if e.err != nil {
			return
		}
		l := e.locationTable.At(int(i))
		b, start := openMessage(e.out, pprofscan.ProfileLocation)
		b = appendUint(b, pprofscan.LocationID, e.locations.id(i))
		b = appendUint(b, pprofscan.LocationMappingID, e.mappingID(l.MappingIndex(), i))
		b = appendUint(b, pprofscan.LocationAddress, l.Address())
		b = e.appendLines(b, l.Lines(), i)
		if l.AttributeIndices().Len() > 0 && e.isFolded(l.AttributeIndices(), i) {
			b = append(b, varintTag(pprofscan.LocationIsFolded), 1)
		}
		e.out = closeMessage(b, start)
	}
}

// appendLines keeps the order of the lines: both formats have the innermost one first.
func (e *encoder) appendLines(b []byte, lines pprofile.LineSlice, location int32) []byte {
	for k := range lines.Len() {
		line := lines.At(k)
		function := line.FunctionIndex()
		if uint32(function) >= uint32(len(e.functions.seen)) {
			e.fail(fmt.Sprintf("location_table[%d].lines[%d].function_index", location, k), function, len(e.functions.seen))
			return b
		}
		// Function 0, too, is written: to pprof a line without a function is a fault.
		e.functions.visit(function)
		var start int
		b, start = openMessage(b, pprofscan.LocationLine)
		b = appendUint(b, pprofscan.LineFunctionID, e.functions.id(function))
		b = appendUint(b, pprofscan.LineLine, uint64(line.Line()))
		b = appendUint(b, pprofscan.LineColumn, uint64(line.Column()))
		b = closeMessage(b, start)
	}
	return b
}

func (e *encoder) isFolded(indices pcommon.Int32Slice, location int32) bool {
	folded := false
	path := func() string { return fmt.Sprintf("location_table[%d]", location) }
	e.entries(indices, path, func(_ int32, key string, v pcommon.Value) {
		if key == pprofscan.AttributeIsFolded && v.Type() == pcommon.ValueTypeBool {
			folded = v.Bool()
			return
		}
		e.stats.Omitted[OmitLocationAttribute]++
	})
	return folded
}

func (e *encoder) writeFunctions() {
	for _, i := range e.functions.order {
		if e.err != nil {
			return
		}
		f := e.functionTable.At(int(i))
		b, start := openMessage(e.out, pprofscan.ProfileFunction)
		b = appendUint(b, pprofscan.FunctionID, e.functions.id(i))
		b = appendUint(b, pprofscan.FunctionName, e.functionString(i, "name_strindex", f.NameStrindex()))
		b = appendUint(b, pprofscan.FunctionSystemName, e.functionString(i, "system_name_strindex", f.SystemNameStrindex()))
		b = appendUint(b, pprofscan.FunctionFilename, e.functionString(i, "filename_strindex", f.FilenameStrindex()))
		b = appendUint(b, pprofscan.FunctionStartLine, uint64(f.StartLine()))
		e.out = closeMessage(b, start)
	}
}

func (e *encoder) functionString(entry int32, field string, strindex int32) uint64 {
	return e.tableString("function_table", entry, field, strindex)
}

// mappingID reaches for mapping i and returns its id in the payload, or 0.
func (e *encoder) mappingID(i, location int32) uint64 {
	if uint32(i) >= uint32(len(e.mappings.seen)) {
		if i != 0 {
			e.fail(fmt.Sprintf("location_table[%d].mapping_index", location), i, len(e.mappings.seen))
		}
		return 0
	}
	if i == 0 && isNullMapping(e.mappingTable.At(0)) {
		return 0
	}
	e.mappings.visit(i)
	return e.mappings.id(i)
}

func isNullMapping(m pprofile.Mapping) bool {
	return m.MemoryStart() == 0 && m.MemoryLimit() == 0 && m.FileOffset() == 0 &&
		m.FilenameStrindex() == 0 && m.AttributeIndices().Len() == 0
}

// writeMappings writes the mappings in the dictionary's order, since readers of pprof treat the
// first one as the main binary.
func (e *encoder) writeMappings() {
	slices.Sort(e.mappings.order)
	for _, i := range e.mappings.order {
		m := e.mappingTable.At(int(i))
		details := e.mappingDetails(i, m)
		b, start := openMessage(e.out, pprofscan.ProfileMapping)
		b = appendUint(b, pprofscan.MappingID, e.mappings.id(i))
		b = appendUint(b, pprofscan.MappingStart, details.start)
		b = appendUint(b, pprofscan.MappingLimit, details.limit)
		b = appendUint(b, pprofscan.MappingOffset, m.FileOffset())
		b = appendUint(b, pprofscan.MappingFilename, e.tableString("mapping_table", i, "filename_strindex", m.FilenameStrindex()))
		b = appendUint(b, pprofscan.MappingBuildID, e.buildID(&details))
		for k, has := range details.has {
			if has {
				b = append(b, varintTag(pprofscan.MappingHasFunctions+k), 1)
			}
		}
		e.out = closeMessage(b, start)
		if e.err != nil {
			return
		}
	}
}

// mappingDetails are the fields of a mapping that OTLP has attributes for.
type mappingDetails struct {
	start, limit uint64
	buildIDs     [3]int32 // attributes: gnu, go, htlhash; the first that is set is written
	has          [4]bool  // functions, file names, line numbers, inline frames: the order of pprof's fields
}

// buildID returns the payload's string of a mapping's build id.
func (e *encoder) buildID(m *mappingDetails) uint64 {
	for _, attribute := range m.buildIDs {
		if attribute == 0 {
			continue
		}
		id, ok := e.buildIDs[attribute]
		if !ok {
			id = e.strings.text(e.attributeTable.At(int(attribute)).Value().Str())
			e.buildIDs[attribute] = id
		}
		return id
	}
	return 0
}

func (e *encoder) mappingDetails(i int32, m pprofile.Mapping) mappingDetails {
	d := mappingDetails{start: m.MemoryStart(), limit: m.MemoryLimit()}
	path := func() string { return fmt.Sprintf("mapping_table[%d]", i) }
	e.entries(m.AttributeIndices(), path, func(attribute int32, key string, v pcommon.Value) {
		if !d.read(attribute, key, v) {
			e.stats.Omitted[OmitMappingAttribute]++
		}
	})
	written := 0
	for _, id := range d.buildIDs {
		if id != 0 {
			written++
		}
	}
	e.stats.Omitted[OmitMappingAttribute] += max(written-1, 0)
	return d
}

// read reports whether the attribute is one that pprof has a field for.
func (m *mappingDetails) read(attribute int32, key string, v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if v.Str() == "" {
			attribute = 0 // as if it were not there
		}
		switch key {
		case pprofscan.AttributeBuildIDGNU:
			m.buildIDs[0] = attribute
		case pprofscan.AttributeBuildIDGo:
			m.buildIDs[1] = attribute
		case pprofscan.AttributeBuildIDHTLHash:
			m.buildIDs[2] = attribute
		default:
			return false
		}
	case pcommon.ValueTypeInt:
		switch key {
		case pprofscan.AttributeMappingStart:
			m.start = uint64(v.Int())
		case pprofscan.AttributeMappingLimit:
			m.limit = uint64(v.Int())
		default:
			return false
		}
	case pcommon.ValueTypeBool:
		switch key {
		case pprofscan.AttributeHasFunctions:
			m.has[0] = v.Bool()
		case pprofscan.AttributeHasFilenames:
			m.has[1] = v.Bool()
		case pprofscan.AttributeHasLineNumbers:
			m.has[2] = v.Bool()
		case pprofscan.AttributeHasInlineFrames:
			m.has[3] = v.Bool()
		default:
			return false
		}
	default:
		return false
	}
	return true
}

// stringTable collects the string table of the payload being written.
type stringTable struct {
	table pcommon.StringSlice
	// remap[i] is dictionary string i's index in the payload; 0 means not asked for yet, or empty.
	remap []uint32
	// used lists the dictionary indices whose remap is set.
	used []int32
	// values is the payload's string table; values[0] is "".
	values []string
	// texts finds the strings that do not come from the dictionary.
	texts map[string]uint64
	// secondEmpty is the index of an "" other than string 0, or 0 while nobody has needed one.
	secondEmpty uint64
}

// resize prepares for a dictionary's strings. remap is all 0: reset left it so.
func (t *stringTable) resize(table pcommon.StringSlice) {
	t.table = table
	t.remap = resized(t.remap, table.Len())
}

func (t *stringTable) reset() {
	for _, i := range t.used {
		t.remap[i] = 0
	}
	t.used = t.used[:0]
	clear(t.values) // let go of the strings
	t.values = append(t.values[:0], "")
	t.secondEmpty = 0
	t.texts = cleared(t.texts)
}

// index returns the payload's index of dictionary string i, and false where i is out of range.
func (t *stringTable) index(i int32) (uint64, bool) {
	if uint32(i) >= uint32(len(t.remap)) {
		return 0, i == 0 // a dictionary without any string still means "" by 0
	}
	if at := t.remap[i]; at != 0 {
		return uint64(at), true
	}
	s := t.table.At(int(i))
	if s == "" {
		return 0, true
	}
	at := len(t.values)
	t.values = append(t.values, s)
	t.remap[i] = uint32(at)
	t.used = append(t.used, i)
	return uint64(at), true
}

// text returns the payload's index of a string that the dictionary need not have.
func (t *stringTable) text(s string) uint64 {
	if s == "" {
		return 0
	}
	at, ok := t.texts[s]
	if !ok {
		at = uint64(len(t.values))
		t.values = append(t.values, s)
		t.texts[s] = at
	}
	return at
}

// notZero replaces index 0 by a second "": a label reads as a string, or a number 0 as a label at all,
// only where the index is not 0.
func (t *stringTable) notZero(index uint64) uint64 {
	if index != 0 {
		return index
	}
	if t.secondEmpty == 0 {
		t.secondEmpty = uint64(len(t.values))
		t.values = append(t.values, "")
	}
	return t.secondEmpty
}

// lookup returns dictionary string i itself, and false where i is out of range. It adds nothing.
func (t *stringTable) lookup(i int32) (string, bool) {
	if uint32(i) >= uint32(len(t.remap)) {
		return "", i == 0
	}
	return t.table.At(int(i)), true
}

// reach records which entries of a dictionary table a payload needs, in the order they were met.
type reach struct {
	seen  []bool
	order []int32
}

// resize prepares for a table. All entries are unseen: reset left them so.
func (r *reach) resize(entries int) { r.seen = resized(r.seen, entries) }

func (r *reach) visit(i int32) {
	if !r.seen[i] {
		r.seen[i] = true
		r.order = append(r.order, i)
	}
}

func (r *reach) reset() {
	for _, i := range r.order {
		r.seen[i] = false
	}
	r.order = r.order[:0]
}

// id is entry i's id in the payload: its index, except that pprof has no id 0.
func (r *reach) id(i int32) uint64 {
	if i == 0 {
		return uint64(len(r.seen))
	}
	return uint64(i)
}

// span is a piece of a buffer. A size of 0 means that nothing was written yet, or nothing is due.
type span struct{ start, size int }

// spanTable keeps a span for each entry of a dictionary table.
type spanTable struct {
	spans []span
	used  []int32
}

// resize prepares for a table. All spans are empty: reset left them so.
func (s *spanTable) resize(entries int) { s.spans = resized(s.spans, entries) }

func (s *spanTable) set(i int32, span span) {
	if span.size != 0 {
		s.spans[i] = span
		s.used = append(s.used, i)
	}
}

func (s *spanTable) reset() {
	for _, i := range s.used {
		s.spans[i] = span{}
	}
	s.used = s.used[:0]
}

// resized returns a slice of n zero elements, in the memory of s if that suffices: everything within s's capacity is zero.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// cleared empties a map. One that has been large is let go: to clear it again would cost as much each time.
func cleared[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > 1<<16 {
		return make(map[K]V)
	}
	clear(m)
	return m
}
