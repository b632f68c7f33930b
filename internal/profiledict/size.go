// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// VarintLen is the number of bytes of v as a protobuf varint.
func VarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// FieldLen is the number of bytes of a field of n bytes behind a tag of one byte.
func FieldLen(n int) int { return 1 + VarintLen(uint64(n)) + n }

// numberLen is the number of bytes of a number field behind a tag of one byte; 0 is not written.
func numberLen(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + VarintLen(v)
}

func indexLen(i int32) int { return numberLen(uint64(uint32(i))) }

// Size is the number of bytes of the dictionary's message that CopyTo writes, as pdata encodes it.
func (s *Subset) Size() int {
	n := 0
	for _, i := range s.strings.order {
		n += FieldLen(len(s.dict.Strings.entries[i]))
	}
	for _, i := range s.functions.order {
		n += FieldLen(s.functionLen(FunctionIndex(i)))
	}
	for _, i := range s.mappings.order {
		n += FieldLen(s.mappingLen(MappingIndex(i)))
	}
	for _, i := range s.locations.order {
		n += FieldLen(s.locationLen(LocationIndex(i)))
	}
	for _, i := range s.stacks.order {
		n += FieldLen(s.stackLen(StackIndex(i)))
	}
	for _, i := range s.links.order {
		l := &s.dict.Links.entries[i]
		trace, span := 0, 0
		if !l.TraceID.IsEmpty() {
			trace = len(l.TraceID)
		}
		if !l.SpanID.IsEmpty() {
			span = len(l.SpanID)
		}
		n += FieldLen(FieldLen(trace) + FieldLen(span))
	}
	for _, i := range s.attributes.order {
		a := &s.dict.Attributes.entries[i]
		n += FieldLen(indexLen(s.String(a.Key)) + indexLen(s.String(a.Unit)) + FieldLen(a.Value.len()))
	}
	return n
}

func (s *Subset) functionLen(i FunctionIndex) int {
	f := &s.dict.Functions.entries[i]
	return indexLen(s.String(f.Name)) + indexLen(s.String(f.SystemName)) +
		indexLen(s.String(f.Filename)) + numberLen(uint64(f.StartLine))
}

func (s *Subset) mappingLen(i MappingIndex) int {
	m := &s.dict.Mappings.entries[i]
	return numberLen(m.MemoryStart) + numberLen(m.MemoryLimit) + numberLen(m.FileOffset) +
		indexLen(s.String(m.Filename)) + s.AttributesLen(m.Attributes)
}

func (s *Subset) locationLen(i LocationIndex) int {
	l, lines := s.dict.Locations.At(i)
	n := indexLen(s.mappings.index[l.Mapping]) + numberLen(l.Address) + s.AttributesLen(l.Attributes)
	for k := range lines {
		n += FieldLen(indexLen(s.functions.index[lines[k].Function]) +
			numberLen(uint64(lines[k].Line)) + numberLen(uint64(lines[k].Column)))
	}
	return n
}

func (s *Subset) stackLen(i StackIndex) int {
	list := s.dict.Stacks.At(i)
	if len(list) == 0 {
		return 0
	}
	n := 0
	for _, l := range list {
		n += VarintLen(uint64(uint32(s.locations.index[l])))
	}
	return FieldLen(n)
}

// AttributesLen is the number of bytes of a field of attribute indices.
func (s *Subset) AttributesLen(i AttributeSetIndex) int {
	if i == 0 {
		return 0
	}
	n := 0
	for _, a := range s.dict.AttributeSets.At(i) {
		n += VarintLen(uint64(uint32(s.attributes.index[a])))
	}
	return FieldLen(n)
}

// len is the number of bytes of the value as an AnyValue message.
func (v Value) len() int {
	switch v.kind {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return FieldLen(len(v.text))
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + VarintLen(v.bits)
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		value := pcommon.NewValueEmpty()
		readValue(v.text, value)
		return ValueLen(value)
	default:
		return 0
	}
}

// ValueLen is the number of bytes of v as an AnyValue message, with its texts in place.
func ValueLen(v pcommon.Value) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return FieldLen(len(v.Str()))
	case pcommon.ValueTypeBytes:
		return FieldLen(v.Bytes().Len())
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + VarintLen(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice:
		n := 0
		for _, value := range v.Slice().All() {
			n += FieldLen(ValueLen(value))
		}
		return FieldLen(n)
	case pcommon.ValueTypeMap:
		return FieldLen(MapLen(v.Map()))
	default:
		return 0
	}
}

// MapLen is the number of bytes of the attributes m, with their texts in place.
func MapLen(m pcommon.Map) int {
	n := 0
	for key, value := range m.All() {
		entry := FieldLen(ValueLen(value))
		if key != "" {
			entry += FieldLen(len(key))
		}
		n += FieldLen(entry)
	}
	return n
}
