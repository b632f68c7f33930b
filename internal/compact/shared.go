// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// sharedTexts bounds what a message can make of few bytes: its attributes can refer to texts of its string table, which
// pdata puts in their place without copying them. Read as values, compared and encoded in place, a text counts as
// often as it is referred to. One that occurs for the first time is part of the message; repeats of long ones
// are allowed as far as the budget, which follows from the size of those texts, goes.
type sharedTexts struct {
	seen     map[*byte]struct{}
	distinct int // bytes of the texts in seen
	repeated int // bytes of their repeats
}

const (
	// sharedTextBytes is the size from which texts are looked at. A reference takes some ten bytes itself.
	sharedTextBytes = 64
	// So much may be repeated in a message, over a constant, for each byte of the texts. Hundreds of processes of
	// one host repeat all that they have in common, which is short.
	sharedTextConstant = 4 << 20
	sharedTextFactor   = 32
)

func (t *sharedTexts) reset() {
	clear(t.seen)
	t.distinct, t.repeated = 0, 0
}

// add reports whether the budget allows a text. It compares where texts are in memory, so it does not read them.
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

// addValue is add for all texts of a value, which must be shallow: for all or none.
func (t *sharedTexts) addValue(v pcommon.Value) bool {
	before := t.repeated
	if !t.addTexts(v) {
		t.repeated = before
		return false
	}
	return true
}

func (t *sharedTexts) addTexts(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return t.add(v.Str())
	case pcommon.ValueTypeSlice:
		for _, value := range v.Slice().All() {
			if !t.addTexts(value) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		for key, value := range v.Map().All() {
			if !t.add(key) || !t.addTexts(value) {
				return false
			}
		}
	default:
	}
	return true
}
