// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// VarintLen returns the number of bytes of v as a protobuf varint.
func VarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// FieldLen returns the number of bytes of a field of n bytes behind a tag of one byte.
func FieldLen(n int) int { return 1 + VarintLen(uint64(n)) + n }

// NumberLen returns the number of bytes of a field with a varint, which is left out if it is 0.
func NumberLen(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + VarintLen(v)
}

// indexLen returns the number of bytes of a field with an index.
func (w *Writer) indexLen(t TableID, i int32) int { return NumberLen(uint64(w.Index(t, i))) }

// indicesLen returns the number of bytes of a field with a list of indices, which is left out if it is empty.
func (w *Writer) indicesLen(t TableID, list []int32) int {
	if len(list) == 0 {
		return 0
	}
	n := 0
	for _, i := range list {
		n += VarintLen(uint64(w.Index(t, i)))
	}
	return FieldLen(n)
}

// AttributesLen returns the number of bytes of what WriteAttributes writes, as a field.
func (w *Writer) AttributesLen(i AttributeSetIndex) int {
	return w.indicesLen(AttributeTable, w.Dict.AttributeSets.At(i))
}

// EntryLen returns the number of bytes of an entry as a message of its own.
func (w *Writer) EntryLen(t TableID, i int32) int {
	d := w.Dict
	switch t {
	case StringTable:
		return len(d.Strings.entries[i])
	case AttributeTable:
		a := &d.Attributes.entries[i]
		return w.indexLen(StringTable, int32(a.Key)) + w.indexLen(StringTable, int32(a.Unit)) + FieldLen(a.Value.EncodedLen())
	case FunctionTable:
		f := &d.Functions.entries[i]
		return w.indexLen(StringTable, int32(f.Name)) + w.indexLen(StringTable, int32(f.SystemName)) +
			w.indexLen(StringTable, int32(f.Filename)) + NumberLen(uint64(f.StartLine))
	case MappingTable:
		m := &d.Mappings.entries[i]
		return NumberLen(m.MemoryStart) + NumberLen(m.MemoryLimit) + NumberLen(m.FileOffset) +
			w.indexLen(StringTable, int32(m.Filename)) + w.AttributesLen(m.Attributes)
	case LocationTable:
		l, lines := d.Locations.At(LocationIndex(i))
		n := w.indexLen(MappingTable, int32(l.Mapping)) + NumberLen(l.Address) + w.AttributesLen(l.Attributes)
		for k := range lines {
			n += FieldLen(w.indexLen(FunctionTable, int32(lines[k].Function)) +
				NumberLen(uint64(lines[k].Line)) + NumberLen(uint64(lines[k].Column)))
		}
		return n
	case StackTable:
		return w.indicesLen(LocationTable, d.Stacks.At(StackIndex(i)))
	case LinkTable:
		n := 2 * FieldLen(0)
		if l := &d.Links.entries[i]; !l.TraceID.IsEmpty() {
			n += len(l.TraceID)
		}
		if l := &d.Links.entries[i]; !l.SpanID.IsEmpty() {
			n += len(l.SpanID)
		}
		return n
	default:
		return 0
	}
}

// EncodedLen returns the number of bytes of the value as an AnyValue message.
func (v Value) EncodedLen() int {
	switch v.kind {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return FieldLen(len(v.content))
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + VarintLen(v.bits)
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		n, _ := encodedLen(v.content)
		return n
	default:
		return 0
	}
}

// encodedLen returns the number of bytes of the value that appendValue wrote at the start of s as an AnyValue
// message, and the rest of s.
func encodedLen(s string) (n int, rest string) {
	kind, s := pcommon.ValueType(s[0]), s[1:]
	switch kind {
	case pcommon.ValueTypeSlice:
		count, s := readCount(s)
		for range count {
			value, rest := encodedLen(s)
			n, s = n+FieldLen(value), rest
		}
		return FieldLen(n), s
	case pcommon.ValueTypeMap:
		count, s := readCount(s)
		for range count {
			key, rest := readString(s)
			value, rest := encodedLen(rest)
			n, s = n+FieldLen(keyLen(key)+FieldLen(value)), rest
		}
		return FieldLen(n), s
	default:
		v, rest := readScalar(kind, s)
		return v.EncodedLen(), rest
	}
}

// keyLen returns the number of bytes of an attribute's key; an empty one is not written.
func keyLen(key string) int {
	if key == "" {
		return 0
	}
	return FieldLen(len(key))
}

// The memory of an entry: in its table, in the index that finds it, and as pdata.
const (
	indexBytes     = 16
	stringBytes    = 16 + indexBytes + 16
	functionBytes  = 24 + indexBytes + 48
	mappingBytes   = 64 + indexBytes + 96
	locationBytes  = 32 + indexBytes + 96
	lineBytes      = 24 + 48
	listBytes      = 4 + indexBytes + 40
	memberBytes    = 4 + 4
	linkBytes      = 24 + indexBytes + 48
	attributeBytes = 64 + indexBytes + 88
)

// BuildBytes estimates the memory that the entries take until CopyTo has written them, without strings. It takes no
// time.
func (d *Dictionary) BuildBytes() int {
	return d.Strings.Len()*stringBytes + d.Functions.Len()*functionBytes + d.Mappings.Len()*mappingBytes +
		d.Locations.Len()*locationBytes + len(d.Locations.lines)*lineBytes +
		(d.Stacks.Len()+d.AttributeSets.Len())*listBytes +
		(len(d.Stacks.flat)+len(d.AttributeSets.flat))*memberBytes + d.Links.Len()*linkBytes +
		d.Attributes.Len()*attributeBytes
}

// Bytes estimates the memory of tables with these numbers of entries, before CopyTo.
func (s Sizes) Bytes() int {
	return s.Strings*(16+indexBytes) + s.Functions*(24+indexBytes) + s.Locations*(32+indexBytes) + s.Lines*24 +
		s.Stacks*(4+indexBytes) + s.StackLocations*4
}
