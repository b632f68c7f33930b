// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// EngineQuery selects samples that an engine adds up. Samples are equal if they do not differ in what is wanted.
type EngineQuery struct {
	Service string
	// Types are those of the samples, which all have one sample type; nil means that Chosen decides.
	Types []EngineType
	Type  SampleType
	// From and Until are the times of the first and of the last profile.
	From, Until int64
	// Chosen are series, or profiles if IsListed, and how they count. If it is empty all series count.
	Chosen   []EngineChosen
	IsListed bool
	// CutFrom and CutUntil select observations that have times. If the profiles are not listed, each of the others counts by the part of
	// its time that lies there. 0 means no bound.
	CutFrom, CutUntil int64
	// WholeFrom and WholeUntil are the bounds of hours in which all profiles count as a whole, so that an engine can take them from sums by
	// hour, if it has some of what is wanted. They are equal if there are none.
	WholeFrom, WholeUntil int64
	// IsTimed reports that some of the profiles have observations with times. TimesOnly leaves out the others.
	IsTimed, TimesOnly bool
	// Filters are attributes that samples must have, as far as EngineChosen.Required has their bits.
	Filters []EngineFilter
	// GroupBy is the key of an attribute of samples, if EngineChosen.Group is negative.
	GroupBy string
	Want    Want
	// IsFractional makes values float64, otherwise they are int64.
	IsFractional bool
}

// EngineChosen is a series, or a profile, and how it counts.
type EngineChosen struct {
	Series EngineID
	// Time is that of the profile. Into is the time of the profile for which it counts: totals count for the next one, too.
	Time, Into  int64
	Coefficient float64
	// Group is that of its samples. If it is negative, samples with an attribute of the key GroupBy are of OwnGroup
	// instead.
	Group    int32
	Required uint64
}

// OwnGroup is the group of samples that have an attribute of the key EngineQuery.GroupBy themselves.
const OwnGroup = -1

// EngineFilter is a key and the values of which a sample must have one.
type EngineFilter struct {
	Key    string
	Values []string
}

// EngineRow is a sum of samples. It has what is wanted, and otherwise zeros.
type EngineRow struct {
	Group int32
	// GroupName is the value of the attribute that divides the answer, if Group is OwnGroup.
	GroupName  string
	Series     EngineID
	Into       int64
	Stack      EngineID
	Attributes []Attribute
	// Trace and Span are hexadecimal.
	Trace, Span string
	// Time is that of the observation; 0 if it has none.
	Time int64
	// Samples is the number of observations.
	Samples  int64
	Value    int64
	Fraction float64
}

// EngineStack is a stack, the leaf first. Frames with one address follow each other from the innermost inlined one.
type EngineStack struct {
	ID     EngineID
	Frames []EngineFrame
}

// EngineFrame is a line of a stack.
type EngineFrame struct {
	Function, File, Mapping string
	Line                    int64
	Address                 uint64
}

type engineReader struct {
	*viewReader
	ctx    context.Context //nolint:containedctx // it is that of the query, as its Memory's
	engine Engine
	block  *engineBlock
	// others are the groups of samples without an attribute of their own, in series that do not decide: the first one
	// is -2 in a query.
	others []string
}

func (r *engineReader) Read(use func(*Samples) error) error {
	return r.eachType(true, func(p *part, of []selectedSeries) error { return r.readType(p, of, use) })
}

// readType reads the series of one type.
func (r *engineReader) readType(p *part, list []selectedSeries, use func(*Samples) error) error {
	typ := list[0].typ
	r.out = Samples{Type: typ, Weight: 1}
	var chunks []weightedProfile
	want := r.query.Want
	err := r.eachBatch(p, list, func(batch []weightedProfile) error {
		r.see(typ, batch)
		if !want.Profiles {
			chunks = append(chunks, batch...)
			return r.memory.Take(2 * weightedProfileBytes * len(batch))
		}
		_, rest, err := r.divide(p, batch, use)
		for _, w := range rest {
			chunks = append(chunks, *w)
		}
		return cmp.Or(err, r.memory.Take(2*weightedProfileBytes*len(rest)))
	})
	if err != nil {
		return err
	}
	for of := range runs(chunks, func(a, b *weightedProfile) bool { return a.series.Service == b.series.Service }) {
		if err := r.read(of, use); err != nil {
			return err
		}
	}
	return nil
}

// engineQuery returns the query of chunks, of which there is at least one.
func (r *engineReader) engineQuery(chunks []weightedProfile, want Want) *EngineQuery {
	e, sel := r.block, r.sel
	first := chunks[0].series
	q := &EngineQuery{
		Service: first.Service, Type: first.Type, GroupBy: sel.GroupBy, Want: want,
		CutFrom: sel.From, CutUntil: sel.Until, From: math.MaxInt64, IsListed: want.Profiles || r.query.Only != nil || r.query.TimedOnly || r.rules[r.out.Type].isTime,
	}
	for _, k := range r.filter.keys {
		q.Filters = append(q.Filters, EngineFilter{k.name, k.values})
	}
	for i := range chunks {
		w := &chunks[i]
		q.IsTimed = q.IsTimed || w.Flags&hasTimestamps != 0
		q.IsListed = q.IsListed || w.Values != kind.Delta
		q.IsFractional = q.IsFractional || w.weight != math.Trunc(w.weight)
	}
	for i := range e.types {
		t := &e.types[i]
		// Of observations with times of all profiles, the series decide.
		if t.Service == q.Service && t.Type == q.Type && !r.query.TimedOnly && t.profile() == first.Profile {
			q.Types = append(q.Types, *t)
		}
	}
	before := map[*BlockSeries]map[int64]*Profile{}
	chosen := map[EngineChosen]float64{} // by all but its coefficient
	add := func(w *weightedProfile, of *Profile, weight float64) {
		q.From, q.Until = min(q.From, of.Time), max(q.Until, of.Time)
		group, same := r.groups.ofSeries(sel, r.filter, w.series)
		if !same {
			group = r.otherGroup(w.series)
		}
		c := EngineChosen{Series: idOf(w.series), Group: int32(group), Required: r.filter.required(w.series)}
		if q.IsListed {
			if c.Time = of.Time; want.Profiles {
				c.Into = w.profileTime()
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
		if w.Values == kind.Cumulative && w.Flags&(isBaseline|isReset) == 0 {
			if before[w.series] == nil {
				before[w.series] = map[int64]*Profile{}
				i := slices.IndexFunc(e.series, func(sr series) bool { return sr.ID == w.series.ID })
				list := e.series[i].chunks
				for k := 1; k < len(list); k++ {
					before[w.series][list[k].End] = &list[k-1].Profile
				}
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

// wholeHours returns the bounds of the hours of a query of series in which no profile of its type reaches beyond what is selected.
func (r *engineReader) wholeHours(q *EngineQuery, of *BlockSeries) (from, until int64) {
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
		if !sr.isOfType(of) {
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

// isOfType reports whether a series has profiles, and those have the same name and sample type as those of another one of its service.
func (sr *BlockSeries) isOfType(other *BlockSeries) bool {
	return sr.Profiles > 0 && sr.Profile == other.Profile && sr.Type == other.Type
}

// isAll reports whether a query of series is one of all series of its type, which count alike.
func (r *engineReader) isAll(q *EngineQuery, of *BlockSeries) bool {
	all := 0
	for i := range r.block.series {
		if r.block.series[i].isOfType(of) {
			all++
		}
	}
	return len(q.Chosen) == all && !slices.ContainsFunc(q.Chosen, func(c EngineChosen) bool { return c.Group != 0 || c.Required != 0 })
}

func idOf(sr *BlockSeries) (id EngineID) {
	copy(id[:], sr.ID[:])
	return id
}

// engineKey is what rows have in common that are one call of use.
type engineKey struct {
	group  int
	series EngineID
	into   int64
	timed  bool
}

// engineColumns are rows of one call.
type engineColumns struct {
	stacks                []EngineID
	attributes, links     []int32
	times, values, counts []int64
	fractions             []float64
}

// engineChunkBytes is what a profile takes in a query that names it, and in the request: totals are there twice.
const engineChunkBytes = 512

func (r *engineReader) read(chunks []weightedProfile, use func(*Samples) error) error {
	want := r.query.Want
	if err := r.memory.Take(engineChunkBytes * len(chunks)); err != nil {
		return err
	}
	q := r.engineQuery(chunks, want)
	dict := r.block.dict
	used := dict.MemoryBytes()
	if q.TimesOnly = r.query.TimedOnly; q.TimesOnly {
		q.IsTimed = true
	}
	columns := map[engineKey]*engineColumns{}
	var order []engineKey
	wanted := map[EngineID]int32{}
	err := r.engine.Rows(r.ctx, q, func(row *EngineRow) error {
		key := engineKey{group: r.groupOf(row), series: row.Series, into: row.Into, timed: row.Time != 0}
		c := columns[key]
		if c == nil {
			c = &engineColumns{}
			columns[key] = c
			order = append(order, key)
		}
		if want.Stacks {
			c.stacks = append(c.stacks, row.Stack)
			if _, ok := wanted[row.Stack]; !ok {
				wanted[row.Stack] = 0
				_ = r.memory.Take(2 * cacheBytes)
			}
		}
		if want.Attributes {
			var set []int32
			for _, a := range row.Attributes {
				set = append(set, r.block.attribute(a))
			}
			c.attributes = append(c.attributes, int32(dict.AttributeSets.Intern(set)))
		}
		if want.Links {
			link, _ := dictionary.ParseLink(row.Trace, row.Span)
			c.links = append(c.links, int32(dict.Links.Intern(link)))
		}
		now := dict.MemoryBytes()
		if err := r.memory.Take(now - used); err != nil {
			return err
		}
		used = now
		c.times, c.counts = append(c.times, row.Time), append(c.counts, row.Samples)
		if q.IsFractional {
			c.fractions = append(c.fractions, row.Fraction)
		} else {
			c.values = append(c.values, row.Value)
		}
		return r.memory.Take(rowBytes)
	})
	if err != nil {
		return err
	}
	if err := r.stacks(q, wanted); err != nil {
		return err
	}
	bySeries := map[EngineID]*BlockSeries{}
	only := map[EngineID]int{}
	for i := range chunks {
		id := idOf(chunks[i].series)
		bySeries[id], only[id] = chunks[i].series, r.only[chunks[i].series.ID]
	}
	slices.SortStableFunc(order, func(a, b engineKey) int {
		return cmp.Or(cmp.Compare(a.group, b.group), slices.Compare(a.series[:], b.series[:]), cmp.Compare(a.into, b.into))
	})
	for _, key := range order {
		c := columns[key]
		out := &r.out
		*out = Samples{
			Dict: dict, Type: out.Type, Group: r.groups.name(key.group), Weight: 1, IsTimed: want.Times && key.timed,
			Attributes: c.attributes, Links: c.links, Values: c.values, Fractions: c.fractions, Time: key.into,
		}
		if sr := bySeries[key.series]; sr != nil {
			out.Resource, out.Profile, out.Series = sr.Resource, sr.Attributes, only[key.series]
		}
		if out.IsTimed {
			out.Times = c.times
		}
		if want.Stacks {
			out.Stacks = make([]int32, len(c.stacks))
			for i, id := range c.stacks {
				out.Stacks[i] = wanted[id]
			}
		}
		if want.isCount() {
			for i := range c.counts {
				one := *out
				one.Count, one.Values, one.Fractions = int(c.counts[i]), nil, nil
				if c.attributes != nil {
					one.Attributes = c.attributes[i : i+1]
				}
				if err := use(&one); err != nil {
					return err
				}
			}
			continue
		}
		if err := use(out); err != nil {
			return err
		}
	}
	return r.memory.Check()
}

// isCount reports whether samples are counted by their attributes.
func (w Want) isCount() bool { return w.Series && !w.Stacks && !w.Times && !w.Profiles }

func (g *groups) name(i int) string {
	if i >= len(g.names) {
		return ""
	}
	return g.names[i]
}

// stacks adds stacks to the block's dictionary, and sets their indices.
func (r *engineReader) stacks(q *EngineQuery, wanted map[EngineID]int32) error {
	if len(wanted) == 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(wanted))
	dict := r.block.dict
	var lines []dictionary.Line
	var locations []int32
	return r.engine.Stacks(r.ctx, q.Service, q.From, q.Until+1, ids, func(s *EngineStack) error {
		before := dict.MemoryBytes()
		locations = locations[:0]
		for i := 0; i < len(s.Frames); {
			f := s.Frames[i]
			l := dictionary.Location{Address: f.Address}
			if f.Mapping != "" {
				l.Mapping = dict.Mappings.Intern(dictionary.Mapping{Filename: dict.Strings.Intern(f.Mapping)})
			}
			lines = lines[:0]
			for lines = r.line(lines, f); ; lines = r.line(lines, s.Frames[i]) {
				i++
				// Frames of one address are inlined calls, or, if one function comes again, a recursive one.
				if f.Address == 0 || i == len(s.Frames) || s.Frames[i].Address != f.Address || s.Frames[i].Mapping != f.Mapping ||
					s.Frames[i].Function == f.Function {
					break
				}
			}
			locations = append(locations, int32(dict.Locations.Intern(l, lines)))
		}
		if _, ok := wanted[s.ID]; ok {
			wanted[s.ID] = int32(dict.Stacks.Intern(locations))
		}
		return r.memory.Take(dict.MemoryBytes() - before)
	})
}

// line adds a frame as a line, if it has a function.
func (r *engineReader) line(lines []dictionary.Line, f EngineFrame) []dictionary.Line {
	if f.Function == "" && f.File == "" && f.Line == 0 {
		return lines
	}
	strs := &r.block.dict.Strings
	function := r.block.dict.Functions.Intern(dictionary.Function{Name: strs.Intern(f.Function), Filename: strs.Intern(f.File)})
	return append(lines, dictionary.Line{Function: function, Line: max(f.Line, 0)})
}

// byGroup returns the values of the profiles that do not count as a whole, by group.
func (r *engineReader) byGroup(s *scan, list []*weightedProfile) (profileSums, error) {
	sums := profileSums{}
	if len(list) == 0 {
		return sums, nil
	}
	type at struct {
		series EngineID
		into   int64
	}
	byTime := map[at]*weightedProfile{}
	profiles := make([]weightedProfile, len(list))
	for i, w := range list {
		profiles[i] = *w
		profiles[i].weight = 1
		byTime[at{idOf(w.series), w.profileTime()}] = w
	}
	if err := s.memory.Take(engineChunkBytes * len(list)); err != nil {
		return nil, err
	}
	of := &engineReader{viewReader: &viewReader{scan: s}, ctx: r.ctx, engine: r.engine, block: r.block}
	q := of.engineQuery(profiles, Want{Profiles: true, Series: true})
	err := r.engine.Rows(r.ctx, q, func(row *EngineRow) error {
		w := byTime[at{row.Series, row.Into}]
		if w == nil {
			return nil
		}
		sums.add(w, of.groupOf(row), float64(row.Value))
		return s.memory.Take(2 * cacheBytes)
	})
	return sums, err
}
