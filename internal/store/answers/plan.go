// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file goes over the profiles of a query without their samples, before these are read: how a profile counts can
// depend on all others.

// tally describes profiles.
type tally struct {
	profiles, samples int
	// first is the start of the first, last the end of the last of them. begins is when the first one begins to count.
	first, last, begins int64
}

func (t *tally) add(c *model.Profile) {
	if t.profiles == 0 {
		t.first, t.last, t.begins = c.First(), c.Last(), c.Start
	}
	t.profiles++
	t.samples += int(c.Samples)
	t.first, t.last, t.begins = min(t.first, c.First()), max(t.last, c.Last()), min(t.begins, c.Start)
}

// rule is how the profiles of one type count.
type rule struct {
	// others are those that are no baselines. Baselines count only if there are no others: they are older than the
	// selection.
	others, baselines tally
	// states is the time over which states are averaged: that for which any holds whose series can be selected. Which
	// samples it has does not matter: in the next block, the series may have some that are selected. overridden is that of
	// series which have another value of a selected attribute, and samples with theirs; it counts if there are no others.
	states, overridden held
	// isFractional reports that a weight is not a whole number.
	isFractional bool
	// timeType is that of the time for which a sample stands, if the type counts samples, and periods are the smallest and
	// the largest such time. Samples of different periods count as time: isTime.
	timeType model.SampleType
	periods  [2]int64
	isTime   bool
}

// held is the time for which any state holds. isMixed reports that not all of them hold for all of it.
type held struct {
	from, until    int64
	isSet, isMixed bool
}

func (h *held) add(from, until int64) {
	if !h.isSet {
		*h = held{from: from, until: until, isSet: true}
		return
	}
	h.isMixed = h.isMixed || from != h.from || until != h.until
	h.from, h.until = min(h.from, from), max(h.until, until)
}

// seePeriod adds the period of a profile.
func (r *rule) seePeriod(period int64) {
	if r.others.profiles == 0 {
		r.periods = [2]int64{period, period}
	}
	r.periods[0], r.periods[1] = min(r.periods[0], period), max(r.periods[1], period)
}

// counted describes the profiles that count.
func (r *rule) counted() *tally {
	if r.others.profiles == 0 {
		return &r.baselines
	}
	return &r.others
}

// see adds a selected profile.
func (r *rule) see(sel *model.Selection, w *weightedProfile, isMean bool) {
	from, until, _ := sel.Overlap(w.Start, w.end)
	switch {
	case w.Flags&model.IsBaseline != 0:
		r.baselines.add(&w.Profile)
		return
	case w.Values != kind.Gauge || !isMean:
		r.isFractional = r.isFractional || w.weight != math.Trunc(w.weight)
	case w.series.isOverridden:
		r.overridden.add(from, until)
	default:
		r.states.add(from, until)
	}
	r.others.add(&w.Profile)
}

// end decides what depends on all profiles.
func (r *rule) end() {
	r.isFractional = r.isFractional || r.states.isMixed || r.overridden.isMixed || r.states.isSet && r.overridden.isSet
	if !r.states.isSet {
		r.states = r.overridden
	}
	r.isTime = r.periods[0] > 0 && r.periods[0] < r.periods[1]
}

// plan makes the rules of a scan, and describes what is selected.
func (s *scan) plan() (*Selected, error) {
	out := &Selected{Types: slices.Clone(s.types)}
	for i, t := range s.types {
		if i == 0 {
			out.Values = s.view.values[t]
		}
		if s.only == nil && !s.query.TimedOnly {
			s.rules[i].timeType = s.view.timeTypes[t]
		}
		s.plansPeriods = s.plansPeriods || s.rules[i].timeType != model.SampleType{}
	}
	isMean := s.only == nil && !s.query.LastState
	s.memory.Progress.Begin(s.view.OnDisk)
	err := s.eachPart(len(s.keys) > 0, func(of []selectedSeries) error {
		if of[0].typ == 0 {
			out.Values = model.Shown(of[len(of)-1].Values)
		}
		r := &s.rules[of[0].typ]
		return s.eachBatch(of, func(list []weightedProfile) error {
			for i := range list {
				if r.timeType != (model.SampleType{}) {
					r.seePeriod(s.part.Meta(&list[i].Profile).Period)
				}
				r.see(&s.query.Selection, &list[i], isMean)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range s.rules {
		r := &s.rules[i]
		r.end()
		if out.Samples += r.counted().samples; r.isTime {
			out.Types[i] = r.timeType
		}
	}
	if len(s.rules) > 0 {
		of := s.rules[0].counted()
		out.Type, out.Summary.periods = out.Types[0], s.rules[0].periods
		out.Profiles, out.From, out.Until = of.profiles, of.first, of.last
	}
	return out, nil
}

// countTime makes samples count as the time for which they stand, where that is known.
func (r *Selected) countTime() {
	for i := range r.scan.rules {
		if of := &r.scan.rules[i]; of.periods[0] > 0 {
			of.isTime, r.Types[i] = true, of.timeType
		}
	}
	r.Type = r.Types[0]
}
