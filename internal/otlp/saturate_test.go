// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
