// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// writeLocations writes the locations that the samples' stacks refer to, and visits their functions and mappings.
func (e *encoder) writeLocations() {
	for _, i := range e.locations.used {
		if e.err != nil {
			return
		}
		l := e.dict.LocationTable().At(int(i))
		b, start := openMessage(e.out, scan.ProfileLocation)
		b = appendUint(b, scan.LocationID, e.locations.id(i))
		b = appendUint(b, scan.LocationMappingID, e.mappingID(l.MappingIndex(), i))
		b = appendUint(b, scan.LocationAddress, l.Address())
		b = e.appendLines(b, l.Lines(), i)
		if l.AttributeIndices().Len() > 0 && e.isFolded(l.AttributeIndices(), i) {
			b = append(b, varintTag(scan.LocationIsFolded), 1)
		}
		e.out = closeMessage(b, start)
	}
}

// appendLines keeps the order of the lines: both formats have the innermost one first.
func (e *encoder) appendLines(b []byte, lines pprofile.LineSlice, location int32) []byte {
	for k := range lines.Len() {
		line := lines.At(k)
		function := line.FunctionIndex()
		if !e.functions.has(function) {
			e.fail(fmt.Sprintf("location_table[%d].lines[%d].function_index", location, k), function, len(e.functions.values))
			return b
		}
		// Function 0 is written too: a line without a function is a fault in pprof.
		e.functions.visit(function)
		var start int
		b, start = openMessage(b, scan.LocationLine)
		b = appendUint(b, scan.LineFunctionID, e.functions.id(function))
		b = appendUint(b, scan.LineLine, uint64(line.Line()))
		b = appendUint(b, scan.LineColumn, uint64(line.Column()))
		b = closeMessage(b, start)
	}
	return b
}

func (e *encoder) isFolded(indices pcommon.Int32Slice, location int32) bool {
	folded := false
	path := func() string { return fmt.Sprintf("location_table[%d]", location) }
	e.entries(indices, path, func(_ int32, key string, v pcommon.Value) {
		if key == scan.AttributeIsFolded && v.Type() == pcommon.ValueTypeBool {
			folded = v.Bool()
		}
	})
	return folded
}

func (e *encoder) writeFunctions() {
	for _, i := range e.functions.used {
		if e.err != nil {
			return
		}
		f := e.dict.FunctionTable().At(int(i))
		b, start := openMessage(e.out, scan.ProfileFunction)
		b = appendUint(b, scan.FunctionID, e.functions.id(i))
		b = appendUint(b, scan.FunctionName, e.tableString("function_table", i, "name_strindex", f.NameStrindex()))
		b = appendUint(b, scan.FunctionSystemName,
			e.tableString("function_table", i, "system_name_strindex", f.SystemNameStrindex()))
		b = appendUint(b, scan.FunctionFilename,
			e.tableString("function_table", i, "filename_strindex", f.FilenameStrindex()))
		b = appendUint(b, scan.FunctionStartLine, uint64(f.StartLine()))
		e.out = closeMessage(b, start)
	}
}

// mappingID visits mapping i and returns its id in the payload, or 0.
func (e *encoder) mappingID(i, location int32) uint64 {
	if !e.mappings.has(i) {
		if i != 0 {
			e.fail(fmt.Sprintf("location_table[%d].mapping_index", location), i, len(e.mappings.values))
		}
		return 0
	}
	if i == 0 && isNullMapping(e.dict.MappingTable().At(0)) {
		return 0
	}
	e.mappings.visit(i)
	return e.mappings.id(i)
}

func isNullMapping(m pprofile.Mapping) bool {
	return m.MemoryStart() == 0 && m.MemoryLimit() == 0 && m.FileOffset() == 0 &&
		m.FilenameStrindex() == 0 && m.AttributeIndices().Len() == 0
}

// writeMappings writes the mappings with the main binary first, as readers of pprof expect it, and otherwise in the
// dictionary's order.
func (e *encoder) writeMappings() {
	slices.Sort(e.mappings.used)
	e.putMainFirst()
	for _, i := range e.mappings.used {
		m := e.dict.MappingTable().At(int(i))
		details := e.mappingDetails(i, m)
		b, start := openMessage(e.out, scan.ProfileMapping)
		b = appendUint(b, scan.MappingID, e.mappings.id(i))
		b = appendUint(b, scan.MappingStart, details.start)
		b = appendUint(b, scan.MappingLimit, details.limit)
		b = appendUint(b, scan.MappingOffset, m.FileOffset())
		b = appendUint(b, scan.MappingFilename, e.tableString("mapping_table", i, "filename_strindex", m.FilenameStrindex()))
		b = appendUint(b, scan.MappingBuildID, e.buildID(&details))
		for k, has := range details.has {
			if has {
				b = append(b, varintTag(scan.MappingHasFunctions+k), 1)
			}
		}
		e.out = closeMessage(b, start)
		if e.err != nil {
			return
		}
	}
}

// putMainFirst makes the main binary the first of the mappings that are used. The dictionary's first one is, if any
// stack has it at its root. A dictionary of several services can have a file first that they share: then the main
// binary is the one at the root of most stacks. The kernel and shared libraries do not count, which can be there, too:
// libc begins threads.
func (e *encoder) putMainFirst() {
	used := e.mappings.used
	if len(used) < 2 || e.err != nil {
		return
	}
	kinds, roots := make(map[int32]bool, len(used)), make(map[int32]int, 1)
	main := used[0]
	for _, stack := range e.stacks.used {
		switch m := e.rootOf(stack, kinds); m {
		case main: // usually the first stack's
			return
		case 0:
		default:
			roots[m]++
		}
	}
	for _, m := range used {
		if roots[m] > roots[main] {
			main = m
		}
	}
	at := slices.Index(used, main)
	copy(used[1:], used[:at])
	used[0] = main
}

// rootOf returns the outermost mapping of a stack that can be a main binary, or 0. The stack has been written. kinds
// remembers which mappings can be.
func (e *encoder) rootOf(stack int32, kinds map[int32]bool) int32 {
	locations := e.dict.StackTable().At(int(stack)).LocationIndices()
	last := int32(0)
	for k := locations.Len() - 1; k >= 0; k-- {
		m := e.dict.LocationTable().At(int(locations.At(k))).MappingIndex()
		if m == last || m == 0 || !e.mappings.has(m) {
			continue
		}
		last = m
		isMain, known := kinds[m]
		if !known {
			name, _ := e.strings.lookup(e.dict.MappingTable().At(int(m)).FilenameStrindex())
			isMain = otlp.CanBeMainBinary(name)
			kinds[m] = isMain
		}
		if isMain {
			return m
		}
	}
	return 0
}

// buildIDKeys are the keys of build ids. The first one that a mapping has is written.
var buildIDKeys = [...]string{
	scan.AttributeBuildIDGNU, scan.AttributeBuildIDGo, scan.AttributeBuildIDHTLHash,
}

// mappingDetails are the fields of a mapping that OTLP has attributes for.
type mappingDetails struct {
	start, limit uint64
	buildIDs     [len(buildIDKeys)]int32      // the attributes with these keys, 0 for none
	has          [len(scan.MappingFlags)]bool // in the order of pprof's fields
}

// buildID returns the payload's index of a mapping's first build id, or 0.
func (e *encoder) buildID(m *mappingDetails) uint64 {
	attribute := cmp.Or(m.buildIDs[:]...)
	if attribute != 0 && e.buildIDs[attribute] == 0 {
		e.buildIDs[attribute] = e.strings.add(e.dict.AttributeTable().At(int(attribute)).Value().Str())
	}
	return e.buildIDs[attribute]
}

func (e *encoder) mappingDetails(i int32, m pprofile.Mapping) mappingDetails {
	d := mappingDetails{start: m.MemoryStart(), limit: m.MemoryLimit()}
	path := func() string { return fmt.Sprintf("mapping_table[%d]", i) }
	e.entries(m.AttributeIndices(), path, d.read)
	return d
}

// read reads an attribute that pprof has a field for.
func (m *mappingDetails) read(attribute int32, key string, v pcommon.Value) {
	flag, buildID := slices.Index(scan.MappingFlags[:], key), slices.Index(buildIDKeys[:], key)
	switch t := v.Type(); {
	case t == pcommon.ValueTypeBool && flag >= 0:
		m.has[flag] = v.Bool()
	case t == pcommon.ValueTypeStr && buildID >= 0:
		if v.Str() == "" {
			attribute = 0 // as if it were not there
		}
		m.buildIDs[buildID] = attribute
	case t == pcommon.ValueTypeInt && key == scan.AttributeMappingStart:
		m.start = uint64(v.Int())
	case t == pcommon.ValueTypeInt && key == scan.AttributeMappingLimit:
		m.limit = uint64(v.Int())
	}
}

// writeStrings writes the string table, once everything else has been written.
func (e *encoder) writeStrings() {
	for _, s := range e.strings.values {
		e.out = appendString(e.out, scan.ProfileStringTable, s)
	}
}

// stringTable collects the string table of the payload being written.
type stringTable struct {
	table pcommon.StringSlice
	// remap has each dictionary string's index in the payload; 0 means that it is not used yet, or empty.
	remap sparse[uint32]
	// values is the payload's string table; values[0] is "".
	values []string
	// added finds the strings that do not come from the dictionary.
	added map[string]uint64
	// secondEmpty is the index of an "" other than string 0, or 0 if none has been needed yet.
	secondEmpty uint64
}

func (t *stringTable) resize(table pcommon.StringSlice) {
	t.table = table
	t.remap.resize(table.Len())
}

func (t *stringTable) reset() {
	t.remap.reset()
	clear(t.values) // so that the strings can be freed
	t.values = append(t.values[:0], "")
	t.secondEmpty = 0
	t.added = cleared(t.added)
}

// append adds a string, even one that the payload has, and returns its index. Servers refuse a pprof that has bytes
// which are not UTF-8.
func (t *stringTable) append(s string) uint64 {
	t.values = append(t.values, dictionary.ValidUTF8(s))
	return uint64(len(t.values) - 1)
}

// index returns the payload's index of dictionary string i. It returns false if i is out of range.
func (t *stringTable) index(i int32) (uint64, bool) {
	if !t.remap.has(i) {
		return 0, i == 0 // 0 means "" even if the dictionary has no string
	}
	if at := t.remap.values[i]; at != 0 {
		return uint64(at), true
	}
	s := t.table.At(int(i))
	if s == "" {
		return 0, true
	}
	at := t.append(s)
	t.remap.set(i, uint32(at))
	return at, true
}

// add returns the payload's index of a string that does not come from the dictionary.
func (t *stringTable) add(s string) uint64 {
	if s == "" {
		return 0
	}
	at, ok := t.added[s]
	if !ok {
		at = t.append(s)
		t.added[s] = at
	}
	return at
}

// notZero replaces index 0 with that of a second "": a label is a string only if its string index is not 0, and a
// number 0 is a label only if its unit index is not 0.
func (t *stringTable) notZero(index uint64) uint64 {
	if index != 0 {
		return index
	}
	if t.secondEmpty == 0 {
		t.secondEmpty = t.append("")
	}
	return t.secondEmpty
}

// lookup returns dictionary string i itself. It returns false if i is out of range, and adds nothing.
func (t *stringTable) lookup(i int32) (string, bool) {
	if !t.remap.has(i) {
		return "", i == 0
	}
	return t.table.At(int(i)), true
}

// sparse has a value for each entry of a dictionary table. Most are zero: reset takes the time of those that were set.
type sparse[T any] struct {
	values []T
	used   []int32 // the entries that were set, in that order
}

// resize prepares for a table, after reset.
func (s *sparse[T]) resize(entries int) {
	if cap(s.values) < entries {
		s.values = make([]T, entries)
	}
	s.values = s.values[:entries]
}

func (s *sparse[T]) has(i int32) bool { return uint32(i) < uint32(len(s.values)) }

func (s *sparse[T]) set(i int32, value T) {
	s.values[i] = value
	s.used = append(s.used, i)
}

func (s *sparse[T]) reset() {
	var zero T
	for _, i := range s.used {
		s.values[i] = zero
	}
	s.used = s.used[:0]
}

func (s *sparse[T]) bytes() int { return dictionary.BytesOf(s.values) + dictionary.BytesOf(s.used) }

// reach marks the entries of a dictionary table that a payload needs.
type reach struct{ sparse[bool] }

func (r *reach) visit(i int32) {
	if !r.values[i] {
		r.set(i, true)
	}
}

// id is entry i's id in the payload: its index, except that pprof has no id 0.
func (r *reach) id(i int32) uint64 {
	if i == 0 {
		return uint64(len(r.values))
	}
	return uint64(i)
}

// span is a part of encoder.shared. A size of 0 means that nothing has been written yet, or that there is nothing to
// write.
type span struct{ start, size int }

// cleared returns an empty map, which is m unless m has been large: clearing that would cost as much each time.
func cleared[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > 1<<16 {
		return make(map[K]V)
	}
	clear(m)
	return m
}
