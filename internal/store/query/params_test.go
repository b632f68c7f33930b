// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A time is exact to the nanosecond in every unit, and one after 2262 is refused.
func TestParseTime(t *testing.T) {
	const second = int64(1_763_822_400)
	for text, want := range map[string]int64{
		"0":                   0,
		"1763822400":          second * 1e9,
		"1763822400.5":        second*1e9 + 5e8,
		"1763822400123":       (second*1e3 + 123) * 1e6,
		"1763822400123.5":     (second*1e3+123)*1e6 + 5e5,
		"1763822400123457":    (second*1e6 + 123_457) * 1e3,
		"1763822400123456789": second*1e9 + 123_456_789,
		"1e18":                1e18,
		"9223372036854774":    9_223_372_036_854_774 * 1e3,
	} {
		got, err := parseTime("from", text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "NaN", "9223372036854776", "9223372037", "99999999999", "1e300"} {
		_, err := parseTime("from", text)
		require.Error(t, err, text)
	}
}
