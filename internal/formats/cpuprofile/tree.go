// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
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
	value     float64 // samples, or in a heap profile bytes
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
func (r *Reader) define(n *node, f *callFrame, first int64) {
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
	function := dictionary.Function{
		Name: r.b.InternString(name), Filename: r.b.InternString(f.URL), StartLine: fromOne(f.LineNumber, first),
	}
	n.location = r.b.Frame(function, function.StartLine, fromOne(f.ColumnNumber, first))
}

// fromOne converts a number that counts from first to one that counts from 1. It returns 0 if n is nil or out of range.
func fromOne(n *int64, first int64) int64 {
	if n == nil || *n < first || *n > math.MaxInt32 {
		return 0
	}
	return *n - first + 1
}

// fillStacks makes the nodes of a tree the tree of stacks, which end below the root.
func (r *Reader) fillStacks(t *tree) error {
	r.stacks.Reset()
	for i := range t.nodes {
		if err := r.b.Check(0); err != nil {
			return err
		}
		r.stacks.Add(t.stackNode(t.nodes[i].parent), t.nodes[i].location)
	}
	return r.b.Grow(events.NodeBytes * len(t.nodes))
}

// stackNode returns the node of the stack that ends in a node of the tree.
func (t *tree) stackNode(at int32) int32 {
	if at == none || !t.nodes[at].isDefined || t.nodes[at].kind == root {
		return events.NoNode
	}
	return at
}
