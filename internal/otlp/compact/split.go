// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// splitter cuts a batch into pieces of at most Options.MaxBytes: between pprofs, and a pprof that is larger between
// samples, or between the observations of a sample. Samples are sorted by their stacks from the root on, so that pieces
// have little in common. Pprofs that share most of what they have, as those of one program on many hosts, are cut at
// the same stacks.
//
// Each piece repeats the entries that it shares with others. A piece stays larger than Options.MaxBytes if cutting it
// would repeat more than Options.MaxGrowth allows. The time is that of writing all pieces a few times.
type splitter struct {
	*Batch
	// room is how many bytes pieces may still repeat.
	room int
	// stackRanks is the position of each stack in the order of compareFromRoot, once samples have been sorted.
	stackRanks []uint32
}

// measuredPiece is a piece and the encoded size of its message.
type measuredPiece struct {
	Piece
	bytes int
}

// split yields the parts of a batch. A message is written to measure its piece, and again as a part: together, the
// parts would take a multiple of the batch's memory.
func (b *Batch) split(yield func(Part) bool) {
	all := b.All()
	whole := b.Part(all)
	if !whole.Oversized {
		yield(whole)
		return
	}
	s := splitter{Batch: b, room: (cmp.Or(b.options.MaxGrowth, defaultMaxGrowth) - 1) * whole.Bytes}
	todo := []measuredPiece{{all, whole.Bytes}}
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		smaller := s.cutToFit(next)
		if smaller == nil && !yield(s.Part(next.Piece)) {
			return
		}
		slices.Reverse(smaller)
		todo = append(todo, smaller...)
	}
}

// cutToFit cuts a piece into smaller ones. It returns nil if the piece stays as it is.
func (s *splitter) cutToFit(p measuredPiece) []measuredPiece {
	if p.bytes <= s.options.MaxBytes {
		return nil
	}
	smaller := s.cutBy(s.cut, p)
	if smaller == nil && s.groupLen(p.ranges) < len(p.ranges) {
		s.sortByStacks(p.ranges)
		smaller = s.cutBy(s.cutByStacks, p)
	}
	return smaller
}

// cutBy cuts a piece into as many as are likely to have at most Options.MaxBytes, or into fewer if these would repeat
// too much. It returns nil if even two would.
func (s *splitter) cutBy(cut func(Piece, int) []Piece, p measuredPiece) []measuredPiece {
	const (
		margin = 1.05 // pieces are not equally large, and repeat what they share
		// maxPieces bounds the passes over the dictionary: pieces that are still too large are cut again.
		maxPieces = 256
	)
	n := 1 + int(min(maxPieces, margin*float64(p.bytes)/float64(s.options.MaxBytes)))
	for ; n > 1; n /= 2 {
		var smaller []measuredPiece
		repeated := -p.bytes
		for _, piece := range cut(p.Piece, n) {
			if repeated > s.room {
				break
			}
			bytes := s.Part(piece).Bytes
			smaller, repeated = append(smaller, measuredPiece{piece, bytes}), repeated+bytes
		}
		// Pieces that are hardly smaller have little but what they share.
		if isUseful := 4*(repeated+p.bytes) <= 3*len(smaller)*p.bytes; isUseful && repeated <= s.room {
			s.room -= repeated
			return smaller
		}
	}
	return nil
}

// cut cuts a piece into up to n: between pprofs, or the samples of a single one.
func (s *splitter) cut(p Piece, n int) (pieces []Piece) {
	if s.groupLen(p.ranges) == len(p.ranges) {
		s.sortByStacks(p.ranges)
		if pieces = s.cutByStacks(p, n); len(pieces) > 1 {
			return pieces
		}
		return s.Cut(p, n, false)
	}
	total := 0
	for _, r := range p.ranges {
		total += r.weight()
	}
	last, before := -1, 0
	for rest := p.ranges; len(rest) > 0; {
		group := rest[:s.groupLen(rest)]
		rest = rest[len(group):]
		if at := before * n / total; at != last {
			last = at
			pieces = append(pieces, Piece{})
		}
		to := &pieces[len(pieces)-1]
		to.ranges = append(to.ranges, group...)
		for _, r := range group {
			before += r.weight()
		}
	}
	return pieces
}

// weight is a rough measure of a range's size.
func (p *sampleRange) weight() int { return 1 + int(p.to-p.from) }

// MaxSampleTypes is how many profiles are looked at as the sample types of one payload. Real ones have a handful.
const MaxSampleTypes = 16

// groupLen returns how many of the first profiles look like sample types of the same samples, as in a pprof. They refer
// to the same stacks, so they share a part or are cut at the same stacks.
func (b *Batch) groupLen(ranges []sampleRange) int {
	first := &b.profiles[ranges[0].profile]
	n := 1
	for ; n < min(len(ranges), MaxSampleTypes); n++ {
		next := &b.profiles[ranges[n].profile]
		if first.scope != next.scope || first.Time != next.Time || first.DurationNanos != next.DurationNanos ||
			first.Attributes != next.Attributes || slices.ContainsFunc(ranges[:n], func(p sampleRange) bool {
			return b.profiles[p.profile].SampleType == next.SampleType
		}) {
			break
		}
	}
	return n
}

// sortByStacks sorts the samples of profiles by their stacks from the root on. Pieces of them stay sorted.
func (s *splitter) sortByStacks(ranges []sampleRange) {
	if s.stackRanks == nil {
		s.rankStacks()
	}
	byRank := func(x, y sample) int { return cmp.Compare(s.stackRanks[x.Stack], s.stackRanks[y.Stack]) }
	for _, r := range ranges {
		if samples := s.samples.Entries[r.from:r.to]; !slices.IsSortedFunc(samples, byRank) {
			slices.SortStableFunc(samples, byRank)
		}
	}
}

// cutByStacks cuts all profiles of a piece at the same stacks, which divide the largest one evenly.
func (s *splitter) cutByStacks(p Piece, n int) (pieces []Piece) {
	largest := slices.MaxFunc(p.ranges, func(x, y sampleRange) int { return cmp.Compare(x.weight(), y.weight()) })
	if largest.from == largest.to {
		return nil
	}
	all, rest := s.samples.Entries, slices.Clone(p.ranges)
	for i := 1; i <= n; i++ {
		var piece Piece
		for k := range rest {
			r := &rest[k]
			first, isEmpty := *r, r.from == r.to
			if i < n {
				next := s.stackRanks[all[largest.from+int32(int(largest.to-largest.from)*i/n)].Stack]
				at, _ := slices.BinarySearchFunc(all[r.from:r.to], next, func(x sample, rank uint32) int {
					return cmp.Compare(s.stackRanks[x.Stack], rank)
				})
				first.to = r.from + int32(at)
			}
			if first.to < r.to {
				first.end, r.skip = 0, 0
			}
			if r.from = first.to; first.from < first.to || isEmpty && i == 1 {
				piece.ranges = append(piece.ranges, first)
			}
		}
		if piece.Len() > 0 {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

func (s *splitter) rankStacks() {
	table := &s.dict.Stacks
	stacks := make([]dictionary.StackIndex, table.Len())
	for i := range stacks {
		stacks[i] = dictionary.StackIndex(i)
	}
	slices.SortFunc(stacks, func(x, y dictionary.StackIndex) int { return compareFromRoot(table.At(x), table.At(y)) })
	s.stackRanks = make([]uint32, len(stacks))
	for rank, stack := range stacks {
		s.stackRanks[stack] = uint32(rank)
	}
}

// compareFromRoot compares stacks, which are leaf first, from their ends. No two of a dictionary are equal.
func compareFromRoot(a, b []int32) int {
	for i, k := len(a)-1, len(b)-1; i >= 0 && k >= 0; i, k = i-1, k-1 {
		if a[i] != b[k] {
			return cmp.Compare(a[i], b[k])
		}
	}
	return cmp.Compare(len(a), len(b))
}
