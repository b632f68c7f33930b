// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/await"
)

// Key identifies a process as a sample does. The executable, which may be empty, distinguishes a process that has
// replaced its program, and mostly one that got the id of another.
type Key struct {
	PID        int64
	Executable string
}

// Outcome is how reading a process ended.
type Outcome int

// The outcomes. Only OutcomeRead has a result.
const (
	// OutcomeRead means that the process was read.
	OutcomeRead Outcome = iota
	// OutcomeGone means that there is no such process, or no longer.
	OutcomeGone
	// OutcomeMismatch means that the process with this id runs another program than the sample states.
	OutcomeMismatch
	// OutcomeTimeout means that reading takes longer than a message waits. Later messages use the result.
	OutcomeTimeout
	// OutcomeError means any other error.
	OutcomeError
	// NumOutcomes is the number of outcomes.
	NumOutcomes int = iota
)

var outcomeNames = [NumOutcomes]string{"read", "gone", "mismatch", "timeout", "error"}

func (o Outcome) String() string { return outcomeNames[o] }

// Options configure a Cache.
type Options struct {
	// MaxProcesses bounds the processes that are remembered.
	MaxProcesses int
	// RefreshInterval is the time after which a process is read again.
	RefreshInterval time.Duration
	// MaxWait bounds how long Resolve reads.
	MaxWait time.Duration
}

// Cache remembers a T for each process, which convert makes from what was read. It is safe for concurrent use.
type Cache[T any] struct {
	options Options
	read    func(pid int64) (Process, error)
	convert func(Key, *Process) T
	count   func(Outcome)
	now     func() time.Time
	// slots bounds the goroutines that read. The kernel can block them while it waits for a lock or a page of the process.
	slots   chan struct{}
	readers sync.WaitGroup

	mu sync.Mutex
	// recent and older hold up to half of MaxProcesses each. When recent is full, it becomes older, and the entries of the former
	// older are forgotten. lookup moves an entry from older to recent.
	recent, older map[Key]*entry[T]
	inFlight      map[Key]*call
}

type entry[T any] struct {
	value  T
	found  bool
	readAt time.Time
}

// call is a process being read, or about to be.
type call struct {
	done    chan struct{}
	began   time.Time
	reading bool
}

// maxReaders is how many goroutines read at the same time, one for each message.
const maxReaders = 4

// NewCache returns a cache over a reader. convert makes what is remembered of a process; its argument is nil if nothing could be
// read. count is called with the outcome of each reading.
func NewCache[T any](options Options, read func(pid int64) (Process, error), convert func(Key, *Process) T, count func(Outcome)) *Cache[T] {
	return &Cache[T]{
		options: options, read: read, convert: convert, count: count, now: time.Now,
		slots:  make(chan struct{}, maxReaders),
		recent: map[Key]*entry[T]{}, older: map[Key]*entry[T]{}, inFlight: map[Key]*call{},
	}
}

// Len returns the number of processes that are remembered.
func (c *Cache[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.recent) + len(c.older)
}

// Resolve returns what is known of processes, in their order. First it reads those that are unknown or due for a refresh, for at
// most MaxWait. For a process that could not be read in time, and was not known before, it returns the result of convert(nil).
func (c *Cache[T]) Resolve(ctx context.Context, keys []Key) []T {
	var mine []Key
	var calls []*call
	var wait []*call
	now := c.now()
	c.mu.Lock()
	for _, key := range keys {
		if e := c.lookup(key); e != nil && now.Sub(e.readAt) < c.options.RefreshInterval {
			continue
		}
		if other := c.inFlight[key]; other != nil {
			if now.Sub(other.began) < c.options.MaxWait { // do not wait for one that has taken longer
				wait = append(wait, other)
			}
			continue
		}
		own := &call{done: make(chan struct{}), began: now}
		c.inFlight[key] = own
		mine, calls = append(mine, key), append(calls, own)
	}
	c.mu.Unlock()
	if len(mine)+len(wait) > 0 {
		c.wait(ctx, mine, calls, wait)
	}
	values := make([]T, len(keys))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range keys {
		if e := c.lookup(key); e != nil {
			values[i] = e.value
		} else {
			values[i] = c.convert(key, nil)
		}
	}
	return values
}

// lookup returns an entry and keeps it from being forgotten soon.
func (c *Cache[T]) lookup(key Key) *entry[T] {
	if e := c.recent[key]; e != nil {
		return e
	}
	e := c.older[key]
	if e != nil {
		delete(c.older, key)
		c.put(key, e)
	}
	return e
}

func (c *Cache[T]) put(key Key, e *entry[T]) {
	if len(c.recent) >= max(1, c.options.MaxProcesses/2) {
		c.older, c.recent = c.recent, map[Key]*entry[T]{}
	}
	c.recent[key] = e
}

// wait has a goroutine read keys, and waits for it and for calls of others. It abandons readings that have not begun in time.
func (c *Cache[T]) wait(ctx context.Context, keys []Key, calls, others []*call) {
	deadline := time.NewTimer(c.options.MaxWait)
	defer deadline.Stop()
	isHeldUp := false
	stop := make(chan struct{})
	if len(keys) > 0 {
		select {
		case c.slots <- struct{}{}:
			mine := &call{done: make(chan struct{})} // all of keys
			others = append(others, mine)
			c.readers.Go(func() {
				defer func() { <-c.slots }()
				defer close(mine.done)
				c.readAll(keys, calls, stop)
			})
		default: // all readers are blocked: go on with what is known
			isHeldUp = true
		}
	}
	isTimeout := !allDone(ctx, deadline.C, others) || isHeldUp
	close(stop)
	c.abandon(keys, calls, isTimeout)
}

// allDone waits for calls. It reports false if the deadline or ctx ends first.
func allDone(ctx context.Context, deadline <-chan time.Time, calls []*call) bool {
	for _, c := range calls {
		select {
		case <-c.done:
		case <-deadline:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (c *Cache[T]) readAll(keys []Key, calls []*call, stop chan struct{}) {
	for i, key := range keys {
		c.mu.Lock()
		select {
		case <-stop:
			c.mu.Unlock()
			return
		default:
		}
		calls[i].reading = true
		c.mu.Unlock()
		process, err := c.read(key.PID)
		c.store(key, process, err)
		c.finish(key, calls[i])
	}
}

// abandon ends the calls whose reading has not begun.
func (c *Cache[T]) abandon(keys []Key, calls []*call, isTimeout bool) {
	for i, key := range keys {
		c.mu.Lock()
		isLeft := c.inFlight[key] == calls[i]
		begun := calls[i].reading
		c.mu.Unlock()
		if isLeft && isTimeout {
			c.count(OutcomeTimeout)
		}
		if isLeft && !begun {
			c.finish(key, calls[i])
		}
	}
}

func (c *Cache[T]) finish(key Key, own *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[key] == own {
		delete(c.inFlight, key)
		close(own.done)
	}
}

// store remembers the result of reading a process. If the process was read before and has ended since, the earlier
// result stays, since its samples may come late.
func (c *Cache[T]) store(key Key, process Process, err error) {
	outcome := OutcomeRead
	switch {
	case errors.Is(err, ErrGone):
		outcome = OutcomeGone
	case err != nil:
		outcome = OutcomeError
	case !isSame(key.Executable, process.Executable):
		outcome = OutcomeMismatch
	}
	c.count(outcome)
	e := &entry[T]{readAt: c.now()}
	if outcome == OutcomeRead {
		e.found = true
		e.value = c.convert(key, &process)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.lookup(key)
	switch {
	case outcome == OutcomeGone && known != nil && known.found:
		known.readAt = e.readAt
		return
	case outcome != OutcomeRead:
		e.value = c.convert(key, nil)
	}
	c.put(key, e)
}

// isSame reports whether two paths may be of the same program: equal paths, or the same name below another root. An unknown path
// may be any.
func isSame(a, b string) bool {
	return a == "" || b == "" || a == b || path.Base(a) == path.Base(b)
}

// Shutdown waits for the goroutines that read. One that the kernel blocks cannot be ended.
func (c *Cache[T]) Shutdown(ctx context.Context) error {
	if await.Return(ctx, c.readers.Wait) != nil {
		return errors.New("the kernel still holds the reading of a process")
	}
	return nil
}
