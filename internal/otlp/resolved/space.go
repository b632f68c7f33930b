// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// ID identifies a value. Within one space, two values are equal if and only if their ids are.
type ID int32

// Space assigns ids to values. Dictionaries that are resolved into one space can be compared by ids alone.
type Space struct {
	ids map[string]ID
}

// NewSpace returns a space without ids.
func NewSpace() *Space { return &Space{ids: make(map[string]ID)} }

// Intern returns the ID of a value.
func (s *Space) Intern(k Key) ID {
	if v, ok := s.ids[string(k)]; ok {
		return v
	}
	v := ID(len(s.ids))
	s.ids[string(k)] = v
	return v
}

// Key is the encoding of a value: its kind, then its content, with a length before everything of variable length.
// Different values have different keys, unlike with a hash.
type Key []byte

// Kind distinguishes values of different kinds.
type Kind byte

// The kinds.
const (
	// KindInvalid is an index that is out of range.
	KindInvalid Kind = iota
	KindString
	KindAttribute
	KindLink
	KindFunction
	KindMapping
	KindLocation
	KindStack
	KindSet
	KindScope
)

// NewKey begins the key of a value.
func NewKey(k Kind) Key { return Key{byte(k)} }

// Num appends a number that is not negative.
func (k Key) Num(v uint64) Key { return binary.AppendUvarint(k, v) }

// Int appends a number.
func (k Key) Int(v int64) Key { return binary.AppendVarint(k, v) }

// ID appends an ID.
func (k Key) ID(v ID) Key { return binary.AppendUvarint(k, uint64(v)) }

// Bool appends a bool.
func (k Key) Bool(v bool) Key {
	if v {
		return append(k, 1)
	}
	return append(k, 0)
}

// Str appends a string.
func (k Key) Str(s string) Key { return append(k.Num(uint64(len(s))), s...) }

// IDList appends several IDs.
func (k Key) IDList(ids []ID) Key {
	k = k.Num(uint64(len(ids)))
	for _, v := range ids {
		k = k.ID(v)
	}
	return k
}

// Value appends v with everything inside it. The entries of a map have no order, and NaN equals itself.
func (k Key) Value(v pcommon.Value) Key {
	k = append(k, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return k.Str(v.Str())
	case pcommon.ValueTypeInt:
		return k.Int(v.Int())
	case pcommon.ValueTypeDouble:
		return k.Num(math.Float64bits(v.Double()))
	case pcommon.ValueTypeBool:
		return k.Bool(v.Bool())
	case pcommon.ValueTypeBytes:
		return k.Str(string(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		values := v.Slice()
		k = k.Num(uint64(values.Len()))
		for i := range values.Len() {
			k = k.Value(values.At(i))
		}
		return k
	case pcommon.ValueTypeMap:
		return k.attributeMap(v.Map())
	case pcommon.ValueTypeEmpty:
	}
	return k
}

func (k Key) attributeMap(m pcommon.Map) Key {
	entries := make([]string, 0, m.Len())
	for name, v := range m.All() {
		entries = append(entries, string(Key(nil).Str(name).Value(v)))
	}
	slices.Sort(entries)
	k = k.Num(uint64(len(entries)))
	for _, e := range entries {
		k = k.Str(e)
	}
	return k
}
