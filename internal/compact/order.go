// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

// tableUse tells which entries of a table are in a Subset, how often each is referred to, and where it goes.
type tableUse struct {
	// uses[i] is how often entry i is referred to; 0 means that it is not in the subset.
	uses []uint32
	// order[k] is the entry that goes to k; order[0] is the zero value.
	order []int32
	// index[i] is where entry i goes, valid where uses[i] is not 0.
	index []int32
}

func (t *tableUse) reset(entries int) {
	if cap(t.uses) < entries {
		t.uses = make([]uint32, entries)
		t.index = make([]int32, entries)
	} else {
		t.uses = t.uses[:entries]
		clear(t.uses)
		t.index = t.index[:entries]
	}
	t.index[0] = 0
}

// add counts a reference and reports whether it is the first.
func (t *tableUse) add(i int32) bool {
	t.uses[i]++
	return t.uses[i] == 1
}

// collect puts the entries in use in their dictionary's order.
func (t *tableUse) collect() {
	t.order = append(t.order[:0], 0)
	for i, n := range t.uses {
		if n != 0 && i != 0 {
			t.order = append(t.order, int32(i))
		}
	}
}

func (t *tableUse) number() {
	for k, i := range t.order {
		t.index[i] = int32(k)
	}
}

// The number of indices above 0 that a varint of one, two and three bytes can tell apart. Within a width
// entries keep their order: the one they were met in compresses better than that of their counts.
var widthPlaces = [...]int{1<<7 - 1, 1<<14 - 1<<7, 1<<21 - 1<<14}

// maxCounted bounds the histogram of counts. What is used more often is told apart by its order alone.
const maxCounted = 1 << 14

// byFrequency moves the entries that are used most to the indices that are encoded shortest.
func (t *tableUse) byFrequency(s *frequencyScratch) {
	entries := t.order[1:]
	if len(entries) <= widthPlaces[0] {
		return
	}
	s.count(t.uses, entries)
	s.moved = append(s.moved[:0], entries...)
	from := 0
	positions := [len(widthPlaces) + 1]int{}
	cuts := [len(widthPlaces)]cut{}
	for w, places := range widthPlaces {
		positions[w] = from
		cuts[w] = s.cut(places)
		from += places
	}
	positions[len(widthPlaces)] = from
	for _, e := range s.moved {
		w := 0
		for w < len(cuts) && !cuts[w].takes(min(t.uses[e], maxCounted)) {
			w++
		}
		entries[positions[w]] = e
		positions[w]++
	}
}

// cut tells the entries of one width from the rest: those used more than count times, and the first ties
// of those used count times.
type cut struct {
	count uint32
	ties  int
}

func (c *cut) takes(uses uint32) bool {
	if uses != c.count || c.ties == 0 {
		return uses > c.count
	}
	c.ties--
	return true
}

// frequencyScratch is memory that arranging one table after the other uses.
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

// cut removes the next most used entries from the histogram, all of them if there are no more than places.
func (s *frequencyScratch) cut(places int) cut {
	for n := s.highest; n > 0; n-- {
		if in := int(s.histogram[n]); in >= places {
			s.histogram[n] -= uint32(places)
			return cut{count: n, ties: places}
		} else {
			places -= in
			s.histogram[n] = 0
		}
	}
	return cut{}
}
