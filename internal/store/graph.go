// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Summary describes the profiles that a query selected.
type Summary struct {
	Type SampleType
	// Values is the kind of the profiles; those that were cumulative are deltas.
	Values kind.Values
	// From and Until are the first start and the last end of the profiles, in Unix nanoseconds.
	From, Until int64
	// Profiles is their number.
	Profiles int
}

// Graph is a tree and a summary of what it was made of. For a comparison, that is the selection without its base.
type Graph struct {
	*Tree
	Summary
}

// FlameGraph merges the selected samples into a tree of at most maxNodes.
func (s *Querier) FlameGraph(ctx context.Context, sel Selection, maxNodes int) (*Graph, error) {
	return s.graph(ctx, []Selection{sel}, maxNodes)
}

// Diff merges the samples of two selections into one tree.
func (s *Querier) Diff(ctx context.Context, sel, base Selection, maxNodes int) (*Graph, error) {
	return s.graph(ctx, []Selection{sel, base}, maxNodes)
}

func (s *Querier) graph(ctx context.Context, sides []Selection, maxNodes int) (*Graph, error) {
	b, summary, err := s.buildTree(ctx, sides)
	if err != nil {
		return nil, err
	}
	tree, err := b.finish(max(maxNodes, 1), len(sides) > 1)
	return &Graph{Tree: tree, Summary: summary}, err
}

// buildTree merges the samples of one or two selections.
func (s *Querier) buildTree(ctx context.Context, sides []Selection) (b *treeBuilder, summary Summary, err error) {
	b = newTreeBuilder(newMemory(ctx, sides[0].Meter))
	for side, sel := range sides {
		selected, err := s.Select(ctx, &Query{Selection: sel, Want: Want{Stacks: true}, Memory: b.memory})
		if err != nil {
			return nil, summary, err
		}
		err = selected.Read(func(samples *Samples) error { return b.add(samples, sel.GroupBy, side) })
		selected.Close()
		if err != nil {
			return nil, summary, err
		}
		if side == 0 {
			summary = selected.Summary
		}
	}
	b.endBlock()
	return b, summary, nil
}

func span(chunks []weightedChunk) (from, until int64) {
	for i := range chunks {
		if c := chunks[i].chunk; i == 0 {
			from, until = c.first(), c.last()
		} else {
			from, until = min(from, c.first()), max(until, c.last())
		}
	}
	return from, until
}

// FunctionRow is a line of a table of functions.
type FunctionRow struct {
	Frame       *Frame
	Self, Total int64
}

// Functions returns the self and total values of each frame. A function that calls itself counts once in its total.
func (t *Tree) Functions() []FunctionRow {
	rows := make([]FunctionRow, len(t.Frames))
	for i := range rows {
		rows[i].Frame = &t.Frames[i]
	}
	open := make([]int32, len(t.Frames))
	var path []int32
	for i := 1; i < len(t.Frame); i++ {
		for len(path) > 0 && path[len(path)-1] != t.Parent[i] {
			open[t.Frame[path[len(path)-1]]]--
			path = path[:len(path)-1]
		}
		row := &rows[t.Frame[i]]
		row.Self += t.Self[i]
		if open[t.Frame[i]] == 0 {
			row.Total += t.Total[i]
		}
		open[t.Frame[i]]++
		path = append(path, int32(i))
	}
	return rows
}

// SortFunctions orders rows by `self`, `total` or `name`, the largest first.
func SortFunctions(rows []FunctionRow, by string) {
	slices.SortFunc(rows, func(a, b FunctionRow) int {
		name := cmp.Or(strings.Compare(a.Frame.Name, b.Frame.Name), strings.Compare(a.Frame.File, b.Frame.File))
		switch by {
		case "name":
			return name
		case "total":
			return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Self, a.Self), name)
		default:
			return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), name)
		}
	})
}
