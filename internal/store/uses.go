// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file has what the store knows of series besides their profiles.

// seriesUse is how a series is used: how many blocks have it, and when its last profile arrived.
type seriesUse struct {
	blocks int
	last   time.Time
	isGone bool
	// resource and attributes are hashes of those of its resource and of its profiles.
	resource, attributes [sha256.Size]byte
	// totals are the values of its last cumulative profile, over the dictionary of the last block; nil if there is none.
	totals *totals
	gauge  model.GaugeTimes
}

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
	// forgetAfter is how long the last profile of a series in no block is remembered for the next one.
	forgetAfter = 4 * time.Hour
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
