// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// engineQuery returns the query of chunks, of which there is at least one.
func (r *engineReader) engineQuery(chunks []weightedProfile, want Want) *EngineQuery {
	e, sel := r.block, r.sel
	first := chunks[0].series
	q := &EngineQuery{
		Service: first.Service, Type: first.Type, GroupBy: sel.GroupBy, Want: want,
		CutFrom: sel.From, CutUntil: sel.Until, From: math.MaxInt64, IsListed: want.Profiles || r.query.Only != nil ||
			r.query.TimedOnly || r.rules[r.out.Type].isTime,
	}
	for _, k := range r.filter.keys {
		q.Filters = append(q.Filters, EngineFilter{k.name, k.values})
	}
	for i := range chunks {
		w := &chunks[i]
		q.IsTimed = q.IsTimed || w.Flags&model.HasTimestamps != 0
		q.IsListed = q.IsListed || w.Values != kind.Delta
		q.IsFractional = q.IsFractional || w.weight != math.Trunc(w.weight)
	}
	if !r.query.TimedOnly { // of observations with times of all profiles, the series decide
		q.Types = e.typesOf(first)
	}
	before := map[*model.BlockSeries]map[int64]*model.Profile{}
	chosen := map[EngineChosen]float64{} // by all but its coefficient
	add := func(w *weightedProfile, of *model.Profile, weight float64) {
		q.From, q.Until = min(q.From, of.Time), max(q.Until, of.Time)
		group, same := r.groups.ofSeries(sel, r.filter, w.series)
		if !same {
			group = r.otherGroup(w.series)
		}
		c := EngineChosen{Series: idOf(w.series), Group: int32(group), Required: r.filter.required(w.series)}
		if q.IsListed {
			if c.Time = of.Time; want.Profiles {
				c.Into = w.KeptAt()
			}
		} else {
			weight = 0
		}
		chosen[c] += weight
	}
	for i := range chunks {
		w := &chunks[i]
		if want.isCount() {
			add(w, &w.Profile, 1)
			continue
		}
		add(w, &w.Profile, w.weight)
		if w.Values == kind.Cumulative && w.Flags&(model.IsBaseline|model.IsReset) == 0 {
			if before[w.series] == nil {
				before[w.series] = e.before(w.series)
			}
			add(w, before[w.series][w.End], -w.weight)
		}
	}
	for c, weight := range chosen {
		if c.Coefficient = weight; weight != 0 || !q.IsListed {
			q.Chosen = append(q.Chosen, c)
		}
	}
	slices.SortFunc(q.Chosen, func(a, b EngineChosen) int {
		return cmp.Or(slices.Compare(a.Series[:], b.Series[:]), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Into, b.Into))
	})
	if !q.IsListed {
		q.WholeFrom, q.WholeUntil = r.wholeHours(q, first)
		if r.isAll(q, first) {
			q.Chosen = nil
		}
	}
	return q
}

// before returns the profiles of a series before others, by the ends of these.
func (e *engineBlock) before(sr *model.BlockSeries) map[int64]*model.Profile {
	i := slices.IndexFunc(e.series, func(in series) bool { return in.ID == sr.ID })
	list, before := e.series[i].chunks, map[int64]*model.Profile{}
	for k := 1; k < len(list); k++ {
		before[list[k].End] = &list[k-1].Profile
	}
	return before
}

// typesOf returns the types of a series.
func (e *engineBlock) typesOf(sr *model.BlockSeries) (types []EngineType) {
	for i := range e.types {
		if t := &e.types[i]; t.Service == sr.Service && t.Type == sr.Type && t.profile() == sr.Profile {
			types = append(types, *t)
		}
	}
	return types
}

// wholeHours returns the bounds of the hours of a query of series in which no profile of its type reaches beyond what
// is selected.
func (r *engineReader) wholeHours(q *EngineQuery, of *model.BlockSeries) (from, until int64) {
	const hour = int64(time.Hour)
	before := func(t int64) int64 { return t - (t%hour+hour)%hour }
	// Profiles outside of these are not listed.
	from, until = q.From, q.Until+1
	if q.CutFrom != 0 {
		from = q.CutFrom
	}
	if q.CutUntil != 0 {
		until = q.CutUntil
	}
	from, until = before(from+hour-1), before(until)
	for i := range r.block.series {
		sr := &r.block.series[i]
		if !isOfType(&sr.BlockSeries, of) {
			continue
		}
		for k := range sr.chunks {
			c := &sr.chunks[k]
			switch {
			case c.Start < q.CutFrom:
				from = max(from, before(c.Time)+hour)
			case q.CutUntil != 0 && (c.End > q.CutUntil || c.Start == q.CutUntil):
				until = min(until, before(c.Time))
			}
		}
	}
	return from, max(from, until)
}

// isOfType reports whether a series has profiles, and those have the same name and sample type as those of another one
// of its service.
func isOfType(sr, other *model.BlockSeries) bool {
	return sr.Profiles > 0 && sr.Profile == other.Profile && sr.Type == other.Type
}

// isAll reports whether a query of series is one of all series of its type, which count alike.
func (r *engineReader) isAll(q *EngineQuery, of *model.BlockSeries) bool {
	all := 0
	for i := range r.block.series {
		if isOfType(&r.block.series[i].BlockSeries, of) {
			all++
		}
	}
	return len(q.Chosen) == all && !slices.ContainsFunc(q.Chosen, func(c EngineChosen) bool {
		return c.Group != 0 || c.Required != 0
	})
}

func idOf(sr *model.BlockSeries) (id EngineID) {
	copy(id[:], sr.ID[:])
	return id
}
