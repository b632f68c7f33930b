// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file selects whole profiles of given series: Query.Only. For Grafana's data sources, a profile has one time.

// profileTime returns the time of a profile, or under which it is kept.
func (c *chunk) profileTime() int64 {
	if c.time == 0 || c.flags&isMoved != 0 {
		return c.first()
	}
	return c.time
}

func (v *view) only(q *Query) (*Selected, error) {
	in := &viewReader{view: v, query: q, only: map[seriesID]int{}, reader: &reader{sel: &Selection{}, memory: v.memory}}
	services := map[string]bool{}
	for i := range q.Only {
		services[q.Only[i].Service] = true
		for _, id := range q.Only[i].ids {
			in.only[id] = i
		}
	}
	if err := v.loadOnly(q, services, in.only); err != nil {
		return nil, err
	}
	filters, err := v.filters(in.sel)
	if err != nil {
		return nil, err
	}
	in.filters, in.groups = filters, newGroups(len(v.blocks))
	out := &Selected{SampleReader: in}
	if len(q.Only) > 0 {
		out.Types = []SampleType{q.Only[0].Type}
		out.Summary = Summary{Type: q.Only[0].Type, Values: q.Only[0].Values}
	}
	var chunks []weightedChunk
	for n, e := range v.blocks {
		for i := range e.series {
			sr := &e.series[i]
			at, ok := in.only[sr.id]
			if !ok {
				continue
			}
			for k := range sr.chunks {
				c := &sr.chunks[k]
				if t := c.profileTime(); c.flags&isBaseline != 0 || t < q.From || q.Until != 0 && t >= q.Until {
					continue
				}
				if err := v.memory.Take(weightedChunkBytes); err != nil {
					return nil, err
				}
				w := weightedChunk{block: n, series: sr, chunk: c, weight: 1}
				if q.Only[at].TimesPeriod {
					w.weight = float64(e.metas[c.meta].period)
				}
				chunks = append(chunks, w)
			}
		}
	}
	in.chunks = [][]weightedChunk{chunks}
	in.describe(out)
	return out, nil
}

// loadOnly adds what the blocks on disk have of the series to the blocks of the view.
func (v *view) loadOnly(q *Query, services map[string]bool, only map[seriesID]int) error {
	var parts []*block
	// The total of a profile is beside it.
	withDictionary := q.Want.Stacks || q.Want.Attributes || q.Want.Links || q.Want.Series || !q.Want.Profiles
	wanted := func(in *blockfile.Series) bool {
		_, ok := only[parseID(in.ID)]
		return ok
	}
	for _, d := range v.disk {
		if q.Until != 0 && d.From >= q.Until {
			continue
		}
		for i := range d.Services {
			if !services[d.Services[i].Name] {
				continue
			}
			// A gauge counts from the end of its profile on, which may be after the selected time.
			part, err := d.part(d.Services[i].Name, q.From, 0, wanted, withDictionary, v.memory)
			if err := v.withoutDamaged(nil, err); err != nil {
				return err
			}
			if part != nil {
				parts = append(parts, part)
			}
		}
	}
	v.blocks = slices.Concat(parts, v.blocks)
	return v.memory.Check()
}

func (r *viewReader) profiles(chunks []weightedChunk, use func(*Samples) error) error {
	rest, err := r.totals(chunks, use)
	if err != nil {
		return err
	}
	return r.rows(rest, use)
}

// totals reads the totals of the profiles of which nothing else is wanted, and returns the others.
func (r *viewReader) totals(chunks []weightedChunk, use func(*Samples) error) (rest []weightedChunk, err error) {
	want := r.query.Want
	var value [1]int64
	for i := range chunks {
		w := &chunks[i]
		if want.Stacks || want.Attributes && w.chunk.flags&hasAttributes != 0 || want.Links && w.chunk.flags&hasLinks != 0 {
			rest = append(rest, *w)
			continue
		}
		r.begin(w)
		value[0] = w.chunk.total
		r.out.Values, r.out.Stacks, r.out.Attributes, r.out.Links = value[:], nil, nil, nil
		if err := use(&r.out); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// NameTree merges the samples of one or two queries into a tree of the names of functions. keeps choose among their samples; nil keeps all.
func (s *Querier) NameTree(ctx context.Context, queries []*Query, keeps []func(samples *Samples, row int) bool) (tree *Tree, err error) {
	err = queries[0].Memory.fitted(func(parts int) (err error) {
		b := newTreeBuilder(queries[0].Memory)
		b.namesOnly, b.parts = true, parts
		for side, q := range queries {
			if len(q.Only) == 0 {
				continue
			}
			if _, err := s.addTo(ctx, b, q, keeps[side], side); err != nil {
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
	out.Stacks, out.Attributes, out.Links, out.Values, out.Weight = nil, nil, nil, nil, 1
	for i := range s.Values {
		if keep(s, i) {
			out.Stacks, out.Values = append(out.Stacks, at32(s.Stacks, i)), append(out.Values, s.Values[i]*int64(s.Weight))
		}
	}
	return &out
}

// NewQuery returns a query of the profiles of series whose time lies in [from, until). Its memory comes on top of what the meter has.
func NewQuery(ctx context.Context, meter *size.Meter, only []Series, from, until int64, want Want) *Query {
	m := newMemory(ctx, meter)
	m.used = m.meter.Level()
	m.reserved = m.used
	return &Query{Selection: Selection{From: from, Until: until, Meter: meter}, Only: only, Want: want, Memory: m}
}
