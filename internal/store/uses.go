// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file has what the store knows of series besides their profiles.

// release drops a block's series.
func (s *Store) release(e *block) {
	for i := range e.series {
		if use := e.series[i].use; use != nil {
			use.blocks--
		}
	}
	s.trimSeries()
}

// countBlocks counts the blocks in memory that have each series, and the memory of its totals.
func (s *Store) countBlocks() {
	s.totalsBytes = 0
	for _, use := range s.series {
		use.blocks = 0
		s.totalsBytes += use.totals.bytes()
	}
	for _, e := range s.blocks {
		for i := range e.series {
			if use := s.series[e.series[i].ID]; use != nil {
				e.series[i].use = use
				use.blocks++
			}
		}
	}
}

// forgetSeries drops the series of no block, except those whose next profile may need what is known of the one before.
func (s *Store) forgetSeries(now time.Time) {
	s.forget(func(use *seriesUse) bool { return use.blocks == 0 && now.Sub(use.last) > forgetAfter })
}

// forget drops series, and reports whether there were any.
func (s *Store) forget(which func(*seriesUse) bool) bool {
	before := len(s.series)
	maps.DeleteFunc(s.series, func(_ model.SeriesID, use *seriesUse) bool {
		if !which(use) {
			return false
		}
		s.setTotals(use, nil)
		return true
	})
	return len(s.series) < before
}

const (
	// unusedTime is after which time without a profile a series may be replaced: two intervals of most scrapers.
	unusedTime = 2 * time.Minute
	// replacedPart is the part of MaxSeries that is replaced at a time, so that not each new series looks for its room.
	replacedPart = 8
	// rememberedPart is the part of the bytes that series of no block may take.
	rememberedPart = 16
)

// trimSeries drops series of no block that take more than their part of the bytes: those that have been unused for the
// longest time.
func (s *Store) trimSeries() {
	most := s.cfg.MaxBytes / rememberedPart / useBytes
	if len(s.series) <= most {
		return
	}
	var times []time.Time
	for _, use := range s.series {
		if use.blocks == 0 {
			times = append(times, use.last)
		}
	}
	if len(times) <= most {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)-1-most/2]
	s.forget(func(use *seriesUse) bool { return use.blocks == 0 && !use.last.After(oldest) })
}

const (
	// totalsPart is the part of the bytes that the totals of all series may take, movedPart that of the dictionary that a
	// new block begins with for them.
	totalsPart = 8
	movedPart  = 16
)

// setTotals remembers the totals of a series' last profile, or forgets those before if now is nil.
func (s *Store) setTotals(use *seriesUse, now *totals) {
	s.totalsBytes += now.bytes() - use.totals.bytes()
	use.totals = now
}

// withTotals returns the series that have totals, those first that had the last profile.
func (s *Store) withTotals() []*seriesUse {
	var list []*seriesUse
	for _, use := range s.series {
		if use.totals != nil {
			list = append(list, use)
		}
	}
	slices.SortFunc(list, func(a, b *seriesUse) int { return b.last.Compare(a.last) })
	return list
}

// dropTotals forgets the totals of series. The next profile of each is a baseline again.
func (s *Store) dropTotals(list []*seriesUse) {
	for _, use := range list {
		s.setTotals(use, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Evicted[EvictedTotals] += len(list)
}

// trimTotals drops totals that take more than their part of the bytes, the oldest first, and some more, so that not
// each message does.
func (s *Store) trimTotals() {
	most := s.cfg.MaxBytes / totalsPart
	if s.totalsBytes <= most {
		return
	}
	list, kept := s.withTotals(), 0
	i := slices.IndexFunc(list, func(use *seriesUse) bool {
		kept += use.totals.bytes()
		return kept > most*3/4
	})
	if i >= 0 {
		s.dropTotals(list[i:])
	}
}

// moveTotals moves the totals of all series to the dictionary of a new block. It drops the oldest of them if these
// alone would fill it.
func (s *Store) moveTotals(dict *dictionary.Dictionary) {
	list := s.withTotals()
	var moves *mover.Mover
	for i, use := range list {
		if moves == nil {
			moves = mover.New(s.totalsOver, dict)
		}
		if dict.MemoryBytes() > s.cfg.MaxBytes/movedPart {
			s.dropTotals(list[i:])
			break
		}
		for i := range use.totals.rows {
			row := &use.totals.rows[i]
			row.stack = int32(moves.Stack(dictionary.StackIndex(row.stack)))
			row.attributes = int32(moves.Set(dictionary.AttributeSetIndex(row.attributes)))
			row.link = int32(moves.Link(dictionary.LinkIndex(row.link)))
		}
		slices.SortFunc(use.totals.rows, totalRow.compare)
	}
	s.totalsOver = dict
}
