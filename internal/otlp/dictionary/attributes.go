// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// AttributeIndex is an index of the attribute table. 0 is no attribute.
type AttributeIndex int32

// Attribute is an entry of the attribute table. Two are the same attribute if they are ==.
type Attribute struct {
	Key, Unit StringIndex
	Value     Value
}

// Value is an attribute's value in a comparable form.
type Value struct {
	kind pcommon.ValueType
	// bits holds a bool, int or double.
	bits uint64
	// content holds a string or bytes as they are, an array or map in the form of appendValue.
	content string
}

// StringValue is a string, which must be valid UTF-8.
func StringValue(s string) Value { return Value{kind: pcommon.ValueTypeStr, content: s} }

// Str returns the content of a string, and whether the value is one.
func (v Value) Str() (s string, ok bool) { return v.content, v.kind == pcommon.ValueTypeStr }

// Len returns the length of a string, of bytes, or of the comparable form of an array or a map.
func (v Value) Len() int { return len(v.content) }

// IntValue is an int.
func IntValue(v int64) Value { return Value{kind: pcommon.ValueTypeInt, bits: uint64(v)} }

// BoolValue is a bool.
func BoolValue(v bool) Value {
	if v {
		return Value{kind: pcommon.ValueTypeBool, bits: 1}
	}
	return Value{kind: pcommon.ValueTypeBool}
}

// ValueOf returns the comparable form of any value. Doubles are the same if their bits are. It keeps nothing of v but
// its strings, which are immutable.
func ValueOf(v pcommon.Value) Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return StringValue(v.Str())
	case pcommon.ValueTypeInt:
		return IntValue(v.Int())
	case pcommon.ValueTypeBool:
		return BoolValue(v.Bool())
	case pcommon.ValueTypeDouble:
		return Value{kind: pcommon.ValueTypeDouble, bits: math.Float64bits(v.Double())}
	case pcommon.ValueTypeBytes:
		return Value{kind: pcommon.ValueTypeBytes, content: string(v.Bytes().AsRaw())}
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return Value{kind: v.Type(), content: string(appendValue(nil, v))}
	default:
		return Value{}
	}
}

// CopyTo writes the value to dst, which must be empty.
func (v Value) CopyTo(dst pcommon.Value) {
	switch v.kind {
	case pcommon.ValueTypeStr:
		dst.SetStr(v.content)
	case pcommon.ValueTypeInt:
		dst.SetInt(int64(v.bits))
	case pcommon.ValueTypeBool:
		dst.SetBool(v.bits != 0)
	case pcommon.ValueTypeDouble:
		dst.SetDouble(math.Float64frombits(v.bits))
	case pcommon.ValueTypeBytes:
		dst.SetEmptyBytes().FromRaw([]byte(v.content))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		readValue(v.content, dst)
	default:
		// An empty value stays as AppendEmpty made it.
	}
}

// Attributes is the attribute table.
type Attributes struct {
	Table[AttributeIndex, Attribute]
	// kept is where strings of new entries are copied to, or nil.
	kept  *arena
	bytes int // the sum of the values' lengths
}

// Reset forgets all entries, keeps their memory, and makes room for about that many.
func (t *Attributes) Reset(entries int) {
	t.Table.Reset(entries)
	t.bytes = 0
}

// Intern returns the index of a and adds it if it is new.
func (t *Attributes) Intern(a Attribute) AttributeIndex {
	if a == (Attribute{}) {
		return 0
	}
	h := Mix(uint64(a.Value.kind), uint64(uint32(a.Key))<<32|uint64(uint32(a.Unit)))
	h = Mix(Mix(h, a.Value.bits), HashString(a.Value.content))
	p := t.index.Start(h)
	if i := t.find(&p, a); i != 0 {
		return i
	}
	if t.kept != nil {
		a.Value.content = t.kept.clone(a.Value.content)
	}
	t.bytes += len(a.Value.content)
	return t.add(p, a)
}

// detach copies the strings, so that what they were cut from can be freed.
func (t *Attributes) detach() {
	for i := range t.entries {
		t.entries[i].Value.content = strings.Clone(t.entries[i].Value.content)
	}
}
