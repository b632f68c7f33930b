// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// takeText copies the string table out of the payload, in one piece where its entries stand
// together, as they do in all known producers. The payload's buffer is then free for the next one.
func (d *decoder) takeText() {
	d.text, d.textStart = "", 0
	if len(d.strings) == 0 {
		return
	}
	first, last, total := d.strings[0].start, d.strings[0].end, uint32(0)
	for _, s := range d.strings {
		first, last = min(first, s.start), max(last, s.end)
		total += s.end - s.start
	}
	// Between two entries stand a tag and a length: 2 bytes, 6 at most.
	if last-first <= total+uint32(len(d.strings))*6 {
		d.text, d.textStart = string(d.data[first:last]), first
		return
	}
	var all strings.Builder
	all.Grow(int(total))
	for i, s := range d.strings {
		at := uint32(all.Len())
		all.Write(d.data[s.start:s.end])
		d.strings[i] = span{at, uint32(all.Len())}
	}
	d.text = all.String()
}

// hasString reports whether the payload has a string of this index. Index 0 is the empty string,
// whether or not the payload says so.
func (d *decoder) hasString(i uint64) bool { return i < uint64(len(d.strings)) || i == 0 }

// str gives the string of an index for which hasString holds, as valid UTF-8.
func (d *decoder) str(i uint64) string {
	if i == 0 {
		return ""
	}
	return d.rawString(i)
}

// What is known of a string that is not in the dictionary yet, in the place of its index there.
const (
	unchecked    = 0
	checkedText  = -1 // as it stands in the payload
	repairedText = -2 // as it stands in decoder.repaired
)

// rawString is str, but of index 0 it returns what stands there.
func (d *decoder) rawString(i uint64) string {
	known := d.stringIndices[i]
	if known > 0 {
		return d.dict.Strings.At(known)
	}
	if known == repairedText {
		return d.repaired[i]
	}
	at := d.strings[i]
	s := d.text[at.start-d.textStart : at.end-d.textStart]
	if known == unchecked {
		return d.checkText(i, s)
	}
	return s
}

// checkText makes a text valid UTF-8 of at most MaxTextBytes, once for each string of the payload.
func (d *decoder) checkText(i uint64, s string) string {
	limit := d.limits.MaxTextBytes
	if len(s) > limit {
		d.stats.Repaired[RepairTruncatedText]++
		s = cutText(s, limit)
		d.strings[i].end = d.strings[i].start + uint32(len(s))
	}
	if utf8.ValidString(s) {
		d.stringIndices[i] = checkedText
		return s
	}
	d.stats.Repaired[RepairInvalidUTF8]++
	s = cutText(strings.ToValidUTF8(s, "\uFFFD"), limit)
	if d.repaired == nil {
		d.repaired = make(map[uint64]string)
	}
	d.stringIndices[i], d.repaired[i] = repairedText, s
	return s
}

// cutText returns the longest beginning of s that has at most limit bytes and no part of a rune at its end.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// intern gives the dictionary's index of a string for which hasString holds.
func (d *decoder) intern(i uint64) profiledict.StringIndex {
	if i == 0 {
		return 0
	}
	known := d.stringIndices[i]
	if known <= 0 {
		if known = d.dict.Strings.Intern(d.rawString(i)); known != 0 {
			d.stringIndices[i] = known
		}
	}
	return known
}

// strOrEmpty is str for the fields of the profile itself, where an index out of range clears the field.
func (d *decoder) strOrEmpty(i uint64) string {
	if !d.hasString(i) {
		d.stats.Repaired[RepairUnknownReference]++
		return ""
	}
	return d.str(i)
}
