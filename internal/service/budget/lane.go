// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// lane is a number of bytes, of which a part is reserved for small claims. They use the rest, too, if that is free.
type lane struct {
	small, large *semaphore.Weighted
	// maxBytes is the whole lane.
	maxBytes, maxSmallBytes, largeBytes int64
	isMemory                            bool // as in TooLargeError
	inUse                               atomic.Int64
}

func newLane(maxBytes int64, isMemory bool) *lane {
	reserved := maxBytes / reservedPart
	return &lane{
		small: semaphore.NewWeighted(reserved), large: semaphore.NewWeighted(maxBytes - reserved),
		maxBytes: maxBytes, maxSmallBytes: maxBytes / smallPart, largeBytes: maxBytes - reserved, isMemory: isMemory,
	}
}

func (l *lane) isSmall(n int64) bool { return n <= l.maxSmallBytes }

// share is what a claim holds of a lane.
type share struct {
	lane         *lane
	small, large int64
}

func (s *share) held() int64 { return s.small + s.large }

// add records bytes that were acquired or, if negative, released.
func (s *share) add(small, large int64) {
	s.small += small
	s.large += large
	s.lane.inUse.Add(small + large)
}

// acquire adds n bytes. It waits for them only if the share holds none yet.
func (s *share) acquire(ctx context.Context, n int64) error {
	switch isSmall := s.large == 0 && s.lane.isSmall(s.small+n); {
	case n <= 0: // a semaphore refuses even that while somebody waits
	case isSmall && s.lane.small.TryAcquire(n):
		s.add(n, 0)
	case s.tryLarge(n):
	case s.held()+n > s.lane.largeBytes:
		return &TooLargeError{Need: s.held() + n, Limit: s.lane.largeBytes, IsMemory: s.lane.isMemory}
	case s.held() > 0:
		return ErrBusy
	case isSmall:
		if err := acquire(ctx, s.lane.small, n); err != nil {
			return err
		}
		s.add(n, 0)
	default:
		return s.acquireLarge(ctx, n)
	}
	return nil
}

func (s *share) acquireLarge(ctx context.Context, n int64) error {
	err := acquire(ctx, s.lane.large, n)
	if err == nil {
		s.add(0, n)
	}
	return err
}

func (s *share) tryLarge(n int64) bool {
	ok := s.lane.large.TryAcquire(n)
	if ok {
		s.add(0, n)
	}
	return ok
}

// shrink releases what the share holds above n bytes.
func (s *share) shrink(n int64) {
	excess := max(0, s.held()-n)
	large := min(excess, s.large)
	s.lane.large.Release(large)
	s.lane.small.Release(excess - large)
	s.add(large-excess, -large)
}

// acquire waits for n units, for at most MaxWait. Its error is ErrBusy, or that of ctx.
func acquire(ctx context.Context, from *semaphore.Weighted, n int64) error {
	if from.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	if from.Acquire(waiting, n) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrBusy
}
