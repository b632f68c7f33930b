// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A time is exact to the nanosecond in every unit, and one after 2262 is refused.
func TestParseTime(t *testing.T) {
	const second = int64(1_763_822_400)
	now := time.Unix(second, 5)
	for text, want := range map[string]int64{
		"0":                   0,
		"1763822400":          second * 1e9,
		"1763822400.5":        second*1e9 + 5e8,
		"1763822400123":       (second*1e3 + 123) * 1e6,
		"1763822400123.5":     (second*1e3+123)*1e6 + 5e5,
		"1763822400123457":    (second*1e6 + 123_457) * 1e3,
		"1763822400123456789": second*1e9 + 123_456_789,
		"1e18":                1e18,
		"now":                 second*1e9 + 5,
		"now-90s":             (second-90)*1e9 + 5,
		"now-1h":              (second-3600)*1e9 + 5,
		"now-7d":              (second-7*86400)*1e9 + 5,
		"now-60000d":          0,
		"now-106751d":         0,
		"9223372036854774":    9_223_372_036_854_774 * 1e3,

		"2025-11-22T16:40:00+02:00": second * 1e9,
		"2025-11-22T16:40:00 02:00": second * 1e9,
	} {
		got, err := ParseTime(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "NaN", "9223372036854776", "9223372037", "99999999999", "1e300", "", "now-",
		"now--1h", "now-1", "now-1.5d", "now+1h", "-1h", "now--999999999h"} {
		_, err := ParseTime(text, now)
		require.ErrorContains(t, err, "is not a time", text)
	}
	for _, text := range []string{"now-106752d", "now-999999999h", "now-2562047h1000m", "now-99999999999999999999d"} {
		_, err := ParseTime(text, now)
		require.ErrorContains(t, err, "is too long ago: at most now-2562047h", text)
	}
}

// The time of a selection and of its base: a 0 that is given is a time, and not that of the selection.
func TestTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	for query, want := range map[string][4]int64{
		"":                                       {},
		"from=100":                               {100e9, 1000e9, 100e9, 1000e9},
		"from=2000":                              {2000e9, 0, 2000e9, 0},
		"until=500":                              {0, 500e9, 0, 500e9},
		"until=0":                                {0, 1, 0, 1},
		"until=now-60000d":                       {0, 1, 0, 1},
		"from=0":                                 {},
		"seconds=100":                            {900e9, 1000e9, 900e9, 1000e9},
		"seconds=100&until=50":                   {1, 50e9, 1, 50e9},
		"from=500&until=600&base.until=550":      {500e9, 600e9, 500e9, 550e9},
		"from=500&until=600&base.from=400":       {500e9, 600e9, 400e9, 600e9},
		"from=500&until=600&base.seconds=5":      {500e9, 600e9, 995e9, 1000e9},
		"from=500&base.from=0&base.until=400":    {500e9, 1000e9, 0, 400e9},
		"until=500&base.from=100&base.until=200": {0, 500e9, 100e9, 200e9},
		"base.from=100":                          {0, 0, 100e9, 1000e9},
	} {
		p, err := ParseParams(query)
		require.NoError(t, err)
		sel := p.Selection(now, "", nil)
		base := p.Selection(now, "base.", &sel)
		require.NoError(t, p.Check(), query)
		assert.Equal(t, want, [4]int64{sel.From, sel.Until, base.From, base.Until}, query)
	}
	for _, query := range []string{"from=5&until=5", "from=6&until=5", "from=1&until=0", "from=5&seconds=5", "seconds=0",
		"seconds=-1", "seconds=NaN", "seconds=1e10", "until=x", "from=5&base.until=4"} {
		p, err := ParseParams(query)
		require.NoError(t, err)
		sel := p.Selection(now, "", nil)
		_ = p.Selection(now, "base.", &sel)
		require.Error(t, p.Check(), query)
	}
}

// An answer about one of two services would pass for one about both. Attributes may be repeated.
func TestParametersThatAreSetTwice(t *testing.T) {
	for query, want := range map[string]string{
		"service=a&service=b":           "`service` is set more than once: \"a\" and \"b\"",
		"service=a&service=b&service=a": "`service` is set more than once: \"a\" and \"b\"",
		"seconds=60&seconds=300":        "`seconds` is set more than once",
		"service=a&service=a":           "",
		"attr.k=a&attr.k=b":             "",
		"service=a&profile=b&x=1":       `unknown parameter "x"`,
	} {
		p, err := ParseParams(query)
		require.NoError(t, err)
		p.Selection(time.Unix(1e9, 0), "", nil)
		if err = p.Check(); want == "" {
			assert.NoError(t, err, query)
		} else {
			assert.ErrorContains(t, err, want, query)
		}
	}
}
