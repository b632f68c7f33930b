// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// SaturatingAdd returns a + b, or the limit of int64 that the sum exceeds. Sums of float64 have no limit.
func SaturatingAdd[T int64 | float64](a, b T) T {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// SaturatingSubtract returns a - b, or the limit of int64 that the difference exceeds.
func SaturatingSubtract(a, b int64) int64 {
	switch difference := a - b; {
	case a >= 0 && b < 0 && difference < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && difference >= 0:
		return math.MinInt64
	default:
		return difference
	}
}

// Total returns the sum of counts.
func Total(counts []int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// Sum returns the sum of the values of a sample.
func Sum(s pprofile.Sample) (sum int64) {
	values := s.Values()
	for i := range values.Len() {
		sum = SaturatingAdd(sum, values.At(i))
	}
	return sum
}

// SaturatingMultiply returns a × b, or the limit of int64 that the product exceeds. b must not be negative.
func SaturatingMultiply[T int64 | float64](a, b T) T {
	if product := float64(a) * float64(b); -1<<62 < product && product < 1<<62 { // fast path, without a division
		return a * b
	}
	switch {
	case b > 1 && a > math.MaxInt64/b:
		return math.MaxInt64
	case b > 1 && a < math.MinInt64/b:
		return math.MinInt64
	default:
		return a * b
	}
}

// SaturatingRound returns the nearest int64.
func SaturatingRound(v float64) int64 {
	switch v = math.Round(v); {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(v)
	}
}
