// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"math"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// legacyTables are the tables of one profile (1.3, 1.4), or those that the profiles of a message share (1.6, 1.7).
// Entries are kept as bytes and read when a sample reaches them, once each: reached[i] is 1 + the index in the
// dictionary, or 0.
type legacyTables struct {
	strings    []string
	mappings   legacyTable
	locations  legacyTable
	functions  legacyTable
	links      legacyTable
	attributes legacyTable
	// units is the index of each attribute key's unit, made of attributeUnits once the string table is complete.
	units          map[string]uint64
	attributeUnits []legacyType
	// locationIndices are the locations that samples have ranges of. In 1.6 and 1.7 each profile has its own.
	locationIndices []int32
	stringIndices   []dictionary.StringIndex
	// stringAttributes are the attributes whose value is an entry of the string table, so that each is hashed once.
	stringAttributes map[stringAttribute]dictionary.AttributeIndex
}

// stringAttribute is an attribute whose value is a string of the string table, its key a constant or a string of that
// table too.
type stringAttribute struct {
	key             string
	keyIndex, value uint64
}

type legacyTable struct {
	schema  *messages.Message
	entries [][]byte
	reached []int32
	// ids maps pprof's ids to entries if references mean ids (1.3 only); otherwise it is nil.
	ids map[uint64]int32
}

func (t *legacyTable) add(schema *messages.Message, entry []byte) {
	t.schema = schema
	t.entries = append(t.entries, entry)
	t.reached = append(t.reached, 0)
}

// entry returns the position of the entry that ref means.
func (t *legacyTable) entry(ref uint64) (int, bool) {
	if t.ids != nil {
		i, ok := t.ids[ref]
		return int(i), ok
	}
	return int(ref), ref < uint64(len(t.entries))
}

// reach returns the index of an entry in the dictionary, and counts a reference that is out of range. The entry is read
// and interned when the first sample reaches it.
func reach[I ~int32](r *legacyReader, t *legacyTable, ref uint64, intern func(entry []byte) I) I {
	i, ok := t.entry(ref)
	if !ok {
		r.stats.Repaired[RepairIndex]++
		return 0
	}
	return reachAt(t, i, intern)
}

// reachAt is reach for the entry at a position.
func reachAt[I ~int32](t *legacyTable, i int, intern func(entry []byte) I) I {
	if known := t.reached[i]; known != 0 {
		return I(known - 1)
	}
	index := intern(t.entries[i])
	t.reached[i] = int32(index) + 1
	return index
}

// appendVarints appends a repeated integer field, packed or not.
func appendVarints[T int32 | int64 | uint64](dst []T, r *wire.Reader) []T {
	if r.Wire == protowire.VarintType {
		return append(dst, clampTo[T](r.Value))
	}
	for v := range wire.Varints(r.Content) {
		dst = append(dst, clampTo[T](v))
	}
	return dst
}

// clampTo converts a varint. An index that does not fit becomes -1, which is out of every range.
func clampTo[T int32 | int64 | uint64](v uint64) T {
	if _, is32 := any(T(0)).(int32); is32 && v > math.MaxInt32 {
		return T(0) - 1
	}
	return T(v)
}

func (r *legacyReader) stringAt(t *legacyTables, index uint64) string {
	if index >= uint64(len(t.strings)) {
		if index != 0 {
			r.stats.Repaired[RepairIndex]++
		}
		return ""
	}
	return t.strings[index]
}

// addString adds an entry to a string table, as valid UTF-8.
func (r *legacyReader) addString(t *legacyTables, content []byte) {
	t.strings = append(t.strings, r.validString(content))
	t.stringIndices = append(t.stringIndices, 0)
}

func (r *legacyReader) internString(t *legacyTables, index uint64) dictionary.StringIndex {
	s := r.stringAt(t, index)
	if s == "" {
		return 0
	}
	if t.stringIndices[index] == 0 {
		t.stringIndices[index] = r.dict.Strings.Intern(s)
	}
	return t.stringIndices[index]
}

func (r *legacyReader) mapping(t *legacyTables, ref uint64) dictionary.MappingIndex {
	return reach(r, &t.mappings, ref, func(entry []byte) dictionary.MappingIndex { return r.internMapping(t, entry) })
}

func (r *legacyReader) internMapping(t *legacyTables, entry []byte) dictionary.MappingIndex {
	var m dictionary.Mapping
	var buildID uint64
	var isHash bool
	set := attributeSet{reader: r, tables: t}
	t.mappings.schema.Each(entry, func(known *messages.Field, f *wire.Reader) {
		switch known.Name {
		case "memory_start":
			m.MemoryStart = f.Value
		case "memory_limit":
			m.MemoryLimit = f.Value
		case "file_offset":
			m.FileOffset = f.Value
		case "filename", "filename_strindex":
			m.Filename = r.internString(t, f.Value)
		case "build_id":
			buildID = f.Value
		case "build_id_kind":
			isHash = f.Value == buildIDBinaryHash
		case "attributes", "attribute_indices":
			set.addIndices(f)
		case "has_functions", "has_filenames", "has_line_numbers", "has_inline_frames":
			if f.Value != 0 {
				set.add("pprof.mapping."+known.Name, dictionary.BoolValue(true), 0)
			}
		}
	})
	if buildID != 0 {
		set.addString(buildIDKey(r.stringAt(t, buildID), isHash), buildID)
	}
	if m.MemoryStart >= m.MemoryLimit && m.MemoryLimit|m.MemoryStart != 0 {
		set.add("pprof.mapping.start", dictionary.IntValue(int64(m.MemoryStart)), 0)
		set.add("pprof.mapping.limit", dictionary.IntValue(int64(m.MemoryLimit)), 0)
		m.MemoryStart, m.MemoryLimit = 0, 0
	}
	m.Attributes = set.intern()
	return r.dict.Mappings.Intern(m)
}

// buildIDBinaryHash is BUILD_ID_BINARY_HASH of 1.3: a hash that the profiler made, and not the linker's id.
const buildIDBinaryHash = 1

// buildIDKey returns the attribute for a build id (semantic conventions, registry/attributes/process).
func buildIDKey(id string, isHash bool) string {
	switch {
	case isHash:
		return "process.executable.build_id.htlhash"
	case strings.Contains(id[:min(len(id), 128)], "/"): // Go's has one between parts of 20 characters
		return "process.executable.build_id.go"
	default:
		return "process.executable.build_id.gnu"
	}
}

func (r *legacyReader) function(t *legacyTables, ref uint64) dictionary.FunctionIndex {
	return reach(r, &t.functions, ref, func(entry []byte) dictionary.FunctionIndex {
		var function dictionary.Function
		t.functions.schema.Each(entry, func(known *messages.Field, f *wire.Reader) {
			switch known.Name {
			case "name", "name_strindex":
				function.Name = r.internString(t, f.Value)
			case "system_name", "system_name_strindex":
				function.SystemName = r.internString(t, f.Value)
			case "filename", "filename_strindex":
				function.Filename = r.internString(t, f.Value)
			case "start_line":
				function.StartLine = int64(f.Value)
			}
		})
		return r.dict.Functions.Intern(function)
	})
}

// frameTypes are the names that profilers used before the semantic conventions' (profile.frame.type).
var frameTypes = map[string]string{
	"python": "cpython", "hotspot": "jvm", "java": "jvm", "v8": "v8js", "nodejs": "v8js", "phpjit": "php",
}

// frameType returns the current name of a frame type. Long strings are not looked up, because many locations can share
// one.
func frameType(old string) (renamed string, ok bool) {
	if len(old) > len("nodejs") && old != "hotspot" {
		return "", false
	}
	renamed, ok = frameTypes[old]
	return renamed, ok
}

func (r *legacyReader) locationAt(t *legacyTables, i int) dictionary.LocationIndex {
	return reachAt(&t.locations, i, func(entry []byte) dictionary.LocationIndex { return r.internLocation(t, entry) })
}

func (r *legacyReader) internLocation(t *legacyTables, entry []byte) dictionary.LocationIndex {
	var l dictionary.Location
	r.lines = r.lines[:0]
	set := attributeSet{reader: r, tables: t}
	mapping, hasMapping := uint64(0), r.layout == V1_3 && t.mappings.ids == nil && len(t.mappings.entries) > 0
	t.locations.schema.Each(entry, func(known *messages.Field, f *wire.Reader) {
		switch known.Name {
		case "mapping_index":
			mapping, hasMapping = f.Value, true
		case "address":
			l.Address = f.Value
		case "line":
			r.lines = append(r.lines, r.line(t, f.Content))
		case "is_folded":
			if f.Value != 0 {
				set.add("pprof.location.is_folded", dictionary.BoolValue(true), 0)
			}
		case "type_index":
			if renamed, ok := frameType(r.stringAt(t, f.Value)); ok {
				set.add("profile.frame.type", dictionary.StringValue(renamed), 0)
			} else {
				set.addString("profile.frame.type", f.Value)
			}
		case "attributes", "attribute_indices":
			set.addIndices(f)
		}
	})
	if hasMapping {
		l.Mapping = r.mapping(t, mapping)
	}
	l.Attributes = set.intern()
	return r.dict.Locations.Intern(l, r.lines)
}

func (r *legacyReader) line(t *legacyTables, data []byte) dictionary.Line {
	var line dictionary.Line
	function, hasFunction := uint64(0), t.functions.ids == nil && len(t.functions.entries) > 0
	messages.Line.Each(data, func(known *messages.Field, f *wire.Reader) {
		switch known.Name {
		case "function_index":
			function, hasFunction = f.Value, true
		case "line":
			line.Line = r.notNegative(int64(f.Value))
		case "column":
			line.Column = r.notNegative(int64(f.Value))
		}
	})
	if hasFunction {
		line.Function = r.function(t, function)
	}
	return line
}

func (r *legacyReader) notNegative(v int64) int64 {
	if v < 0 {
		r.stats.Repaired[RepairNegative]++
		return 0
	}
	return v
}

func (r *legacyReader) link(t *legacyTables, ref uint64) dictionary.LinkIndex {
	return reach(r, &t.links, ref, func(entry []byte) dictionary.LinkIndex {
		var link dictionary.Link
		messages.Link.Each(entry, func(known *messages.Field, f *wire.Reader) {
			switch known.Name {
			case "trace_id":
				copy(link.TraceID[:], f.Content)
			case "span_id":
				copy(link.SpanID[:], f.Content)
			}
		})
		if link.TraceID == ([16]byte{}) || link.SpanID == ([8]byte{}) {
			link = dictionary.Link{} // a link needs both ids
		}
		return r.dict.Links.Intern(link)
	})
}

// attribute interns an entry of the attribute table. It returns 0 for one that cannot be read.
func (r *legacyReader) attribute(t *legacyTables, ref uint64) dictionary.AttributeIndex {
	return reach(r, &t.attributes, ref, func(entry []byte) dictionary.AttributeIndex {
		key, value := r.keyValue(entry)
		if key == "" {
			return 0
		}
		a := dictionary.Attribute{Key: r.dict.Strings.Intern(key), Value: value}
		if unit, hasUnit := t.units[key]; hasUnit {
			a.Unit = r.internString(t, unit)
		}
		return r.dict.Attributes.Intern(a)
	})
}

// keyValue reads a KeyValue of common.proto, as pdata reads an attribute of a resource. The key is empty if it cannot
// be read.
func (r *legacyReader) keyValue(data []byte) (key string, value dictionary.Value) {
	request := appendBytesField(nil, 1, appendBytesField(nil, 1, appendBytesField(nil, 1, data)))
	if _, err := pdatasize.Profiles(request); err != nil {
		r.stats.Repaired[RepairDepth]++
		return "", dictionary.Value{}
	}
	profiles, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(request)
	if err != nil {
		r.isMalformed = true
		return "", dictionary.Value{}
	}
	for name, v := range profiles.ResourceProfiles().At(0).Resource().Attributes().All() {
		if clean, ok := r.cleaner.CleanValue(v); ok {
			return r.cleaner.CleanString(name), dictionary.ValueOf(clean)
		}
	}
	return "", dictionary.Value{}
}

func (r *legacyReader) validString(content []byte) string {
	if !utf8.Valid(content) {
		r.stats.Repaired[RepairInvalidUTF8]++
		return strings.ToValidUTF8(string(content), "\uFFFD")
	}
	return string(content)
}

// attributeSet collects the attributes of one entry, each key once.
type attributeSet struct {
	reader  *legacyReader
	tables  *legacyTables
	indices []int32
	scratch []int32
}

func (s *attributeSet) addIndices(f *wire.Reader) {
	s.scratch = appendVarints(s.scratch[:0], f)
	for _, ref := range s.scratch {
		s.addIndex(s.reader.attribute(s.tables, uint64(uint32(ref))))
	}
}

func (s *attributeSet) add(key string, value dictionary.Value, unit dictionary.StringIndex) {
	d := s.reader.dict
	s.addIndex(d.Attributes.Intern(dictionary.Attribute{Key: d.Strings.Intern(key), Value: value, Unit: unit}))
}

func (s *attributeSet) addIndex(index dictionary.AttributeIndex) {
	if index != 0 {
		s.indices = append(s.indices, int32(index))
	}
}

// addString adds an attribute whose value is an entry of the string table, unless that is empty.
func (s *attributeSet) addString(key string, index uint64) {
	r := s.reader
	if r.stringAt(s.tables, index) != "" {
		s.addIndex(r.stringAttribute(s.tables, stringAttribute{key: key, value: index}, r.dict.Strings.Intern(key)))
	}
}

func (r *legacyReader) stringAttribute(t *legacyTables, k stringAttribute,
	key dictionary.StringIndex) dictionary.AttributeIndex {
	index, known := t.stringAttributes[k]
	if !known {
		index = r.dict.Attributes.Intern(dictionary.Attribute{Key: key,
			Value: dictionary.StringValue(r.stringAt(t, k.value))})
		if t.stringAttributes == nil {
			t.stringAttributes = map[stringAttribute]dictionary.AttributeIndex{}
		}
		t.stringAttributes[k] = index
	}
	return index
}

// intern drops repeated keys and adds the set to the dictionary.
func (s *attributeSet) intern() dictionary.AttributeSetIndex {
	r := s.reader
	if len(s.indices) > 1 {
		r.set++
		kept := s.indices[:0]
		for _, index := range s.indices {
			key := r.dict.Attributes.At(dictionary.AttributeIndex(index)).Key
			if missing := int(key) + 1 - len(r.keySeen); missing > 0 {
				r.keySeen = append(r.keySeen, make([]uint32, missing)...)
			}
			if r.keySeen[key] == r.set {
				r.stats.Repaired[RepairAttributeKey]++
				continue
			}
			r.keySeen[key] = r.set
			kept = append(kept, index)
		}
		s.indices = kept
	}
	return r.dict.AttributeSets.Intern(s.indices)
}
