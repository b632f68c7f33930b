// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
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

// Cache remembers a T for each process, which convert makes from its files. It is safe for concurrent use.
type Cache[T any] struct {
	options Options
	read    func(pid int64) (Process, error)
	convert func(Key, *Process) T
	count   func(Outcome)
	now     func() time.Time
	readers sync.WaitGroup

	mu    sync.Mutex
	known *simplelru.LRU[Key, *entry[T]]
	// pending has the processes that are being read, and those in queue, up to MaxProcesses.
	pending map[Key]*entry[T]
	queue   []*entry[T]
	// active is the number of goroutines that read. The kernel can block them while it waits for a lock or a page of the
	// process. lastBegin is when one of them last began, or went on with another process.
	active    int
	lastBegin time.Time
}

// entry is the result of reading a process, which is there once done is closed.
type entry[T any] struct {
	key   Key
	asked time.Time
	done  chan struct{}

	value  T
	found  bool
	readAt time.Time
}

// maxReaders is how many goroutines read at the same time.
const maxReaders = 4

// NewCache returns a cache over a reader. convert makes the cached value of a process; its argument is nil if nothing
// could be read. count is called with the outcome of each reading.
func NewCache[T any](options Options, read func(pid int64) (Process, error), convert func(Key, *Process) T,
	count func(Outcome)) *Cache[T] {
	known, _ := simplelru.NewLRU[Key, *entry[T]](max(1, options.MaxProcesses), nil) // a size below 1 is the only error
	return &Cache[T]{
		options: options, read: read, convert: convert, count: count, now: time.Now, known: known,
		pending: map[Key]*entry[T]{},
	}
}

// Len returns the number of processes that are remembered.
func (c *Cache[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.Len()
}

// Resolve returns the cached values of processes, in their order. First it reads those that are unknown or due for a
// refresh, for at most MaxWait. For a process that could not be read in time, and was not known before, it returns the
// result of convert(nil).
func (c *Cache[T]) Resolve(ctx context.Context, keys []Key) []T {
	type waiting struct {
		index int
		known *entry[T] // an older reading; nil without one
		entry *entry[T] // the reading to wait for; nil if the queue is full or all readers are held up
		isOwn bool      // no other message has asked for it
	}
	values := make([]T, len(keys))
	var wait []waiting
	now := c.now()
	c.mu.Lock()
	for i, key := range keys {
		known, _ := c.known.Get(key)
		if known != nil && now.Sub(known.readAt) < c.options.RefreshInterval {
			values[i] = known.value
			continue
		}
		w := waiting{index: i, known: known, entry: c.pending[key]}
		if w.entry == nil {
			w.entry, w.isOwn = c.ask(key, now), true
		}
		wait = append(wait, w)
	}
	c.mu.Unlock()
	if len(wait) == 0 {
		return values
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.MaxWait)
	defer cancel()
	for _, w := range wait {
		isDone := false
		if w.entry != nil {
			if now.Sub(w.entry.asked) < c.options.MaxWait { // do not wait for one that has taken longer
				select {
				case <-w.entry.done:
				case <-ctx.Done():
				}
			}
			isDone = w.entry.isDone()
		}
		switch {
		case isDone:
			values[w.index] = w.entry.value
		case w.known != nil:
			values[w.index] = w.known.value
		default:
			values[w.index] = c.convert(keys[w.index], nil)
		}
		if !isDone && w.isOwn {
			c.count(OutcomeTimeout)
		}
	}
	return values
}

func (e *entry[T]) isDone() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ask queues a process for reading. It returns nil if the kernel blocks all readers, or the queue is full. c.mu is
// held.
func (c *Cache[T]) ask(key Key, now time.Time) *entry[T] {
	areBlocked := c.active == maxReaders && now.Sub(c.lastBegin) >= c.options.MaxWait
	if areBlocked || len(c.pending) >= c.options.MaxProcesses {
		return nil
	}
	key.Executable = strings.Clone(key.Executable) // it may be a part of a message
	e := &entry[T]{key: key, asked: now, done: make(chan struct{})}
	c.pending[key] = e
	c.queue = append(c.queue, e)
	if c.active < maxReaders {
		c.active++
		c.lastBegin = now
		c.readers.Go(c.readQueue)
	}
	return e
}

// readQueue reads processes until the queue is empty.
func (c *Cache[T]) readQueue() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.active--
			c.mu.Unlock()
			return
		}
		e := c.queue[0]
		c.queue = c.queue[1:]
		c.lastBegin = c.now()
		c.mu.Unlock()
		process, err := c.read(e.key.PID)
		c.finish(e, process, err)
	}
}

// finish sets the result of reading a process. If the process was read before and has ended since, the earlier result
// stays, since its samples may come late.
func (c *Cache[T]) finish(e *entry[T], process Process, err error) {
	outcome := OutcomeRead
	switch {
	case errors.Is(err, ErrGone):
		outcome = OutcomeGone
	case err != nil:
		outcome = OutcomeError
	case !isSame(e.key.Executable, process.Executable):
		outcome = OutcomeMismatch
	}
	c.count(outcome)
	e.readAt, e.found = c.now(), outcome == OutcomeRead
	if e.found {
		e.value = c.convert(e.key, &process)
	} else {
		e.value = c.convert(e.key, nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known.Peek(e.key); ok && outcome == OutcomeGone && known.found {
		e.value, e.found = known.value, true
	}
	c.known.Add(e.key, e)
	delete(c.pending, e.key)
	close(e.done)
}

// isSame reports whether two paths may be of the same program: equal paths, or the same name below another root, with
// or without the kernel's suffix for deleted files. An unknown path may be any.
func isSame(a, b string) bool {
	a, b = strings.TrimSuffix(a, deleted), strings.TrimSuffix(b, deleted)
	return a == "" || b == "" || a == b || path.Base(a) == path.Base(b)
}

// Shutdown waits for the goroutines that read. One that the kernel blocks cannot be ended.
func (c *Cache[T]) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	c.queue = nil
	c.mu.Unlock()
	if await.Return(ctx, c.readers.Wait) != nil {
		return errors.New("a read of the process still blocks in the kernel")
	}
	return nil
}
