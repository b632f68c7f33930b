// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// shareAttribute appends the labels of attribute i to e.shared.
func (e *encoder) shareAttribute(i int32) {
	attribute := e.dict.AttributeTable().At(int(i))
	if i == 0 && isNullAttribute(attribute) {
		return
	}
	name, isChanged := "", false
	if e.view.Label != nil {
		name, isChanged = e.view.Label(i)
	}
	l := labelWriter{e: e, unit: e.tableString("attribute_table", i, "unit_strindex", attribute.UnitStrindex())}
	if isChanged {
		l.key = e.strings.add(name)
	} else {
		l.key = e.tableString("attribute_table", i, "key_strindex", attribute.KeyStrindex())
		name, _ = e.strings.lookup(attribute.KeyStrindex())
	}
	l.value(attribute.Value())
	e.reserve(i, name)
}

// reservedAttribute is an attribute with a name of the format's own.
type reservedAttribute struct {
	of        reservedFor
	isCounted bool
}

// reservedFor is the field of a sample that a name is for.
type reservedFor uint8

const (
	forLink reservedFor = iota
	forTimestamp
	forWriter
)

// reserve notes an attribute whose name is one of the format's own.
func (e *encoder) reserve(i int32, name string) {
	of := forLink
	switch {
	case slices.Contains(e.reservedNames, name):
		of = forWriter
	case name == scan.KeyTraceID || name == scan.KeySpanID:
	case name != "" && name == e.origin.label:
		of = forTimestamp
	default:
		return
	}
	e.reserved[i] = reservedAttribute{of: of}
}

// isLeftOut reports whether an attribute of a sample is left out, since its name is that of a label that the sample has
// for its link or time.
func (e *encoder) isLeftOut(i int32, hasLink, hasTime bool) bool {
	if len(e.reserved) == 0 {
		return false
	}
	r, isReserved := e.reserved[i]
	isUsed := r.of == forWriter || r.of == forLink && hasLink || r.of == forTimestamp && hasTime
	if !isReserved || !isUsed {
		return false
	}
	if !r.isCounted {
		e.stats.LeftOut++
		e.reserved[i] = reservedAttribute{of: r.of, isCounted: true}
	}
	return true
}

// labelWriter writes the labels of one key. key and unit index the payload's strings.
type labelWriter struct {
	e         *encoder
	key, unit uint64
}

func (l *labelWriter) value(v pcommon.Value) {
	switch t := v.Type(); {
	case t == pcommon.ValueTypeInt:
		l.append(0, v.Int(), l.unit)
	case t == pcommon.ValueTypeSlice && isLabelList(v.Slice()):
		for _, element := range v.Slice().All() {
			if n, unit, ok := numberWithUnit(element); ok {
				l.append(0, n, l.e.strings.add(unit))
			} else {
				l.value(element)
			}
		}
	default:
		text, strings := valueString(v), &l.e.strings
		if l.e.view.Text != nil {
			text = l.e.view.Text(text)
		}
		l.append(strings.notZero(strings.add(text)), 0, 0)
	}
}

// append writes one label message. str is 0 for a number. A number 0 needs a unit index: without it, it is no label.
func (l *labelWriter) append(str uint64, num int64, unit uint64) {
	if str == 0 && num == 0 {
		unit = l.e.strings.notZero(unit)
	}
	l.e.shared = appendLabel(l.e.shared, label{key: l.key, str: str, num: num, unit: unit})
}

type label struct {
	key, str uint64
	num      int64
	unit     uint64
}

func appendLabel(b []byte, l label) []byte {
	b, start := openMessage(b, scan.SampleLabel)
	b = appendUint(b, scan.LabelKey, l.key)
	b = appendUint(b, scan.LabelStr, l.str)
	b = appendUint(b, scan.LabelNum, uint64(l.num))
	b = appendUint(b, scan.LabelNumUnit, l.unit)
	return closeMessage(b, start)
}

// isLabelList reports whether an array becomes several labels of a key.
func isLabelList(s pcommon.Slice) bool {
	for _, v := range s.All() {
		if _, _, ok := numberWithUnit(v); !ok && v.Type() != pcommon.ValueTypeStr && v.Type() != pcommon.ValueTypeInt {
			return false
		}
	}
	return s.Len() > 0
}

// HasText reports whether a value becomes a label with a string, and not only numbers.
func HasText(v pcommon.Value) bool {
	if v.Type() != pcommon.ValueTypeSlice || !isLabelList(v.Slice()) {
		return v.Type() != pcommon.ValueTypeInt
	}
	for _, element := range v.Slice().All() {
		if element.Type() == pcommon.ValueTypeStr {
			return true
		}
	}
	return false
}

// numberWithUnit reads a map that has an int "value", a string "unit" and nothing else.
func numberWithUnit(v pcommon.Value) (n int64, unit string, ok bool) {
	if v.Type() != pcommon.ValueTypeMap || v.Map().Len() != 2 {
		return 0, "", false
	}
	number, hasNumber := v.Map().Get("value")
	unitValue, hasUnit := v.Map().Get("unit")
	if !hasNumber || !hasUnit || number.Type() != pcommon.ValueTypeInt || unitValue.Type() != pcommon.ValueTypeStr {
		return 0, "", false
	}
	return number.Int(), unitValue.Str(), true
}

// shareLink appends the labels of link i to e.shared.
func (e *encoder) shareLink(i int32) {
	l := e.dict.LinkTable().At(int(i))
	if id := l.TraceID(); !id.IsEmpty() && !e.view.WithoutTraces {
		e.shareID(scan.KeyTraceID, id[:])
	}
	if id := l.SpanID(); !id.IsEmpty() {
		e.shareID(scan.KeySpanID, id[:])
	}
}

func (e *encoder) shareID(key string, id []byte) {
	l := label{key: e.strings.add(key), str: e.strings.add(hex.EncodeToString(id))}
	e.shared = appendLabel(e.shared, l)
}

// setTimestamp sets the label that the next samples have.
func (e *encoder) setTimestamp(unixNano uint64) {
	e.timestampLabel = appendLabel(e.timestampLabel[:0], label{
		key:  e.strings.add(e.origin.label),
		num:  int64(unixNano),
		unit: e.strings.add(e.origin.unit),
	})
}

// tableString returns the payload's index of the string that a field of a dictionary entry refers to.
func (e *encoder) tableString(table string, entry int32, field string, strindex int32) uint64 {
	at, ok := e.strings.index(strindex)
	if !ok {
		e.fail(fmt.Sprintf("%s[%d].%s", table, entry, field), strindex, e.strings.table.Len())
	}
	return at
}

// valueString returns a value that is not a number as a string; Encode documents the forms.
// pcommon's own AsString is not used: it writes "" for null and loses arrays and maps that contain a NaN.
func valueString(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	default:
		return string(appendJSON(nil, v, 0))
	}
}

// maxJSONDepth is how deep values of JSON may be nested. We could write much more, but many readers could not read it.
const maxJSONDepth = 1000

func appendJSON(b []byte, v pcommon.Value, depth int) []byte {
	if depth > maxJSONDepth {
		return append(b, "null"...)
	}
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(b, v.Bool())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		if math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0) {
			return appendJSONString(b, valueString(v))
		}
		return strconv.AppendFloat(b, v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return appendJSONString(b, valueString(v))
	case pcommon.ValueTypeSlice:
		b = append(b, '[')
		for k, element := range v.Slice().All() {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, element, depth+1)
		}
		return append(b, ']')
	case pcommon.ValueTypeMap:
		b = append(b, '{')
		first := true
		for key, element := range v.Map().All() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendJSONString(b, key), ':')
			b = appendJSON(b, element, depth+1)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

func appendJSONString(b []byte, s string) []byte {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false) // people read labels: std::vector<int>, not std::vector\u003cint\u003e
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
