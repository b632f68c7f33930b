// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import "math"

// SaturatingAdd returns a + b, or the limit of int64 that the sum exceeds.
func SaturatingAdd(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// SaturatingMultiply returns a × b, or the largest int64 if the product exceeds it. b must not be negative.
func SaturatingMultiply(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
