// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

var sizer pprofile.ProtoMarshaler

// headerBound bounds the encoded size of a resource or scope without what is below it: of inPlace bytes with its strings in place, or
// with references to them, when pdata moves the strings to the string table while it marshals.
func headerBound(inPlace int, attributes pcommon.Map) int {
	const (
		reference    = 1 + 4 // into a table of less than 2^28 strings
		longerPrefix = 4     // of the dictionary, to which the strings move
	)
	bound := inPlace
	everyStringOf(attributes, func(string) bool {
		bound += reference
		return true
	})
	if bound > inPlace {
		bound += longerPrefix
	}
	return bound
}

// headerLen is the encoded size of a profile without its samples and payload.
func (p *Header) headerLen(s *encoding) int {
	n := valueTypeLen(p.SampleType, s) + valueTypeLen(p.PeriodType, s)
	if p.Time != 0 {
		n += 9
	}
	n += numberLen(p.DurationNanos) + numberLen(uint64(p.Period)) + numberLen(uint64(p.DroppedAttributesCount))
	if p.ID.IsEmpty() {
		n += dictionary.FieldLen(0)
	} else {
		n += dictionary.FieldLen(len(p.ID))
	}
	return n + s.attributesLen(p.Attributes)
}

// payloadLen is the encoded size of the original payload and its format.
func (p *Header) payloadLen() int {
	n := 0
	if p.PayloadFormat != "" {
		n += dictionary.FieldLen(len(p.PayloadFormat))
	}
	if len(p.Payload) > 0 {
		n += dictionary.FieldLen(len(p.Payload))
	}
	return n
}

func valueTypeLen(t ValueType, s *encoding) int {
	return dictionary.FieldLen(numberLen(uint64(s.stringIndex(t.Type))) + numberLen(uint64(s.stringIndex(t.Unit))))
}

func numberLen(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + dictionary.VarintLen(v)
}

// sampleLen is the encoded size of the observations [from, to) of a sample.
func (b *Batch) sampleLen(s *sample, shape Shape, from, to uint32, in *encoding) int {
	n := numberLen(uint64(in.stackIndex(s.Stack))) + numberLen(uint64(in.linkIndex(s.Link))) + in.attributesLen(s.Attributes)
	if shape.Values {
		values := 0
		for _, v := range b.values[s.Observed.firstValue+from : s.Observed.firstValue+to] {
			values += dictionary.VarintLen(uint64(v))
		}
		n += dictionary.FieldLen(values)
	}
	if shape.Timestamps {
		n += dictionary.FieldLen(8 * int(to-from))
	}
	return dictionary.FieldLen(n)
}

func indexLen(i int32) int { return numberLen(uint64(uint32(i))) }

// entryLen is the number of bytes of an entry as a message of its own.
func (s *encoding) entryLen(t table, i int32) int {
	switch t {
	case tableString:
		return len(s.dict.Strings.At(dictionary.StringIndex(i)))
	case tableAttribute:
		a := s.dict.Attributes.At(dictionary.AttributeIndex(i))
		return indexLen(s.stringIndex(a.Key)) + indexLen(s.stringIndex(a.Unit)) + dictionary.FieldLen(a.Value.EncodedLen())
	case tableFunction:
		return s.functionLen(dictionary.FunctionIndex(i))
	case tableMapping:
		return s.mappingLen(dictionary.MappingIndex(i))
	case tableLocation:
		return s.locationLen(dictionary.LocationIndex(i))
	case tableStack:
		return s.stackLen(dictionary.StackIndex(i))
	case tableLink:
		l := s.dict.Links.At(dictionary.LinkIndex(i))
		trace, span := 0, 0
		if !l.TraceID.IsEmpty() {
			trace = len(l.TraceID)
		}
		if !l.SpanID.IsEmpty() {
			span = len(l.SpanID)
		}
		return dictionary.FieldLen(trace) + dictionary.FieldLen(span)
	default:
		return 0
	}
}

func (s *encoding) functionLen(i dictionary.FunctionIndex) int {
	f := s.dict.Functions.At(i)
	return indexLen(s.stringIndex(f.Name)) + indexLen(s.stringIndex(f.SystemName)) +
		indexLen(s.stringIndex(f.Filename)) + numberLen(uint64(f.StartLine))
}

func (s *encoding) mappingLen(i dictionary.MappingIndex) int {
	m := s.dict.Mappings.At(i)
	return numberLen(m.MemoryStart) + numberLen(m.MemoryLimit) + numberLen(m.FileOffset) +
		indexLen(s.stringIndex(m.Filename)) + s.attributesLen(m.Attributes)
}

func (s *encoding) locationLen(i dictionary.LocationIndex) int {
	l, lines := s.dict.Locations.At(i)
	n := indexLen(s.writer.Mappings.Of(int32(l.Mapping))) + numberLen(l.Address) + s.attributesLen(l.Attributes)
	for k := range lines {
		n += dictionary.FieldLen(indexLen(s.writer.Functions.Of(int32(lines[k].Function))) +
			numberLen(uint64(lines[k].Line)) + numberLen(uint64(lines[k].Column)))
	}
	return n
}

func (s *encoding) stackLen(i dictionary.StackIndex) int {
	list := s.dict.Stacks.At(i)
	if len(list) == 0 {
		return 0
	}
	n := 0
	for _, l := range list {
		n += dictionary.VarintLen(uint64(uint32(s.writer.Locations.Of(l))))
	}
	return dictionary.FieldLen(n)
}

// attributesLen is the number of bytes of a field of attribute indices.
func (s *encoding) attributesLen(i dictionary.AttributeSetIndex) int {
	if i == 0 {
		return 0
	}
	n := 0
	for _, a := range s.dict.AttributeSets.At(i) {
		n += dictionary.VarintLen(uint64(uint32(s.writer.Attributes.Of(a))))
	}
	return dictionary.FieldLen(n)
}
