// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// UnknownService is the service of a resource without service.name.
const UnknownService = kind.UnknownService

const (
	// largePart is the part of the memory above which a message is large.
	largePart = 16
	// totalsPart is the part of the bytes that the totals of all series may take, movedPart that of the dictionary that a
	// new block begins with for them.
	totalsPart = 8
	movedPart  = 16
	// rememberedPart is the part of the bytes that series of no block may take.
	rememberedPart = 16
)

func (s *Store) isLarge(cost int) bool { return cost > s.cfg.MaxBytes/largePart }

// Added counts what Add did with one message.
type Added struct {
	head.Counts
	// Err is why nothing of the message was kept, or nil. Unless it is ErrMessageTooLarge, the same message may be kept
	// later.
	Err error
}

// Add keeps pd, or nothing of it if there is no room. It drops what it cannot understand. It only reads pd.
func (s *Store) Add(pd pprofile.Profiles, now time.Time) Added {
	cost := head.MessageBytes(pd)
	if s.isLarge(cost) {
		s.addingLarge.Lock()
		defer s.addingLarge.Unlock()
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	added := s.add(pd, now, cost)
	s.evict(now)
	s.mu.Lock()
	for i, n := range added.Refused {
		s.stats.Refused[i] += n
	}
	s.mu.Unlock()
	return added
}

func (s *Store) add(pd pprofile.Profiles, now time.Time, cost int) Added {
	refused := func(reason model.Refused, err error) (added Added) {
		added.Refused[reason], added.Err = pd.ProfileCount(), err
		return added
	}
	e, reason, err := s.room(pd, now, cost)
	if err != nil {
		return refused(reason, err)
	}
	list, counts := s.adder.Read(e, pd, now)
	added := Added{Counts: counts}
	if err := s.writeAhead(e, list); err != nil {
		s.adder.Undo()
		added = refused(model.RefusedFull, err)
	}
	s.adder.Keep(e)
	s.evictTotals(s.known.TrimTotals(s.cfg.MaxBytes / totalsPart))
	e.Measure()
	if cost > head.LargeBytes { // do not keep scratch memory of that size for the next message
		s.adder.Release(e)
	}
	return added
}

// evictTotals counts totals that were dropped.
func (s *Store) evictTotals(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Evicted[model.EvictedTotals] += n
}

// release drops a block's series.
func (s *Store) release(e *head.Block) {
	s.known.Release(e)
	s.known.Trim(s.cfg.MaxBytes / rememberedPart / useBytes)
}

// forgetSeries drops series that no block holds, unless their next profile may still be compared with the last.
func (s *Store) forgetSeries(now time.Time) {
	s.known.Forget(func(use *head.Use) bool { return use.Blocks == 0 && now.Sub(use.Last) > head.ForgetAfter })
}
