// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

// callTree is what is below functions, or what is above them with the functions as the root's children. Node 0 is the
// root, and parents come before their children.
type callTree struct {
	meter    *size.Meter
	maxDepth int
	nodes    []callNode
	index    map[callKey]int32
	// tooDeep is how many nodes of the profiles are deeper than maxDepth.
	tooDeep int
}

type callNode struct {
	frame, parent int32
	depth         int
	self, total   int64
}

type callKey struct{ parent, frame int32 }

// callBytes is what a node takes, with its entry in the index, and while the tree is written.
const callBytes = 160

func newCallTree(meter *size.Meter, maxDepth int) *callTree {
	return &callTree{meter: meter, maxDepth: maxDepth, nodes: []callNode{{frame: -1, parent: -1}},
		index: map[callKey]int32{}}
}

func (c *callTree) child(parent, frame int32) (int32, error) {
	key := callKey{parent, frame}
	i, ok := c.index[key]
	if !ok {
		if err := c.meter.Grow(callBytes); err != nil {
			return 0, err
		}
		i = int32(len(c.nodes))
		c.nodes = append(c.nodes, callNode{frame: frame, parent: parent, depth: c.nodes[parent].depth + 1})
		c.index[key] = i
	}
	return i, nil
}

// add adds values to a node.
func (c *callTree) add(node int32, self, total int64) {
	n := &c.nodes[node]
	n.self, n.total = otlp.SaturatingAdd(n.self, self), otlp.SaturatingAdd(n.total, total)
}

// addCallees adds what is below the outermost frames that match; nil is everything.
func (c *callTree) addCallees(t *answers.Tree, wanted []bool) error {
	const isOutside, isTooDeep = -1, -2
	if err := c.meter.Grow(4 * len(t.Frame)); err != nil {
		return err
	}
	at := make([]int32, len(t.Frame)) // the node of c for each node of t
	at[0] = isOutside
	if wanted == nil {
		at[0] = 0
		c.nodes[0].total = t.Total[0]
	}
	for i := 1; i < len(at); i++ {
		parent := at[t.Parent[i]]
		switch {
		case parent == isOutside && wanted[t.Frame[i]]:
			parent = 0
			c.add(0, 0, t.Total[i])
		case parent < 0:
			at[i] = parent
			continue
		}
		if t.Total[i] == 0 {
			at[i] = isTooDeep // nothing is below it either
			continue
		}
		if c.nodes[parent].depth == c.maxDepth {
			at[i] = isTooDeep
			c.tooDeep++
			continue
		}
		node, err := c.child(parent, t.Frame[i])
		if err != nil {
			return err
		}
		c.add(node, t.Self[i], t.Total[i])
		at[i] = node
	}
	return nil
}

// addCallers adds the paths from the outermost frames that match to the entry of the program.
func (c *callTree) addCallers(t *answers.Tree, wanted []bool) error {
	if err := c.meter.Grow(len(t.Frame)); err != nil {
		return err
	}
	isInside := make([]bool, len(t.Frame))
	for i := 1; i < len(isInside); i++ {
		isInside[i] = isInside[t.Parent[i]]
		if isInside[i] || !wanted[t.Frame[i]] {
			continue
		}
		isInside[i] = true
		if t.Total[i] == 0 {
			continue
		}
		c.add(0, 0, t.Total[i])
		node := int32(0)
		for caller := int32(i); caller > 0; caller = t.Parent[caller] {
			if c.nodes[node].depth == c.maxDepth {
				c.tooDeep++
				break
			}
			var err error
			if node, err = c.child(node, t.Frame[caller]); err != nil {
				return err
			}
			c.add(node, 0, t.Total[i])
		}
		if err := c.meter.Grow(0); err != nil {
			return err
		}
	}
	return nil
}

// largest returns the children that are written of each node, the largest first, and how many nodes are not written. A
// node is never larger than its parent, so the largest are a tree.
func (c *callTree) largest(limit int, least int64) (children map[int32][]int32, leftOut int) {
	order := make([]int32, 0, len(c.nodes))
	for i := 1; i < len(c.nodes); i++ {
		order = append(order, int32(i))
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(c.nodes[b].total, c.nodes[a].total) })
	children = map[int32][]int32{}
	for n, i := range order {
		if n >= limit || c.nodes[i].total < least {
			return children, len(order) - n
		}
		children[c.nodes[i].parent] = append(children[c.nodes[i].parent], i)
	}
	return children, 0
}

// write appends the nodes as indented lines. Functions with one callee and no value of their own share a line with it.
func (c *callTree) write(a *answer, frames []answers.Frame, whole int64, unit string,
	children map[int32][]int32) (leftOut int) {
	type step struct {
		node   int32
		indent int
	}
	var stack []step
	push := func(node int32, indent int) {
		for _, child := range slices.Backward(children[node]) {
			stack = append(stack, step{child, indent})
		}
	}
	push(0, 0)
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		node, path := at.node, label(&frames[c.nodes[at.node].frame])
		for below := children[node]; len(below) == 1 &&
			c.nodes[below[0]].total == c.nodes[node].total; below = children[node] {
			node = below[0]
			path += ";" + label(&frames[c.nodes[node].frame])
		}
		columns := []string{percent(c.nodes[node].total, whole), value(float64(c.nodes[node].total), unit)}
		if self := c.nodes[node].self; self != 0 {
			columns = append(columns, "self "+value(float64(self), unit))
		}
		if !a.row(strings.Repeat("  ", at.indent) + strings.Join(append(columns, path), "  ")) {
			return len(stack) + 1
		}
		push(node, at.indent+1)
	}
	return 0
}
