// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package events

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"

// CallTree has stacks as the nodes of a tree: each is a location and the node of its caller. A few bytes of input can
// be a node at any depth, so that all stacks together have a budget of locations.
type CallTree struct {
	nodes []callNode
	left  int // how many more locations stacks may have
	stack []int32
}

type callNode struct {
	caller, location int32
	stack            dictionary.StackIndex // notInterned before the first time
}

// NoNode is the caller of a root, and the node of the empty stack.
const NoNode = -1

const notInterned, unreadable dictionary.StackIndex = -1, -2

// The budget of locations is leastLocations and locationsPerByte of the payload. Stacks have at most maxStackDepth of
// them.
const leastLocations, locationsPerByte, maxStackDepth = 64 << 10, 2, 4096

// NodeBytes is the memory of a node, in a list that may just have grown.
const NodeBytes = 3 * 12

// NewCallTree returns the tree of a payload of so many bytes.
func NewCallTree(plainBytes int) *CallTree {
	return &CallTree{left: leastLocations + locationsPerByte*plainBytes}
}

// Reset removes all nodes. The budget stays as it is.
func (t *CallTree) Reset() { t.nodes = t.nodes[:0] }

// Len returns the number of nodes, which are numbered from 0.
func (t *CallTree) Len() int { return len(t.nodes) }

// Caller returns the caller of a node.
func (t *CallTree) Caller(node int32) int32 { return t.nodes[node].caller }

// Location returns the location of a node.
func (t *CallTree) Location(node int32) int32 { return t.nodes[node].location }

// Add adds a node. A caller that does not exist makes a node without a stack.
func (t *CallTree) Add(caller, location int32) int32 {
	n := callNode{caller: caller, location: location, stack: notInterned}
	if caller < NoNode {
		n.stack = unreadable
	}
	t.nodes = append(t.nodes, n)
	return int32(len(t.nodes) - 1)
}

// Stack interns the stack of a node, leaf first. It is false if the stack is too deep or a circle, or if the budget is
// spent.
func (t *CallTree) Stack(b *Builder, node int32) (stack dictionary.StackIndex, ok bool) {
	if node == NoNode {
		return 0, true
	}
	if int(node) >= len(t.nodes) || node < NoNode {
		return 0, false
	}
	if known := t.nodes[node].stack; known != notInterned {
		return known, known != unreadable
	}
	t.stack = t.stack[:0]
	stack = unreadable
	for at := node; ; at = t.nodes[at].caller {
		if at == NoNode {
			stack = b.Dict.Stacks.Intern(t.stack)
			break
		}
		if int(at) >= len(t.nodes) || at < NoNode || len(t.stack) == maxStackDepth || t.left == 0 {
			break
		}
		t.left--
		t.stack = append(t.stack, t.nodes[at].location)
	}
	t.nodes[node].stack = stack
	return stack, stack != unreadable
}
