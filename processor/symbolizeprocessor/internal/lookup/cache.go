// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"math"
	"sync"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// Answer is the result for an address. It is shared and must not be changed.
type Answer struct {
	// Frames are innermost first. Without any, Missing is the reason.
	Frames  []symbols.Frame
	Source  sources.Kind
	Missing Reason

	// round is that of the module when a search found nothing: a later round searches again.
	round uint32
}

type key struct {
	module  uint64
	address symbols.Position
}

// cache holds answers up to a number of bytes. When it is full, it drops those that were used least recently. A cache
// that admits only what is used often, such as otter, would not do: a message asks again for what a worker has just
// found.
type cache struct {
	shards [shards]shard
}

const shards = 16

type shard struct {
	mu       sync.Mutex
	answers  *simplelru.LRU[key, cachedAnswer]
	bytes    int64
	maxBytes int64
}

type cachedAnswer struct {
	*Answer
	bytes int64
}

// entryBytes is about the memory of an answer without its frames: itself, its entry in the list, and that in the index.
const entryBytes = int64(unsafe.Sizeof(Answer{})+2*unsafe.Sizeof(key{})+unsafe.Sizeof(cachedAnswer{})) + 80

func newCache(maxBytes int64) *cache {
	c := &cache{}
	for i := range c.shards {
		// The size is the only error, and a limit that is never reached: bytes are the limit.
		c.shards[i].answers, _ = simplelru.NewLRU[key, cachedAnswer](math.MaxInt, nil)
		c.shards[i].maxBytes = maxBytes / shards
	}
	return c
}

func (c *cache) shard(k key) *shard {
	h := (k.address.Offset ^ k.module<<32) * 0x9e3779b97f4a7c15
	return &c.shards[h>>60]
}

// get returns nil if there is no answer.
func (c *cache) get(k key) *Answer {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	a, _ := s.answers.Get(k)
	return a.Answer
}

func (c *cache) put(k key, a *Answer) {
	bytes := entryBytes
	for i := range a.Frames {
		f := &a.Frames[i]
		bytes += int64(unsafe.Sizeof(*f)) + int64(len(f.Name)+len(f.SystemName)+len(f.File))
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > s.maxBytes {
		return
	}
	old, _ := s.answers.Peek(k)
	s.answers.Add(k, cachedAnswer{a, bytes})
	for s.bytes += bytes - old.bytes; s.bytes > s.maxBytes; {
		_, oldest, _ := s.answers.RemoveOldest()
		s.bytes -= oldest.bytes
	}
}

// size returns the number of answers and their memory.
func (c *cache) size() (entries, bytes int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		entries += int64(s.answers.Len())
		bytes += s.bytes
		s.mu.Unlock()
	}
	return entries, bytes
}
