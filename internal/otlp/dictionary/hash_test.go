// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// longestRun returns the longest run of slots in use: how far a walk may go.
func (x *HashIndex) longestRun() int {
	run, longest := 0, 0
	for _, s := range x.slots {
		run++
		if s.entry == 0 {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// The keys of tables are mostly consecutive numbers, and those of several fields are the same or grow alike. With no
// seed may they cluster in a few slots, since linear probing would then be quadratic.
func TestHashIndexScattersWhateverTheSeed(t *testing.T) {
	beforeMix, beforeWord := mixSeed, wordSeed
	defer func() { mixSeed, wordSeed = beforeMix, beforeWord }()
	keys := map[string]func(i uint64) uint64{
		"one word":            func(i uint64) uint64 { return Mix(0, i) },
		"two halves":          func(i uint64) uint64 { return Mix(2, i<<32|(i+1)) },
		"two halves and more": func(i uint64) uint64 { return Mix(Mix(3, i<<32|(i+1)), i+2) },
		"high half":           func(i uint64) uint64 { return Mix(Mix(0, i<<32|1), 0) },
		"strides":             func(i uint64) uint64 { return Mix(Mix(0, i*4), i*8) },
		"the same word twice": func(i uint64) uint64 { return Mix(i, i) },
		"shifted":             func(i uint64) uint64 { return Mix(i, i<<32) },
		"halves of the same":  func(i uint64) uint64 { return Mix(i<<32|i, i) },
		"opposite":            func(i uint64) uint64 { return Mix(i, ^i) },
		"constant sum":        func(i uint64) uint64 { return Mix(i, 1<<20-i) },
	}
	const entries = 1 << 11
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		mixSeed, wordSeed = random.Uint64(), random.Uint64()
		for name, key := range keys {
			var x HashIndex
			x.Reset(entries)
			for i := range uint64(entries) {
				p := x.Start(key(i + 1))
				for x.Next(&p) != 0 {
				}
				x.Insert(p, int32(i+1))
			}
			if longest := x.longestRun(); longest > 256 {
				assert.LessOrEqual(t, longest, 256, "%s, seeds %x and %x", name, mixSeed, wordSeed)
				return
			}
		}
	}
}

// Each table finds entries whose fields are correlated as fast as random ones: what a walk may have to pass is about as
// long.
func TestCorrelatedEntries(t *testing.T) {
	const entries = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	fields := map[string]func(i uint64) [4]uint64{
		"random": func(uint64) [4]uint64 {
			return [4]uint64{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()}
		},
		"one":      func(i uint64) [4]uint64 { return [4]uint64{i} },
		"last":     func(i uint64) [4]uint64 { return [4]uint64{1, 2, 3, i} },
		"equal":    func(i uint64) [4]uint64 { return [4]uint64{i, i, i, i} },
		"parallel": func(i uint64) [4]uint64 { return [4]uint64{i, i + 1, 2 * i, 3 * i} },
		"pairs":    func(i uint64) [4]uint64 { return [4]uint64{i, i} },
		"shifted":  func(i uint64) [4]uint64 { return [4]uint64{i, i << 32, i, i << 32} },
		"opposite": func(i uint64) [4]uint64 { return [4]uint64{i, -i, i, -i} },
		"tail":     func(i uint64) [4]uint64 { return [4]uint64{1, 1, i, i << 32} },
		"pages":    func(i uint64) [4]uint64 { return [4]uint64{i << 12, i << 12, i << 12, i << 12} },
	}
	type fill func(d *Dictionary, f [4]uint64)
	tables := map[string]fill{
		"functions": func(d *Dictionary, f [4]uint64) {
			d.Functions.Intern(Function{StringIndex(f[0]), StringIndex(f[1]), StringIndex(f[2]), int64(f[3])})
		},
		"mappings": func(d *Dictionary, f [4]uint64) {
			d.Mappings.Intern(Mapping{MemoryStart: f[0], MemoryLimit: f[1], FileOffset: f[2], Filename: StringIndex(f[3])})
		},
		"locations": func(d *Dictionary, f [4]uint64) {
			d.Locations.Intern(Location{Address: f[0], Mapping: MappingIndex(f[1])},
				[]Line{{Function: FunctionIndex(f[2]), Line: int64(f[3])}})
		},
		"locations, swapped": func(d *Dictionary, f [4]uint64) {
			d.Locations.Intern(Location{Address: f[2], Mapping: MappingIndex(f[3])},
				[]Line{{Function: FunctionIndex(f[0]), Line: int64(f[1])}})
		},
		"links": func(d *Dictionary, f [4]uint64) {
			var l Link
			binary.LittleEndian.PutUint64(l.TraceID[:8], f[0])
			binary.LittleEndian.PutUint64(l.TraceID[8:], f[1])
			binary.LittleEndian.PutUint64(l.SpanID[:], f[2])
			d.Links.Intern(l)
		},
		"attributes": func(d *Dictionary, f [4]uint64) {
			d.Attributes.Intern(Attribute{Key: StringIndex(f[0]), Value: IntValue(int64(f[1])), Unit: StringIndex(f[2])})
		},
		"stacks": func(d *Dictionary, f [4]uint64) {
			d.Stacks.Intern([]int32{int32(f[0]), int32(f[1]), int32(f[2]), int32(f[3])})
		},
		"attribute sets": func(d *Dictionary, f [4]uint64) {
			d.AttributeSets.Intern([]int32{int32(f[0]), int32(f[1])})
		},
	}
	for table, intern := range tables {
		for name, of := range fields {
			d := New()
			for i := range uint64(entries) {
				intern(d, of(i+1))
			}
			for _, index := range []*HashIndex{
				&d.Functions.index, &d.Mappings.index, &d.Locations.index, &d.Links.index, &d.Attributes.index, &d.Stacks.index,
				&d.AttributeSets.index,
			} {
				if longest := index.longestRun(); longest > 512 {
					assert.LessOrEqual(t, longest, 512, "%s of %s fields", table, name)
				}
			}
		}
	}
}
