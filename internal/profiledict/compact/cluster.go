// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// clusterSamples orders each profile's samples by their stacks, from the root on. Where the profiles are then
// split, samples that share frames stay together, and fewer entries have to stand in several parts.
func (b *Batch) clusterSamples(profiles []piece) {
	b.rankStacks()
	for _, p := range profiles {
		samples := b.samples[p.from:p.to]
		// Ranks with positions are sorted, then the samples are moved: that is cheaper than sorting samples.
		order := make([]uint64, len(samples))
		for i := range samples {
			order[i] = uint64(b.stackRanks[samples[i].stack])<<32 | uint64(i)
		}
		slices.Sort(order)
		sorted := make([]sample, len(samples))
		for i, o := range order {
			sorted[i] = samples[uint32(o)]
		}
		copy(samples, sorted)
	}
}

// rankStacks gives every stack of the batch its place in the order from the root on, once.
func (b *Batch) rankStacks() {
	if len(b.stackRanks) == b.dict.Stacks.Len() {
		return
	}
	stacks := make([]profiledict.StackIndex, b.dict.Stacks.Len())
	for i := range stacks {
		stacks[i] = profiledict.StackIndex(i)
	}
	slices.SortFunc(stacks, func(x, y profiledict.StackIndex) int {
		return compareFromRoot(b.dict.Stacks.At(x), b.dict.Stacks.At(y))
	})
	b.stackRanks = make([]uint32, len(stacks))
	for rank, stack := range stacks {
		b.stackRanks[stack] = uint32(rank)
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

// halve splits pieces in two of about as many samples, or one sample between its observations. A single
// observation cannot be split.
func (b *Batch) halve(pieces []piece) (first, second []piece, ok bool) {
	total := int32(0)
	for _, p := range pieces {
		total += max(p.to-p.from, 1)
	}
	half := total / 2
	for i, p := range pieces {
		n := max(p.to-p.from, 1)
		if n <= half && half > 0 {
			if half -= n; half == 0 {
				return pieces[:i+1], pieces[i+1:], true
			}
			continue
		}
		if p.to-p.from <= 1 {
			if i > 0 {
				return pieces[:i], pieces[i:], true
			}
			return b.halveSample(p, pieces)
		}
		head, tail := p, p
		middle := p.from + max(half, 1)
		head.to, head.end = middle, 0
		tail.from, tail.skip = middle, 0
		return append(slices.Clone(pieces[:i]), head), append([]piece{tail}, pieces[i+1:]...), true
	}
	return nil, nil, false
}

// halveSample halves a piece of one sample. It is the only one.
func (b *Batch) halveSample(p piece, pieces []piece) (first, second []piece, ok bool) {
	if p.from == p.to || len(pieces) > 1 {
		return nil, nil, false
	}
	from, to := p.observations(p.from, &b.samples[p.from])
	if to-from < 2 {
		return nil, nil, false
	}
	head, tail := p, p
	head.end = from + (to-from)/2
	tail.skip = head.end
	return []piece{head}, []piece{tail}, true
}
