// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// id stands for a value. Within one space two values are equal exactly when their ids are.
type id int32

// space hands out ids. Dictionaries that are resolved into one space can be compared by ids alone.
type space struct {
	ids map[string]id
}

func newSpace() *space { return &space{ids: make(map[string]id)} }

func (s *space) intern(k key) id {
	if v, ok := s.ids[string(k)]; ok {
		return v
	}
	v := id(len(s.ids))
	s.ids[string(k)] = v
	return v
}

// key is the value itself, laid out so that no two values share a layout: the kind comes first, and everything of
// variable length is preceded by its length. Unlike a hash it cannot take two values for one.
type key []byte

type kind byte

const (
	kindInvalid kind = iota
	kindString
	kindAttribute
	kindLink
	kindFunction
	kindMapping
	kindLocation
	kindStack
	kindSet
	kindHeader
	kindScope
	kindPprofLocation
	kindPprofLabels
)

func newKey(k kind) key { return key{byte(k)} }

func (k key) num(v uint64) key { return binary.AppendUvarint(k, v) }

func (k key) int(v int64) key { return binary.AppendVarint(k, v) }

func (k key) id(v id) key { return binary.AppendUvarint(k, uint64(v)) }

func (k key) bool(v bool) key {
	if v {
		return append(k, 1)
	}
	return append(k, 0)
}

func (k key) str(s string) key { return append(k.num(uint64(len(s))), s...) }

func (k key) idList(ids []id) key {
	k = k.num(uint64(len(ids)))
	for _, v := range ids {
		k = k.id(v)
	}
	return k
}

// value appends v with everything inside it. The entries of a map have no order, and NaN equals itself.
func (k key) value(v pcommon.Value) key {
	k = append(k, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return k.str(v.Str())
	case pcommon.ValueTypeInt:
		return k.int(v.Int())
	case pcommon.ValueTypeDouble:
		return k.num(math.Float64bits(v.Double()))
	case pcommon.ValueTypeBool:
		return k.bool(v.Bool())
	case pcommon.ValueTypeBytes:
		return k.str(string(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		values := v.Slice()
		k = k.num(uint64(values.Len()))
		for i := range values.Len() {
			k = k.value(values.At(i))
		}
		return k
	case pcommon.ValueTypeMap:
		return k.attributeMap(v.Map())
	case pcommon.ValueTypeEmpty:
	}
	return k
}

func (k key) attributeMap(m pcommon.Map) key {
	entries := make([]string, 0, m.Len())
	for name, v := range m.All() {
		entries = append(entries, string(key(nil).str(name).value(v)))
	}
	slices.Sort(entries)
	k = k.num(uint64(len(entries)))
	for _, e := range entries {
		k = k.str(e)
	}
	return k
}
