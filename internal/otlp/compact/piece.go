// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math"
	"slices"
)

// Piece is a range of the observations of each of some profiles of a Batch. Callers cut it whose limit is not the
// encoded size that Options.MaxBytes bounds. It is valid until the batch changes.
type Piece struct{ ranges []sampleRange }

// All returns everything in the batch.
func (b *Batch) All() Piece { return Piece{b.inOrder()} }

// Len returns the number of profiles of which the piece has a range.
func (p Piece) Len() int { return len(p.ranges) }

// Profile returns the number that profile k of the piece has in all pieces of the batch. They are numbered in the order
// in which they were added.
func (p Piece) Profile(k int) int { return int(p.ranges[k].profile) }

// Part returns a piece as a message of its own, with its size.
func (b *Batch) Part(p Piece) Part {
	part := b.write(p.ranges)
	part.Bytes = encodedBound(part.Profiles)
	part.Oversized = b.options.MaxBytes > 0 && part.Bytes > b.options.MaxBytes
	return part
}

// Cut cuts a piece into up to n of about as many observations, in their order. If keepProfiles is set, it cuts only
// between profiles. If not, each piece has the same share of every profile, since the sample types of one pprof have
// the same stacks in the same order; except if a profile has fewer than n observations. Profiles without samples stay
// in the first piece.
func (b *Batch) Cut(p Piece, n int, keepProfiles bool) []Piece {
	counts := make([]int, len(p.ranges))
	smallest, total, profiles := math.MaxInt, 0, 0
	for k, r := range p.ranges {
		if counts[k] = b.observationsOf(r); counts[k] > 0 {
			smallest = min(smallest, counts[k])
			total += counts[k]
			profiles++
		}
	}
	pieces := make([]Piece, n)
	earlier, position := 0, 0 // observations and profiles before this one
	for k, rest := range p.ranges {
		count, done := counts[k], 0
		if count == 0 {
			pieces[0].ranges = append(pieces[0].ranges, rest)
			continue
		}
		for i := range n {
			end := count * (i + 1) / n
			if keepProfiles {
				end = 0
				if position*n/profiles <= i {
					end = count
				}
			} else if smallest < n {
				end = min(total*(i+1)/n-earlier, count)
			}
			if end > done {
				var first sampleRange
				first, rest = b.cutRange(rest, end-done)
				pieces[i].ranges = append(pieces[i].ranges, first)
				done = end
			}
		}
		earlier += count
		position++
	}
	return slices.DeleteFunc(pieces, func(p Piece) bool { return len(p.ranges) == 0 })
}

func (b *Batch) observationsOf(r sampleRange) (n int) {
	for i := r.from; i < r.to; i++ {
		from, to := r.observations(i, &b.samples.Entries[i])
		n += int(to - from)
	}
	return n
}

// cutRange cuts a range after its first n observations. It must have as many.
func (b *Batch) cutRange(r sampleRange, n int) (first, rest sampleRange) {
	first, rest = r, r
	for i := r.from; ; i++ {
		from, to := r.observations(i, &b.samples.Entries[i])
		if count := int(to - from); n > count {
			n -= count
			continue
		} else if n < count {
			first.to, first.end = i+1, from+uint32(n)
			rest.from, rest.skip = i, first.end
			return first, rest
		}
		if first.to = i + 1; first.to < r.to {
			first.end = 0
		}
		rest.from, rest.skip = i+1, 0
		return first, rest
	}
}
