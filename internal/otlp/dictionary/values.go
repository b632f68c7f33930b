// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"
)

// appendValue appends v in a form that is equal for equal values: a byte for the type, then
//
//	bool        one byte
//	int, double eight bytes, little endian
//	string, bytes  length as a uvarint, then the bytes
//	array       number of values as a uvarint, then each
//	map         number of entries as a uvarint, then for each its key as a string, and its value
//
// The entries of a map are sorted by key: their order has no meaning, and equal maps must have equal forms.
// If a key has several entries, the first one counts, as it does for a reader of pdata.
func appendValue(b []byte, v pcommon.Value) []byte {
	b = append(b, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return AppendString(b, ValueOf(v).content)
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return binary.LittleEndian.AppendUint64(b, ValueOf(v).bits)
	case pcommon.ValueTypeBool:
		return append(b, byte(ValueOf(v).bits))
	case pcommon.ValueTypeSlice:
		values := v.Slice()
		b = binary.AppendUvarint(b, uint64(values.Len()))
		for i := range values.Len() {
			b = appendValue(b, values.At(i))
		}
	case pcommon.ValueTypeMap:
		b = AppendMap(b, v.Map())
	default:
		// An empty value is its type alone.
	}
	return b
}

// AppendMap appends m in a form that is equal for equal maps.
func AppendMap(b []byte, m pcommon.Map) []byte {
	type entry struct {
		key   string
		value pcommon.Value
	}
	entries := make([]entry, 0, m.Len())
	for k, v := range m.All() {
		entries = append(entries, entry{k, v})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.key == b.key })
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendValue(AppendString(b, e.key), e.value)
	}
	return b
}

// AppendString appends a string with its length before it.
func AppendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// maxValueDepth is how deep a value that is read may be nested. Importers leave deeper ones out.
const maxValueDepth = 1000

// isWellFormed reports whether an array or a map has the form that appendValue writes, so that readValue can read it.
// Other kinds always have.
func (v Value) isWellFormed() bool {
	if v.kind != pcommon.ValueTypeSlice && v.kind != pcommon.ValueTypeMap {
		return true
	}
	rest, ok := skipValue(v.content, 0)
	return ok && rest == "" && pcommon.ValueType(v.content[0]) == v.kind
}

// skipValue returns what follows the value at the start of s.
func skipValue(s string, depth int) (rest string, ok bool) {
	if s == "" || depth > maxValueDepth {
		return "", false
	}
	kind := pcommon.ValueType(s[0])
	switch s = s[1:]; kind {
	case pcommon.ValueTypeEmpty:
		return s, true
	case pcommon.ValueTypeBool:
		return skipBytes(s, 1)
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return skipBytes(s, 8)
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return skipString(s)
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		n, s, ok := checkedCount(s)
		for ; ok && n > 0; n-- {
			if kind == pcommon.ValueTypeMap {
				if s, ok = skipString(s); !ok {
					break
				}
			}
			s, ok = skipValue(s, depth+1)
		}
		return s, ok
	default:
		return "", false
	}
}

func skipBytes(s string, n int) (rest string, ok bool) {
	if n > len(s) {
		return "", false
	}
	return s[n:], true
}

func skipString(s string) (rest string, ok bool) {
	n, s, ok := checkedCount(s)
	if !ok {
		return "", false
	}
	return skipBytes(s, n)
}

// checkedCount is readCount for bytes that can be damaged. What is counted has at least a byte each.
func checkedCount(s string) (count int, rest string, ok bool) {
	v, n := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	if n <= 0 || v > uint64(len(s)-n) {
		return 0, "", false
	}
	return int(v), s[n:], true
}

// readValue sets dst to the value that appendValue wrote at the start of s, and returns the rest.
// s comes from appendValue, or isWellFormed has checked it.
func readValue(s string, dst pcommon.Value) string {
	kind, s := pcommon.ValueType(s[0]), s[1:]
	switch kind {
	case pcommon.ValueTypeSlice:
		n, s := readCount(s)
		values := dst.SetEmptySlice()
		values.EnsureCapacity(n)
		for range n {
			s = readValue(s, values.AppendEmpty())
		}
		return s
	case pcommon.ValueTypeMap:
		n, s := readCount(s)
		var entries xpdata.MapBuilder // Map.Put would look through all entries before each
		entries.EnsureCapacity(n)
		for range n {
			key, rest := readString(s)
			s = readValue(rest, entries.AppendEmpty(key))
		}
		entries.UnsafeIntoMap(dst.SetEmptyMap())
		return s
	default:
		v, rest := readScalar(kind, s)
		v.CopyTo(dst)
		return rest
	}
}

// readScalar returns the value at the start of s, which is neither an array nor a map, and the rest.
func readScalar(kind pcommon.ValueType, s string) (v Value, rest string) {
	v.kind = kind
	switch kind {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		v.content, s = readString(s)
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		v.bits, s = binary.LittleEndian.Uint64([]byte(s[:8])), s[8:]
	case pcommon.ValueTypeBool:
		v.bits, s = uint64(s[0]), s[1:]
	default: // an empty value is its type alone
	}
	return v, s
}

func readCount(s string) (int, string) {
	count, n := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	return int(count), s[n:]
}

func readString(s string) (str, rest string) {
	n, s := readCount(s)
	return s[:n], s[n:]
}
