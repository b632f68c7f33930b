// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// This file makes a Tree of what a builder has.

// finish orders the nodes, adds up totals and leaves out the smallest nodes if there are more than maxNodes.
func (b *treeBuilder) finish(maxNodes int, withBase bool) (*Tree, error) {
	b.endBlock()
	n := len(b.parent)
	size := min(n, maxNodes)
	shown := min(len(b.frames), size)
	finishing, treeBytes := b.finishing(maxNodes)
	if err := cmp.Or(b.memory.Grow(finishing+treeBytes), b.memory.Check()); err != nil {
		return nil, err
	}
	total := [2][]int64{}
	for side := range total {
		for i, v := range b.fractions[side] {
			b.self[side][i] = otlp.SaturatingAdd(b.self[side][i], otlp.SaturatingRound(v))
		}
		b.fractions[side] = nil
		total[side] = slices.Clone(b.self[side])
		for i := n - 1; i > 0; i-- {
			parent := &total[side][b.parent[i]]
			*parent = otlp.SaturatingAdd(*parent, total[side][i])
		}
	}
	order := b.preorder()
	if err := b.memory.Check(); err != nil {
		return nil, err
	}
	keep := b.largest(maxNodes, order)
	if err := b.memory.Check(); err != nil {
		return nil, err
	}
	t := &Tree{
		Truncated: b.dropped, IsPruned: b.isPruned, Frames: make([]Frame, 0, shown), Frame: make([]int32, 0, size),
		Parent: make([]int32, 0, size),
		Self:   make([]int64, 0, size), Total: make([]int64, 0, size),
	}
	if withBase {
		t.BaseSelf, t.BaseTotal = make([]int64, 0, size), make([]int64, 0, size)
	}
	b.fill(t, order, keep, total)
	for i := range keep {
		if !keep[i] && b.frame[i] != leftOut && (total[0][i] != 0 || total[1][i] != 0) {
			t.Truncated++
		}
	}
	return t, b.memory.Keep(treeBytes)
}

// fill adds the nodes to keep to a tree, in their order.
func (b *treeBuilder) fill(t *Tree, order []int32, keep []bool, total [2][]int64) {
	position := make([]int32, len(b.parent))
	usedFrame := slices.Repeat([]int32{-1}, len(b.frames))
	for _, i := range order {
		if !keep[i] {
			continue
		}
		position[i] = int32(len(t.Frame))
		frame, parent := int32(-1), int32(-1)
		if i > 0 {
			parent = position[b.parent[i]]
			if frame = usedFrame[b.frame[i]]; frame < 0 {
				frame = int32(len(t.Frames))
				usedFrame[b.frame[i]] = frame
				t.Frames = append(t.Frames, b.frames[b.frame[i]])
			}
		}
		t.Frame, t.Parent = append(t.Frame, frame), append(t.Parent, parent)
		t.Self, t.Total = append(t.Self, b.self[0][i]), append(t.Total, total[0][i])
		if t.BaseSelf != nil {
			t.BaseSelf, t.BaseTotal = append(t.BaseSelf, b.self[1][i]), append(t.BaseTotal, total[1][i])
		}
	}
}

// largest marks the nodes that stay. The size of a node is the sum of the values at and below it, without their signs:
// it is never larger than its parent, so what stays is a tree. Of equal ones, the first of order stay, in which parents
// come before their children.
func (b *treeBuilder) largest(maxNodes int, order []int32) []bool {
	n := len(b.parent)
	sizes := make([]int64, n)
	for side := range b.self {
		of := make([]int64, n)
		for i := n - 1; i >= 0; i-- {
			of[i] = otlp.SaturatingAdd(of[i], max(b.self[side][i], otlp.SaturatingSubtract(0, b.self[side][i])))
			if i < len(b.fractions[side]) {
				of[i] = otlp.SaturatingAdd(of[i], otlp.SaturatingRound(math.Ceil(math.Abs(b.fractions[side][i]))))
			}
			if i > 0 {
				of[b.parent[i]] = otlp.SaturatingAdd(of[b.parent[i]], of[i])
			}
			if b.frame[i] != leftOut {
				sizes[i] = max(sizes[i], of[i])
			}
		}
	}
	sizes[0] = math.MaxInt64
	return largest(sizes, maxNodes, order, func(i int, keep []bool) bool {
		return i == 0 || sizes[i] > 0 && keep[b.parent[i]]
	})
}

// largest marks the n largest of sizes. Of equal ones, it marks the first in an order that may be kept; nil is that of
// sizes.
func largest[T cmp.Ordered](sizes []T, n int, order []int32, mayKeep func(i int, keep []bool) bool) []bool {
	keep := make([]bool, len(sizes))
	least := slices.Sorted(slices.Values(sizes))[max(len(sizes)-n, 0)]
	for i, size := range sizes {
		if keep[i] = size > least; keep[i] {
			n--
		}
	}
	for i := range sizes {
		if order != nil {
			if i == len(order) {
				break
			}
			i = int(order[i])
		}
		if sizes[i] == least && n > 0 && mayKeep(i, keep) {
			keep[i] = true
			n--
		}
	}
	return keep
}

// preorder returns the nodes as a walk meets them, depth first, children in the order of their names. In the builder,
// their order follows from that of blocks.
func (b *treeBuilder) preorder() []int32 {
	first, next := b.children()
	order := make([]int32, 0, len(b.parent))
	// The links are the stack: to the first child, otherwise to the next sibling of the nearest ancestor.
	for i := int32(0); i >= 0; {
		order = append(order, i)
		if first[i] >= 0 {
			i = first[i]
			continue
		}
		for i > 0 && next[i] < 0 {
			i = b.parent[i]
		}
		if i <= 0 {
			break
		}
		i = next[i]
	}
	return order
}

// children links the nodes: the first child of each, and the next of its siblings, by name.
func (b *treeBuilder) children() (first, next []int32) {
	order := make([]int32, len(b.frames))
	for i := range order {
		order[i] = int32(i)
	}
	ranks := b.stringRanks()
	slices.SortFunc(order, func(x, y int32) int {
		kx, ky := b.keys[x], b.keys[y]
		return cmp.Or(cmp.Compare(ranks[kx.name], ranks[ky.name]), cmp.Compare(ranks[kx.file], ranks[ky.file]),
			cmp.Compare(ranks[kx.kind], ranks[ky.kind]))
	})
	rank := make([]int32, len(b.frames)+1)
	for r, frame := range order {
		rank[frame] = int32(r)
	}
	// Counting sort of the nodes by their frames' ranks.
	starts := make([]int32, len(b.frames)+1)
	n := len(b.parent)
	for i := 1; i < n; i++ {
		if b.frame[i] != leftOut {
			starts[rank[b.frame[i]]+1]++
		}
	}
	for r := 1; r < len(starts); r++ {
		starts[r] += starts[r-1]
	}
	byRank := make([]int32, starts[len(starts)-1])
	for i := 1; i < n; i++ {
		if b.frame[i] != leftOut {
			r := rank[b.frame[i]]
			byRank[starts[r]] = int32(i)
			starts[r]++
		}
	}
	first, next = slices.Repeat([]int32{-1}, n), slices.Repeat([]int32{-1}, n)
	for k := len(byRank) - 1; k >= 0; k-- {
		i := byRank[k]
		next[i] = first[b.parent[i]]
		first[b.parent[i]] = i
	}
	return first, next
}
