// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// attrBuildIDHTLHash is the build id that profilers write for binaries that have none; Decode never does.
const attrBuildIDHTLHash = "process.executable.build_id.htlhash"

// writeLocations writes the locations that the samples' stacks reached, and reaches for their
// functions and mappings.
func (e *encoder) writeLocations() {
	for _, i := range e.locations.order {
		if e.err != nil {
			return
		}
		l := e.locationTable.At(int(i))
		b, start := encOpen(e.out, encProfileLocation)
		b = encAppendUint(b, encLocationID, e.locations.id(i))
		b = encAppendUint(b, encLocationMappingID, e.mappingID(l.MappingIndex(), i))
		b = encAppendUint(b, encLocationAddress, l.Address())
		b = e.appendLines(b, l.Lines(), i)
		if l.AttributeIndices().Len() > 0 && e.isFolded(l.AttributeIndices(), i) {
			b = append(b, encVarintTag(encLocationIsFolded), 1)
		}
		e.out = encClose(b, start)
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
		b, start = encOpen(b, encLocationLine)
		b = encAppendUint(b, encLineFunctionID, e.functions.id(function))
		b = encAppendUint(b, encLineLine, uint64(line.Line()))
		b = encAppendUint(b, encLineColumn, uint64(line.Column()))
		b = encClose(b, start)
	}
	return b
}

func (e *encoder) isFolded(indices pcommon.Int32Slice, location int32) bool {
	folded := false
	path := func() string { return fmt.Sprintf("location_table[%d]", location) }
	e.entries(indices, path, func(_ int32, key string, v pcommon.Value) {
		if key == attrIsFolded && v.Type() == pcommon.ValueTypeBool {
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
		b, start := encOpen(e.out, encProfileFunction)
		b = encAppendUint(b, encFunctionID, e.functions.id(i))
		b = encAppendUint(b, encFunctionName, e.functionString(i, "name_strindex", f.NameStrindex()))
		b = encAppendUint(b, encFunctionSystemName, e.functionString(i, "system_name_strindex", f.SystemNameStrindex()))
		b = encAppendUint(b, encFunctionFilename, e.functionString(i, "filename_strindex", f.FilenameStrindex()))
		b = encAppendUint(b, encFunctionStartLine, uint64(f.StartLine()))
		e.out = encClose(b, start)
	}
}

func (e *encoder) functionString(entry int32, field string, strindex int32) uint64 {
	return e.tableString("function_table", entry, field, strindex)
}

// mappingID reaches for mapping i and gives its id in the payload, 0 being none.
func (e *encoder) mappingID(i, location int32) uint64 {
	if uint32(i) >= uint32(len(e.mappings.seen)) {
		if i != 0 {
			e.fail(fmt.Sprintf("location_table[%d].mapping_index", location), i, len(e.mappings.seen))
		}
		return 0
	}
	if i == 0 && encIsNullMapping(e.mappingTable.At(0)) {
		return 0
	}
	e.mappings.visit(i)
	return e.mappings.id(i)
}

func encIsNullMapping(m pprofile.Mapping) bool {
	return m.MemoryStart() == 0 && m.MemoryLimit() == 0 && m.FileOffset() == 0 &&
		m.FilenameStrindex() == 0 && m.AttributeIndices().Len() == 0
}

// writeMappings writes the mappings in the dictionary's order, since a reader of pprof takes the
// first one for the main binary.
func (e *encoder) writeMappings() {
	slices.Sort(e.mappings.order)
	for _, i := range e.mappings.order {
		m := e.mappingTable.At(int(i))
		details := e.mappingDetails(i, m)
		b, start := encOpen(e.out, encProfileMapping)
		b = encAppendUint(b, encMappingID, e.mappings.id(i))
		b = encAppendUint(b, encMappingStart, details.start)
		b = encAppendUint(b, encMappingLimit, details.limit)
		b = encAppendUint(b, encMappingOffset, m.FileOffset())
		b = encAppendUint(b, encMappingFilename, e.tableString("mapping_table", i, "filename_strindex", m.FilenameStrindex()))
		b = encAppendUint(b, encMappingBuildID, e.buildID(&details))
		for k, has := range details.has {
			if has {
				b = append(b, encVarintTag(encMappingHasFunctions+k), 1)
			}
		}
		e.out = encClose(b, start)
		if e.err != nil {
			return
		}
	}
}

// encMapping is what a mapping's attributes say of it.
type encMapping struct {
	start, limit uint64
	buildIDs     [3]int32 // attributes: gnu, go, htlhash; the first that is set is written
	has          [4]bool  // functions, file names, line numbers, inline frames: the order of pprof's fields
}

// buildID returns the payload's string of a mapping's build id.
func (e *encoder) buildID(m *encMapping) uint64 {
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

func (e *encoder) mappingDetails(i int32, m pprofile.Mapping) encMapping {
	d := encMapping{start: m.MemoryStart(), limit: m.MemoryLimit()}
	path := func() string { return fmt.Sprintf("mapping_table[%d]", i) }
	e.entries(m.AttributeIndices(), path, func(attribute int32, key string, v pcommon.Value) {
		if !d.take(attribute, key, v) {
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

// take reports whether the attribute is one that pprof has a field for.
func (m *encMapping) take(attribute int32, key string, v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if v.Str() == "" {
			attribute = 0 // as good as none
		}
		switch key {
		case attrBuildIDGNU:
			m.buildIDs[0] = attribute
		case attrBuildIDGo:
			m.buildIDs[1] = attribute
		case attrBuildIDHTLHash:
			m.buildIDs[2] = attribute
		default:
			return false
		}
	case pcommon.ValueTypeInt:
		switch key {
		case attrMappingStart:
			m.start = uint64(v.Int())
		case attrMappingLimit:
			m.limit = uint64(v.Int())
		default:
			return false
		}
	case pcommon.ValueTypeBool:
		switch key {
		case attrHasFunctions:
			m.has[0] = v.Bool()
		case attrHasFilenames:
			m.has[1] = v.Bool()
		case attrHasLineNumbers:
			m.has[2] = v.Bool()
		case attrHasInlineFrames:
			m.has[3] = v.Bool()
		default:
			return false
		}
	default:
		return false
	}
	return true
}
