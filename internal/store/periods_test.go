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

// addCounted adds a profile that counts samples of a period, one second of a function.
func addCounted(t *testing.T, s *Store, version, function string, second int, period int64) {
	t.Helper()
	pd := profiletest.New().Resource("service.name", "shop", "service.version", version).Profile("samples", "count").
		Time(uint64(at(second)), 1e9).Period(period, "cpu", "nanoseconds").
		Sample(profiletest.Value(1e9/period, function, "main")).Build()
	require.Zero(t, s.Add(pd, noon).Refused)
}

// Samples of different periods count as the time for which they stand, in every answer, in memory and on disk. Those of
// one period are counted.
func TestSamplesOfDifferentPeriods(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	addCounted(t, s, "1", "a", 0, 10_000_000)
	addCounted(t, s, "2", "b", 10, 50_000_000)
	all := model.Selection{Service: "shop", Profile: "process_cpu"}
	first := all
	first.Until = at(5)
	for _, where := range []string{"memory", "disk"} {
		if where == "disk" {
			s.Maintain(noon.Add(2 * time.Hour))
			require.Positive(t, s.Stats().DiskBlocks)
		}
		g, err := s.FlameGraph(t.Context(), all, 100)
		require.NoError(t, err)
		assert.Equal(t, model.SampleType{Type: "cpu", Unit: "nanoseconds"}, g.Type)
		for _, row := range g.Functions() {
			if row.Frame.Name != "main" {
				assert.EqualValues(t, 1e9, row.Self, row.Frame.Name)
			}
		}
		tl, err := s.Timeline(t.Context(), all, 1, noon.Add(time.Minute))
		require.NoError(t, err)
		assert.Equal(t, "cpu/nanoseconds", tl.Type.String())
		assert.InDelta(t, 2e9, tl.Groups[0].Values[0], 1)
		merged, err := s.Merge(t.Context(), all)
		require.NoError(t, err)
		p := encode(t, merged.Profiles)
		assert.Equal(t, "cpu", p.SampleType[0].Type)
		require.Len(t, p.Sample, 2)
		assert.Equal(t, []int64{1e9, 1e9}, []int64{p.Sample[0].Value[0], p.Sample[1].Value[0]})

		g, err = s.FlameGraph(t.Context(), first, 100)
		require.NoError(t, err)
		assert.Equal(t, "samples/count", g.Type.String())
		assert.EqualValues(t, 100, g.Total[0])

		one, two := all, all
		one.Attributes, two.Attributes = []model.Attribute{{Key: "service.version", Value: "1"}},
			[]model.Attribute{{Key: "service.version", Value: "2"}}
		d, err := s.Diff(t.Context(), one, two, 100)
		require.NoError(t, err)
		assert.Equal(t, "cpu/nanoseconds", d.Type.String(), "two versions are compared by time")
		assert.EqualValues(t, 1e9, d.Total[0])
		assert.EqualValues(t, 1e9, d.BaseTotal[0])
	}
}
