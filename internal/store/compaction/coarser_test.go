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
