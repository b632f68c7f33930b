// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file selects whole profiles of given series: Query.Only. For Grafana's data sources, a profile has one time.

// NameTree merges the samples of one or two queries into a tree of the names of functions.
func (s *Querier) NameTree(ctx context.Context, queries ...*Query) (tree *Tree, err error) {
	err = queries[0].Memory.Fitted(func(parts int) (err error) {
		b := newTreeBuilder(queries[0].Memory)
		b.namesOnly, b.parts = true, parts
		for side, q := range queries {
			if len(q.Only) == 0 {
				continue
			}
			selected, err := s.Select(ctx, q)
			if err != nil {
				return err
			}
			err = selected.addTo(b, side)
			if selected.Close(); err != nil {
				return err
			}
		}
		tree, err = b.finish(math.MaxInt32, len(queries) > 1)
		return err
	})
	return tree, err
}

// kept returns the stacks and weighted values of the samples that keep chooses.
func (s *Samples) kept(keep func(samples *Samples, row int) bool) *Samples {
	out := *s
	out.Columns, out.Weight = model.Columns{}, 1
	for i := range s.Values {
		if keep(s, i) {
			value := otlp.SaturatingMultiply(s.Values[i], int64(s.Weight))
			out.Stacks, out.Values = append(out.Stacks, model.At(s.Stacks, i)), append(out.Values, value)
		}
	}
	return &out
}

// NewQuery returns a query of the profiles of series whose time lies in [from, until). Its memory comes on top of what
// the meter has.
func NewQuery(ctx context.Context, meter *size.Meter, only []Series, from, until int64, want Want) *Query {
	return &Query{Selection: model.Selection{From: from, Until: until, Meter: meter}, Only: only, Want: want,
		Memory: model.NewMemory(ctx, meter).OnTop()}
}
