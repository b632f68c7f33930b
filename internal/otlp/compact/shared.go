// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// sharedTexts bounds what few bytes of a message can expand to: attributes can refer to texts of the string table, which
// pdata puts in place of the references without copying them. Reading, comparing and encoding such a text costs as much
// as if it were repeated. The first occurrence of a text is free, since it is part of the message; repeats of long texts
// have a budget, which depends on the size of these texts.
type sharedTexts struct {
	seen     map[*byte]struct{}
	distinct int // bytes of the texts in seen
	repeated int // bytes of their repeats
}

const (
	// sharedTextBytes is the size from which texts are counted. A reference itself takes some ten bytes.
	sharedTextBytes = 64
	// A message may repeat sharedTextConstant + sharedTextFactor × the size of the texts. Hundreds of processes on one
	// host repeat everything that they have in common, which is short.
	sharedTextConstant = 4 << 20
	sharedTextFactor   = 32
)

func (t *sharedTexts) reset() {
	const maxKeptTexts = 1 << 10
	if len(t.seen) > maxKeptTexts {
		t.seen = nil
	}
	clear(t.seen)
	t.distinct, t.repeated = 0, 0
}

// add counts a text and reports whether the budget allows it. It compares addresses, so it does not read the text.
func (t *sharedTexts) add(text string) bool {
	if len(text) < sharedTextBytes {
		return true
	}
	if t.seen == nil {
		t.seen = map[*byte]struct{}{}
	}
	at := unsafe.StringData(text)
	if _, repeats := t.seen[at]; !repeats {
		t.seen[at] = struct{}{}
		t.distinct += len(text)
		return true
	}
	if t.repeated+len(text) > sharedTextConstant+sharedTextFactor*t.distinct {
		return false
	}
	t.repeated += len(text)
	return true
}

// addValue is add for all texts of a value, which must be shallow. Either all are added or none.
func (t *sharedTexts) addValue(v pcommon.Value) bool {
	before := t.repeated
	if !everyText(v, t.add) {
		t.repeated = before
		return false
	}
	return true
}

// TextBytes returns the bytes of the long texts in the attributes of a message, each once if several share it.
func TextBytes(pd pprofile.Profiles) int {
	var texts sharedTexts
	n := 0
	count := func(text string) bool {
		texts.repeated = 0 // nothing is refused
		return texts.add(text)
	}
	value := func(v pcommon.Value) {
		if v.Type() == pcommon.ValueTypeBytes {
			n += v.Bytes().Len()
		}
		everyText(v, count)
	}
	attributes := func(m pcommon.Map) {
		for key, v := range m.All() {
			count(key)
			value(v)
		}
	}
	for _, a := range pd.Dictionary().AttributeTable().All() {
		value(a.Value())
	}
	for _, rp := range pd.ResourceProfiles().All() {
		attributes(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			attributes(sp.Scope().Attributes())
		}
	}
	return n + texts.distinct
}
