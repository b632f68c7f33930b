// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file finds out until when a state holds: until the next one of its series, which can be in any block.

// noStart is the start of the profile after the last one.
const noStart = math.MaxInt64

// startBytes is the memory of a start in a list that grows.
const startBytes = 8 * 9 / 4

// seriesStarts are the starts of the profiles of some series, in all blocks where a state of one block may be followed
// by another.
type seriesStarts struct {
	// lists is nil if none of the series is one of states.
	lists [][]int64
	// isBetween marks series from whose first to whose last state other blocks have some.
	isBetween []bool
	taken     int
}

// after returns the start of the profile after one of a series, or noStart. Parts of one profile have one start: isPart
// reports that there are others.
func (s *seriesStarts) after(in int, c *model.Profile) (start int64, isPart bool) {
	if s.lists == nil {
		return noStart, false
	}
	list := s.lists[in]
	i, _ := slices.BinarySearch(list, c.Start+1)
	isPart = i > 1 && list[i-2] == c.Start
	if i < len(list) {
		return list[i], isPart
	}
	return noStart, isPart
}

// starts returns the starts that the states of series of the part need.
func (s *scan) starts(list []selectedSeries) (*seriesStarts, error) {
	out := &seriesStarts{}
	isState := func(in selectedSeries) bool { return in.HasStates() }
	if s.only != nil && !s.query.Want.Ends || !slices.ContainsFunc(list, isState) {
		return out, nil
	}
	out.lists, out.isBetween = make([][]int64, len(list)), make([]bool, len(list))
	for _, b := range s.view.Blocks {
		if s.view.damaged[b] {
			continue
		}
		err := b.Series(list[0].Service, s.memory, func(others []model.BlockSeries) error {
			return s.startsOf(b, others, list, b == s.part.block, out)
		})
		if s.view.withoutDamaged(err) != nil || s.view.damaged[s.part.block] {
			return nil, err
		}
	}
	for _, starts := range out.lists {
		slices.Sort(starts)
	}
	return out, nil
}

// startsOf adds the starts that a block has of states: of one that begins after the other ends, the first start is all
// that counts.
func (s *scan) startsOf(b model.Block, others []model.BlockSeries, states []selectedSeries, isOwn bool,
	out *seriesStarts) error {
	var found []*model.BlockSeries
	var positions []int
	n := 0
	for i := range states {
		of := &states[i].BlockSeries
		if !of.HasStates() {
			continue
		}
		at, ok := slices.BinarySearchFunc(others, *of, model.CompareSeries)
		if !ok {
			continue
		}
		switch in := &others[at]; {
		case in.Until < of.Start:
		case isOwn || in.Start <= of.Until:
			found, positions, n = append(found, in), append(positions, i), n+in.Profiles
		case in.Start <= of.End || s.query.LastState:
			out.lists[i] = append(out.lists[i], in.Start)
			n++
		}
	}
	out.taken += startBytes * n
	if err := s.memory.Grow(startBytes * n); err != nil || len(found) == 0 {
		return err
	}
	return b.Starts(found, func(in int, starts []int64) error {
		i := positions[in]
		of := &states[i].BlockSeries
		out.lists[i] = append(out.lists[i], starts...)
		out.isBetween[i] = out.isBetween[i] || !isOwn && slices.ContainsFunc(starts, func(start int64) bool {
			return start >= of.Start && start <= of.Until
		})
		return s.memory.Grow(0)
	})
}
