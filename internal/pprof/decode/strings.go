// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// stringTable has a payload's strings in a form that is valid in OTLP: UTF-8 of no more than MaxStringBytes. Each is
// checked once, however often it is referred to.
type stringTable struct {
	payload *scan.Payload
	dict    *dictionary.Dictionary
	limits  *scan.Limits
	counts  *scan.Counts

	// content holds the bytes of string_table; entry i is content[Strings[i].Start−contentStart :
	// Strings[i].End−contentStart].
	content      string
	contentStart uint32
	// indices[i] is the dictionary's index of string i if it is positive, otherwise the state of a string that is not
	// interned yet.
	indices []dictionary.StringIndex
	// repaired has the strings that were not UTF-8, by their index in the payload.
	repaired map[uint64]string
}

// The states of a string that is not interned yet.
const (
	unchecked      = 0
	checkedString  = -1 // valid as it is in the payload
	repairedString = -2 // in stringTable.repaired
)

// reset copies the string table out of the payload, so that the payload's buffer can be used again. It copies it in one
// piece if its entries are next to each other, as those of all known producers are.
func (t *stringTable) reset() {
	entries := t.payload.Strings
	t.indices = dictionary.Zeroed(t.indices, len(entries))
	t.content, t.contentStart, t.repaired = "", 0, nil
	if len(entries) == 0 {
		return
	}
	first, last, total := entries[0].Start, entries[0].End, uint32(0)
	for _, s := range entries {
		first, last = min(first, s.Start), max(last, s.End)
		total += s.End - s.Start
	}
	// There are a tag and a length between two entries: 2 bytes, 6 at most.
	if last-first <= total+uint32(len(entries))*6 {
		t.content, t.contentStart = string(t.payload.Data[first:last]), first
		return
	}
	var all strings.Builder
	all.Grow(int(total))
	for i, s := range entries {
		at := uint32(all.Len())
		all.Write(t.payload.Data[s.Start:s.End])
		entries[i] = scan.Span{Start: at, End: uint32(all.Len())}
	}
	t.content = all.String()
}

// at returns a string that the payload has.
func (t *stringTable) at(i uint64) string {
	if i == 0 {
		return ""
	}
	return t.raw(i)
}

// raw is like at, but index 0 is string_table[0] even if that is not empty.
func (t *stringTable) raw(i uint64) string {
	known := t.indices[i]
	if known > 0 {
		return t.dict.Strings.At(known)
	}
	if known == repairedString {
		return t.repaired[i]
	}
	at := t.payload.Strings[i]
	s := t.content[at.Start-t.contentStart : at.End-t.contentStart]
	if known == unchecked {
		return t.check(i, s)
	}
	return s
}

// check returns s as valid UTF-8 of at most MaxStringBytes. It is called once for each string of the payload.
func (t *stringTable) check(i uint64, s string) string {
	limit := t.limits.MaxStringBytes
	if len(s) > limit {
		t.counts.Repaired[scan.RepairTruncatedText]++
		s = dictionary.CutUTF8(s, limit)
		t.payload.Strings[i].End = t.payload.Strings[i].Start + uint32(len(s))
	}
	if utf8.ValidString(s) {
		t.indices[i] = checkedString
		return s
	}
	t.counts.Repaired[scan.RepairInvalidUTF8]++
	s = dictionary.CutUTF8(strings.ToValidUTF8(s, "\uFFFD"), limit)
	if t.repaired == nil {
		t.repaired = make(map[uint64]string)
	}
	t.indices[i], t.repaired[i] = repairedString, s
	return s
}

// intern returns the dictionary's index of a string that the payload has.
func (t *stringTable) intern(i uint64) dictionary.StringIndex {
	if i == 0 {
		return 0
	}
	return t.internRaw(i)
}

// internRaw is like intern, but index 0 is string_table[0], if there is one, even if that is not empty.
func (t *stringTable) internRaw(i uint64) dictionary.StringIndex {
	if len(t.indices) == 0 {
		return 0
	}
	known := t.indices[i]
	if known <= 0 {
		if known = t.dict.Strings.Intern(t.raw(i)); known != 0 {
			t.indices[i] = known
		}
	}
	return known
}

// orEmpty is like at, but an index out of range is an empty string: it is for the fields of the profile itself.
func (t *stringTable) orEmpty(i uint64) string {
	if !t.payload.HasString(i) {
		t.counts.Repaired[scan.RepairUnknownReference]++
		return ""
	}
	return t.at(i)
}
