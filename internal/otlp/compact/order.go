// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

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

// firstOfWidth are the first indices, less 1, that take a varint of one, two, three and four bytes. Indices of one
// width keep the entries' order, since that of their counts compresses worse.
var firstOfWidth = [...]int32{0, 1<<7 - 1, 1<<14 - 1, 1<<21 - 1}

// maxCounted bounds the histogram of counts. Entries that are used more often are ordered as if they were used this
// often.
const maxCounted = 1 << 14

// frequencyScratch is memory that byFrequency reuses for the next table.
type frequencyScratch struct {
	// ranks has, by count, first the number of entries, then the rank of the next one. It is zero between calls.
	ranks [maxCounted + 1]int32
	moved []int32
}

// byFrequency moves the entries that are used most to the indices that are encoded shortest.
func (t *tableUse) byFrequency(s *frequencyScratch) {
	entries := t.Entries[1:]
	if len(entries) <= int(firstOfWidth[1]) {
		return
	}
	highest := uint32(0)
	for _, e := range entries {
		n := min(t.uses[e], maxCounted)
		s.ranks[n]++
		highest = max(highest, n)
	}
	ranks, rank := s.ranks[:highest+1], int32(0)
	for count, n := range slices.Backward(ranks) {
		ranks[count] = rank
		rank += n
	}
	s.moved = append(s.moved[:0], entries...)
	next := firstOfWidth
	for _, e := range s.moved {
		rank, w := &ranks[min(t.uses[e], maxCounted)], 1
		for w < len(next) && *rank >= firstOfWidth[w] {
			w++
		}
		*rank++
		at := &next[w-1]
		entries[*at] = e
		*at++
		t.Index[e] = *at
	}
	clear(ranks)
}
