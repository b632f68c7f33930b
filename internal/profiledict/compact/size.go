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
	return profiledict.ValueLen(v)
}

// headerLen is the encoded size of a profile without its samples.
func (p *profile) headerLen(s *profiledict.Subset, withPayload bool) int {
	n := valueTypeLen(p.sampleType, s) + valueTypeLen(p.periodType, s)
	if p.time != 0 {
		n += 9
	}
	n += numberLen(p.duration) + numberLen(uint64(p.period)) + numberLen(uint64(p.droppedAttributes))
	if p.id.IsEmpty() {
		n += profiledict.FieldLen(0)
	} else {
		n += profiledict.FieldLen(len(p.id))
	}
	n += s.AttributesLen(p.attributes)
	if withPayload {
		if p.payloadFormat != "" {
			n += profiledict.FieldLen(len(p.payloadFormat))
		}
		if len(p.payload) > 0 {
			n += profiledict.FieldLen(len(p.payload))
		}
	}
	return n
}

func valueTypeLen(t valueType, s *profiledict.Subset) int {
	return profiledict.FieldLen(numberLen(uint64(s.String(t.typ))) + numberLen(uint64(s.String(t.unit))))
}

func numberLen(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + profiledict.VarintLen(v)
}

// sampleLen is the encoded size of the observations [from, to) of a sample.
func (b *Batch) sampleLen(s *sample, shape shape, from, to uint32, in *profiledict.Subset) int {
	n := numberLen(uint64(in.Stack(s.stack))) + numberLen(uint64(in.Link(s.link))) + in.AttributesLen(s.attributes)
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
