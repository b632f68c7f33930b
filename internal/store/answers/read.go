// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file reads the samples of a query.

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
	selected.scan, selected.latest = s, newNewest(v.Memory)
	selected.durations, selected.counts = make([]int64, len(types)), make([]int, len(types))
	selected.ints = &sums[int64]{scan: s, set: func(out *Samples, values []int64) { out.Values = values }}
	selected.floats = &sums[float64]{scan: s, set: func(out *Samples, values []float64) { out.Fractions = values }}
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
	list, err := v.profiles(q.Service, "")
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

// Close ends the reading.
func (r *Selected) Close() { r.scan.view.Release() }

// Read calls use with all samples, part by part: dictionaries are not the same in all parts.
func (r *Selected) Read(use func(*Samples) error) error {
	want := r.scan.query.Want
	// The total of a profile is beside it.
	withDictionary := r.scan.only == nil || want.Stacks || want.Attributes || want.Links || want.Series || !want.Profiles
	if keep := r.scan.query.Keep; keep != nil {
		all := use
		use = func(s *Samples) error { return all(s.kept(keep)) }
	}
	err := r.scan.eachPart(withDictionary, func(of []selectedSeries) error {
		if err := r.readType(of, use); err != nil {
			return err
		}
		return r.latest.endPart(&r.scan.part)
	})
	for i := range r.durations {
		r.Duration, r.Count = max(r.Duration, r.durations[i]), max(r.Count, r.counts[i])
	}
	r.Time, r.Newest = r.latest.time, r.latest.newest()
	return err
}

// readType reads the series of one type that the part has.
func (r *Selected) readType(of []selectedSeries, use func(*Samples) error) error {
	s, typ := r.scan, of[0].typ
	r.out = Samples{Type: typ, Weight: 1}
	sum := r.ints
	if s.rules[typ].isFractional {
		sum = r.floats
	}
	var summed, rest []*weightedProfile
	err := s.eachBatch(of, func(batch []weightedProfile) error {
		r.describe(typ, batch)
		summed, rest = summed[:0], rest[:0]
		for i := range batch {
			switch w := &batch[i]; r.wayOf(w) {
			case byTotal:
				r.begin(w)
				r.total[0], r.count[0] = w.Total, int64(w.Samples)
				r.out.Columns = model.Columns{Values: r.total[:], Counts: r.count[:]}
				if err := use(&r.out); err != nil {
					return err
				}
			case bySum:
				summed = append(summed, w)
			case byRow:
				rest = append(rest, w)
			}
		}
		if err := s.samples(summed, model.ColumnsWanted{}, sum.add); err != nil {
			return err
		}
		return r.readRows(rest, use)
	})
	if err != nil {
		return err
	}
	return sum.each(&r.out, use)
}

// describe adds profiles of a type to the description.
func (r *Selected) describe(typ int, list []weightedProfile) {
	for i := range list {
		w := &list[i]
		if w.weight <= 0 && r.scan.only == nil {
			continue
		}
		r.durations[typ] += w.Duration
		r.counts[typ]++
		at := w.Time
		if r.scan.only != nil {
			at = w.KeptAt()
		}
		r.latest.add(w, at)
	}
}

// way is how a profile is read.
type way int

const (
	byRow   way = iota // its samples one by one
	bySum              // the sums of its samples and those of others
	byTotal            // its total and the number of its samples alone
)

// wayOf returns the cheapest way to read what is wanted of a profile.
func (r *Selected) wayOf(w *weightedProfile) way {
	want, has := r.scan.query.Want, func(flags model.Flags) bool { return w.Flags&flags != 0 }
	switch {
	case want.Profiles && !want.Stacks && !(want.Attributes && has(model.HasAttributes)) &&
		!(want.Links && has(model.HasLinks)), want.isCount() && !has(model.HasAttributes):
		return byTotal
	case want.Profiles || want.isCount() || want.Series || r.scan.query.TimedOnly:
		return byRow
	case !want.Attributes && !want.Links && !want.Times:
		return bySum
	case has(model.HasAttributes|model.HasLinks) || want.Times && has(model.HasTimestamps):
		return byRow
	}
	// A single profile keeps the order of its samples, and those whose value is 0.
	if r.scan.whole(w) && r.scan.rules[r.out.Type].counted().profiles > 1 {
		return bySum
	}
	return byRow
}

// begin sets what samples of a profile have in common.
func (r *Selected) begin(w *weightedProfile) {
	r.out.Dict = r.scan.part.Dict()
	r.out.Resource, r.out.Profile, r.out.Weight = w.series.Resource, w.series.Attributes, w.weight
	r.out.Series, r.out.Time, r.out.Start, r.out.End = r.scan.only[w.series.ID], w.KeptAt(), w.Start, w.end
	r.out.IsTimed = r.scan.query.Want.Times && w.Flags&model.HasTimestamps != 0
}

// readRows uses samples one by one.
func (r *Selected) readRows(list []*weightedProfile, use func(*Samples) error) error {
	want := r.scan.query.Want
	return r.scan.samples(list, want.columns(), func(w *weightedProfile, _ int, c *model.Columns) error {
		r.begin(w)
		r.out.Columns = *c
		if !want.Stacks {
			r.out.Stacks = nil
		}
		if !want.Attributes {
			r.out.Attributes = nil
		}
		if !r.out.IsTimed {
			r.out.Timestamps = nil
		}
		return use(&r.out)
	})
}
