// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The attributes that stand for fields of pprof (semantic conventions, registry/attributes/pprof and /process;
// pprof.mapping.start and .limit are this project's own).
const (
	keyBuildIDGNU  = "process.executable.build_id.gnu"
	keyBuildIDGo   = "process.executable.build_id.go"
	keyBuildIDHash = "process.executable.build_id.htlhash"
	keyMapStart    = "pprof.mapping.start"
	keyMapLimit    = "pprof.mapping.limit"
	keyIsFolded    = "pprof.location.is_folded"
)

// mappingFlags are the fields of the attributes that are true or not there.
var mappingFlags = [...]struct {
	key   string
	field int
}{
	{"pprof.mapping.has_functions", 7},
	{"pprof.mapping.has_filenames", 8},
	{"pprof.mapping.has_line_numbers", 9},
	{"pprof.mapping.has_inline_frames", 10},
}

// attributesOf gives attributes by key.
func (w *pprofWriter) attributesOf(indices pcommon.Int32Slice) map[string]pcommon.Value {
	if indices.Len() == 0 {
		return nil
	}
	found := make(map[string]pcommon.Value, indices.Len())
	for _, i := range indices.All() {
		attribute := w.dict.AttributeTable().At(int(i))
		found[w.dict.StringTable().At(int(attribute.KeyStrindex()))] = attribute.Value()
	}
	return found
}

func (w *pprofWriter) location(i int32) {
	if w.locations.values[i] {
		return
	}
	w.locations.set(i, true)
	entry := w.dict.LocationTable().At(int(i))
	m := wire(nil).number(1, uint64(i)+1)
	if mapping := entry.MappingIndex(); mapping != 0 {
		w.mapping(mapping)
		m = m.number(2, uint64(mapping)+1)
	}
	m = m.number(3, entry.Address())
	for _, line := range entry.Lines().All() {
		var l wire
		if function := line.FunctionIndex(); function != 0 {
			w.function(function)
			l = l.number(1, uint64(function)+1)
		}
		m = m.bytes(4, l.number(2, uint64(line.Line())).number(3, uint64(line.Column())))
	}
	if folded, ok := w.attributesOf(entry.AttributeIndices())[keyIsFolded]; ok && folded.Bool() {
		m = m.number(5, 1)
	}
	w.out = w.out.bytes(fieldLocation, m)
}

func (w *pprofWriter) mapping(i int32) {
	if w.mappings.values[i] {
		return
	}
	w.mappings.set(i, true)
	entry := w.dict.MappingTable().At(int(i))
	attributes := w.attributesOf(entry.AttributeIndices())
	start, limit := entry.MemoryStart(), entry.MemoryLimit()
	if v, ok := attributes[keyMapStart]; ok {
		start = uint64(v.Int())
	}
	if v, ok := attributes[keyMapLimit]; ok {
		limit = uint64(v.Int())
	}
	m := wire(nil).number(1, uint64(i)+1).number(2, start).number(3, limit).number(4, entry.FileOffset())
	m = m.number(5, w.tableText(entry.FilenameStrindex()))
	for _, key := range []string{keyBuildIDGNU, keyBuildIDGo, keyBuildIDHash} {
		if id, ok := attributes[key]; ok {
			m = m.number(6, w.text(id.Str()))
			break
		}
	}
	for _, flag := range mappingFlags {
		if v, ok := attributes[flag.key]; ok && v.Bool() {
			m = m.number(flag.field, 1)
		}
	}
	w.out = w.out.bytes(fieldMapping, m)
}

func (w *pprofWriter) function(i int32) {
	if w.functions.values[i] {
		return
	}
	w.functions.set(i, true)
	entry := w.dict.FunctionTable().At(int(i))
	m := wire(nil).number(1, uint64(i)+1).
		number(2, w.tableText(entry.NameStrindex())).
		number(3, w.tableText(entry.SystemNameStrindex())).
		number(4, w.tableText(entry.FilenameStrindex())).
		number(5, uint64(entry.StartLine()))
	w.out = w.out.bytes(fieldFunction, m)
}

// wire is a protobuf message under way.
type wire []byte

func (w wire) varint(n uint64) wire { return binary.AppendUvarint(w, n) }

// number appends a field that is a number, unless it is 0.
func (w wire) number(field int, n uint64) wire {
	if n == 0 {
		return w
	}
	return w.varint(uint64(field) << 3).varint(n)
}

// bytes appends a field with a length.
func (w wire) bytes(field int, content []byte) wire {
	return append(w.varint(uint64(field)<<3|2).varint(uint64(len(content))), content...)
}

// text appends a field that is a string.
func (w wire) text(field int, content string) wire {
	return append(w.varint(uint64(field)<<3|2).varint(uint64(len(content))), content...)
}
