// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The label that a sample's timestamp becomes.
const (
	labelTimestamp     = "timestamps_unix_nano"
	labelTimestampUnit = "nanoseconds"
)

// encodeAttribute appends the labels of attribute i to e.labels and records where they stand.
func (e *encoder) encodeAttribute(i int32) {
	attribute := e.attributeTable.At(int(i))
	if i == 0 && encIsNullAttribute(attribute) {
		return
	}
	start := len(e.labels)
	l := encLabels{
		e:    e,
		key:  e.tableString("attribute_table", i, "key_strindex", attribute.KeyStrindex()),
		unit: e.tableString("attribute_table", i, "unit_strindex", attribute.UnitStrindex()),
	}
	l.value(attribute.Value())
	if l.unit != 0 && !l.unitUsed {
		e.stats.Omitted[OmitUnit]++
	}
	e.attributes.set(i, encSpan{start: start, size: len(e.labels) - start})
}

// encLabels writes the labels of one key. key and unit index the payload's strings.
type encLabels struct {
	e         *encoder
	key, unit uint64
	unitUsed  bool
}

func (l *encLabels) value(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		l.text(v.Str())
	case pcommon.ValueTypeInt:
		l.number(v.Int())
	case pcommon.ValueTypeSlice:
		if s := v.Slice(); encIsLabelList(s) {
			for k := range s.Len() {
				l.element(s.At(k))
			}
			return
		}
		l.text(encText(v))
	default:
		l.text(encText(v))
	}
}

// element writes an element of an array that encIsLabelList accepts.
func (l *encLabels) element(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		l.text(v.Str())
	case pcommon.ValueTypeInt:
		l.number(v.Int())
	default:
		n, unit, _ := encNumberWithUnit(v)
		l.append(0, n, l.e.strings.text(unit))
	}
}

func (l *encLabels) text(s string) {
	strings := &l.e.strings
	l.append(strings.notZero(strings.text(s)), 0, 0)
}

func (l *encLabels) number(n int64) {
	l.unitUsed = true
	l.append(0, n, l.unit)
}

// append writes one label message. str is 0 for a number; a number 0 needs a unit index to be seen.
func (l *encLabels) append(str uint64, num int64, unit uint64) {
	if str == 0 && num == 0 {
		unit = l.e.strings.notZero(unit)
	}
	l.e.labels = encAppendLabel(l.e.labels, encLabel{key: l.key, str: str, num: num, unit: unit})
}

type encLabel struct {
	key, str uint64
	num      int64
	unit     uint64
}

func encAppendLabel(b []byte, l encLabel) []byte {
	b, start := encOpen(b, encSampleLabel)
	b = encAppendUint(b, encLabelKey, l.key)
	b = encAppendUint(b, encLabelStr, l.str)
	b = encAppendUint(b, encLabelNum, uint64(l.num))
	b = encAppendUint(b, encLabelNumUnit, l.unit)
	return encClose(b, start)
}

// encIsLabelList says whether an array is one that several labels of a key can stand for.
func encIsLabelList(s pcommon.Slice) bool {
	for k := range s.Len() {
		switch v := s.At(k); v.Type() {
		case pcommon.ValueTypeStr, pcommon.ValueTypeInt:
		default:
			if _, _, ok := encNumberWithUnit(v); !ok {
				return false
			}
		}
	}
	return s.Len() > 0
}

// encNumberWithUnit reads a map of exactly an int "value" and a string "unit".
func encNumberWithUnit(v pcommon.Value) (n int64, unit string, ok bool) {
	if v.Type() != pcommon.ValueTypeMap || v.Map().Len() != 2 {
		return 0, "", false
	}
	number, hasNumber := v.Map().Get("value")
	text, hasText := v.Map().Get("unit")
	if !hasNumber || !hasText || number.Type() != pcommon.ValueTypeInt || text.Type() != pcommon.ValueTypeStr {
		return 0, "", false
	}
	return number.Int(), text.Str(), true
}

// link gives the labels of link i. Link 0 is none, whatever stands there.
func (e *encoder) link(i int32) encSpan {
	if i == 0 {
		return encSpan{}
	}
	if uint32(i) >= uint32(len(e.links.spans)) {
		e.fail(e.samplePath(".link_index"), i, len(e.links.spans))
		return encSpan{}
	}
	if e.links.spans[i].size == 0 {
		start := len(e.labels)
		l := e.linkTable.At(int(i))
		if id := l.TraceID(); !id.IsEmpty() {
			e.labelID(labelTraceID, id[:])
		}
		if id := l.SpanID(); !id.IsEmpty() {
			e.labelID(labelSpanID, id[:])
		}
		e.links.set(i, encSpan{start: start, size: len(e.labels) - start})
	}
	return e.links.spans[i]
}

func (e *encoder) labelID(key string, id []byte) {
	l := encLabel{key: e.strings.text(key), str: e.strings.text(hex.EncodeToString(id))}
	e.labels = encAppendLabel(e.labels, l)
}

// setTimestamp prepares the label that the next samples carry.
func (e *encoder) setTimestamp(unixNano uint64) {
	e.timestampLabel = encAppendLabel(e.timestampLabel[:0], encLabel{
		key:  e.strings.text(labelTimestamp),
		num:  int64(unixNano),
		unit: e.strings.text(labelTimestampUnit),
	})
}

// tableString gives the payload's index of the string that a field of a dictionary entry names.
func (e *encoder) tableString(table string, entry int32, field string, strindex int32) uint64 {
	at, ok := e.strings.index(strindex)
	if !ok {
		e.fail(fmt.Sprintf("%s[%d].%s", table, entry, field), strindex, e.strings.table.Len())
	}
	return at
}
