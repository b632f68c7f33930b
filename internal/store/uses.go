// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file has what the store knows of series besides their profiles.

// release drops a block's series.
func (s *Store) release(e *head.Block) {
	for i := range e.Series {
		if use := e.Series[i].Use; use != nil {
			use.Blocks--
		}
	}
	s.trimSeries()
}

// countBlocks counts the blocks in memory that have each series, and the memory of its totals.
func (s *Store) countBlocks() {
	s.totalsBytes = 0
	for _, use := range s.series {
		use.Blocks = 0
		s.totalsBytes += use.Totals.Bytes()
	}
	for _, e := range s.blocks {
		for i := range e.Series {
			if use := s.series[e.Series[i].ID]; use != nil {
				e.Series[i].Use = use
				use.Blocks++
			}
		}
	}
}

// forgetSeries drops the series of no block, except those whose next profile may need what is known of the one before.
func (s *Store) forgetSeries(now time.Time) {
	s.forget(func(use *head.Use) bool { return use.Blocks == 0 && now.Sub(use.Last) > head.ForgetAfter })
}

// forget drops series, and reports whether there were any.
func (s *Store) forget(which func(*head.Use) bool) bool {
	before := len(s.series)
	maps.DeleteFunc(s.series, func(_ model.SeriesID, use *head.Use) bool {
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
		if use.Blocks == 0 {
			times = append(times, use.Last)
		}
	}
	if len(times) <= most {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)-1-most/2]
	s.forget(func(use *head.Use) bool { return use.Blocks == 0 && !use.Last.After(oldest) })
}

const (
	// totalsPart is the part of the bytes that the totals of all series may take, movedPart that of the dictionary that a
	// new block begins with for them.
	totalsPart = 8
	movedPart  = 16
)

// setTotals remembers the totals of a series' last profile, or forgets those before if now is nil.
func (s *Store) setTotals(use *head.Use, now *head.Totals) {
	s.totalsBytes += now.Bytes() - use.Totals.Bytes()
	use.Totals = now
}

// withTotals returns the series that have totals, those first that had the last profile.
func (s *Store) withTotals() []*head.Use {
	var list []*head.Use
	for _, use := range s.series {
		if use.Totals != nil {
			list = append(list, use)
		}
	}
	slices.SortFunc(list, func(a, b *head.Use) int { return b.Last.Compare(a.Last) })
	return list
}

// dropTotals forgets the totals of series. The next profile of each is a baseline again.
func (s *Store) dropTotals(list []*head.Use) {
	for _, use := range list {
		s.setTotals(use, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Evicted[model.EvictedTotals] += len(list)
}

// trimTotals drops totals that take more than their part of the bytes, the oldest first, and some more, so that not
// each message does.
func (s *Store) trimTotals() {
	most := s.cfg.MaxBytes / totalsPart
	if s.totalsBytes <= most {
		return
	}
	list, kept := s.withTotals(), 0
	i := slices.IndexFunc(list, func(use *head.Use) bool {
		kept += use.Totals.Bytes()
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
		for i := range use.Totals.Rows {
			row := &use.Totals.Rows[i]
			row.Stack = int32(moves.Stack(dictionary.StackIndex(row.Stack)))
			row.Attributes = int32(moves.Set(dictionary.AttributeSetIndex(row.Attributes)))
			row.Link = int32(moves.Link(dictionary.LinkIndex(row.Link)))
		}
		slices.SortFunc(use.Totals.Rows, head.TotalRow.Compare)
	}
	s.totalsOver = dict
}
