// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file reads the samples of a query from a view: Source.Select of a Store.

type viewReader struct {
	*scan
	selected *Selected
	newest   newestProfile
	// durations and counts are the sum of the durations and the number of the profiles of each type.
	durations []int64
	counted   []int
	// out is what Read's callers use, and buffers are its columns if they are no sums.
	out     Samples
	buffers *rowBuffers
}

// rowsPerRead is the most rows of Samples that are no sums.
const rowsPerRead = 512

type rowBuffers struct {
	stacks, attributes, links [rowsPerRead]int32
	times, values             [rowsPerRead]int64
}

// Select begins to read the samples of a selection.
func (s *Store) Select(ctx context.Context, q *Query) (*Selected, error) {
	v := s.view(q.Memory)
	r, err := v.selected(q)
	if err != nil {
		v.release()
		return nil, err
	}
	r.selected.SampleReader = r
	return r.selected, nil
}

// selected plans a query. The caller sets the reader of what it returns.
func (v *view) selected(q *Query) (*viewReader, error) {
	types, err := v.typesOf(q)
	if err != nil {
		return nil, err
	}
	if err := v.memory.Take(ruleBytes * len(types)); err != nil {
		return nil, err
	}
	s := v.scan(q, types)
	if s.keys, err = s.sel.filterKeys(); err != nil {
		return nil, err
	}
	selected, err := s.plan()
	if err != nil {
		return nil, err
	}
	if len(q.Only) > 0 {
		selected.Values = q.Only[0].Values
	}
	s.reads = true
	return &viewReader{
		scan: s, selected: selected, newest: newNewest(v.memory), durations: make([]int64, len(types)), counted: make([]int, len(types)),
	}, nil
}

// typesOf returns the types that a query selects.
func (v *view) typesOf(q *Query) ([]SampleType, error) {
	switch {
	case len(q.Only) > 0:
		return []SampleType{q.Only[0].Type}, nil
	case q.Only != nil:
		return nil, nil
	case !q.TimedOnly || q.Profile != "":
		return v.resolveTypes(&q.Selection, q.allTypes())
	}
	list, err := v.profiles(q.Service, "", func(*ProfileInfo, *listed) {})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: there is no service %q", ErrNothing, Shorten(q.Service))
	}
	var types []SampleType
	for _, p := range list {
		if p.Timestamps && p.Type.is(q.Type) && !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	return types, nil
}

func (r *viewReader) Close() { r.view.release() }

func (r *viewReader) Read(use func(*Samples) error) error {
	want := r.query.Want
	// The total of a profile is beside it.
	withDictionary := r.only == nil || want.Stacks || want.Attributes || want.Links || want.Series || !want.Profiles
	return r.eachType(withDictionary, func(p *part, of []selectedSeries) error { return r.readType(p, of, use) })
}

// eachType calls read with the series of one type of each part.
func (r *viewReader) eachType(withDictionary bool, read func(*part, []selectedSeries) error) error {
	err := r.eachPart(withDictionary, func(p *part) error {
		for of := range runs(p.selected, func(a, b *selectedSeries) bool { return a.typ == b.typ }) {
			if err := read(p, of); err != nil {
				return err
			}
		}
		return r.newest.endBlock(p.block)
	})
	r.describe()
	return err
}

// describe sets what is known when all samples have been read.
func (r *viewReader) describe() {
	out := r.selected
	for i := range r.durations {
		out.Duration, out.Count = max(out.Duration, r.durations[i]), max(out.Count, r.counted[i])
	}
	out.Time, out.Newest = r.newest.time, r.newest.newest()
}

// see adds profiles to the description.
func (r *viewReader) see(typ int, list []weightedChunk) {
	for i := range list {
		w := &list[i]
		if w.weight <= 0 && r.only == nil {
			continue
		}
		r.durations[typ] += w.chunk.duration
		r.counted[typ]++
		at := w.chunk.time
		if r.only != nil {
			at = w.chunk.profileTime()
		}
		r.newest.add(w, at)
	}
}

// readType reads the series of one type that a part has.
func (r *viewReader) readType(p *part, list []selectedSeries, use func(*Samples) error) error {
	typ := list[0].typ
	r.out = Samples{Type: typ, Weight: 1}
	sum := newSums(&r.reader, p.block, r.rules[typ].isFractional)
	err := r.eachBatch(p, list, func(batch []weightedChunk) error {
		r.see(typ, batch)
		plain, rest, err := r.divide(p, batch, use)
		if err == nil && len(plain) > 0 {
			err = sum.add(plain)
		}
		if err == nil && len(rest) > 0 {
			err = r.rows(p, rest, use)
		}
		return err
	})
	if err != nil {
		return err
	}
	return sum.each(&r.out, use)
}

// divide uses the profiles of which no samples are wanted, and returns those of which samples are added up, and the others.
func (r *viewReader) divide(p *part, list []weightedChunk, use func(*Samples) error) (plain, rest []weightedChunk, err error) {
	want := r.query.Want
	switch {
	case want.Profiles:
		rest, err = r.totals(p, list, use)
		return nil, rest, err
	case want.isCount():
		rest, err = r.counts(p, list, use)
		return nil, rest, err
	case want.Series || r.query.TimedOnly:
		return nil, list, nil
	case !want.Attributes && !want.Links && !want.Times:
		return list, nil, nil
	}
	for _, w := range list {
		simple := w.chunk.flags&(hasAttributes|hasLinks) == 0 && (w.chunk.flags&hasTimestamps == 0 || !want.Times)
		// A single profile keeps the order of its samples, and those whose value is 0.
		if _, whole := r.whole(&w); whole && simple && r.rules[r.out.Type].counted().profiles > 1 {
			plain = append(plain, w)
		} else {
			rest = append(rest, w)
		}
	}
	return plain, rest, nil
}

// totals uses the totals of the profiles of which nothing else is wanted, and returns the others.
func (r *viewReader) totals(p *part, list []weightedChunk, use func(*Samples) error) (rest []weightedChunk, err error) {
	want := r.query.Want
	var value [1]int64
	for i := range list {
		w := &list[i]
		if want.Stacks || want.Attributes && w.chunk.flags&hasAttributes != 0 || want.Links && w.chunk.flags&hasLinks != 0 {
			rest = append(rest, *w)
			continue
		}
		r.begin(p, w)
		value[0] = w.chunk.total
		r.out.Values, r.out.Stacks, r.out.Attributes, r.out.Links = value[:], nil, nil, nil
		if err := use(&r.out); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// counts uses the number of samples of profiles without attributes, and returns the others.
func (r *viewReader) counts(p *part, list []weightedChunk, use func(*Samples) error) (rest []weightedChunk, err error) {
	for i := range list {
		w := &list[i]
		if w.chunk.flags&hasAttributes != 0 {
			rest = append(rest, *w)
			continue
		}
		r.begin(p, w)
		r.out.Count = int(w.chunk.samples)
		if err := use(&r.out); err != nil {
			return nil, err
		}
	}
	r.out.Count = 0
	return rest, nil
}

// begin sets what samples of a profile have in common.
func (r *viewReader) begin(p *part, w *weightedChunk) {
	r.out.Dict = p.dict
	r.out.Resource, r.out.Profile, r.out.Weight = w.series.resource, w.series.attributes, w.weight
	r.out.Series, r.out.Time = r.only[w.series.id], w.chunk.profileTime()
	r.out.IsTimed = r.query.Want.Times && w.chunk.flags&hasTimestamps != 0
}

// rows uses samples one by one.
func (r *viewReader) rows(p *part, list []weightedChunk, use func(*Samples) error) error {
	if r.buffers == nil {
		r.buffers = &rowBuffers{} // once: there can be very many types
	}
	want, buffers, n := r.query.Want, r.buffers, 0
	var of *weightedChunk
	var err error
	flush := func() {
		r.out.Values = buffers.values[:n]
		if r.out.Stacks = nil; want.Stacks {
			r.out.Stacks = buffers.stacks[:n]
		}
		if r.out.Attributes = nil; want.Attributes {
			r.out.Attributes = buffers.attributes[:n]
		}
		if r.out.Links = nil; want.Links {
			r.out.Links = buffers.links[:n]
		}
		if r.out.Times = nil; r.out.IsTimed {
			r.out.Times = buffers.times[:n]
		}
		if n > 0 && err == nil {
			err = use(&r.out)
		}
		n = 0
	}
	columns := blockfile.Want{Attributes: want.Attributes, Links: want.Links, Timestamps: want.Times}
	failed := r.observations(p.block, list, columns, func(w *weightedChunk, _ int, row *rows) {
		if of != w {
			flush()
			of = w
			r.begin(p, w)
		}
		buffers.stacks[n], buffers.attributes[n], buffers.links[n] = row.stack, row.attribute, row.link
		buffers.times[n], buffers.values[n] = w.chunk.time+row.timestamp, row.value
		if n++; n == rowsPerRead {
			flush()
		}
	})
	if failed != nil {
		return failed
	}
	flush()
	return err
}
