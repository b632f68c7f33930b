// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The flame graph, the time line and the pprof of a selection have one total.
func TestOneTotal(t *testing.T) {
	for _, falls := range []bool{false, true} {
		s := New(testConfig())
		second := []profiletest.Sample{profiletest.Value(300, "a"), profiletest.Value(150, "b")}
		if falls { // b's total falls, that of all rises: two processes share a series, or the profiler has dropped a stack
			second[1] = profiletest.Value(50, "b")
		}
		add(t, s, "x", "alloc_space", "bytes", 0, 0, profiletest.Value(100, "a"), profiletest.Value(100, "b"))
		add(t, s, "x", "alloc_space", "bytes", 10, 0, second...)
		sel := model.Selection{Service: "shop", Profile: "memory", From: at(0), Until: at(10)}
		tl, err := s.Timeline(t.Context(), sel, 1, noon.Add(time.Minute))
		require.NoError(t, err)
		merged, err := s.Merge(t.Context(), sel)
		require.NoError(t, err)
		total := int64(0)
		for _, sample := range encode(t, merged.Profiles).Sample {
			total += sample.Value[0]
		}
		assert.EqualValues(t, total, sum(t, s, sel), "falls: %t", falls)
		shown := 0.0
		for _, v := range tl.Groups[0].Values {
			shown += v
		}
		assert.InDelta(t, total, shown, 0.5)
	}
}
