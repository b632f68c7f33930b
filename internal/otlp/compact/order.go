// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"

type tableUse struct {
	// uses[i] is how often entry i is referred to; 0 means that it is not in the subset.
	uses []uint32
	// Entries are those in the subset; Entries[0] is the zero value.
	dictionary.Order
}

func (t *tableUse) reset(entries int) {
	t.uses, t.Index = dictionary.Zeroed(t.uses, entries), dictionary.Zeroed(t.Index, entries)
	t.Entries = append(t.Entries[:0], 0)
}

// add counts a reference and reports whether it is the first.
func (t *tableUse) add(i int32) bool {
	t.uses[i]++
	return t.uses[i] == 1
}

// next assigns the next index to entry i, unless it has one.
func (t *tableUse) next(i int32) {
	if i != 0 && t.Index[i] == 0 {
		t.Index[i] = int32(len(t.Entries))
		t.Entries = append(t.Entries, i)
	}
}

// rest assigns indices to the entries in use that have none, in their order in the dictionary.
func (t *tableUse) rest() {
	for i, n := range t.uses {
		if n != 0 {
			t.next(int32(i))
		}
	}
}

// indicesOfWidth are the numbers of indices above 0 that take a varint of one, two and three bytes. Indices of one width
// keep the entries' order, since that of their counts compresses worse.
var indicesOfWidth = [...]int{1<<7 - 1, 1<<14 - 1<<7, 1<<21 - 1<<14}

// maxCounted bounds the histogram of counts. Entries that are used more often are ordered as if they were used this often.
const maxCounted = 1 << 14

// byFrequency moves the entries that are used most to the indices that are encoded shortest.
func (t *tableUse) byFrequency(s *frequencyScratch) {
	entries := t.Entries[1:]
	if len(entries) <= indicesOfWidth[0] {
		return
	}
	s.count(t.uses, entries)
	s.moved = append(s.moved[:0], entries...)
	from := 0
	positions := [len(indicesOfWidth) + 1]int{}
	cuts := [len(indicesOfWidth)]cut{}
	for w, n := range indicesOfWidth {
		positions[w] = from
		cuts[w] = s.cut(n)
		from += n
	}
	positions[len(indicesOfWidth)] = from
	for _, e := range s.moved {
		w := 0
		for w < len(cuts) && !cuts[w].includes(min(t.uses[e], maxCounted)) {
			w++
		}
		entries[positions[w]] = e
		t.Index[e] = int32(positions[w] + 1)
		positions[w]++
	}
}

// cut separates the entries of one width from the rest: it includes those used more than count times, and the first ties
// of those used count times.
type cut struct {
	count uint32
	ties  int
}

func (c *cut) includes(uses uint32) bool {
	if uses != c.count || c.ties == 0 {
		return uses > c.count
	}
	c.ties--
	return true
}

// frequencyScratch is memory that byFrequency reuses for the next table.
type frequencyScratch struct {
	histogram [maxCounted + 1]uint32
	highest   uint32
	moved     []int32
}

func (s *frequencyScratch) count(uses []uint32, entries []int32) {
	clear(s.histogram[:s.highest+1])
	s.highest = 0
	for _, e := range entries {
		n := min(uses[e], maxCounted)
		s.histogram[n]++
		s.highest = max(s.highest, n)
	}
}

// cut removes the n entries that are used most from the histogram, or all if there are fewer.
func (s *frequencyScratch) cut(n int) cut {
	for count := s.highest; count > 0; count-- {
		entries := int(s.histogram[count])
		if entries >= n {
			s.histogram[count] -= uint32(n)
			return cut{count: count, ties: n}
		}
		n -= entries
		s.histogram[count] = 0
	}
	return cut{}
}
