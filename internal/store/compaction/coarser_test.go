// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// What rounding leaves of a mean goes to the next step: the sum of a small state over its time is what it was.
func TestCoarserKeepsSmallStates(t *testing.T) {
	profiles, sum := 0, int64(0)
	c := newCoarser(time.Minute, func(p *Profile) error {
		profiles++
		sum += p.Total * (p.End - p.Start) / 2 / 10e9
		return nil
	})
	for i := range int64(600) {
		// a fifth of the time
		p := &Profile{Profile: blockfile.Profile{Profile: model.Profile{Start: i * 10e9, End: (i + 2) * 10e9,
			Values: kind.Gauge, Samples: 1, Total: i % 5 / 4}}}
		p.Rows = func(yield func(blockfile.Row, error) bool) { yield(rowOf(1, 0, p.Total), nil) }
		require.NoError(t, c.add(p))
	}
	require.NoError(t, c.end())
	require.Equal(t, 101, profiles, "the last one holds for its own interval")
	require.InDelta(t, 120, sum, 6)
}

// Profiles that state no time, or one years ago, make no profile that lasts for years.
func TestCoarserOfOddTimes(t *testing.T) {
	const start, second = int64(1_795_262_400e9), int64(time.Second)
	var made []blockfile.Profile
	c := newCoarser(time.Minute, func(p *Profile) error { made = append(made, p.Profile); return nil })
	for i, of := range []model.Profile{{Time: start}, {}, {Time: 1e9, Flags: model.IsMoved},
		{Time: start - 1e17, Flags: model.IsMoved}} {
		of.Duration, of.Start = 5*second, start+int64(i)*second
		of.End = of.Start + of.Duration
		none := func(func(blockfile.Row, error) bool) {}
		require.NoError(t, c.add(&Profile{Profile: blockfile.Profile{Profile: of}, Rows: none}))
	}
	require.NoError(t, c.end())
	require.Len(t, made, 2)
	require.Equal(t, []int64{start, 6 * second, start + 2*second, 6 * second},
		[]int64{made[0].Time, made[0].Duration, made[1].Time, made[1].Duration})
}
