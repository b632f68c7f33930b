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

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// reservedOf returns what a query reserves.
func reservedOf(t *testing.T, run func(context.Context, *size.Meter) (any, error)) (bytes int) {
	t.Helper()
	_, err := run(t.Context(), &size.Meter{Context: t.Context(), Reserve: func(n int) error { bytes += n; return nil }})
	require.NoError(t, err)
	return bytes
}

// addDay adds a day of a process: each minute CPU time, a state and a few observations. It becomes one block.
func addDay(t *testing.T, s *Store, day time.Time) {
	t.Helper()
	for hour := range 24 {
		b := profiletest.New().Resource("service.name", "shop", "k8s.pod.name", "shop-1")
		begun := day.Add(time.Duration(hour) * time.Hour)
		for at := begun; at.Before(begun.Add(time.Hour)); at = at.Add(time.Minute) {
			start := uint64(at.UnixNano())
			b.Profile("cpu", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Value(1e9, fmt.Sprint("f", at.Minute()%10), "main"))
			b.Profile("inuse_space", "bytes").Time(start, 0).Sample(profiletest.Value(1000, "f", "main"))
			b.Profile("off_cpu", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Observed([]uint64{start + 1e9, start + 2e9}, "wait", "main"))
		}
		require.Zero(t, s.Add(b.Build(), begun.Add(time.Hour-time.Nanosecond)).Refused)
		s.Maintain(begun.Add(time.Hour))
	}
	s.Maintain(day.Add(26 * time.Hour))
}

// The memory of a query follows from one block and its answer: a range of more days does not need more, nor does a
// minute of the first.
func TestMemoryOfAQueryDoesNotFollowFromItsRange(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	s := open(t, diskConfig(t, t.TempDir()))
	day := noon.Truncate(24 * time.Hour)
	queries := func() map[string]func(context.Context, *size.Meter) (any, error) {
		all := map[string]func(context.Context, *size.Meter) (any, error){}
		for _, profile := range []string{"process_cpu", "memory", "off_cpu"} {
			sel := model.Selection{Service: "shop", Profile: profile}
			for name, run := range allQueries(s, sel) {
				if name == "merge" && profile == "off_cpu" {
					continue // it has each observation
				}
				all[profile+": "+name] = run
			}
			sel.From, sel.Until = at(0), at(60)
			for name, run := range allQueries(s, sel) {
				all[profile+": "+name+" of a minute"] = run
			}
		}
		series, err := s.Series(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"})
		require.NoError(t, err)
		all["profiles of a series"] = func(ctx context.Context, m *size.Meter) (any, error) {
			q := answers.NewQuery(ctx, m, series, 0, 0, answers.Want{Stacks: true})
			q.Keep = func(*answers.Samples, int) bool { return true }
			return s.NameTree(ctx, q)
		}
		return all
	}
	addDay(t, s, day)
	require.Equal(t, 1, s.Stats().DiskBlocks)
	allocations := testing.AllocsPerRun(1, func() {
		_, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, 1000)
		require.NoError(t, err)
	})
	assert.Less(t, allocations, 2*24*60.0, "less than two for each profile")
	one := map[string]int{}
	for name, run := range queries() {
		one[name] = reservedOf(t, run)
	}
	const days = 3
	for i := 1; i < days; i++ {
		addDay(t, s, day.Add(time.Duration(i)*24*time.Hour))
	}
	require.Equal(t, days, s.Stats().DiskBlocks)
	for name, run := range queries() {
		assert.LessOrEqual(t, reservedOf(t, run), one[name]+256<<10, name)
	}
	require.NoError(t, s.Close())
}

// A part of a profile on disk is read in pieces, whose memory is reserved.
func TestPartOfALargeProfileOnDisk(t *testing.T) {
	profiletest.SkipLarge(t)
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 64 << 20
	s := open(t, cfg)
	times := make([]uint64, 400_000)
	for i := range times {
		times[i] = uint64(at(0)) + uint64(i)*100_000
	}
	add(t, s, "a", "off_cpu", "nanoseconds", 0, 40, profiletest.Observed(times, "wait", "main"))
	s.Maintain(noon.Add(2 * time.Hour))
	sel := model.Selection{Service: "shop", Profile: "off_cpu", From: at(10), Until: at(20)}
	for _, name := range []string{"flame graph", "groups", "timeline", "heat map"} {
		reserved := reservedOf(t, allQueries(s, sel)[name])
		assert.Less(t, reserved, 10<<20, name)
		assert.Greater(t, reserved, 4<<20, name)
	}
	assert.EqualValues(t, 100_000, sum(t, s, sel))
	require.NoError(t, s.Close())
}
