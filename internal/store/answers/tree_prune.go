// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"math"
)

// This file leaves out the smallest nodes of a tree that would need more memory than a query can have.

// leftOut is the frame of a node that has the values of what was left out below its parent. It is not part of a Tree.
const leftOut = -2

// minPruned is the smallest number of nodes that are pruned: fewer do not make room for the next.
const minPruned = 1 << 10

// finishing returns the bytes that finish needs while it runs, and those of the tree that it returns.
func (b *treeBuilder) finishing(maxNodes int) (passing, treeBytes int) {
	n := len(b.parent)
	size := min(n, maxNodes)
	return n*finishedBytes + len(b.frames)*orderBytes, size*4*nodeColumns + min(len(b.frames), size)*shownBytes
}

// builtBytes is what the nodes and frames take so far.
func (b *treeBuilder) builtBytes() int {
	return len(b.parent)*nodeBytes + len(b.frames)*frameBytes + b.stringBytes +
		valueBytes*(len(b.fractions[0])+len(b.fractions[1]))
}

// isFull reports whether the nodes and frames have taken their part of the memory, with what they take in the end.
func (b *treeBuilder) isFull() bool {
	if b.parts == 0 || len(b.parent) < minPruned {
		return false
	}
	built := b.builtBytes()
	finishing, treeBytes := b.finishing(math.MaxInt32)
	return built+finishing+treeBytes > (b.memory.Free()+built)/b.parts
}

// prune leaves out the smallest nodes: at least half of them. Their values go to nodes that are left out of the answer.
func (b *treeBuilder) prune() error {
	b.endBlock()
	n, frames := len(b.parent), b.frames
	pruning := n * finishedBytes
	if err := cmp.Or(b.memory.Grow(pruning), b.memory.Check()); err != nil {
		return err
	}
	keep := b.largest(n/4, nil)
	b.memory.Release(pruning + b.builtBytes())
	b.isPruned = true
	b.beginFrames()
	err := b.moveNodes(func(i, parent int32) (int32, bool) {
		if keep[i] {
			return b.frameIndex(frames[b.frame[i]]), true
		}
		if b.frame[i] != leftOut {
			b.dropped++
		}
		return leftOut, b.frame[parent] != leftOut
	})
	return cmp.Or(err, b.memory.Grow(nodeBytes*len(b.parent)+valueBytes*(len(b.fractions[0])+len(b.fractions[1]))))
}

// addFraction adds a part of a value to a node.
func (b *treeBuilder) addFraction(side int, node int32, value float64) {
	if more := len(b.parent) - len(b.fractions[side]); more > 0 {
		_ = b.memory.Grow(valueBytes * more) // chargeFrames returns the error
		b.fractions[side] = append(b.fractions[side], make([]float64, more)...)
	}
	b.fractions[side][node] += value
}
