// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

// Table interns comparable entries by value. Entry 0 is the zero value. A Table must be Reset before its first use.
type Table[I ~int32, E comparable] struct {
	entries []E
	index   HashIndex
}

// Reset forgets all entries, keeps their memory, and makes room for about that many.
func (t *Table[I, E]) Reset(entries int) {
	clear(t.entries) // their strings can be freed
	var zero E
	t.entries = append(room(t.entries, entries+1), zero)
	t.index.Reset(entries)
}

// Len returns the number of entries, the zero value at index 0 included.
func (t *Table[I, E]) Len() int { return len(t.entries) }

// At returns an entry.
func (t *Table[I, E]) At(i I) E { return t.entries[i] }

// Intern returns the index of e, whose hash is h, and adds e if it is new.
func (t *Table[I, E]) Intern(h uint64, e E) I {
	var zero E
	if e == zero {
		return 0
	}
	p := t.index.Start(h)
	if i := t.find(&p, e); i != 0 {
		return i
	}
	return t.add(p, e)
}

// Lookup returns the index of e, whose hash is h, or 0 if the table does not have it. It changes nothing, so that
// several readers can look up at once.
func (t *Table[I, E]) Lookup(h uint64, e E) I {
	p := probeOf(h)
	return t.find(&p, e)
}

// find returns the index of e, or 0; add then puts e where p has ended.
func (t *Table[I, E]) find(p *HashProbe, e E) I {
	for i := t.index.Next(p); i != 0; i = t.index.Next(p) {
		if t.entries[i] == e {
			return I(i)
		}
	}
	return 0
}

func (t *Table[I, E]) add(p HashProbe, e E) I {
	i := t.append(e)
	t.index.Insert(p, int32(i))
	return i
}

// append adds e without a place in the index.
func (t *Table[I, E]) append(e E) I {
	t.entries = append(t.entries, e)
	return I(len(t.entries) - 1)
}

// MemoryBytes is what the table occupies, without the strings that entries refer to.
func (t *Table[I, E]) MemoryBytes() int { return BytesOf(t.entries) + t.index.bytes() }

func (t *Table[I, E]) freeze() { t.entries, t.index = clip(t.entries), HashIndex{} }
