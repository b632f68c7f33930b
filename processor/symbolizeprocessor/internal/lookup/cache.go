// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"sync"
	"sync/atomic"
	"unsafe"

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

// key is an address of a module.
type key struct {
	module  uint64
	address symbols.Position
}

// cache holds answers up to a number of bytes. When it is full, it drops answers that were not used since the clock's
// hand last passed them.
type cache struct {
	shards [shards]shard
}

const shards = 16

type shard struct {
	mu       sync.RWMutex
	index    map[key]int32
	slots    []slot
	free     []int32
	hand     int
	bytes    int64
	maxBytes int64
}

type slot struct {
	key    key
	answer *Answer
	bytes  int64
	used   atomic.Bool
}

// slotBytes is the memory of an answer without its frames: its slot, its part of the index, and itself.
const slotBytes = int64(unsafe.Sizeof(slot{})+unsafe.Sizeof(key{})+unsafe.Sizeof(Answer{})) + 16

func newCache(maxBytes int64) *cache {
	c := &cache{}
	for i := range c.shards {
		c.shards[i].index = map[key]int32{}
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
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, ok := s.index[k]
	if !ok {
		return nil
	}
	if used := &s.slots[i].used; !used.Load() {
		used.Store(true)
	}
	return s.slots[i].answer
}

func (c *cache) put(k key, a *Answer) {
	bytes := slotBytes
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
	if i, ok := s.index[k]; ok {
		s.bytes += bytes - s.slots[i].bytes
		s.slots[i].answer, s.slots[i].bytes = a, bytes
	} else {
		i := int32(len(s.slots))
		if n := len(s.free); n > 0 {
			i, s.free = s.free[n-1], s.free[:n-1]
		} else {
			s.slots = append(s.slots, slot{})
		}
		slot := &s.slots[i]
		slot.key, slot.answer, slot.bytes = k, a, bytes
		slot.used.Store(false)
		s.index[k] = i
		s.bytes += bytes
	}
	for s.bytes > s.maxBytes {
		s.evict()
	}
}

// evict moves the hand to the next answer that was not used, and drops it.
func (s *shard) evict() {
	for {
		s.hand = (s.hand + 1) % len(s.slots)
		slot := &s.slots[s.hand]
		if slot.answer == nil || slot.used.Swap(false) {
			continue
		}
		delete(s.index, slot.key)
		s.bytes -= slot.bytes
		slot.answer, slot.bytes = nil, 0
		s.free = append(s.free, int32(s.hand))
		return
	}
}

// size returns the number of answers and their memory.
func (c *cache) size() (entries, bytes int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		entries += int64(len(s.index))
		bytes += s.bytes
		s.mu.RUnlock()
	}
	return entries, bytes
}
