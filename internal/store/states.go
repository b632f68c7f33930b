// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file finds out until when a state holds: until the next one of its series, which can be in any block.

// holds returns until when a gauge counts: until the next one of the selection if that comes within two intervals, otherwise for one.
func (sel *Selection) holds(c *chunk, next int64) int64 {
	if next <= c.end && (sel.Until == 0 || next < sel.Until) {
		return next
	}
	return c.start + c.interval()
}

// noStart is the start of the profile after the last one.
const noStart = math.MaxInt64

// profileStart is the start of a profile, which is one of a block.
type profileStart struct {
	start         int64
	block, number int32
}

func (a profileStart) compare(b profileStart) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.block, b.block), cmp.Compare(a.number, b.number))
}

// startBytes is the memory of one in a list that grows.
const startBytes = 16 * 9 / 4

// seriesStarts are the starts of the profiles of some series, in all blocks where a state of one block may be followed by another.
type seriesStarts struct {
	block int32
	lists [][]profileStart // nil for series that are no states
	// between are the series between whose first and last state other blocks have some.
	between map[int]bool
	taken   int
}

// isBetween reports whether other blocks have states between those of a series.
func (s *seriesStarts) isBetween(in int) bool { return s.between[in] }

// after returns the start of the profile after one of a series, or noStart.
func (s *seriesStarts) after(in, number int, c *chunk) int64 {
	if in >= len(s.lists) || s.lists[in] == nil {
		return noStart
	}
	list, at := s.lists[in], profileStart{c.start, s.block, int32(number)}
	if i := sort.Search(len(list), func(i int) bool { return list[i].compare(at) > 0 }); i < len(list) {
		return list[i].start
	}
	return noStart
}

// stateSeries is a series of states of which starts are needed: its key in a block, and its first and last start, and its last end.
type stateSeries struct {
	position         int
	profile, typ, id string
	from, until, end int64
}

// statesOf returns the series of a list that are states.
func (p *part) statesOf(list []selectedSeries) (states []stateSeries) {
	strs := &p.dict.Strings
	for i := range list {
		in := &list[i]
		if in.values != kind.Gauge {
			continue
		}
		of := stateSeries{position: i, profile: strs.At(in.profile), typ: strs.At(in.series.typ)}
		if in.in != nil {
			of.id, of.from, of.until, of.end = in.in.ID, in.in.Start, in.in.Until, in.in.End
			states = append(states, of)
			continue
		}
		of.id, of.from, of.until, of.end = blockfile.ID(in.id[:]), math.MaxInt64, math.MinInt64, math.MinInt64
		for k := range in.chunks {
			c := &in.chunks[k]
			of.from, of.until, of.end = min(of.from, c.start), max(of.until, c.start), max(of.end, c.end)
		}
		states = append(states, of)
	}
	return states
}

// starts returns the starts that the states of series of a part need.
func (s *scan) starts(p *part, list []selectedSeries) (*seriesStarts, error) {
	out := &seriesStarts{}
	if s.only != nil {
		return out, nil
	}
	states := p.statesOf(list)
	if len(states) == 0 {
		return out, nil
	}
	out.lists, out.between = make([][]profileStart, len(list)), map[int]bool{}
	service := p.dict.Strings.At(list[0].service)
	block := int32(0)
	for _, d := range s.view.disk {
		isOwn := p.disk != nil && d == p.disk.block
		if isOwn {
			out.block = block
		}
		if !s.damaged[d] {
			if err := s.withoutDamagedBut(p, s.startsOnDisk(d, service, states, block, isOwn, out)); err != nil {
				return nil, err
			}
		}
		block++
	}
	for _, e := range s.view.blocks {
		if e == p.block {
			out.block = block
		}
		byID := s.byID(e)
		for i := range states {
			at := states[i].position
			sr := byID[list[at].id]
			if sr == nil {
				continue
			}
			if err := out.take(s.memory, len(sr.chunks)); err != nil {
				return nil, err
			}
			for k := range sr.chunks {
				out.add(at, block, k, sr.chunks[k].start)
			}
		}
		block++
	}
	for i := range states {
		of := &states[i]
		starts := out.lists[of.position]
		slices.SortFunc(starts, profileStart.compare)
		out.between[of.position] = slices.ContainsFunc(starts, func(p profileStart) bool {
			return p.block != out.block && p.start > of.from && p.start < of.until
		})
	}
	return out, nil
}

// withoutDamagedBut takes a block that is damaged out of the store, and returns other errors: those of the part's own block, too.
func (s *scan) withoutDamagedBut(p *part, err error) error {
	var damaged *damagedBlock
	if errors.As(err, &damaged) && p.disk != nil && damaged.block == p.disk.block {
		return err
	}
	return s.withoutDamaged(err)
}

func (s *seriesStarts) take(m *Memory, n int) error {
	s.taken += startBytes * n
	return m.Take(startBytes * n)
}

func (s *seriesStarts) add(in int, block int32, number int, start int64) {
	s.lists[in] = append(s.lists[in], profileStart{start, block, int32(number)})
}

// byID returns the series of a block in memory.
func (s *scan) byID(e *block) map[seriesID]*series {
	known := s.inMemory[e]
	if known == nil {
		known = make(map[seriesID]*series, len(e.series))
		_ = s.memory.Take(cacheBytes * len(e.series)) // its caller checks
		for i := range e.series {
			known[e.series[i].id] = &e.series[i]
		}
		s.inMemory[e] = known
	}
	return known
}

// startsOnDisk reads the starts of series that a block has: of one that begins after the other ends, the first start is all that counts.
func (s *scan) startsOnDisk(d *diskBlock, service string, states []stateSeries, block int32, isOwn bool, out *seriesStarts) error {
	at, ok := d.services[service]
	if !ok {
		return nil
	}
	return d.withSeries(&d.Services[at], s.memory, func(list []blockfile.Series) error { return s.startsOfList(d, list, states, block, isOwn, out) })
}

func (s *scan) startsOfList(d *diskBlock, list []blockfile.Series, states []stateSeries, block int32, isOwn bool, out *seriesStarts) error {
	var found []*blockfile.Series
	var positions []int
	for i := range states {
		of := &states[i]
		in := of.in(list)
		switch {
		case in == nil, in.Until < of.from:
		case isOwn || in.Start <= of.until:
			found, positions = append(found, in), append(positions, of.position)
		case in.Start <= of.end || s.query.LastState:
			if err := out.take(s.memory, 1); err != nil {
				return err
			}
			out.add(of.position, block, 0, in.Start)
		}
	}
	scan := d.Scan()
	defer scan.Close()
	for run := range runsBy(found, isNext) {
		rows := 0
		for _, in := range run {
			rows += in.Profiles
		}
		if err := out.take(s.memory, rows); err != nil {
			return err
		}
		starts := make([]int64, rows)
		if err := scan.ProfileStarts(run[0].FirstProfile, starts); err != nil {
			return d.fault(err)
		}
		for i, in := range run {
			for k := range in.Profiles {
				out.add(positions[i], block, k, starts[k])
			}
			starts = starts[in.Profiles:]
		}
		positions = positions[len(run):]
	}
	return s.memory.Check()
}

// in returns what a list of a block has of the series, or nil. The series are in the order of their names and IDs.
func (of *stateSeries) in(list []blockfile.Series) *blockfile.Series {
	i, ok := slices.BinarySearchFunc(list, of, func(in blockfile.Series, of *stateSeries) int {
		return cmp.Or(strings.Compare(in.Profile, of.profile), strings.Compare(in.Type, of.typ), strings.Compare(in.ID, of.id))
	})
	if !ok {
		return nil
	}
	return &list[i]
}
