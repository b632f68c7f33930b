// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"hash/maphash"
	"math/bits"
)

// hashSeed is drawn once a process, so that no payload can be made to collide on purpose.
// Hashes only place entries in a HashIndex; no index or order ever depends on one.
var (
	hashSeed = maphash.MakeSeed()
	mixSeed  = maphash.String(hashSeed, "hash")
	wordSeed = maphash.String(hashSeed, "word")
)

const scatterMultiplier = 0xff51afd7ed558ccd

// Mix combines the hash h with the next word of a key. Each has a seed of its own, so that h may be a word, too: the
// result does not depend on h^word. Words that share bits must not be joined to one: each field of 64 bits needs a Mix.
func Mix(h, word uint64) uint64 {
	hi, lo := bits.Mul64(h^mixSeed, word^wordSeed)
	return hi ^ lo
}

// HashString hashes s.
func HashString(s string) uint64 { return maphash.String(hashSeed, s) }

// HashBytes hashes b. The result is that of HashString for the same bytes.
func HashBytes(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }

// hashInt32s hashes a list of indices, two at a time.
func hashInt32s(list []int32) uint64 {
	h := uint64(len(list))
	for len(list) >= 2 {
		h = Mix(h, uint64(uint32(list[0]))<<32|uint64(uint32(list[1])))
		list = list[2:]
	}
	if len(list) == 1 {
		h = Mix(h, uint64(uint32(list[0])))
	}
	return h
}

// HashIndex finds the entries of a table by hash: open addressing, linear probing.
// Equal hashes are only candidates: the caller compares entries.
// Entry 0 is never stored: in a dictionary's table it is the zero value, for which callers need no index.
type HashIndex struct {
	slots []hashSlot // length a power of two, or 0
	room  int        // how many entries can still be inserted before slots grow
	// spare are the slots before they grew: a small index that is used again grows without allocating.
	spare []hashSlot
}

type hashSlot struct {
	hash  uint32
	entry int32 // 0: free
}

// HashProbe walks over the candidates of one hash.
type HashProbe struct {
	position uint32
	hash     uint32
}

const (
	minSlots = 16
	// maxLoad is the number of eighths of the slots that may be in use. Linear probing then looks at
	// four slots on average, within a cache line, to find that an entry is new; at six
	// eighths it is more than eight.
	maxLoad = 5
	// maxSpare bounds the spare slots.
	maxSpare = 1 << 12
)

// Reset forgets all entries and makes room for about that many.
// It keeps its memory, but clears only as much of it as they need.
func (x *HashIndex) Reset(entries int) {
	need := minSlots
	for need*maxLoad < entries*8 {
		need *= 2
	}
	x.room = roomOf(need)
	if cap(x.slots) < need {
		x.slots = make([]hashSlot, need)
		return
	}
	x.slots = x.slots[:need]
	clear(x.slots)
}

// Start begins a walk. Call Next until it returns 0; then Insert may add an entry.
func (x *HashIndex) Start(h uint64) HashProbe {
	if x.room <= 0 {
		x.grow()
	}
	return probeOf(h)
}

// probeOf begins a walk that only reads: after it, Insert may have no room.
func probeOf(h uint64) HashProbe {
	// With some seeds Mix leaves consecutive keys close together. The multiplication scatters them:
	// without it, one process in a few hundred needs a thousand steps for each entry of a large table.
	hash := uint32(h * scatterMultiplier >> 32)
	return HashProbe{position: hash, hash: hash}
}

// Next returns the next candidate, or 0 if there are no more.
func (x *HashIndex) Next(p *HashProbe) int32 {
	mask := uint32(len(x.slots) - 1)
	for {
		s := x.slots[p.position&mask]
		if s.entry == 0 {
			return 0
		}
		p.position++
		if s.hash == p.hash {
			return s.entry
		}
	}
}

// Insert stores entry at the slot where the walk p ended.
func (x *HashIndex) Insert(p HashProbe, entry int32) {
	x.slots[p.position&uint32(len(x.slots)-1)] = hashSlot{hash: p.hash, entry: entry}
	x.room--
}

// len returns the number of entries.
func (x *HashIndex) len() int { return roomOf(len(x.slots)) - x.room }

// roomOf returns how many entries that many slots may hold, rounded up.
func roomOf(slots int) int { return (slots*maxLoad + 7) / 8 }

func (x *HashIndex) grow() {
	old, need := x.slots, max(minSlots, 2*len(x.slots))
	x.room += roomOf(need) - roomOf(len(old))
	if cap(x.spare) < need {
		x.slots = make([]hashSlot, need)
	} else {
		x.slots = x.spare[:need]
		clear(x.slots)
	}
	x.spare = nil
	if cap(old) <= maxSpare {
		x.spare = old
	}
	mask := uint32(len(x.slots) - 1)
	for _, s := range old {
		if s.entry == 0 {
			continue
		}
		i := s.hash & mask
		for x.slots[i].entry != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
	}
}
