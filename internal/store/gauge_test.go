// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// No answer depends on how profiles are spread over blocks: a state that has ended before the selection does not come
// back because the block with the next state sorts before that with the state.
func TestALateStateInALaterBlock(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	memory := New(Config{Window: 100 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
	disk := open(t, diskConfig(t, t.TempDir()))
	ten := noon.Add(-2 * time.Hour)
	both := func(typ string, at, now time.Time, value int64) {
		for _, s := range []*Store{memory, disk} {
			s.Add(profiletest.New().Resource("service.name", "shop").Profile(typ, "bytes").Time(uint64(at.UnixNano()), 0).
				Sample(profiletest.Value(value, "leaf")).Build(), now)
		}
	}
	state := func(at, now time.Time, value int64) { both("inuse_space", at, now, value) }
	both("inuse_objects", ten, ten, 1)                           // the block of this hour begins at ten
	for _, minute := range []int{0, 1, 45, 120, 124, 140, 200} { // each minute, and an hour apart in the end
		at := ten.Add(time.Duration(minute) * time.Minute)
		if minute == 120 {
			disk.Maintain(ten.Add(time.Hour))
		}
		state(at, at, 100)
	}
	// what was late: it holds until the next one, at 10:45
	state(ten.Add(5*time.Minute), ten.Add(4*time.Hour+time.Minute), 7)
	write := func() {
		freeze(disk)
		require.NoError(t, disk.flush())
	}
	write()
	sel := model.Selection{Service: "shop", Profile: "memory", Type: "inuse_space",
		From: ten.Add(50 * time.Minute).UnixNano(), Until: ten.Add(60 * time.Minute).UnixNano()}
	want, got := sum(t, memory, sel), sum(t, disk, sel)
	disk.Maintain(ten.Add(5 * time.Hour)) // the quarter becomes one block
	assert.Equal(t, want, sum(t, disk, sel), "after the quarter became one block")
	assert.Equal(t, want, got)
	require.NoError(t, disk.Close())
}

// A time line of 20 seconds a step does not depend on the blocks: which have the parts of a state that was divided, or
// the states and the deltas of one series, as an unknown type has that sometimes has a duration.
func TestTimeLinesDoNotDependOnBlocks(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	type profile struct {
		second, seconds int
		value           int64
	}
	nan := math.NaN()
	for _, c := range []struct {
		typ  string
		list []profile
		want []float64
	}{
		{"inuse_space", []profile{{0, 0, 100}, {60, 0, 50}, {120, 0, 100}, {60, 0, 7}, {120, 0, 3}, {180, 0, 0}},
			[]float64{100, 100, 100, 57, 57, 57, 103, 103, 103}},
		{"widgets", []profile{{0, 0, 100}, {20, 10, 5}, {60, 0, 100}, {70, 10, 5}}, []float64{100, 5, nan, 105, nan}},
	} {
		for split := range c.list {
			s := open(t, diskConfig(t, t.TempDir()))
			hour := noon.Add(time.Hour)
			for i, p := range c.list {
				now := hour.Add(-time.Second) // the next block begins on the hour
				if i >= split {
					now = hour
				}
				s.Add(profiletest.New().Resource("service.name", "shop").Profile(c.typ, "bytes").
					Time(uint64(at(3480+p.second)), uint64(p.seconds)*1e9).Sample(profiletest.Value(p.value, "leaf")).Build(), now)
			}
			profiles, err := s.Catalog(t.Context(), "shop", nil)
			require.NoError(t, err)
			sel := model.Selection{Service: "shop", Profile: profiles[0].Profile, From: at(3480),
				Until: at(3480 + 20*len(c.want))}
			for _, hours := range []int{0, 3, 30} {
				s.Maintain(hour.Add(time.Duration(hours) * time.Hour))
				tl, err := s.Timeline(t.Context(), sel, len(c.want), hour)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(c.want), fmt.Sprint(tl.Groups[0].Values), "%s, %d, after %d hours", c.typ, split, hours)
			}
			require.NoError(t, s.Close())
		}
	}
}

// A state that is sent again counts once, a total, too, and a delta each time: at once, when newer ones are known, when
// its hour is on disk, and after a restart. Parts of a state that only differ in their functions all count.
func TestWhatIsSentAgain(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for _, c := range []struct {
		typ, profile, unit string
		seconds            uint64
		want               int64
	}{
		{"cpu", "process_cpu", "nanoseconds", 10, 6000}, {"inuse_space", "memory", "bytes", 0, 600},
		{"goroutine", "goroutine", "count", 0, 600}, {"widgets", "widgets", "things", 0, 600},
		{"alloc_space", "memory", "bytes", 0, 800},
	} {
		for _, when := range []string{"at once", "later", "on disk", "after a restart", "after a kill"} {
			t.Run(c.typ+" "+when, func(t *testing.T) {
				cfg := diskConfig(t, t.TempDir())
				s := open(t, cfg)
				ten := noon.Add(-2 * time.Hour) // within one quarter of a day
				now := ten
				send := func(i, part int) {
					s.Add(profiletest.New().Resource("service.name", "shop").Profile(c.typ, c.unit).
						Time(uint64(ten.Add(time.Duration(i)*time.Minute).UnixNano()), c.seconds*1e9).
						Sample(profiletest.Value(int64(100*(i+1)), "alloc", fmt.Sprint("caller", part))).Build(), now)
				}
				for i := range 5 {
					for part := range 2 {
						send(i, part)
						if when == "at once" {
							send(i, part)
						}
					}
					now = now.Add(time.Minute)
				}
				switch when {
				case "on disk":
					now = ten.Add(61 * time.Minute)
					s.Maintain(now)
				case "after a restart":
					require.NoError(t, s.Close())
					s = open(t, cfg)
				case "after a kill":
					require.NoError(t, s.Kill())
					s = open(t, cfg)
				}
				for i := range 5 {
					for part := range 2 {
						if when != "at once" {
							send(i, part)
						}
					}
				}
				sel := model.Selection{Service: "shop", Profile: c.profile, Type: c.typ, From: ten.UnixNano(),
					Until: ten.Add(5 * time.Minute).UnixNano()}
				for _, hours := range []int{0, 1, 9, 40} {
					s.Maintain(ten.Add(time.Duration(hours) * time.Hour))
					require.Equal(t, c.want, sum(t, s, sel), "after %d hours", hours)
				}
				require.NoError(t, s.Close())
			})
		}
	}
}
