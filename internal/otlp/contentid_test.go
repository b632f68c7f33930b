// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each half of an id differs for contents that are almost equal: a changed bit, one more number, another order.
func TestContentIDs(t *testing.T) {
	halves := [2]map[uint64]bool{{}, {}}
	n := 0
	note := func(content ...uint64) (id ContentID) {
		for _, number := range content {
			id.AddNumber(number)
		}
		for i := range id {
			halves[i][id[i]] = true
		}
		n++
		return id
	}
	changed, least := 0, 64
	whole := note(1, 2, 3)
	for bit := range 64 {
		for position := range 3 {
			content := []uint64{1, 2, 3}
			content[position] ^= 1 << bit
			id := note(content...)
			for i := range id {
				differ := bits.OnesCount64(id[i] ^ whole[i])
				changed += differ
				least = min(least, differ)
			}
		}
	}
	for i := range uint64(20_000) {
		note(i)
		note(1<<32, i+10)
		note(i, 1<<32+1)
		note(i+4, i+4, 0)
	}
	for _, half := range halves {
		assert.Len(t, half, n)
	}
	assert.InDelta(t, 32, float64(changed)/(64*3*2), 1.5, "about half of the bits differ")
	assert.Greater(t, least, 8)
}
