// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file finds the room for a message.

const (
	// unusedTime is after which time without a profile a series may be replaced: two intervals of most scrapers.
	unusedTime = 2 * time.Minute
	// replacedPart is the part of MaxSeries that is replaced at a time, so that not each new series looks for its room.
	replacedPart = 8
)

// room returns the block for a message of cost bytes, or why there is no room for it. It may wait until blocks have
// been written. It adds nothing of the message.
func (s *Store) room(pd pprofile.Profiles, now time.Time, cost int) (*head.Block, model.Refused, error) {
	if most := s.cfg.MaxBytes / maxMessagePart; cost > most {
		return nil, model.RefusedSize, fmt.Errorf("%w: it needs %d bytes of memory there, and one message may take %d",
			ErrMessageTooLarge, cost, most)
	}
	for {
		e := s.current(now, cost)
		if err := s.logError(); err != nil {
			return nil, model.RefusedFull, err
		}
		if s.disk != nil && s.disk.writeFailed != nil && s.Stats().Bytes+cost > s.cfg.MaxBytes {
			return nil, model.RefusedFull, errFull
		}
		if s.cfg.MaxSeries == 0 || len(s.known.Series)+pd.ProfileCount() <= s.cfg.MaxSeries {
			return e, 0, nil
		}
		all, missing := s.seriesOfMessage(pd, now)
		switch {
		case all > s.cfg.MaxSeries:
			return nil, model.RefusedSeries, fmt.Errorf("%w: it has %d series, and there may be %d", ErrMessageTooLarge, all,
				s.cfg.MaxSeries)
		case len(s.known.Series)+missing <= s.cfg.MaxSeries:
			return e, 0, nil
		case !s.dropUnused(now, len(s.known.Series)+missing-s.cfg.MaxSeries):
			return nil, model.RefusedSeries,
				fmt.Errorf("%w: the message has %d new ones, and there may be %d", errSeries, missing, s.cfg.MaxSeries)
		}
	}
}

// seriesOfMessage returns how many series a message has, and how many of them are new. The others count as used.
func (s *Store) seriesOfMessage(pd pprofile.Profiles, now time.Time) (all, missing int) {
	of := head.SeriesOf(pd, now)
	for id := range of {
		if use := s.known.Series[id]; use != nil {
			use.Last = now
		} else {
			missing++
		}
	}
	return len(of), missing
}

// dropUnused drops at least n series that have been unused for the longest time, if there are as many, and reports
// whether it dropped any. It may wait until blocks have been written. Queries keep what they read.
func (s *Store) dropUnused(now time.Time, n int) bool {
	isUnused := func(use *head.Use) bool { return now.Sub(use.Last) > unusedTime }
	isOfNoBlock := func(use *head.Use) bool { return use.Blocks == 0 && isUnused(use) }
	if s.known.Forget(isOfNoBlock) {
		return true
	}
	var unused []model.SeriesID
	for id, use := range s.known.Series {
		if isUnused(use) {
			unused = append(unused, id)
		}
	}
	if len(unused) == 0 {
		return false
	}
	if s.disk != nil {
		// They leave the memory with their block.
		s.writeBlocks()
		return s.known.Forget(isOfNoBlock)
	}
	slices.SortFunc(unused, func(a, b model.SeriesID) int {
		return s.known.Series[a].Last.Compare(s.known.Series[b].Last)
	})
	for _, id := range unused[:min(len(unused), max(n, s.cfg.MaxSeries/replacedPart))] {
		s.known.Drop(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.blocks {
		if slices.ContainsFunc(e.Series, head.IsGone) {
			s.stats.Evicted[model.EvictedSeries] += e.DropGone()
		}
	}
	return true
}

// writeBlocks has the blocks in memory written, and waits until they are, or cannot be. Others may add meanwhile.
func (s *Store) writeBlocks() {
	last := s.blocks[len(s.blocks)-1]
	if last.ByKey != nil {
		last.Freeze()
	}
	for s.disk.full != nil && s.disk.writeFailed == nil && s.blocks[0].ID <= last.ID {
		s.writeSoon()
		s.disk.written.Wait()
		if len(s.blocks) == 0 {
			return
		}
	}
}
