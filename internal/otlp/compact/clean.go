// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// maxValueDepth is the largest number of arrays and maps inside each other. Readers of protobuf reject a message that
// is nested more than 100 levels deep, and a map has three levels: with one deeper value, all profiles of the message
// would be lost.
const maxValueDepth = 24

// CleanValue returns v or, if a string in it is not UTF-8, a repaired copy. ok is false for a value that is nested too
// deeply, or that repeats too much of what the message holds once. It counts all of these.
func (im *Importer) CleanValue(v pcommon.Value) (clean pcommon.Value, ok bool) {
	if !shallow(v, maxValueDepth) {
		im.Repairs[RepairAttributeDepth]++
		return v, false
	}
	if !im.shared.addValue(v) {
		im.Repairs[RepairAttributeExpansion]++
		return v, false
	}
	if everyString(v, utf8.ValidString) {
		return v, true
	}
	im.Repairs[RepairInvalidUTF8]++
	clean = pcommon.NewValueEmpty()
	copyValid(v, clean)
	return clean, true
}

// CleanMap copies those attributes of a resource or scope that can be understood to dst. Of several with one key, it
// copies the first. The copies do not refer to the message's dictionary.
func (im *Importer) CleanMap(src, dst pcommon.Map) {
	const few = 16 // up to this many keys, a linear search is faster than a map
	var seen map[string]struct{}
	var keys [few]string
	if src.Len() > few {
		seen = make(map[string]struct{}, src.Len())
	}
	n := 0
	var entries xpdata.MapBuilder
	entries.EnsureCapacity(src.Len())
	for key, value := range src.All() {
		if !im.shared.add(key) {
			im.Repairs[RepairAttributeExpansion]++
			continue
		}
		key = im.CleanString(key)
		_, twice := seen[key]
		if twice || seen == nil && slices.Contains(keys[:n], key) {
			im.Repairs[RepairAttributeKey]++
			continue
		}
		if seen != nil {
			seen[key] = struct{}{}
		} else {
			keys[n] = key
			n++
		}
		if clean, ok := im.CleanValue(value); ok {
			copyValid(clean, entries.AppendEmpty(key))
		}
	}
	entries.UnsafeIntoMap(dst)
}

// CleanString returns s as valid UTF-8.
func (im *Importer) CleanString(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	im.Repairs[RepairInvalidUTF8]++
	return dictionary.ValidUTF8(s)
}

// shallow reports whether at most depth arrays and maps are inside each other.
func shallow(v pcommon.Value, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		values := v.Slice()
		for i := range values.Len() {
			if depth == 0 || !shallow(values.At(i), depth-1) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		for _, value := range v.Map().All() {
			if depth == 0 || !shallow(value, depth-1) {
				return false
			}
		}
	default:
	}
	return true
}

// everyString reports whether ok is true for every string and key in v. It stops at the first for which it is not.
func everyString(v pcommon.Value, ok func(s string) bool) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return ok(v.Str())
	case pcommon.ValueTypeSlice:
		values := v.Slice()
		for i := range values.Len() {
			if !everyString(values.At(i), ok) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		return everyStringOf(v.Map(), ok)
	default:
	}
	return true
}

func everyStringOf(m pcommon.Map, ok func(s string) bool) bool {
	for key, value := range m.All() {
		if !ok(key) || !everyString(value, ok) {
			return false
		}
	}
	return true
}

// copyValid copies v part by part, since pdata's own copy would include references that only the message's dictionary
// resolves.
func copyValid(v, dst pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
	case pcommon.ValueTypeStr:
		dst.SetStr(dictionary.ValidUTF8(v.Str()))
	case pcommon.ValueTypeSlice:
		values, to := v.Slice(), dst.SetEmptySlice()
		to.EnsureCapacity(values.Len())
		for i := range values.Len() {
			copyValid(values.At(i), to.AppendEmpty())
		}
	case pcommon.ValueTypeMap:
		var entries xpdata.MapBuilder
		entries.EnsureCapacity(v.Map().Len())
		for key, value := range v.Map().All() {
			copyValid(value, entries.AppendEmpty(dictionary.ValidUTF8(key)))
		}
		entries.UnsafeIntoMap(dst.SetEmptyMap())
	default:
		v.CopyTo(dst)
	}
}
