// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Summary describes the profiles that a query selected.
type Summary struct {
	Type model.SampleType
	// Values is the kind of the profiles; those that were cumulative are deltas.
	Values kind.Values
	// From and Until are the first start and the last end of the profiles, in Unix nanoseconds.
	From, Until int64
	// Profiles is their number.
	Profiles int
	// periods are the smallest and the largest period of profiles that count samples, which stand for a time.
	periods [2]int64
}

// Period is the largest period of profiles that count samples, 0 for other types.
func (s *Summary) Period() int64 { return s.periods[1] }

// Graph is a tree and a summary of what it was made of. For a comparison, that is the selection without its base.
type Graph struct {
	*Tree
	Summary
	// MoreGroups is how many values of the attribute that divides it share OtherGroup.
	MoreGroups int
}

// FlameGraph merges the selected samples into a tree of at most maxNodes.
func (s *Querier) FlameGraph(ctx context.Context, sel model.Selection, maxNodes int) (*Graph, error) {
	return s.graph(ctx, []model.Selection{sel}, maxNodes)
}

// Diff merges the samples of two selections into one tree.
func (s *Querier) Diff(ctx context.Context, sel, base model.Selection, maxNodes int) (*Graph, error) {
	return s.graph(ctx, []model.Selection{sel, base}, maxNodes)
}

func (s *Querier) graph(ctx context.Context, sides []model.Selection, maxNodes int) (*Graph, error) {
	var g Graph
	memory := model.NewMemory(ctx, sides[0].Meter)
	err := memory.Fitted(func(parts int) (err error) {
		b := newTreeBuilder(memory)
		b.parts = parts
		selected, scans := make([]*Selected, len(sides)), make([]*scan, len(sides))
		for side, sel := range sides {
			selected[side], err = s.Select(ctx, &Query{Selection: sel, Want: Want{Stacks: true}, Memory: memory})
			if err != nil {
				return err
			}
			defer selected[side].Close()
			scans[side] = selected[side].scan
		}
		if differ(selected) {
			for _, in := range selected {
				in.countTime()
			}
		}
		if g.MoreGroups, err = divide(scans...); err != nil {
			return err
		}
		for side, in := range selected {
			if err := in.addTo(b, side); err != nil {
				return err
			}
		}
		if err := s.unite(ctx, b, sides, selected); err != nil {
			return err
		}
		g.Summary = selected[0].Summary
		g.Tree, err = b.finish(max(maxNodes, 1), len(sides) > 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// GraphOf returns the tree of samples that are in no store. All of its nodes are there, or it is too large.
func GraphOf(s *Samples) (*Graph, error) {
	b := newTreeBuilder(model.NewMemory(context.Background(), nil))
	if err := b.add(s, "", 0); err != nil {
		return nil, err
	}
	t, err := b.finish(maxBuiltNodes, false)
	if err == nil && t.Truncated > 0 {
		err = fmt.Errorf("%w: its tree has more than %d nodes", model.ErrTooLarge, maxBuiltNodes)
	}
	return &Graph{Tree: t}, err
}

// differ reports whether samples of two sides stand for different times, so that their numbers cannot be compared.
func differ(sides []*Selected) bool {
	return len(sides) > 1 && sides[0].periods != sides[1].periods && sides[0].periods[0] > 0 && sides[1].periods[0] > 0
}

// addTo adds the samples to a side of a tree.
func (r *Selected) addTo(b *treeBuilder, side int) error {
	err := r.Read(func(samples *Samples) error { return b.add(samples, r.scan.query.GroupBy, side) })
	if u := uninterestingOf(r.Newest); !u.IsEmpty() {
		b.uninteresting = u
	}
	return err
}

// Ends returns, for each node, the first one after it that is not below it: nodes are in the order of a walk, depth
// first.
func (t *Tree) Ends() []int32 {
	ends := make([]int32, len(t.Frame))
	for i := int32(len(ends)) - 1; i >= 0; i-- {
		if ends[i] = max(ends[i], i+1); i > 0 {
			ends[t.Parent[i]] = max(ends[t.Parent[i]], ends[i])
		}
	}
	return ends
}

// LeftOut returns the values of what was left out below each node, and those of the base if there is one.
func (t *Tree) LeftOut() (values, base []int64) {
	of := func(self, total []int64) []int64 {
		left := slices.Clone(total)
		for i := range left {
			left[i] = otlp.SaturatingSubtract(left[i], self[i])
			if i > 0 {
				left[t.Parent[i]] = otlp.SaturatingSubtract(left[t.Parent[i]], total[i])
			}
		}
		return left
	}
	if t.BaseTotal != nil {
		base = of(t.BaseSelf, t.BaseTotal)
	}
	return of(t.Self, t.Total), base
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
	ends, counted := t.Ends(), make([]int32, len(t.Frames))
	for i := 1; i < len(t.Frame); i++ {
		row := &rows[t.Frame[i]]
		row.Self = otlp.SaturatingAdd(row.Self, t.Self[i])
		if int32(i) >= counted[t.Frame[i]] { // not below another one
			row.Total = otlp.SaturatingAdd(row.Total, t.Total[i])
			counted[t.Frame[i]] = ends[i]
		}
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
