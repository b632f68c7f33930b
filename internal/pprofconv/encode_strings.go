// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import "go.opentelemetry.io/collector/pdata/pcommon"

// encStrings collects the string table of the payload being written.
type encStrings struct {
	table pcommon.StringSlice
	// remap[i] is dictionary string i's index in the payload; 0 means not asked for yet, or empty.
	remap []uint32
	// used lists the dictionary indices whose remap is set.
	used []int32
	// values is the payload's string table; values[0] is "".
	values []string
	// texts finds the strings that do not come from the dictionary.
	texts map[string]uint64
	// secondEmpty is the index of an "" other than string 0, or 0 while nobody has needed one.
	secondEmpty uint64
}

// resize prepares for a dictionary's strings. remap is all 0: reset left it so.
func (t *encStrings) resize(table pcommon.StringSlice) {
	t.table = table
	t.remap = encResize(t.remap, table.Len())
}

func (t *encStrings) reset() {
	for _, i := range t.used {
		t.remap[i] = 0
	}
	t.used = t.used[:0]
	clear(t.values) // let go of the strings
	t.values = append(t.values[:0], "")
	t.secondEmpty = 0
	t.texts = encClear(t.texts)
}

// index gives the payload's index of dictionary string i, and false where i is out of range.
func (t *encStrings) index(i int32) (uint64, bool) {
	if uint32(i) >= uint32(len(t.remap)) {
		return 0, i == 0 // a dictionary without any string still means "" by 0
	}
	if at := t.remap[i]; at != 0 {
		return uint64(at), true
	}
	s := t.table.At(int(i))
	if s == "" {
		return 0, true
	}
	at := len(t.values)
	t.values = append(t.values, s)
	t.remap[i] = uint32(at)
	t.used = append(t.used, i)
	return uint64(at), true
}

// text gives the payload's index of a string that the dictionary need not have.
func (t *encStrings) text(s string) uint64 {
	if s == "" {
		return 0
	}
	at, ok := t.texts[s]
	if !ok {
		at = uint64(len(t.values))
		t.values = append(t.values, s)
		t.texts[s] = at
	}
	return at
}

// notZero replaces index 0 by a second "": a label reads as a string, or a number 0 as a label at all,
// only where the index is not 0.
func (t *encStrings) notZero(index uint64) uint64 {
	if index != 0 {
		return index
	}
	if t.secondEmpty == 0 {
		t.secondEmpty = uint64(len(t.values))
		t.values = append(t.values, "")
	}
	return t.secondEmpty
}

// lookup gives dictionary string i itself, and false where i is out of range. It adds nothing.
func (t *encStrings) lookup(i int32) (string, bool) {
	if uint32(i) >= uint32(len(t.remap)) {
		return "", i == 0
	}
	return t.table.At(int(i)), true
}
