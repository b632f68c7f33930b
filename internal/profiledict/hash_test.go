// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The keys of tables are mostly consecutive numbers. With no seed may they cluster in a few slots, since linear probing
// would then be quadratic.
func TestHashIndexScattersWhateverTheSeed(t *testing.T) {
	before := mixSeed
	defer func() { mixSeed = before }()
	keys := map[string]func(i uint64) uint64{
		"one word":            func(i uint64) uint64 { return Mix(0, i) },
		"two halves":          func(i uint64) uint64 { return Mix(2, i<<32|(i+1)) },
		"two halves and more": func(i uint64) uint64 { return Mix(Mix(3, i<<32|(i+1)), i+2) },
		"high half":           func(i uint64) uint64 { return Mix(Mix(0, i<<32|1), 0) },
		"strides":             func(i uint64) uint64 { return Mix(Mix(0, i*4), i*8) },
	}
	const entries = 1 << 11
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		mixSeed = random.Uint64() | 1
		for name, key := range keys {
			var x HashIndex
			x.Reset(entries)
			for i := range uint64(entries) {
				p := x.Start(key(i + 1))
				for x.Next(&p) != 0 {
				}
				x.Insert(p, int32(i+1))
			}
			run, longest := 0, 0
			for _, s := range x.slots {
				run++
				if s.entry == 0 {
					run = 0
				}
				longest = max(longest, run)
			}
			if longest > 256 {
				assert.LessOrEqual(t, longest, 256, "%s, seed %x", name, mixSeed)
				return
			}
		}
	}
}
