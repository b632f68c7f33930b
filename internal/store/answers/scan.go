// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"iter"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file is the loop of all queries: eachPart opens one block after the other, eachBatch reads the profiles that
// count of the series of one, some thousand at a time. Nothing of a block stays when the next one is opened, so the
// memory of a query follows from one block and from its answer, not from its range.

// scan is a query over the blocks of a view.
type scan struct {
	view   *View
	query  *Query
	memory *model.Memory
	types  []model.SampleType
	// sel selects samples by their time and attributes, whose keys are keys, and divides them into groups. Query.Only does
	// not. filter is that of the current part.
	sel    *model.Selection
	keys   []filterKey
	groups *groups
	filter *filter
	part   part
	// What is used again: batch has the profiles of eachBatch, together some of them whose samples are read together, and
	// selected the samples of one of which not all are selected.
	batch    []weightedProfile
	together []*weightedProfile
	selected model.Columns
	// byType has the positions in types. only has, for Query.Only, the positions there.
	byType map[model.SampleType]int
	only   map[model.SeriesID]int
	// services are those of the query.
	services []string
	// rules are made by plan, by type.
	rules []rule
	// reads is set while samples are read: profiles then have all fields. plansPeriods is set if they have them before,
	// too.
	reads, plansPeriods bool
}

// part is what a query selects of a service of a block.
type part struct {
	model.Part
	block model.Block
	// resources are the sets of attributes of the resources of the service.
	resources []dictionary.AttributeSetIndex
	selected  []selectedSeries
}

// selectedSeries is a series of a part.
type selectedSeries struct {
	model.BlockSeries
	decision
	typ int
}

// weightedProfile is a profile that counts, by weight, until end. isBetween reports that other blocks have profiles
// between those of its series, which are states, and isPart that others have the same start.
type weightedProfile struct {
	model.Profile
	series    *selectedSeries
	weight    float64
	end       int64
	isBetween bool
	isPart    bool
}

func (v *View) scan(q *Query, types []model.SampleType) *scan {
	s := &scan{
		view: v, query: q, types: types, byType: map[model.SampleType]int{}, services: q.Services(),
		rules: make([]rule, len(types)), sel: &q.Selection, groups: newGroups(v.Memory, ""), memory: v.Memory,
	}
	for i, t := range types {
		s.byType[t] = i
	}
	if q.Only == nil {
		return s
	}
	s.sel, s.only = &model.Selection{}, map[model.SeriesID]int{}
	for i := range q.Only {
		for _, id := range q.Only[i].ids {
			s.only[id] = i
		}
	}
	return s
}

// typeOf returns the position of a series' type, or false if the query does not select the series.
func (s *scan) typeOf(sr *model.BlockSeries) (typ int, ok bool) {
	if s.only != nil {
		_, ok := s.only[sr.ID]
		return 0, ok
	}
	if s.query.Profile != "" && sr.Profile != s.query.Profile || s.query.TimedOnly && !sr.Timestamps {
		return 0, false
	}
	typ, ok = s.byType[sr.Type]
	return typ, ok
}

// eachPart calls use with the parts of all blocks, oldest first, and with the selected series of one type of each.
// Without the dictionary, a part on disk has no attributes, and its samples cannot be read.
func (s *scan) eachPart(withDictionary bool, use func(of []selectedSeries) error) error {
	for i, b := range s.view.Blocks {
		for _, service := range s.services {
			if s.view.damaged[b] {
				break
			}
			err := s.service(b, service, withDictionary, use)
			if err = cmp.Or(s.view.withoutDamaged(err), s.memory.Check()); err != nil {
				return err
			}
		}
		if i < s.view.OnDisk {
			s.memory.Progress.Read(1)
		}
	}
	return nil
}

// service uses the part of a block that a service has.
func (s *scan) service(b model.Block, service string, withDictionary bool,
	use func([]selectedSeries) error) error {
	if start, end, ok := b.Span(service); !ok || !s.reaches(start, end) {
		return nil
	}
	p := &s.part
	*p = part{block: b, resources: p.resources[:0], selected: p.selected[:0]}
	err := b.Series(service, s.memory, func(list []model.BlockSeries) error {
		for i := range list {
			in := &list[i]
			p.resources = append(p.resources, in.Resource)
			if typ, ok := s.typeOf(in); ok && s.wants(in.Start, in.End, in.Total, in.Type.Unit) {
				p.selected = append(p.selected, selectedSeries{BlockSeries: *in, typ: typ})
			}
		}
		return nil
	})
	if err != nil || len(p.selected) == 0 {
		return err
	}
	taken := len(p.selected) * selectedBytes
	defer s.memory.Release(taken)
	if err := s.memory.Grow(taken); err != nil {
		return err
	}
	if p.Part, err = b.Open(service, withDictionary, s.memory); err != nil {
		return err
	}
	defer p.Close()
	sets := p.Dict().AttributeSets.Len()
	for i := range p.selected {
		sr := &p.selected[i]
		if !withDictionary {
			sr.Resource, sr.Attributes = 0, 0
		}
		if sr.IsOutside(sets) {
			return &model.DamagedError{Block: b, Err: model.ErrRange}
		}
	}
	err = s.usePart(use)
	s.memory.Release(s.filter.taken)
	return err
}

// usePart calls use with the series of the part of which the attributes of the selection may match.
func (s *scan) usePart(use func([]selectedSeries) error) error {
	p := &s.part
	s.filter = s.filterOf(p)
	clear(s.groups.sets)
	selected := p.selected[:0]
	for _, in := range p.selected {
		canMatch := false
		if in.decision, canMatch = s.filter.decide(&in.BlockSeries); canMatch {
			if s.reads {
				in.group, in.isGroup = s.filter.groupOf(s.sel, &in.BlockSeries)
			}
			selected = append(selected, in)
		}
	}
	slices.SortStableFunc(selected, func(a, b selectedSeries) int { return cmp.Compare(a.typ, b.typ) })
	for of := range model.Runs(selected, func(a, b *selectedSeries) bool { return a.typ == b.typ }) {
		if err := use(of); err != nil {
			return err
		}
	}
	return nil
}

// allResources returns the sets of attributes of all resources.
func (p *part) allResources() map[dictionary.AttributeSetIndex]bool {
	sets := map[dictionary.AttributeSetIndex]bool{}
	for set := range p.Resources() {
		sets[set] = true
	}
	for _, set := range p.resources {
		sets[set] = true
	}
	return sets
}

// reaches reports whether a time from start to end has a part in that of the query.
func (s *scan) reaches(start, end int64) bool {
	return end >= s.query.From && (s.query.Until == 0 || start < s.query.Until)
}

// wants reports whether a profile that counts from start to end, or any of a series, may be selected.
func (s *scan) wants(start, end, total int64, unit string) bool {
	if s.only != nil {
		return end >= s.query.From
	}
	return s.reaches(start, end) && (s.query.Before == 0 || start-durationOf(total, kind.NanosPer(unit)) < s.query.Before)
}

// rowsPerBatch is the most profiles that are in memory at once, and of how many series the starts are, unless one has
// more.
const rowsPerBatch = 4 << 10

// eachBatch calls use with the profiles that count of series of one type, in their order. They are valid until use
// returns.
func (s *scan) eachBatch(list []selectedSeries, use func([]weightedProfile) error) error {
	n := s.part.batch(list)
	if more := n - cap(s.batch); more > 0 {
		if err := s.memory.Grow(weightedProfileBytes * more); err != nil {
			return err
		}
		s.batch = make([]weightedProfile, 0, n)
	}
	batch := s.batch[:0]
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := cmp.Or(use(batch), s.memory.Check())
		batch = batch[:0]
		return err
	}
	wants := func(in *model.BlockSeries, c *model.Profile) bool {
		return s.wants(c.Start, c.End, c.Total, in.Type.Unit)
	}
	for of := range groupsOf(list) {
		next, err := s.starts(of)
		if err != nil {
			return err
		}
		series := make([]*model.BlockSeries, len(of))
		for i := range of {
			series[i] = &of[i].BlockSeries
		}
		err = s.part.Profiles(series, s.reads || s.plansPeriods, wants, func(in, _ int, c *model.Profile) error {
			batch = append(batch, weightedProfile{
				series: &of[in], Profile: *c, weight: 1, isBetween: next.lists != nil && next.isBetween[in],
			})
			last, after := len(batch)-1, int64(0)
			if after, batch[last].isPart = next.after(in, c); !s.counts(&batch[last], after) {
				batch = batch[:last]
			}
			if len(batch) == n {
				return flush()
			}
			return nil
		})
		s.memory.Release(next.taken)
		if err != nil {
			return err
		}
	}
	return flush()
}

// counts reports whether a profile counts, and sets until when, and its weight. next is the start of the next one of
// its series, or noStart.
func (s *scan) counts(w *weightedProfile, next int64) bool {
	q, r := s.query, &s.rules[w.series.typ]
	if w.end = w.End; w.Values == kind.Gauge {
		w.end = q.Holds(&w.Profile, next)
	}
	switch {
	case w.Values == kind.Gauge && w.End == w.Start: // it was sent again
		return false
	case s.only != nil:
		return s.countsOnly(w)
	case q.TimedOnly && !w.IsTimed():
		return false
	}
	from, until, ok := q.Overlap(w.Start, w.end)
	if !ok || !s.weigh(r, w, until-from, next) {
		return false
	}
	if r.isTime {
		w.weight *= float64(s.part.Meta(&w.Profile).Period)
	}
	return true
}

// countsOnly is counts for Query.Only: a profile counts as a whole, or not.
func (s *scan) countsOnly(w *weightedProfile) bool {
	q, t := s.query, w.KeptAt()
	if w.Flags&model.IsBaseline != 0 || t < q.From || q.Until != 0 && t >= q.Until {
		return false
	}
	if q.Only[s.only[w.series.ID]].TimesPeriod && s.reads {
		w.weight = float64(max(s.part.Meta(&w.Profile).Period, 1))
	}
	return true
}

// weigh sets the weight of a profile by the length of its time that is selected, and reports whether it counts.
func (s *scan) weigh(r *rule, w *weightedProfile, length, next int64) bool {
	q := s.query
	switch {
	case w.Values == kind.Gauge && q.LastState:
		return next == noStart || q.Until != 0 && next >= q.Until
	case w.Values == kind.Gauge:
		if whole := r.states.until - r.states.from; s.reads && whole > 0 {
			w.weight = float64(length) / float64(whole)
		}
	case w.Flags&model.IsBaseline != 0:
		return !s.reads || r.others.profiles == 0
	case !w.IsTimed() && length < w.End-w.Start:
		w.weight = float64(length) / float64(w.End-w.Start)
	}
	return true
}

// batch returns how many profiles of series to read at once: all of them, if the part adds up their samples.
func (p *part) batch(list []selectedSeries) int {
	n := 0
	for i := range list {
		n += list[i].Profiles
	}
	if _, sums := p.Part.(model.Adder); sums {
		return n
	}
	return min(rowsPerBatch, n)
}

// groupsOf returns parts of a list that have rowsPerBatch profiles, or are one series.
func groupsOf(list []selectedSeries) iter.Seq[[]selectedSeries] {
	return func(yield func([]selectedSeries) bool) {
		for len(list) > 0 {
			n, rows := 1, list[0].Profiles
			for n < len(list) && rows+list[n].Profiles <= rowsPerBatch {
				rows += list[n].Profiles
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}
