// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// valuesAt is a profile that arrives: its time, and the value of each function.
type valuesAt struct {
	second int
	values map[string]int64
}

// selfOf adds the profiles one after the other, and returns the value of each function in the hour. A store on disk is
// killed before each profile.
func selfOf(t *testing.T, onDisk bool, profile, typ string, seconds int, list []valuesAt) map[string]int64 {
	t.Helper()
	cfg := testConfig()
	if onDisk {
		cfg = diskConfig(t, t.TempDir())
	}
	s := open(t, cfg)
	for _, p := range list {
		if onDisk {
			require.NoError(t, s.Kill())
			s = open(t, cfg)
		}
		var samples []profiletest.Sample
		for function, value := range p.values {
			samples = append(samples, profiletest.Value(value, function))
		}
		require.Zero(t, add(t, s, "x", typ, "count", p.second, seconds, samples...).Refused)
	}
	g, err := s.FlameGraph(context.Background(),
		model.Selection{Service: "shop", Profile: profile, From: at(0), Until: at(3600)}, 1000)
	require.NoError(t, err)
	self, total := map[string]int64{}, int64(0)
	for _, row := range g.Functions() {
		if row.Self != 0 {
			self[row.Frame.Name] = row.Self
		}
		total += row.Self
	}
	if total > math.MinInt64/2 && total < math.MaxInt64/2 {
		assert.Equal(t, total, g.Total[0])
	}
	require.NoError(t, s.Close())
	return self
}

// Totals are what each function was observed to add, whatever the parts in which a profile arrives, how often it is
// sent, and when the process restarts.
func TestTotalsOverTime(t *testing.T) {
	type values = map[string]int64
	for name, tt := range map[string]struct {
		list []valuesAt
		want values
	}{
		"one after the other": {[]valuesAt{{0, values{"a": 10, "b": 5}}, {10, values{"a": 12, "b": 5}},
			{20, values{"a": 12, "b": 9}}}, values{"a": 2, "b": 4}},
		"a restart": {[]valuesAt{{0, values{"a": 10, "b": 5}}, {10, values{"a": 3, "b": 1}}, {20, values{"a": 4, "b": 1}}},
			values{"a": 4, "b": 1}},
		"a restart whose sum is larger": {[]valuesAt{{0, values{"a": 10, "b": 5}}, {10, values{"a": 1, "c": 20}},
			{20, values{"a": 2, "c": 21}}}, values{"a": 2, "c": 21}},
		"a restart that outweighs what was before": {[]valuesAt{{0, values{"a": 10, "b": 5}}, {10, values{"a": 12, "b": 6}},
			{20, values{"a": 3, "b": 20}}, {30, values{"a": 4, "b": 21}}}, values{"a": 6, "b": 22}},
		"an estimate that falls": {[]valuesAt{{0, values{"a": 1000, "b": 10}}, {10, values{"a": 1100, "b": 9}},
			{20, values{"a": 1101, "b": 12}}}, values{"a": 101, "b": 2}},
		"a fall of a 64th": {[]valuesAt{{0, values{"a": 640}}, {10, values{"a": 630}}, {20, values{"a": 641}}},
			values{"a": 1}},
		"a fall of more than a 64th": {[]valuesAt{{0, values{"a": 640}}, {10, values{"a": 629}}}, values{"a": 629}},
		"a function that was not seen again": {[]valuesAt{{0, values{"a": 10, "b": 5}}, {10, values{"a": 10}},
			{20, values{"a": 11}}}, values{"a": 1}},
		"sent again": {[]valuesAt{{0, values{"a": 10}}, {0, values{"a": 10}}, {10, values{"a": 12}}, {10, values{"a": 12}}},
			values{"a": 2}},
		"parts": {[]valuesAt{{0, values{"a": 1000}}, {0, values{"b": 10}}, {0, values{"c": 5}},
			{10, values{"a": 1001, "b": 11}}, {10, values{"c": 7}}, {20, values{"a": 1002}}, {20, values{"b": 13, "c": 7}}},
			values{"a": 2, "b": 3, "c": 2}},
		"parts that are sent again": {[]valuesAt{{0, values{"a": 1000}}, {0, values{"b": 10}}, {10, values{"a": 1001}},
			{10, values{"b": 12}}, {10, values{"a": 1001}}, {10, values{"b": 12}}}, values{"a": 1, "b": 2}},
		"parts and a restart": {[]valuesAt{{0, values{"a": 1000}}, {0, values{"b": 10}}, {10, values{"a": 7}},
			{10, values{"b": 11}}, {20, values{"a": 8}}, {20, values{"b": 12}}}, values{"a": 8, "b": 12}},
	} {
		for _, onDisk := range []bool{false, true} {
			assert.Equal(t, tt.want, selfOf(t, onDisk, "memory", "alloc_space", 0, tt.list), "%s, on disk: %t", name, onDisk)
		}
	}
}

// The parts of a state that was divided are added up, in the graph and over time, and count once however often they are
// sent; also on a day that is coarser.
func TestPartsOfStates(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.Disk.Downsampling = Downsampling{After: time.Hour, Step: 10 * time.Minute}
	disk, memory := open(t, cfg), New(testConfig())
	for second := 0; second < 120; second += 10 {
		for _, function := range []string{"a", "b", "a", "c", "c", "b"} {
			for _, s := range []*Store{disk, memory} {
				add(t, s, "x", "goroutine", "count", second, 0, profiletest.Value(2, function))
			}
			require.NoError(t, disk.Kill())
			disk = open(t, cfg)
		}
	}
	check := func(s *Store, name string) {
		for _, last := range []bool{false, true} {
			sel := model.Selection{Service: "shop", Profile: "goroutine", From: at(0), Until: at(110), LastState: last}
			assert.EqualValues(t, 6, sum(t, s, sel), "%s, last: %t", name, last)
			line, err := s.Timeline(t.Context(), sel, 11, noon.Add(time.Minute))
			require.NoError(t, err)
			for _, value := range line.Groups[0].Values {
				assert.EqualValues(t, 6, value, name)
			}
		}
	}
	check(memory, "memory")
	check(disk, "disk")
	disk.Maintain(noon.Add(2 * time.Hour))
	check(disk, "a block")
	disk.Maintain(noon.Add(49 * time.Hour)) // a coarser one, an hour after the clock was set
	disk.Maintain(noon.Add(50 * time.Hour))
	require.NotZero(t, disk.Blocks()[0].Step)
	check(disk, "a coarser day")
	require.NoError(t, disk.Close())
}

// Totals of several series go on in the next block, whose dictionary has their stacks in another order.
func TestTotalsInTheNextBlock(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	for round := range 3 {
		value := int64(10 * (1 + round))
		add(t, s, "x", "alloc_space", "bytes", 10*round, 0, profiletest.Value(value, "a"), profiletest.Value(2*value, "b"))
		add(t, s, "y", "alloc_space", "bytes", 10*round+1, 0, profiletest.Value(value, "c"), profiletest.Value(2*value, "b"))
		freeze(s)
	}
	g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "memory"}, 100)
	require.NoError(t, err)
	self := map[string]int64{}
	for _, row := range g.Functions() {
		self[row.Frame.Name] = row.Self
	}
	assert.Equal(t, map[string]int64{"a": 20, "b": 80, "c": 20}, self)
	require.NoError(t, s.Close())
}

// A part of a state is not taken for another one because a new block gives its function the same number.
func TestPartsOfAStateInTwoBlocks(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	for _, function := range []string{"a", "b"} {
		add(t, s, "x", "goroutine", "count", 0, 0, profiletest.Value(2, function))
		freeze(s)
	}
	assert.EqualValues(t, 4, sum(t, s, model.Selection{Service: "shop", Profile: "goroutine", From: at(0), Until: at(10)}))
	require.NoError(t, s.Close())
}

// Sums that exceed 64 bits are the largest number, not a negative one.
func TestSumsDoNotWrap(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for typ, profile := range map[string]string{"cpu": "process_cpu", "inuse_space": "memory"} {
		for _, onDisk := range []bool{false, true} {
			list := []valuesAt{{0, map[string]int64{"a": most, "b": most, "c": least}},
				{10, map[string]int64{"a": most, "c": least}}}
			if typ == "inuse_space" {
				list[1].values["b"] = most
			}
			assert.Equal(t, map[string]int64{"a": most, "b": most, "c": least}, selfOf(t, onDisk, profile, typ, 10, list), typ)
		}
	}
	s := New(testConfig())
	add(t, s, "x", "cpu", "nanoseconds", 0, 10, profiletest.Value(most, "a"), profiletest.Value(most, "b"))
	assert.EqualValues(t, most, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
}

// Values below zero, as those of a difference of two heaps, count in every view.
func TestValuesBelowZeroCount(t *testing.T) {
	for typ, seconds := range map[string]int{"cpu": 10, "inuse_space": 0} {
		inMemoryAndOnDisk(t, testConfig(), func(t *testing.T, s *Store) {
			add(t, s, "x", typ, "bytes", 0, seconds, profiletest.Value(500, "grow"), profiletest.Value(-300, "shrink"))
			s.Maintain(noon.Add(time.Hour))
			profiles, err := s.Catalog(t.Context(), "shop", nil)
			require.NoError(t, err)
			sel := model.Selection{Service: "shop", Profile: profiles[0].Profile, From: at(0), Until: at(10)}
			line, err := s.Timeline(t.Context(), sel, 1, noon.Add(time.Minute))
			require.NoError(t, err)
			assert.Equal(t, []float64{200}, line.Groups[0].Values, typ)
			assert.EqualValues(t, 200, sum(t, s, sel), typ)
			merged, err := s.Merge(t.Context(), sel)
			require.NoError(t, err)
			total := int64(0)
			for _, sample := range encode(t, merged.Profiles).Sample {
				total += sample.Value[0]
			}
			assert.EqualValues(t, 200, total, typ)
		})
	}
}
