// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// sharedStrings bounds what few bytes of a message can expand to: attributes can refer to strings of the string table,
// which pdata puts in place of the references without copying them. Reading, comparing and encoding such a string costs
// as much as if it were repeated. The first occurrence of a string is free, since it is part of the message; repeats of
// long strings have a budget, which depends on the size of these strings.
type sharedStrings struct {
	seen     map[*byte]struct{}
	distinct int // bytes of the strings in seen
	repeated int // bytes of their repeats
}

const (
	// sharedStringBytes is the size from which strings are counted. A reference itself takes some ten bytes.
	sharedStringBytes = 64
	// A message may repeat sharedStringConstant + sharedStringFactor × the size of the strings. Hundreds of processes on
	// one host repeat everything that they have in common, which is short.
	sharedStringConstant = 4 << 20
	sharedStringFactor   = 32
)

func (t *sharedStrings) reset() {
	const maxKeptStrings = 1 << 10
	if len(t.seen) > maxKeptStrings {
		t.seen = nil
	}
	clear(t.seen)
	t.distinct, t.repeated = 0, 0
}

// add counts a string and reports whether the budget allows it. It compares addresses, so it does not read the string.
func (t *sharedStrings) add(s string) bool {
	if len(s) < sharedStringBytes {
		return true
	}
	if t.seen == nil {
		t.seen = map[*byte]struct{}{}
	}
	at := unsafe.StringData(s)
	if _, repeats := t.seen[at]; !repeats {
		t.seen[at] = struct{}{}
		t.distinct += len(s)
		return true
	}
	if t.repeated+len(s) > sharedStringConstant+sharedStringFactor*t.distinct {
		return false
	}
	t.repeated += len(s)
	return true
}

// addValue is add for all strings of a value, which must be shallow. Either all are added or none.
func (t *sharedStrings) addValue(v pcommon.Value) bool {
	before := t.repeated
	if !everyString(v, t.add) {
		t.repeated = before
		return false
	}
	return true
}

// LongStringBytes returns the bytes of the long strings in the attributes of a message: each once for each key, since
// the same value of the same key is one attribute.
func LongStringBytes(pd pprofile.Profiles) (n int) {
	type keyed struct{ key, s *byte }
	seen := map[keyed]struct{}{}
	count := func(key, s string) {
		if len(s) < sharedStringBytes {
			return
		}
		at := keyed{unsafe.StringData(key), unsafe.StringData(s)}
		if _, repeats := seen[at]; !repeats {
			seen[at] = struct{}{}
			n += len(s)
		}
	}
	value := func(key string, v pcommon.Value) {
		count("", key)
		if v.Type() == pcommon.ValueTypeBytes {
			n += v.Bytes().Len()
		}
		everyString(v, func(s string) bool {
			count(key, s)
			return true
		})
	}
	strings := pd.Dictionary().StringTable()
	for _, a := range pd.Dictionary().AttributeTable().All() {
		key := ""
		if i := int(a.KeyStrindex()); i >= 0 && i < strings.Len() {
			key = strings.At(i)
		}
		value(key, a.Value())
	}
	for _, rp := range pd.ResourceProfiles().All() {
		for key, v := range rp.Resource().Attributes().All() {
			value(key, v)
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for key, v := range sp.Scope().Attributes().All() {
				value(key, v)
			}
		}
	}
	return n
}
