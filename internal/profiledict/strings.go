// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// StringIndex is an index of the string table. 0 is the empty string.
type StringIndex int32

// Strings is the string table.
type Strings struct {
	entries []string
	index   HashIndex
	// kept is where new entries are copied to, or nil.
	kept *arena
}

func (t *Strings) reset(entries int) {
	clear(t.entries)
	t.entries = append(room(t.entries, entries+1), "")
	t.index.Reset(entries)
}

// Len is the number of entries, the empty string at index 0 included.
func (t *Strings) Len() int { return len(t.entries) }

// At returns an entry.
func (t *Strings) At(i StringIndex) string { return t.entries[i] }

// Intern returns the index of s and adds it if it is new. The table keeps s itself, not a copy, but in NewKept.
func (t *Strings) Intern(s string) StringIndex {
	if s == "" {
		return 0
	}
	p := t.index.Start(HashString(s))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == s {
			return StringIndex(e)
		}
	}
	return t.add(p, s)
}

func (t *Strings) add(p HashProbe, s string) StringIndex {
	if t.kept != nil {
		s = t.kept.clone(s)
	}
	i := len(t.entries)
	t.entries = append(t.entries, s)
	t.index.Insert(p, int32(i))
	return StringIndex(i)
}

// Lookup returns the index of s if the table has it. It changes nothing, so that several readers can look up at once.
func (t *Strings) Lookup(s string) (StringIndex, bool) {
	if s == "" {
		return 0, true
	}
	p := probeOf(HashString(s))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == s {
			return StringIndex(e), true
		}
	}
	return 0, false
}

// InternValid is Intern for a string that may not be valid UTF-8: it repairs such a string and reports that.
// Only a string that is new to the table is checked, since what the table holds is valid.
func (t *Strings) InternValid(s string) (index StringIndex, repaired bool) {
	if s == "" {
		return 0, false
	}
	p := t.index.Start(HashString(s))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == s {
			return StringIndex(e), false
		}
	}
	if !utf8.ValidString(s) {
		return t.Intern(ValidUTF8(s)), true
	}
	return t.add(p, s), false
}

// ValidUTF8 returns s with each invalid run replaced by U+FFFD.
func ValidUTF8(s string) string {
	if utf8.ValidString(s) { // several times as fast
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// bytes is the sum of the entries' lengths.
func (t *Strings) bytes() int {
	n := 0
	for _, s := range t.entries {
		n += len(s)
	}
	return n
}

// detach copies all entries into one allocation of their own, so that what they were cut from can be freed.
func (t *Strings) detach() {
	var arena strings.Builder
	arena.Grow(t.bytes())
	for _, s := range t.entries {
		arena.WriteString(s)
	}
	rest := arena.String()
	for i, s := range t.entries {
		t.entries[i], rest = rest[:len(s)], rest[len(s):]
	}
}

func (t *Strings) copyTo(dst pcommon.StringSlice) { dst.FromRaw(t.entries) }
