// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// bounded returns a meter of a query that may take so many bytes.
func bounded(limit int) *size.Meter {
	left := limit
	return &size.Meter{Limit: limit, Reserve: func(n int) error {
		if left < n {
			return size.ErrFull
		}
		left -= n
		return nil
	}}
}

// The answer of a query whose functions need more memory than it may take has the large ones, and the totals of all. It
// is the same from disk.
func TestWhatDoesNotFitIsPruned(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	const functions, large = 100_000, 1 << 40
	s := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	total := int64(0)
	for profile := range 4 {
		var samples []profiletest.Sample
		for i := range functions / 4 {
			value := int64(i%7 + 1)
			total += value
			samples = append(samples, profiletest.Value(value, fmt.Sprint("f", profile*functions/4+i), "main"))
		}
		samples = append(samples, profiletest.Value(large, "large", "main"), profiletest.Value(3, "main"))
		total += large + 3
		require.Zero(t, add(t, s, "a", "cpu", "nanoseconds", 10*profile, 10, samples...).Refused)
	}
	for _, where := range []string{"memory", "disk"} {
		if where == "disk" {
			s.Maintain(noon.Add(time.Hour))
			require.Positive(t, s.Stats().DiskBlocks)
		}
		for name, q := range map[string]struct {
			limit, parts int
			selection    model.Selection
			isPruned     bool
		}{
			"room for all":        {256 << 20, 1, model.Selection{}, false},
			"too little":          {32 << 20, 1, model.Selection{}, true},
			"groups":              {32 << 20, 1, model.Selection{GroupBy: "service.instance.id"}, true},
			"a part of a profile": {32 << 20, 2, model.Selection{From: at(-5), Until: at(35)}, true},
		} {
			t.Run(where+" "+name, func(t *testing.T) {
				sel := q.selection
				sel.Service, sel.Profile, sel.Meter = "shop", "process_cpu", bounded(q.limit)
				g, err := s.FlameGraph(t.Context(), sel, functions*2)
				require.NoError(t, err)
				assert.Equal(t, q.isPruned, g.IsPruned)
				assert.Equal(t, q.isPruned, g.Truncated > 0)
				if q.parts == 1 {
					assert.Equal(t, total, g.Total[0])
				} else {
					sel.Meter = nil
					all, err := s.FlameGraph(t.Context(), sel, functions*2)
					require.NoError(t, err)
					assert.InDelta(t, all.Total[0], g.Total[0], functions)
				}
				rows := g.Functions()
				assert.Greater(t, len(rows), 1000)
				byName := map[string]answers.FunctionRow{}
				for _, row := range rows {
					byName[row.Frame.Name] = row
				}
				assert.Greater(t, byName["large"].Self, int64(3*large))
				if q.parts == 1 {
					assert.Equal(t, int64(4*large), byName["large"].Self)
					assert.Equal(t, int64(4*3), byName["main"].Self, "what is left out is not part of its parent's own value")
					assert.Equal(t, total, byName["main"].Total)
				}
			})
		}
	}
}

// A query that ends for another reason than its size is not repeated, and one that cannot be made small enough is
// refused.
func TestWhatCannotBePrunedIsRefused(t *testing.T) {
	s := New(testConfig())
	add(t, s, "a", "cpu", "nanoseconds", 0, 10, profiletest.Value(1, "leaf", "main"))
	errBusy := errors.New("busy")
	for _, reason := range []error{errBusy, size.ErrFull} {
		_, err := s.FlameGraph(t.Context(), model.Selection{
			Service: "shop", Profile: "process_cpu", Meter: &size.Meter{Limit: 1, Reserve: func(int) error { return reason }},
		}, 1000)
		require.ErrorIs(t, err, reason)
	}
}

// A query that prunes its answer takes no more memory than it reserves.
func TestPruningReservesItsMemory(t *testing.T) {
	profiletest.SkipLarge(t)
	s := fullStore(t, 64<<20)
	first := s.profiles("")[0]
	var g *answers.Graph
	profiletest.RequireReserved(t, profiletest.Bound{}, 8<<20, func(reserve func(int) error) {
		meter := bounded(32 << 20)
		limited := meter.Reserve
		meter.Reserve = func(n int) error {
			if err := limited(n); err != nil {
				return err
			}
			return reserve(n)
		}
		var err error
		g, err = s.FlameGraph(t.Context(), model.Selection{Service: first.Service, Profile: first.Profile, Meter: meter},
			500_000)
		require.NoError(t, err)
	})
	assert.True(t, g.IsPruned)
}

// A pprof that needs more memory than a query may take has the largest samples of each type, whole, and the totals of
// all, also over several blocks, and by weight.
func TestPprofThatDoesNotFitIsPruned(t *testing.T) {
	profiletest.SkipLarge(t)
	const functions = 32_000
	s := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	for profile := range 4 {
		var objects, bytes []profiletest.Sample
		for i := range functions / 4 {
			stack := []string{fmt.Sprint("f", profile*functions/4+i), "middle", fmt.Sprint("main", i%3)}
			objects = append(objects, profiletest.Value(int64(i%7+1), stack...))
			bytes = append(bytes, profiletest.Value(int64(i%5+1), stack...))
		}
		objects = append(objects, profiletest.Value(1<<40, "large", "main").With(profiletest.Attr("key", "a")))
		bytes = append(bytes, profiletest.Value(1<<40, "holds", "main").With(profiletest.Attr("key", "b")))
		start := uint64(at(10 * profile))
		s.Add(profiletest.New().Resource("service.name", "shop").Profile("inuse_objects", "count").Time(start, 0).
			Sample(objects...).
			Profile("inuse_space", "bytes").Time(start, 0).Sample(bytes...).Build(), noon)
	}
	s.Maintain(noon.Add(time.Hour))
	require.Positive(t, s.Stats().DiskBlocks)
	for _, sel := range []model.Selection{{}, {From: at(5), Until: at(35)}} {
		sel.Service, sel.Profile = "shop", "memory"
		all, err := s.Merge(t.Context(), sel)
		require.NoError(t, err)
		require.Zero(t, all.LeftOut)
		sel.Meter = bounded(12 << 20)
		merged, err := s.Merge(t.Context(), sel)
		require.NoError(t, err)
		require.NoError(t, profiletest.Check(merged.Profiles))
		require.Positive(t, merged.LeftOut)
		want, got := encode(t, all.Profiles), encode(t, merged.Profiles)
		require.Contains(t, got.Comments[len(got.Comments)-1],
			fmt.Sprintf("The %d smallest samples are left out", merged.LeftOut))
		assert.Greater(t, len(got.Sample), 256, "a quarter of the fewest that are pruned")
		wholes, sums := [2]int64{}, [2]int64{}
		large := map[string]int64{}
		for side, p := range []*profile.Profile{want, got} {
			for _, sample := range p.Sample {
				for i, v := range sample.Value {
					if side == 0 {
						wholes[i] += v
					} else {
						sums[i] += v
					}
				}
				if key := sample.Label["key"]; key != nil && side == 1 {
					large[key[0]+" "+sample.Location[0].Line[0].Function.Name] += sample.Value[0] + sample.Value[1]
				}
			}
		}
		for i := range wholes {
			assert.InDelta(t, wholes[i], sums[i], functions, "each sample is rounded")
		}
		assert.Len(t, large, 2)
		for _, name := range []string{"a large", "b holds"} {
			assert.Greater(t, large[name], int64(1<<39))
		}
	}
}
