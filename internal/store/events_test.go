// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const ms = int64(time.Millisecond)

// event is an observation of a goroutine, with its end after noon and its length, both in milliseconds.
func event(end, length int64, goroutine, state string, stack ...string) profiletest.Sample {
	sample := profiletest.Observed([]uint64{uint64(at(0) + end*ms)}, stack...)
	sample.Values = []int64{length * ms}
	return sample.With(profiletest.Attr("go.goroutine.id", goroutine), profiletest.Attr("go.goroutine.state", state))
}

// addEvents adds ten seconds of a goroutine that waits for 30 ms each second, and what it does between.
func addEvents(t testing.TB, s *Store) {
	t.Helper()
	var waits, runs []profiletest.Sample
	for second := range int64(10) {
		waits = append(waits, event(second*1000+530, 30, "7", "sync", "lock", "work"))
		runs = append(runs, event(second*1000+500, 100, "7", "running", "work"))
	}
	waits = append(waits, event(9000, 8000, "8", "select", "wait"))
	b := profiletest.New().Resource("service.name", "shop").
		Profile("off_cpu", "nanoseconds").Time(uint64(at(0)), 10e9).Sample(waits...).
		Profile("on_cpu", "nanoseconds").Time(uint64(at(0)), 10e9).Sample(runs...)
	require.Zero(t, s.Add(b.Build(), noon.Add(10*time.Second)).Refused)
}

// A stall of 30 ms in each second has the same rows in every column.
func TestHeatMapShowsAStall(t *testing.T) {
	s := New(testConfig())
	addEvents(t, s)
	sel := model.Selection{Service: "shop", Profile: "off_cpu",
		Attributes: []model.Attribute{{Key: "go.goroutine.id", Value: "7"}}}
	h, err := s.HeatMap(context.Background(), sel, 600, 50)
	require.NoError(t, err)
	assert.Equal(t, at(0), h.From)
	assert.Equal(t, [4]int{10, 50, 1, 10}, [4]int{h.Columns, h.Rows, h.Seconds, h.Observations})
	for column := range h.Columns {
		for row := range h.Rows {
			want := map[int]float64{25: float64(20 * ms), 26: float64(10 * ms)}[row] // 500 to 530 ms in rows of 20 ms
			assert.InDelta(t, want, h.Cells[column*h.Rows+row], 1, "column %d, row %d", column, row)
		}
	}
	folded, err := s.HeatMap(context.Background(), sel, 5, 50)
	require.NoError(t, err)
	assert.Equal(t, [2]int{5, 2}, [2]int{folded.Columns, folded.Seconds})
	assert.InDelta(t, float64(40*ms), folded.Cells[25], 1)

	sel.Attributes[0].Value = "8"
	h, err = s.HeatMap(context.Background(), sel, 600, 50)
	require.NoError(t, err)
	total := 0.0
	for _, value := range h.Cells {
		total += value
	}
	assert.InDelta(t, float64(8000*ms), total, 1000, "spread over the whole of its time")
	assert.InDelta(t, float64(20*ms), h.Cells[5*50+7], 1)
}

func TestEventsOfGoroutines(t *testing.T) {
	s := New(testConfig())
	addEvents(t, s)
	events, err := s.Events(context.Background(), model.Selection{Service: "shop", From: at(2), Until: at(3)}, 100)
	require.NoError(t, err)
	assert.Equal(t, []string{"goroutine 7", "goroutine 8"}, events.Lanes)
	var got []string
	for _, e := range events.List {
		names := ""
		for _, frame := range events.Stacks[e.Stack] {
			names += "/" + events.Frames[frame].Name
		}
		got = append(got, fmt.Sprintf("%s %s %d-%d %s", events.Lanes[e.Lane], events.States[e.State], (e.Start-at(0))/ms,
			(e.End-at(0))/ms, names))
	}
	assert.Equal(t, []string{
		"goroutine 8 select 1000-9000 /wait", // it has a part in that second
		"goroutine 7 running 2400-2500 /work",
		"goroutine 7 sync 2500-2530 /lock/work",
	}, got)

	events, err = s.Events(context.Background(), model.Selection{Service: "shop", From: at(2), Until: at(2) + 400*ms}, 100)
	require.NoError(t, err)
	assert.Len(t, events.List, 1, "what begins with the end is not in the time")

	events, err = s.Events(context.Background(), model.Selection{Service: "shop"}, 11)
	require.NoError(t, err)
	assert.Equal(t, 10, events.LeftOut, "the shorter ones")
	assert.Len(t, events.List, 11)

	_, err = s.Events(context.Background(), model.Selection{Service: "nobody"}, 11)
	require.ErrorIs(t, err, model.ErrNothing)
}

// Two instances have a goroutine 7 each.
func TestEventsDistinguishInstances(t *testing.T) {
	s := New(testConfig())
	for _, instance := range []string{"a", "b"} {
		add(t, s, instance, "off_cpu", "nanoseconds", 0, 10, event(100, 10, "7", "sync", "lock"))
	}
	events, err := s.Events(context.Background(), model.Selection{Service: "shop"}, 10)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"goroutine 7 · a", "goroutine 7 · b"}, events.Lanes)
}

// A value of a century costs as much as one of a millisecond.
func TestHeatMapOfLongValues(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	s := New(testConfig())
	samples := make([]profiletest.Sample, 0, 2000)
	for i := range int64(2000) {
		samples = append(samples, event(i, 1e11, "7", "sync", "lock"))
	}
	add(t, s, "a", "off_cpu", "nanoseconds", 0, 3600, samples...)
	h, err := s.HeatMap(context.Background(), model.Selection{Service: "shop", Profile: "off_cpu"}, 1200, 200)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(h.Cells), 1200*200)
	for _, value := range h.Cells {
		assert.GreaterOrEqual(t, value, 0.0)
	}
}

// States count in the heat map as in the flame graph: as their mean.
func TestHeatMapWeighsStates(t *testing.T) {
	s := New(testConfig())
	for i := range 4 {
		live := profiletest.Observed([]uint64{uint64(at(10*i) + 500*ms)}, "leaf")
		live.Values = []int64{100}
		add(t, s, "a", "live_space", "bytes", 10*i, 10, live)
	}
	sel := model.Selection{Service: "shop", Profile: "memory"}
	graph, err := s.FlameGraph(context.Background(), sel, 100)
	require.NoError(t, err)
	h, err := s.HeatMap(context.Background(), sel, 600, 10)
	require.NoError(t, err)
	total := 0.0
	for _, value := range h.Cells {
		total += value
	}
	assert.InDelta(t, 100, total, 0.01)
	assert.EqualValues(t, 100, graph.Total[0])
	assert.Equal(t, 4, h.Observations)
}

// A heat map of more than an hour has its last hour.
func TestHeatMapOfALongTime(t *testing.T) {
	s := New(testConfig())
	add(t, s, "x", "off_cpu", "nanoseconds", 0, 4000, profiletest.Observed([]uint64{uint64(at(500)), uint64(at(3999))}, "wait"))
	h, err := s.HeatMap(t.Context(), model.Selection{Service: "shop", Profile: "off_cpu", From: at(10)}, 600, 50)
	require.NoError(t, err)
	assert.True(t, h.IsCut)
	assert.Equal(t, at(400), h.From)
	assert.Equal(t, 2, h.Observations)
}

// What a time line has of a profile that is cut is what its observations in the selected time add up to.
func TestTimeLineOfAPart(t *testing.T) {
	s := New(Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20})
	b := profiletest.New().Resource("service.name", "shop").Profile("off_cpu", "nanoseconds").Time(uint64(at(0)), 60e9)
	for second := range uint64(60) {
		observed := profiletest.Value(10, "wait")
		observed.Timestamps = []uint64{uint64(at(0)) + second*1e9}
		b.Sample(observed)
	}
	s.Add(b.Build(), noon.Add(time.Minute))
	sel := model.Selection{Service: "shop", Profile: "off_cpu", From: at(20), Until: at(50)}
	require.EqualValues(t, 300, sum(t, s, sel))
	tl, err := s.Timeline(t.Context(), sel, 3, noon.Add(time.Minute))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{100, 100, 100}, tl.Groups[0].Values, 1e-6)
}
