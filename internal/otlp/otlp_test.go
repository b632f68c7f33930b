// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"
	"math/big"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestProfiles(t *testing.T) {
	pd := pprofile.NewProfiles()
	for period := range int64(6) {
		if period%3 == 0 {
			pd.ResourceProfiles().AppendEmpty()
		}
		rp := pd.ResourceProfiles().At(pd.ResourceProfiles().Len() - 1)
		if period%2 == 0 || rp.ScopeProfiles().Len() == 0 {
			rp.ScopeProfiles().AppendEmpty()
		}
		rp.ScopeProfiles().At(rp.ScopeProfiles().Len() - 1).Profiles().AppendEmpty().SetPeriod(period)
	}
	var seen []int64
	for p := range Profiles(pd) {
		seen = append(seen, p.Period())
	}
	assert.Equal(t, []int64{0, 1, 2, 3, 4, 5}, seen)
	for p := range Profiles(pd) {
		assert.Zero(t, p.Period())
		break
	}
}

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

// Saturating arithmetic is that of numbers without a limit, cut to 64 bits.
func TestSaturating(t *testing.T) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -3e9, -2, -1, 0, 1, 2, 3e9, math.MaxInt64 - 1, math.MaxInt64}
	cut := func(v *big.Int) int64 {
		switch {
		case v.IsInt64():
			return v.Int64()
		case v.Sign() > 0:
			return math.MaxInt64
		}
		return math.MinInt64
	}
	for _, a := range edges {
		for _, b := range edges {
			x, y := big.NewInt(a), big.NewInt(b)
			assert.Equal(t, cut(new(big.Int).Add(x, y)), SaturatingAdd(a, b), "%d + %d", a, b)
			assert.Equal(t, cut(new(big.Int).Sub(x, y)), SaturatingSubtract(a, b), "%d - %d", a, b)
			if b >= 0 {
				assert.Equal(t, cut(new(big.Int).Mul(x, y)), SaturatingMultiply(a, b), "%d × %d", a, b)
			}
		}
	}
	for v, want := range map[float64]int64{1.5: 2, -1.5: -2, 1e300: math.MaxInt64, -1e300: math.MinInt64,
		math.MaxInt64: math.MaxInt64, math.MinInt64: math.MinInt64, math.Inf(1): math.MaxInt64} {
		assert.Equal(t, want, SaturatingRound(v))
	}
}
