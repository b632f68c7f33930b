// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// StringIndex is an index of the string table. 0 is the empty string.
type StringIndex int32

// Strings is the string table.
type Strings struct {
	Table[StringIndex, string]
	// kept is where new entries are copied to, or nil.
	kept  *arena
	bytes int // the sum of the entries' lengths
}

// Reset forgets all entries, keeps their memory, and makes room for about that many.
func (t *Strings) Reset(entries int) {
	t.Table.Reset(entries)
	t.bytes = 0
}

// Intern returns the index of s and adds it if it is new. The table keeps s itself; that of NewCopying keeps a copy.
func (t *Strings) Intern(s string) StringIndex {
	if s == "" {
		return 0
	}
	p := t.index.Start(HashString(s))
	if i := t.find(&p, s); i != 0 {
		return i
	}
	return t.add(p, s)
}

func (t *Strings) add(p HashProbe, s string) StringIndex {
	if t.kept != nil {
		s = t.kept.clone(s)
	}
	t.bytes += len(s)
	return t.Table.add(p, s)
}

// Lookup returns the index of s if the table has it. It changes nothing, so that several readers can look up at once.
// In a Snapshot it looks at all entries.
func (t *Strings) Lookup(s string) (i StringIndex, ok bool) {
	if t.index.slots == nil {
		at := slices.Index(t.entries, s)
		return StringIndex(max(at, 0)), at >= 0
	}
	i = t.Table.Lookup(HashString(s), s)
	return i, i != 0 || s == ""
}

// InternValid is Intern for a string that may not be valid UTF-8: it repairs such a string and reports that.
// Only a string that is new to the table is checked, since what the table holds is valid.
func (t *Strings) InternValid(s string) (index StringIndex, repaired bool) {
	if s == "" {
		return 0, false
	}
	p := t.index.Start(HashString(s))
	if i := t.find(&p, s); i != 0 {
		return i, false
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

// CutUTF8 returns the longest beginning of s of at most limit bytes that does not end within a character. s may be
// invalid.
func CutUTF8(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for start := limit; start >= 0 && start > limit-utf8.UTFMax; start-- {
		if utf8.RuneStart(s[start]) {
			if _, size := utf8.DecodeRuneInString(s[start:]); start+size > limit {
				return s[:start]
			}
			break
		}
	}
	return s[:limit]
}

// Shorten returns s for a message or a table: of a longer string the first limit bytes, as valid UTF-8, and an
// ellipsis.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return ValidUTF8(CutUTF8(s, limit)) + "…"
}

// detach copies all entries into one allocation of their own, so that what they were cut from can be freed.
func (t *Strings) detach() {
	var arena strings.Builder
	arena.Grow(t.bytes)
	for _, s := range t.entries {
		arena.WriteString(s)
	}
	rest := arena.String()
	for i, s := range t.entries {
		t.entries[i], rest = rest[:len(s)], rest[len(s):]
	}
}
