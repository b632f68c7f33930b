// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// What rounding leaves of a mean goes to the next step: the sum of a small state over its time is what it was.
func TestCoarserKeepsSmallStates(t *testing.T) {
	m := &coarser{step: int64(time.Minute), rest: map[rowKey]float64{}}
	var chunks []*chunk
	for i := range int64(600) {
		var cols columns
		cols.stacks, cols.attributes, cols.links = []int32{1}, []int32{0}, []int32{0}
		cols.timestamps, cols.values = []int64{0}, []int64{i % 5 / 4} // a fifth of the time
		c := &chunk{start: i * 10e9, end: (i + 2) * 10e9, values: kind.Gauge, samples: 1}
		c.data = cols.encode(0)
		chunks = append(chunks, c)
	}
	m.gauges(chunks)
	sum := int64(0)
	for _, c := range m.out {
		sum += c.total * c.interval() / 10e9
	}
	require.Len(t, m.out, 101, "the last one holds for its own interval")
	require.InDelta(t, 120, sum, 6)
}
