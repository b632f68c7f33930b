// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// tree has the calls of a profile. Nodes refer to each other by their places in it; 0 is as good an id as any.
type tree struct {
	nodes []node
	index map[int64]int32 // by id
}

// nodeBytes is the memory of a node with its id.
const nodeBytes = 112

// none is the place of no node.
const none = -1

// node is a function in the tree of calls.
type node struct {
	parent    int32
	isDefined bool // and not only referred to
	kind      nodeKind
	location  int32
	selfSize  float64 // bytes, in a heap profile
	hits      float64 // samples
}

type nodeKind uint8

const (
	ordinary nodeKind = iota
	root
	idle
	above // a state of the machine, on top of the previous stack
)

// place returns the place of a node, which may be defined later.
func (t *tree) place(id int64) int32 {
	at, known := t.index[id]
	if !known {
		at = t.add(none)
		t.index[id] = at
	}
	return at
}

func (t *tree) add(parent int32) int32 {
	t.nodes = append(t.nodes, node{parent: parent})
	return int32(len(t.nodes) - 1)
}

// lookup returns the place of the node that a sample names, or none.
func (t *tree) lookup(id float64) int32 {
	if at, known := t.index[int64(id)]; known && t.nodes[at].isDefined {
		return at
	}
	return none
}

type callFrame struct {
	FunctionName string `json:"functionName"`
	URL          string `json:"url"`
	LineNumber   *int64 `json:"lineNumber"`
	ColumnNumber *int64 `json:"columnNumber"`
}

// define sets the function of a node. Lines and columns count from first, 0 in V8 today, and from 1 in OTLP.
func (d *decoder) define(n *node, f *callFrame, first int64) {
	n.isDefined = true
	name := f.FunctionName
	switch name {
	case "(root)":
		n.kind = root
		return
	case "(idle)":
		n.kind = idle
		return
	case "(garbage collector)", "(program)":
		n.kind = above
	case "":
		name = "(anonymous)"
	}
	intern := d.b.Dict.Strings.Intern
	function := dictionary.Function{
		Name: intern(d.b.CleanString(name)), Filename: intern(d.b.CleanString(f.URL)),
		StartLine: fromOne(f.LineNumber, first),
	}
	n.location = d.b.Frame(function, function.StartLine, fromOne(f.ColumnNumber, first))
}

// fromOne converts a number that counts from first to one that counts from 1. It returns 0 if n is nil or out of range.
func fromOne(n *int64, first int64) int64 {
	if n == nil || *n < first || *n > math.MaxInt32 {
		return 0
	}
	return *n - first + 1
}

// unreadable is the stack of a node that has none.
const unreadable dictionary.StackIndex = -1

// stackOf interns a stack: the node and its ancestors, or if the node is above another stack, itself and that stack:
// before and its ancestors. It returns unreadable if the stack is too deep or a circle, or if all stacks have too many
// nodes.
func (d *decoder) stackOf(t *tree, at, before int32) dictionary.StackIndex {
	d.stack = d.stack[:0]
	if n := t.nodes[at]; n.kind == above {
		d.stack = append(d.stack, n.location)
		at = before
	}
	for depth := 0; at != none; depth++ {
		n := t.nodes[at]
		if !n.isDefined || n.kind == root {
			break
		}
		if depth == maxDepth || d.nodesLeft == 0 {
			return unreadable
		}
		d.nodesLeft--
		if n.location != 0 {
			d.stack = append(d.stack, n.location)
		}
		at = n.parent
	}
	return d.b.Dict.Stacks.Intern(d.stack)
}
