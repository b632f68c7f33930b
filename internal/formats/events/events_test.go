// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"ok":                                "ok",
		"ok" + strings.Repeat("\x80", 70e3): "ok\uFFFD",
		strings.Repeat("ä", 40):             strings.Repeat("ä", 25),
		strings.Repeat("a\xff", 40):         strings.Repeat("a\uFFFD", 12) + "a",
	} {
		var b events.Builder
		b.Reset(events.Options{MaxStringBytes: 51})
		assert.Equal(t, want, b.CleanString(text), "%.10q", text)
		assert.Equal(t, len(text) > 51, b.Stats.Truncated == 1)
		assert.Equal(t, strings.Contains(want, "\uFFFD"), b.Stats.InvalidUTF8 == 1)
	}
}

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string][2]int64{
		"0": {0, 0}, "12": {12, 0}, "12.": {12, 0}, "-3.25": {-3, -25e7}, "1.0000000019": {1, 1}, "-0.5": {0, -5e8},
		"1795748711473895.761": {1795748711473895, 761e6}, "9223372036854775807": {math.MaxInt64, 0},
	} {
		whole, nanos, ok := events.ParseDecimal(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, [2]int64{whole, nanos}, text)
	}
	for _, text := range []string{"", "-", ".", ".5", "1.2.3", "1e3", "+1", " 1", "9223372036854775808",
		"92233720368547758070"} {
		_, _, ok := events.ParseDecimal([]byte(text))
		assert.False(t, ok, text)
	}
}
