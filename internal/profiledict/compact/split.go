// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"

// splitter walks through the samples of a group in the order of their stacks, which each profile's samples are
// in, and cuts all of its profiles wherever a part is full.
type splitter struct {
	*planner
	target int
	// rest are the profiles from the last cut on. next is, for each, how far it is in the open part.
	rest []piece
	next []position
	// begun says of which profiles something is in a part.
	begun []bool
	// empty says that nothing of the group is in the open part yet.
	empty bool
}

// position is the observation skip of a sample.
type position struct {
	sample int32
	skip   uint32
}

// addSplit adds a group, closing a part wherever one is full.
func (pl *planner) addSplit(g *group, target int) {
	s := &splitter{
		planner: pl, target: target, rest: append([]piece(nil), g.profiles...), begun: make([]bool, len(g.profiles)),
	}
	for _, p := range g.profiles {
		s.next = append(s.next, position{sample: p.from})
	}
	before := pl.mark()
	if s.addHeaders(); pl.size() > target && len(pl.part) > 0 {
		pl.takeBack(before)
		pl.close()
		s.addHeaders()
	}
	for k := s.lowest(); k >= 0; k = s.lowest() {
		s.addNext(k)
	}
	s.endPart()
}

func (s *splitter) addHeaders() {
	s.empty = true
	for _, p := range s.rest {
		s.addHeader(p)
	}
}

// lowest gives the profile whose next sample's stack comes first, or -1 at the end.
func (s *splitter) lowest() int {
	lowest, rank := -1, uint32(0)
	for k := range s.rest {
		at := s.next[k].sample
		if at == s.rest[k].to {
			continue
		}
		if r := s.b.stackRanks[s.b.samples[at].stack]; lowest < 0 || r < rank {
			lowest, rank = k, r
		}
	}
	return lowest
}

// addNext adds the next sample of profile k, or as much of it as there is room for in a part of its own.
func (s *splitter) addNext(k int) {
	at := &s.next[k]
	sample, shape := &s.b.samples[at.sample], s.b.profiles[s.rest[k].profile].shape
	before := s.mark()
	s.addSample(sample, shape, at.skip, sample.count)
	switch {
	case s.size() <= s.target:
		at.sample, at.skip = at.sample+1, 0
		s.empty = false
		return
	case len(s.part) > 0 || !s.empty:
		s.takeBack(before)
		s.endPart()
		s.close()
		s.addHeaders()
		return
	}
	// The part has nothing else, and yet this sample does not fit: it is split between its observations.
	s.takeBack(before)
	at.skip += s.addObservations(sample, shape, at.skip, s.target)
	if at.skip == sample.count {
		at.sample, at.skip = at.sample+1, 0
	}
	s.empty = false
}

// endPart puts what lies between the last cut and the positions into the part, and goes on from there. A
// profile without samples goes with the first part.
func (s *splitter) endPart() {
	for k := range s.rest {
		head, at := s.rest[k], s.next[k]
		isEmpty := head.from == at.sample && head.skip == at.skip
		if isEmpty && (s.begun[k] || head.from != head.to) {
			continue
		}
		head.to, head.end = at.sample, 0
		if at.skip > 0 {
			head.to, head.end = at.sample+1, at.skip
		}
		s.part = append(s.part, head)
		s.begun[k] = true
		s.rest[k].from, s.rest[k].skip = at.sample, at.skip
	}
}

// addObservations adds as many observations of a sample as fit, from skip on, at least one, and says how many.
func (pl *planner) addObservations(s *sample, shape shape, skip uint32, target int) uint32 {
	pl.addSample(s, shape, skip, skip+1)
	pl.bytes += 3 * maxPrefix // the lengths of the sample and of its lists grow
	n := uint32(1)
	for ; skip+n < s.count; n++ {
		bytes := 0
		if shape != valuesAlone {
			bytes += 8
		}
		if shape != timestampsAlone {
			bytes += profiledict.VarintLen(uint64(pl.b.values[s.firstValue+skip+n]))
		}
		if pl.size()+bytes > target {
			break
		}
		pl.bytes += bytes
	}
	return n
}
