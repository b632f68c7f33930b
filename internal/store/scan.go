// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file is the loop of all queries: eachPart opens one block after the other, eachBatch reads the profiles that count of the series of
// one, some thousand at a time. Nothing of a block stays when the next one is opened, so the memory of a query follows from one block and
// from its answer, not from its range.

// scan is a query over the blocks of a view.
type scan struct {
	reader
	view  *view
	query *Query
	types []SampleType
	// byType has the positions in types. only has, for Query.Only, the positions there.
	byType map[SampleType]int
	only   map[seriesID]int
	// services are those of the query.
	services []string
	// rules are made by plan, by type.
	rules []rule
	// damaged are blocks that were found to be damaged: the query goes on without them.
	damaged map[*diskBlock]bool
	// inMemory has the series of the blocks in memory by their IDs, as far as starts needed them.
	inMemory map[*block]map[seriesID]*series
	loader   profileLoader
	// reads is set while samples are read: profiles then have all fields. plansPeriods is set if they have them before, too.
	reads, plansPeriods bool
}

// part is what a query selects of a block: of one on disk, of one service.
type part struct {
	*block
	hasDictionary bool
	// resources are the sets of attributes of the resources of a service on disk.
	resources []dictionary.AttributeSetIndex
	// selected are in the order of their types.
	selected []selectedSeries
}

// selectedSeries is a series of a part. in is nil if its profiles are in memory.
type selectedSeries struct {
	*series
	typ int
	in  *blockfile.Series
}

// profileCount returns how many profiles the series has.
func (s *selectedSeries) profileCount() int {
	if s.in != nil {
		return s.in.Profiles
	}
	return len(s.chunks)
}

// weightedChunk is a profile that counts, by weight, until end. isBetween reports that other blocks have profiles between those of its
// series, which are states.
type weightedChunk struct {
	series    *series
	chunk     *chunk
	weight    float64
	end       int64
	isBetween bool
}

func (v *view) scan(q *Query, types []SampleType) *scan {
	s := &scan{
		view: v, query: q, types: types, byType: map[SampleType]int{}, services: []string{q.Service}, rules: make([]rule, len(types)),
		reader: reader{sel: &q.Selection, groups: newGroups(), memory: v.memory}, damaged: map[*diskBlock]bool{},
		inMemory: map[*block]map[seriesID]*series{},
	}
	for i, t := range types {
		s.byType[t] = i
	}
	if q.Only == nil {
		return s
	}
	s.reader.sel, s.only, s.services = &Selection{}, map[seriesID]int{}, nil
	for i := range q.Only {
		s.services = append(s.services, q.Only[i].Service)
		for _, id := range q.Only[i].ids {
			s.only[id] = i
		}
	}
	slices.Sort(s.services)
	s.services = slices.Compact(s.services)
	return s
}

// typeOf returns the position of a series' type, or false if the query does not select the series.
func (s *scan) typeOf(profile string, t SampleType, isTimed bool, id func() seriesID) (typ int, ok bool) {
	if s.only != nil {
		_, ok := s.only[id()]
		return 0, ok
	}
	if s.query.Profile != "" && profile != s.query.Profile || s.query.TimedOnly && !isTimed {
		return 0, false
	}
	typ, ok = s.byType[t]
	return typ, ok
}

// eachPart calls use with the parts of all blocks, oldest first. Without the dictionary, a part on disk has no attributes, and its samples
// cannot be read.
func (s *scan) eachPart(withDictionary bool, use func(*part) error) error {
	for _, d := range s.view.disk {
		if s.damaged[d] {
			continue
		}
		for _, service := range s.services {
			err := s.onDisk(d, service, withDictionary, use)
			if err = cmp.Or(s.withoutDamaged(err), s.memory.Check()); err != nil {
				return err
			}
			if s.damaged[d] {
				break
			}
		}
		s.memory.progress.read(1)
	}
	for _, e := range s.view.blocks {
		if err := cmp.Or(s.use(s.ofMemory(e), use), s.memory.Check()); err != nil {
			return err
		}
	}
	return nil
}

// withoutDamaged takes a block out of the store if err says that it is damaged, and returns other errors.
func (s *scan) withoutDamaged(err error) error {
	var damaged *damagedBlock
	if errors.As(err, &damaged) {
		s.damaged[damaged.block] = true
	}
	return s.view.withoutDamaged(err)
}

// use calls a function with a part of which the attributes of the selection may match.
func (s *scan) use(p *part, use func(*part) error) error {
	taken := selectedBytes * len(p.selected)
	defer s.memory.Release(taken)
	if err := s.memory.Take(taken); err != nil {
		return err
	}
	s.begin(p.block)
	s.filter.resources = map[dictionary.AttributeSetIndex]bool{}
	for i := range p.block.series {
		s.filter.resources[p.block.series[i].resource] = true
	}
	for _, set := range p.resources {
		s.filter.resources[set] = true
	}
	maps.Copy(s.filter.onSamples, s.view.onSamples)
	if len(s.filter.keys) > 0 {
		p.selected = slices.DeleteFunc(p.selected, func(in selectedSeries) bool { return !s.filter.canMatch(in.series) })
	}
	if len(p.selected) == 0 {
		return nil
	}
	slices.SortStableFunc(p.selected, func(a, b selectedSeries) int { return cmp.Compare(a.typ, b.typ) })
	return use(p)
}

func (s *scan) ofMemory(e *block) *part {
	p, strs := &part{block: e}, &e.dict.Strings
	for i := range e.series {
		sr := &e.series[i]
		if len(sr.chunks) == 0 || !slices.Contains(s.services, strs.At(sr.service)) {
			continue
		}
		t := SampleType{strs.At(sr.typ), strs.At(sr.unit)}
		if typ, ok := s.typeOf(strs.At(sr.profile), t, sr.timestamps, func() seriesID { return sr.id }); ok {
			p.selected = append(p.selected, selectedSeries{series: sr, typ: typ})
		}
	}
	return p
}

// onDisk uses the part of a block that a service has.
func (s *scan) onDisk(d *diskBlock, name string, withDictionary bool, use func(*part) error) error {
	at, ok := d.services[name]
	if !ok || !s.reaches(d.From, d.Until+2*max(maxGaugeInterval, d.Step)) {
		return nil
	}
	service := &d.Services[at]
	if !s.reaches(service.Start, service.End+2*max(maxGaugeInterval, d.Step)) {
		return nil
	}
	return d.withSeries(service, s.memory, func(list []blockfile.Series) error { return s.listedOnDisk(d, service, list, withDictionary, use) })
}

// listedOnDisk uses what is selected of the series of a service.
func (s *scan) listedOnDisk(d *diskBlock, service *blockfile.Service, list []blockfile.Series, withDictionary bool, use func(*part) error) error {
	p := &part{hasDictionary: withDictionary, block: &block{
		dict: dictionary.New(), disk: &diskPart{block: d, service: service, rows: d.Scan(), isUnchecked: !withDictionary}, byMeta: map[meta]int32{},
	}}
	defer p.disk.rows.Close()
	for i := range list {
		in := &list[i]
		p.resources = append(p.resources, dictionary.AttributeSetIndex(in.Resource))
		t := SampleType{in.Type, in.Unit}
		if typ, ok := s.typeOf(in.Profile, t, in.Timestamps, func() seriesID { return parseID(in.ID) }); ok && s.wants(in.Start, in.End, in.Total, in.Unit) {
			p.selected = append(p.selected, selectedSeries{typ: typ, in: in})
		}
	}
	if len(p.selected) == 0 {
		return nil
	}
	taken := len(p.selected)*seriesBytes + loadBytes
	defer func() { s.memory.Release(taken) }()
	if err := s.memory.Take(taken); err != nil {
		return err
	}
	if withDictionary {
		var err error
		if p.dict, err = d.dictionary(service, s.memory); err != nil {
			return err
		}
		defer s.memory.Release(p.dict.MemoryBytes() + service.Dictionary.Plain)
	}
	for i := range p.selected {
		sr, err := p.disk.series(p.dict, service.Name, p.selected[i].in, withDictionary)
		if err != nil {
			return err
		}
		p.selected[i].series = sr
	}
	return s.use(p, use)
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
	return s.reaches(start, end) && (s.query.before == 0 || start-durationOf(total, TimeUnit(unit)) < s.query.before)
}

// rowsPerBatch is the most profiles that are in memory at once, and of how many series the starts are, unless one has more.
const rowsPerBatch = 4 << 10

// eachBatch calls use with the profiles that count of series of one type, in their order. Those on disk are valid until use returns.
func (s *scan) eachBatch(p *part, list []selectedSeries, use func([]weightedChunk) error) error {
	batch := make([]weightedChunk, 0, min(rowsPerBatch, countProfiles(list)))
	var loaded []chunk
	taken := weightedChunkBytes * cap(batch)
	defer func() { s.memory.Release(taken) }()
	if err := s.memory.Take(taken); err != nil {
		return err
	}
	if p.disk != nil {
		loaded = make([]chunk, cap(batch))
	}
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := cmp.Or(use(batch), s.memory.Check())
		batch = batch[:0]
		return err
	}
	for of := range groupsOf(list) {
		next, err := s.starts(p, of)
		if err != nil {
			return err
		}
		err = s.eachProfile(p, of, func(in, number int, c *chunk) error {
			w := weightedChunk{series: of[in].series, chunk: c, weight: 1, isBetween: next.isBetween(in)}
			if !s.counts(p, &of[in], &w, next.after(in, number, c)) {
				return nil
			}
			if p.disk != nil {
				w.chunk = &loaded[len(batch)]
				*w.chunk = *c
			}
			if batch = append(batch, w); len(batch) == cap(batch) {
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

// eachProfile calls use with all profiles of series that may count: with the number of the series, and that of the profile in it.
func (s *scan) eachProfile(p *part, list []selectedSeries, use func(in, number int, c *chunk) error) error {
	if p.disk == nil {
		for i := range list {
			for k := range list[i].chunks {
				if err := use(i, k, &list[i].chunks[k]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if s.loader.rows == nil {
		s.loader.rows = make([]blockfile.Profile, rowsPerLoad)
	}
	l := &s.loader
	l.block, l.memory, l.withFields, l.withDictionary = p.block, s.memory, s.reads || s.plansPeriods, p.hasDictionary
	l.wants = func(in *blockfile.Series, p *blockfile.Profile) bool {
		return s.wants(p.Start, p.End, p.Total, in.Unit)
	}
	infos := make([]*blockfile.Series, len(list))
	for i := range list {
		infos[i] = list[i].in
	}
	return l.each(infos, use)
}

// counts reports whether a profile counts, and sets until when, and its weight. next is the start of the next one of its series,
// or noStart.
func (s *scan) counts(p *part, in *selectedSeries, w *weightedChunk, next int64) bool {
	q, c, r := s.query, w.chunk, &s.rules[in.typ]
	if s.only != nil {
		t := c.profileTime()
		if c.flags&isBaseline != 0 || t < q.From || q.Until != 0 && t >= q.Until {
			return false
		}
		if q.Only[s.only[in.id]].TimesPeriod && s.reads {
			w.weight = float64(p.metas[c.meta].period)
		}
		return true
	}
	if q.TimedOnly && c.flags&(hasTimestamps|isMoved) != hasTimestamps || !s.wants(c.start, c.end, c.total, p.dict.Strings.At(in.unit)) {
		return false
	}
	if w.end = c.end; c.values == kind.Gauge {
		w.end = q.holds(c, next)
	}
	from, until, ok := q.overlap(c.start, w.end)
	if !ok {
		return false
	}
	switch {
	case c.values == kind.Gauge:
		if q.LastState && next != noStart && (q.Until == 0 || next < q.Until) {
			return false
		}
		if whole := r.states.until - r.states.from; !q.LastState && s.reads && whole > 0 {
			w.weight = float64(until-from) / float64(whole)
		}
	case c.flags&isBaseline != 0:
		if s.reads && r.others.profiles > 0 {
			return false
		}
	case c.flags&(hasTimestamps|isMoved) != hasTimestamps && until-from < c.end-c.start:
		w.weight = float64(until-from) / float64(c.end-c.start)
	}
	if r.isTime {
		w.weight *= float64(p.metas[c.meta].period)
	}
	return true
}

func countProfiles(list []selectedSeries) (n int) {
	for i := range list {
		n += list[i].profileCount()
	}
	return n
}

// groupsOf returns parts of a list that have rowsPerBatch profiles, or are one series.
func groupsOf(list []selectedSeries) iter.Seq[[]selectedSeries] {
	return func(yield func([]selectedSeries) bool) {
		for len(list) > 0 {
			n, rows := 1, list[0].profileCount()
			for n < len(list) && rows+list[n].profileCount() <= rowsPerBatch {
				rows += list[n].profileCount()
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}
