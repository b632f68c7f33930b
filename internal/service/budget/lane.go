// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// lane is a number of bytes, of which a part is reserved for small reservations. They use the rest, too, if that is
// free.
type lane struct {
	small, large pool
	// maxBytes is the whole lane.
	maxBytes, maxSmallBytes, largeBytes int64
	isMemory                            bool // as in TooLargeError
	inUse                               atomic.Int64
}

func newLane(maxBytes int64, isMemory bool) *lane {
	reserved := maxBytes / reservedPart
	return &lane{
		small: pool{free: reserved}, large: pool{free: maxBytes - reserved},
		maxBytes: maxBytes, maxSmallBytes: maxBytes / smallPart, largeBytes: maxBytes - reserved, isMemory: isMemory,
	}
}

func (l *lane) isSmall(n int64) bool { return n <= l.maxSmallBytes }

// share is a reservation's part of a lane.
type share struct {
	lane         *lane
	small, large int64
	// isLarge reports that the share will be large: it keeps off what is reserved from the beginning.
	isLarge bool
}

func (s *share) held() int64 { return s.small + s.large }

// add records bytes that were reserved or, if negative, released.
func (s *share) add(small, large int64) {
	s.small += small
	s.large += large
	s.lane.inUse.Add(small + large)
}

// reserve adds n bytes, and waits for them if it must.
func (s *share) reserve(ctx context.Context, n int64) error {
	if err := s.try(n); !errors.Is(err, ErrBusy) {
		return err
	}
	if s.staysSmall(n) {
		err := s.lane.small.reserve(ctx, n, s.small)
		if err == nil {
			s.add(n, 0)
		}
		return err
	}
	err := s.lane.large.reserve(ctx, s.small+n, s.large)
	if err == nil {
		s.leaveSmall(n)
	}
	return err
}

// try adds n bytes, or returns ErrBusy if they are not free.
func (s *share) try(n int64) error {
	switch total := s.held() + n; {
	case n <= 0:
	case total > s.lane.largeBytes:
		return &TooLargeError{Need: total, Limit: s.lane.largeBytes, IsMemory: s.lane.isMemory}
	case s.staysSmall(n) && s.lane.small.try(n, s.small):
		s.add(n, 0)
	case s.lane.large.try(s.small+n, s.large):
		s.leaveSmall(n)
	default:
		return ErrBusy
	}
	return nil
}

func (s *share) staysSmall(n int64) bool {
	return s.large == 0 && !s.isLarge && s.lane.isSmall(s.small+n)
}

// leaveSmall records n bytes more that the share reserved of the large ones, with those that it held of the small ones:
// what is reserved is for shares that stay small.
func (s *share) leaveSmall(n int64) {
	s.lane.small.release(s.small, 0)
	s.add(-s.small, s.small+n)
}

// tryMore adds n bytes if a share of large ones has room for them.
func (s *share) tryMore(n int64) bool {
	ok := s.large > 0 && s.large+n <= s.lane.largeBytes && s.lane.large.try(n, s.large)
	if ok {
		s.add(0, n)
	}
	return ok
}

// shrink releases the bytes of the share above n.
func (s *share) shrink(n int64) {
	excess := max(0, s.held()-n)
	large := min(excess, s.large)
	small := excess - large
	s.lane.large.release(large, s.large-large)
	s.lane.small.release(small, s.small-small)
	s.add(-small, -large)
}

// pool is a number of bytes that shares hold. Those that hold some of them come before those that wait for their first,
// and one of them goes on at any time: if all wait, the last one is refused.
type pool struct {
	mu   sync.Mutex
	free int64
	// holders have bytes. Of waitingHolders each waits for more, of newcomers each for its first.
	holders                   int
	waitingHolders, newcomers list.List // of *request
}

type request struct {
	bytes int64
	// answer is closed when the request is served, or has an error.
	answer chan error
}

// try reserves n bytes for a share that holds some, if they are free. First bytes are for those that wait for theirs.
func (p *pool) try(n, held int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryLocked(n, held)
}

func (p *pool) tryLocked(n, held int64) bool {
	if n > p.free || held == 0 && p.waitingHolders.Len()+p.newcomers.Len() > 0 {
		return false
	}
	p.serve(n, held > 0)
	return true
}

func (p *pool) serve(n int64, isHolder bool) {
	p.free -= n
	if !isHolder {
		p.holders++
	}
}

// reserve is try, but waits for at most MaxWait. Its error is ErrBusy, or that of ctx.
func (p *pool) reserve(ctx context.Context, n, held int64) error {
	p.mu.Lock()
	if p.tryLocked(n, held) {
		p.mu.Unlock()
		return nil
	}
	queue := &p.newcomers
	if held > 0 {
		queue = &p.waitingHolders
		if queue.Len()+1 == p.holders {
			p.mu.Unlock()
			return ErrBusy // the others wait for this one's bytes
		}
	}
	r := &request{bytes: n, answer: make(chan error, 1)}
	entry := queue.PushBack(r)
	p.mu.Unlock()

	waiting, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	select {
	case err := <-r.answer:
		return err
	case <-waiting.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-r.answer: // meanwhile
		return err
	default:
	}
	queue.Remove(entry)
	p.next()
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrBusy
}

// release returns n bytes of a share that holds left of them afterwards.
func (p *pool) release(n, left int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	if left == 0 {
		p.holders--
	}
	p.next()
}

// next serves those that wait, in their order: holders first.
func (p *pool) next() {
	for p.waitingHolders.Len()+p.newcomers.Len() > 0 {
		queue, isHolder := &p.newcomers, p.waitingHolders.Len() > 0
		if isHolder {
			queue = &p.waitingHolders
		}
		r := queue.Front().Value.(*request)
		var err error
		switch {
		case r.bytes <= p.free:
			p.serve(r.bytes, isHolder)
		case isHolder && queue.Len() == p.holders:
			err = ErrBusy // nobody else would ever release bytes for it
		default:
			return
		}
		queue.Remove(queue.Front())
		r.answer <- err
	}
}
