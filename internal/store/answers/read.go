// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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
	fractions                 [rowsPerRead]float64
}

// selected plans a query.
func (v *View) selected(q *Query) (*Selected, error) {
	types, err := v.typesOf(q)
	if err != nil {
		return nil, err
	}
	if err := v.Memory.Grow(ruleBytes * len(types)); err != nil {
		return nil, err
	}
	s := v.scan(q, types)
	if s.keys, err = filterKeys(s.sel); err != nil {
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
	want := q.Want
	s.apart = apart{want.Profiles, want.Series, model.SumsWanted{
		ColumnsWanted: model.ColumnsWanted{Attributes: want.Attributes, Timestamps: want.Times, Links: want.Links},
		Stacks:        want.Stacks, Counts: want.isCount(),
	}}
	r := &viewReader{
		scan: s, selected: selected, newest: newNewest(v.Memory), durations: make([]int64, len(types)),
		counted: make([]int, len(types)),
	}
	s.blockEnded = r.newest.endMoves
	selected.SampleReader = r
	return selected, nil
}

// typesOf returns the types that a query selects.
func (v *View) typesOf(q *Query) ([]model.SampleType, error) {
	switch {
	case len(q.Only) > 0:
		return []model.SampleType{q.Only[0].Type}, nil
	case q.Only != nil:
		return nil, nil
	case !q.TimedOnly || q.Profile != "":
		return v.resolveTypes(&q.Selection, q.allTypes())
	}
	list, err := v.profiles(q.Service, "", func(*ProfileInfo, *model.BlockSeries) {})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: there is no service %q", model.ErrNothing, model.Shorten(q.Service))
	}
	var types []model.SampleType
	for _, p := range list {
		if p.Timestamps && p.Type.Is(q.Type) && !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	return types, nil
}

func (r *viewReader) Close() { r.view.Release() }

func (r *viewReader) Read(use func(*Samples) error) error {
	want := r.query.Want
	// The total of a profile is beside it.
	withDictionary := r.only == nil || want.Stacks || want.Attributes || want.Links || want.Series || !want.Profiles
	if keep := r.query.Keep; keep != nil {
		all := use
		use = func(s *Samples) error { return all(s.kept(keep)) }
	}
	return r.eachType(withDictionary, func(p *part, of []selectedSeries) error { return r.readType(p, of, use) })
}

// eachType calls read with the series of one type of each part.
func (r *viewReader) eachType(withDictionary bool, read func(*part, []selectedSeries) error) error {
	err := r.eachPart(withDictionary, func(p *part) error {
		for of := range model.Runs(p.selected, func(a, b *selectedSeries) bool { return a.typ == b.typ }) {
			if err := read(p, of); err != nil {
				return err
			}
		}
		return r.newest.endPart(p)
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
func (r *viewReader) see(typ int, list []weightedProfile) {
	for i := range list {
		w := &list[i]
		if w.weight <= 0 && r.only == nil {
			continue
		}
		r.durations[typ] += w.Duration
		r.counted[typ]++
		at := w.Time
		if r.only != nil {
			at = w.KeptAt()
		}
		r.newest.add(w, at)
	}
}

// readType reads the series of one type that a part has.
func (r *viewReader) readType(p *part, list []selectedSeries, use func(*Samples) error) error {
	typ := list[0].typ
	r.out = Samples{Type: typ, Weight: 1}
	sum := newSums(&r.reader, p, r.rules[typ].isFractional)
	err := r.eachBatch(p, list, func(batch []weightedProfile) error {
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

// divide uses the profiles of which no samples are wanted, and returns those of which samples are added up, and the
// others.
func (r *viewReader) divide(
	p *part, list []weightedProfile, use func(*Samples) error,
) (plain, rest []*weightedProfile, err error) {
	for i := range list {
		w := &list[i]
		switch r.wayOf(w) {
		case byTotal:
			err = r.total(p, w, use)
		case byCount:
			err = r.count(p, w, use)
		case bySum:
			plain = append(plain, w)
		case byRow:
			rest = append(rest, w)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return plain, rest, nil
}

// way is how a profile is read.
type way int

const (
	byRow   way = iota // its samples one by one
	bySum              // the sums of its samples and those of others
	byTotal            // its total alone
	byCount            // the number of its samples alone
)

// wayOf returns the cheapest way to read what is wanted of a profile.
func (r *viewReader) wayOf(w *weightedProfile) way {
	want, has := r.query.Want, func(flags model.Flags) bool { return w.Flags&flags != 0 }
	switch {
	case want.Profiles && !want.Stacks && !(want.Attributes && has(model.HasAttributes)) &&
		!(want.Links && has(model.HasLinks)):
		return byTotal
	case want.Profiles:
		return byRow
	case want.isCount() && !has(model.HasAttributes):
		return byCount
	case want.isCount() || want.Series || r.query.TimedOnly:
		return byRow
	case !want.Attributes && !want.Links && !want.Times:
		return bySum
	case has(model.HasAttributes|model.HasLinks) || want.Times && has(model.HasTimestamps):
		return byRow
	}
	// A single profile keeps the order of its samples, and those whose value is 0.
	if _, whole := r.whole(w); whole && r.rules[r.out.Type].counted().profiles > 1 {
		return bySum
	}
	return byRow
}

// total uses the total of a profile of which nothing else is wanted.
func (r *viewReader) total(p *part, w *weightedProfile, use func(*Samples) error) error {
	r.begin(p, w)
	value := [1]int64{w.Total}
	r.out.Values, r.out.Stacks, r.out.Attributes, r.out.Links = value[:], nil, nil, nil
	return use(&r.out)
}

// count uses the number of samples of a profile without attributes.
func (r *viewReader) count(p *part, w *weightedProfile, use func(*Samples) error) error {
	r.begin(p, w)
	r.out.Count = int(w.Samples)
	err := use(&r.out)
	r.out.Count = 0
	return err
}

// begin sets what samples of a profile have in common.
func (r *viewReader) begin(p *part, w *weightedProfile) {
	r.out.Dict = p.Dict()
	r.out.Resource, r.out.Profile, r.out.Weight = w.series.Resource, w.series.Attributes, w.weight
	r.out.Series, r.out.Time, r.out.Start, r.out.End = r.only[w.series.ID], w.KeptAt(), w.Start, w.end
	r.out.IsTimed = r.query.Want.Times && w.Flags&model.HasTimestamps != 0
}

// rows uses samples one by one.
func (r *viewReader) rows(p *part, list []*weightedProfile, use func(*Samples) error) error {
	if r.buffers == nil {
		r.buffers = &rowBuffers{} // once: there can be very many types
	}
	want, buffers, n := r.query.Want, r.buffers, 0
	var of *weightedProfile
	isFractional := false
	flush := func() (err error) {
		r.out.Values, r.out.Fractions = buffers.values[:n], nil
		if isFractional {
			r.out.Values, r.out.Fractions = nil, buffers.fractions[:n]
		}
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
		if n > 0 {
			err = use(&r.out)
		}
		n = 0
		return err
	}
	columns := model.ColumnsWanted{Attributes: want.Attributes, Links: want.Links, Timestamps: want.Times}
	err := r.observations(p, list, columns, func(w *weightedProfile, _ int, c *model.Columns, i int) (err error) {
		if of != w {
			err = flush()
			of, isFractional = w, len(c.Fractions) > 0
			r.begin(p, w)
		}
		buffers.stacks[n], buffers.attributes[n], buffers.links[n] = c.Stacks[i], model.At(c.Attributes, i),
			model.At(c.Links, i)
		buffers.values[n], buffers.times[n] = c.Values[i], w.Time
		if len(c.Timestamps) > 0 {
			buffers.times[n] = c.Timestamps[i]
		}
		if isFractional {
			buffers.fractions[n] = float64(c.Values[i]) + c.Fractions[i]
		}
		if len(c.Counts) > 0 {
			r.out.Count = int(c.Counts[i])
		}
		if n++; n == rowsPerRead || r.out.Count > 0 {
			err = cmp.Or(err, flush())
			r.out.Count = 0
		}
		return err
	})
	err = cmp.Or(err, flush())
	r.out.Fractions = nil
	return err
}
