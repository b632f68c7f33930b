// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

var sizer pprofile.ProtoMarshaler

// headerSize is the encoded size of a resource or scope without what is below it, in both forms that
// exporters write: with the attributes' texts in place, and as references into the string table, which
// pdata moves them into when it marshals by itself.
type headerSize struct {
	inPlace int
	// referenced is the size without the attributes; they depend on how many bytes a reference takes.
	referenced int
	attributes pcommon.Map
	// texts are those that references would need in the string table.
	texts []string
	// bound is the larger of the two, where nothing else has any of the texts.
	bound int
}

// maxReference is the number of bytes of a reference into a string table of less than two million strings.
const maxReference = 3

// maxPrefixGrowth is what the length prefix of a resource or scope message can grow by with its attributes.
const maxPrefixGrowth = 4

func newHeaderSize(bare, inPlace int, attributes pcommon.Map) headerSize {
	h := headerSize{inPlace: inPlace, referenced: bare, attributes: attributes}
	if attributes.Len() > 0 {
		h.referenced += maxPrefixGrowth
	}
	h.collectTexts(attributes)
	texts := 0
	for _, text := range h.texts {
		texts += profiledict.FieldLen(len(text))
	}
	h.bound = max(h.inPlace, h.withReferences(maxReference)+texts)
	return h
}

func (h *headerSize) collectTexts(m pcommon.Map) {
	for key, value := range m.All() {
		if key != "" {
			h.texts = append(h.texts, key)
		}
		h.collectValue(value)
	}
}

func (h *headerSize) collectValue(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if v.Str() != "" {
			h.texts = append(h.texts, v.Str())
		}
	case pcommon.ValueTypeSlice:
		for _, value := range v.Slice().All() {
			h.collectValue(value)
		}
	case pcommon.ValueTypeMap:
		h.collectTexts(v.Map())
	default:
	}
}

// withReferences is the size where each reference takes width bytes.
func (h *headerSize) withReferences(width int) int {
	return h.referenced + referencedMapLen(h.attributes, width)
}

func referencedMapLen(m pcommon.Map, width int) int {
	n := 0
	for key, value := range m.All() {
		entry := profiledict.FieldLen(referencedLen(value, width))
		if key != "" {
			entry += 1 + width
		}
		n += profiledict.FieldLen(entry)
	}
	return n
}

func referencedLen(v pcommon.Value, width int) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if v.Str() != "" {
			return 1 + width
		}
	case pcommon.ValueTypeSlice:
		n := 0
		for _, value := range v.Slice().All() {
			n += profiledict.FieldLen(referencedLen(value, width))
		}
		return profiledict.FieldLen(n)
	case pcommon.ValueTypeMap:
		return profiledict.FieldLen(referencedMapLen(v.Map(), width))
	default:
	}
	return ValueLen(v)
}

// headerLen is the encoded size of a profile without its samples and payload.
func (p *Header) headerLen(s *Subset) int {
	n := valueTypeLen(p.SampleType, s) + valueTypeLen(p.PeriodType, s)
	if p.Time != 0 {
		n += 9
	}
	n += numberLen(p.DurationNanos) + numberLen(uint64(p.Period)) + numberLen(uint64(p.DroppedAttributesCount))
	if p.ID.IsEmpty() {
		n += profiledict.FieldLen(0)
	} else {
		n += profiledict.FieldLen(len(p.ID))
	}
	return n + s.AttributesLen(p.Attributes)
}

// payloadLen is the encoded size of the original payload and its format.
func (p *Header) payloadLen() int {
	n := 0
	if p.PayloadFormat != "" {
		n += profiledict.FieldLen(len(p.PayloadFormat))
	}
	if len(p.Payload) > 0 {
		n += profiledict.FieldLen(len(p.Payload))
	}
	return n
}

func valueTypeLen(t ValueType, s *Subset) int {
	return profiledict.FieldLen(numberLen(uint64(s.String(t.Type))) + numberLen(uint64(s.String(t.Unit))))
}

func numberLen(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + profiledict.VarintLen(v)
}

// sampleLen is the encoded size of the observations [from, to) of a sample.
func (b *Batch) sampleLen(s *sample, shape shape, from, to uint32, in *Subset) int {
	n := numberLen(uint64(in.Stack(s.Stack))) + numberLen(uint64(in.Link(s.Link))) + in.AttributesLen(s.Attributes)
	if shape != timestampsAlone {
		values := 0
		for _, v := range b.values[s.firstValue+from : s.firstValue+to] {
			values += profiledict.VarintLen(uint64(v))
		}
		n += profiledict.FieldLen(values)
	}
	if shape != valuesAlone {
		n += profiledict.FieldLen(8 * int(to-from))
	}
	return profiledict.FieldLen(n)
}

func indexLen(i int32) int { return numberLen(uint64(uint32(i))) }

// Size is the number of bytes of the dictionary's message that CopyTo writes, as pdata encodes it. It notes
// the largest entry.
func (s *Subset) Size() int {
	total := 0
	s.largest = 0
	for t := tableString; t < numTables; t++ {
		uses := s.table(t)
		if uses == nil {
			continue
		}
		for _, i := range uses.order {
			n := profiledict.FieldLen(s.entryLen(t, i))
			s.largest = max(s.largest, n)
			total += n
		}
	}
	return total
}

// entryLen is the number of bytes of an entry as a message of its own.
func (s *Subset) entryLen(t table, i int32) int {
	switch t {
	case tableString:
		return len(s.dict.Strings.At(profiledict.StringIndex(i)))
	case tableAttribute:
		a := s.dict.Attributes.At(profiledict.AttributeIndex(i))
		return indexLen(s.String(a.Key)) + indexLen(s.String(a.Unit)) + profiledict.FieldLen(a.Value.EncodedLen())
	case tableFunction:
		return s.functionLen(profiledict.FunctionIndex(i))
	case tableMapping:
		return s.mappingLen(profiledict.MappingIndex(i))
	case tableLocation:
		return s.locationLen(profiledict.LocationIndex(i))
	case tableStack:
		return s.stackLen(profiledict.StackIndex(i))
	case tableLink:
		l := s.dict.Links.At(profiledict.LinkIndex(i))
		trace, span := 0, 0
		if !l.TraceID.IsEmpty() {
			trace = len(l.TraceID)
		}
		if !l.SpanID.IsEmpty() {
			span = len(l.SpanID)
		}
		return profiledict.FieldLen(trace) + profiledict.FieldLen(span)
	default:
		return 0
	}
}

func (s *Subset) functionLen(i profiledict.FunctionIndex) int {
	f := s.dict.Functions.At(i)
	return indexLen(s.String(f.Name)) + indexLen(s.String(f.SystemName)) +
		indexLen(s.String(f.Filename)) + numberLen(uint64(f.StartLine))
}

func (s *Subset) mappingLen(i profiledict.MappingIndex) int {
	m := s.dict.Mappings.At(i)
	return numberLen(m.MemoryStart) + numberLen(m.MemoryLimit) + numberLen(m.FileOffset) +
		indexLen(s.String(m.Filename)) + s.AttributesLen(m.Attributes)
}

func (s *Subset) locationLen(i profiledict.LocationIndex) int {
	l, lines := s.dict.Locations.At(i)
	n := indexLen(s.mappings.index[l.Mapping]) + numberLen(l.Address) + s.AttributesLen(l.Attributes)
	for k := range lines {
		n += profiledict.FieldLen(indexLen(s.functions.index[lines[k].Function]) +
			numberLen(uint64(lines[k].Line)) + numberLen(uint64(lines[k].Column)))
	}
	return n
}

func (s *Subset) stackLen(i profiledict.StackIndex) int {
	list := s.dict.Stacks.At(i)
	if len(list) == 0 {
		return 0
	}
	n := 0
	for _, l := range list {
		n += profiledict.VarintLen(uint64(uint32(s.locations.index[l])))
	}
	return profiledict.FieldLen(n)
}

// AttributesLen is the number of bytes of a field of attribute indices.
func (s *Subset) AttributesLen(i profiledict.AttributeSetIndex) int {
	if i == 0 {
		return 0
	}
	n := 0
	for _, a := range s.dict.AttributeSets.At(i) {
		n += profiledict.VarintLen(uint64(uint32(s.attributes.index[a])))
	}
	return profiledict.FieldLen(n)
}

// ValueLen is the number of bytes of v as an AnyValue message, with its texts in place.
func ValueLen(v pcommon.Value) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return profiledict.FieldLen(len(v.Str()))
	case pcommon.ValueTypeBytes:
		return profiledict.FieldLen(v.Bytes().Len())
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + profiledict.VarintLen(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice:
		n := 0
		for _, value := range v.Slice().All() {
			n += profiledict.FieldLen(ValueLen(value))
		}
		return profiledict.FieldLen(n)
	case pcommon.ValueTypeMap:
		return profiledict.FieldLen(MapLen(v.Map()))
	default:
		return 0
	}
}

// MapLen is the number of bytes of the attributes m, with their texts in place.
func MapLen(m pcommon.Map) int {
	n := 0
	for key, value := range m.All() {
		entry := profiledict.FieldLen(ValueLen(value))
		if key != "" {
			entry += profiledict.FieldLen(len(key))
		}
		n += profiledict.FieldLen(entry)
	}
	return n
}
