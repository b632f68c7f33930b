// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

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
			return r.memory.Grow(2 * weightedProfileBytes * len(batch))
		}
		_, rest, err := r.divide(p, batch, use)
		for _, w := range rest {
			chunks = append(chunks, *w)
		}
		return cmp.Or(err, r.memory.Grow(2*weightedProfileBytes*len(rest)))
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
	if err := r.memory.Grow(engineChunkBytes * len(chunks)); err != nil {
		return err
	}
	q := r.engineQuery(chunks, r.query.Want)
	if q.TimesOnly = r.query.TimedOnly; q.TimesOnly {
		q.IsTimed = true
	}
	rows := engineRows{
		engineReader: r, query: q, used: r.block.dict.MemoryBytes(), columns: map[engineKey]*engineColumns{},
		wanted: map[EngineID]int32{},
	}
	if err := r.engine.Rows(r.ctx, q, rows.add); err != nil {
		return err
	}
	if err := r.stacks(q, rows.wanted); err != nil {
		return err
	}
	return rows.each(chunks, use)
}

// engineRows are the rows of a query, by what they have in common.
type engineRows struct {
	*engineReader
	query   *EngineQuery
	columns map[engineKey]*engineColumns
	order   []engineKey
	// wanted are the stacks.
	wanted map[EngineID]int32
	// used is the memory of the dictionary.
	used int
}

func (e *engineRows) add(row *EngineRow) error {
	want, dict := e.viewReader.query.Want, e.block.dict
	key := engineKey{group: e.groupOf(row), series: row.Series, into: row.Into, timed: row.Time != 0}
	c := e.columns[key]
	if c == nil {
		c = &engineColumns{}
		e.columns[key] = c
		e.order = append(e.order, key)
	}
	if want.Stacks {
		c.stacks = append(c.stacks, row.Stack)
		if _, ok := e.wanted[row.Stack]; !ok {
			e.wanted[row.Stack] = 0
			_ = e.memory.Grow(2 * cacheBytes)
		}
	}
	if want.Attributes {
		var set []int32
		for _, a := range row.Attributes {
			set = append(set, e.block.attribute(a))
		}
		c.attributes = append(c.attributes, int32(dict.AttributeSets.Intern(set)))
	}
	if want.Links {
		link, _ := dictionary.ParseLink(row.Trace, row.Span)
		c.links = append(c.links, int32(dict.Links.Intern(link)))
	}
	now := dict.MemoryBytes()
	if err := e.memory.Grow(now - e.used); err != nil {
		return err
	}
	e.used = now
	c.times, c.counts = append(c.times, row.Time), append(c.counts, row.Samples)
	if e.query.IsFractional {
		c.fractions = append(c.fractions, row.Fraction)
	} else {
		c.values = append(c.values, row.Value)
	}
	return e.memory.Grow(rowBytes)
}

// each calls use with the rows that have a key, for each key.
func (e *engineRows) each(chunks []weightedProfile, use func(*Samples) error) error {
	want := e.viewReader.query.Want
	bySeries := map[EngineID]*model.BlockSeries{}
	for i := range chunks {
		bySeries[idOf(chunks[i].series)] = chunks[i].series
	}
	slices.SortStableFunc(e.order, func(a, b engineKey) int {
		return cmp.Or(cmp.Compare(a.group, b.group), slices.Compare(a.series[:], b.series[:]), cmp.Compare(a.into, b.into))
	})
	for _, key := range e.order {
		c, out := e.columns[key], &e.out
		*out = Samples{
			Dict: e.block.dict, Type: out.Type, Group: e.groups.name(key.group), Weight: 1, IsTimed: want.Times && key.timed,
			Attributes: c.attributes, Links: c.links, Values: c.values, Fractions: c.fractions, Time: key.into,
		}
		if sr := bySeries[key.series]; sr != nil {
			out.Resource, out.Profile, out.Series = sr.Resource, sr.Attributes, e.only[sr.ID]
		}
		if out.IsTimed {
			out.Times = c.times
		}
		if want.Stacks {
			out.Stacks = make([]int32, len(c.stacks))
			for i, id := range c.stacks {
				out.Stacks[i] = e.wanted[id]
			}
		}
		var err error
		if want.isCount() {
			err = c.eachCount(out, use)
		} else {
			err = use(out)
		}
		if err != nil {
			return err
		}
	}
	return e.memory.Check()
}

// eachCount calls use with the number of samples of each set of attributes.
func (c *engineColumns) eachCount(out *Samples, use func(*Samples) error) error {
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
	return nil
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
		return r.memory.Grow(dict.MemoryBytes() - before)
	})
}

// line adds a frame as a line, if it has a function.
func (r *engineReader) line(lines []dictionary.Line, f EngineFrame) []dictionary.Line {
	if f.Function == "" && f.File == "" && f.Line == 0 {
		return lines
	}
	strs := &r.block.dict.Strings
	function := r.block.dict.Functions.Intern(dictionary.Function{Name: strs.Intern(f.Function),
		Filename: strs.Intern(f.File)})
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
		byTime[at{idOf(w.series), w.KeptAt()}] = w
	}
	if err := s.memory.Grow(engineChunkBytes * len(list)); err != nil {
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
		return s.memory.Grow(2 * cacheBytes)
	})
	return sums, err
}
