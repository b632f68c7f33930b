// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file finds out until when a state holds: until the next one of its series, which can be in any block.

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

// seriesStarts are the starts of the profiles of some series, in all blocks where a state of one block may be followed
// by another.
type seriesStarts struct {
	block int32
	lists [][]profileStart // nil for series that are no states
	// between are the series between whose first and last state other blocks have some.
	between map[int]bool
	taken   int
}

// isBetween reports whether other blocks have states between those of a series.
func (s *seriesStarts) isBetween(in int) bool { return s.between[in] }

// after returns the start of the profile after one of a series, or noStart. Parts of one profile have one start.
func (s *seriesStarts) after(in int, c *model.Profile) int64 {
	if in >= len(s.lists) || s.lists[in] == nil {
		return noStart
	}
	list := s.lists[in]
	if i := sort.Search(len(list), func(i int) bool { return list[i].start > c.Start }); i < len(list) {
		return list[i].start
	}
	return noStart
}

// starts returns the starts that the states of series of a part need.
func (s *scan) starts(p *part, list []selectedSeries) (*seriesStarts, error) {
	out := &seriesStarts{}
	isState := func(in selectedSeries) bool { return in.Values == kind.Gauge }
	if s.only != nil && !s.query.Want.Ends || !slices.ContainsFunc(list, isState) {
		return out, nil
	}
	out.lists, out.between = make([][]profileStart, len(list)), map[int]bool{}
	for i, b := range s.view.Blocks {
		if b == p.block {
			out.block = int32(i)
		}
		if s.view.damaged[b] {
			continue
		}
		err := b.Series(list[0].Service, s.memory, func(others []model.BlockSeries) error {
			return s.startsOf(b, others, list, int32(i), b == p.block, out)
		})
		if s.view.withoutDamaged(err) != nil || s.view.damaged[p.block] {
			return nil, err
		}
	}
	for i := range list {
		starts := out.lists[i]
		slices.SortFunc(starts, profileStart.compare)
		out.between[i] = slices.ContainsFunc(starts, func(p profileStart) bool {
			return p.block != out.block && p.start > list[i].Start && p.start < list[i].Until
		})
	}
	return out, nil
}

func (s *seriesStarts) take(m *model.Memory, n int) error {
	s.taken += startBytes * n
	return m.Grow(startBytes * n)
}

func (s *seriesStarts) add(in int, block int32, number int, start int64) {
	s.lists[in] = append(s.lists[in], profileStart{start, block, int32(number)})
}

// startsOf adds the starts that a block has of states: of one that begins after the other ends, the first start is all
// that counts.
func (s *scan) startsOf(b model.Block, others []model.BlockSeries, states []selectedSeries, number int32, isOwn bool,
	out *seriesStarts) error {
	var found []*model.BlockSeries
	var positions []int
	rows := 0
	for i := range states {
		of := &states[i].BlockSeries
		if of.Values != kind.Gauge {
			continue
		}
		at, ok := slices.BinarySearchFunc(others, *of, model.CompareSeries)
		if !ok {
			continue
		}
		switch in := &others[at]; {
		case in.Until < of.Start:
		case isOwn || in.Start <= of.Until:
			found, positions, rows = append(found, in), append(positions, i), rows+in.Profiles
		case in.Start <= of.End || s.query.LastState:
			if err := out.take(s.memory, 1); err != nil {
				return err
			}
			out.add(i, number, 0, in.Start)
		}
	}
	if err := out.take(s.memory, rows); err != nil || len(found) == 0 {
		return err
	}
	return b.Starts(found, func(in int, starts []int64) error {
		for k, start := range starts {
			out.add(positions[in], number, k, start)
		}
		return s.memory.Grow(0)
	})
}
