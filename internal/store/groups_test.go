// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// largest returns the sums of the 32 largest values, by size and then by name, and of all others, whose number it
// returns, too. Sizes decides, if it is given.
func largest(sums, sizes map[string]int64) (named map[string]int64, others int) {
	var names []string
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	named = map[string]int64{}
	for i, name := range names {
		if i >= 32 {
			name = answers.OtherGroup
		}
		if named[name] += sums[names[i]]; named[name] == 0 {
			delete(named, name)
		}
	}
	return named, max(0, len(names)-32)
}

// groupsOf returns the totals of a graph's groups, or those of its base.
func groupsOf(g *answers.Graph, key string, totals []int64) map[string]int64 {
	groups := map[string]int64{}
	for i, parent := range g.Parent {
		if i > 0 && parent == 0 && totals[i] != 0 {
			groups[strings.TrimPrefix(g.Frames[g.Frame[i]].Name, key+"=")] = totals[i]
		}
	}
	return groups
}

// The values with the largest sums of an answer have a group each, in whatever order they come, whichever blocks have
// them, and on whichever side of a comparison; all others are one group, and the answer says how many these are.
func TestLargestGroups(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		key := []string{"service.instance.id", "request"}[seed%2] // of resources, of samples
		disk, engine := open(t, diskConfig(t, t.TempDir())), &fakeEngine{}
		sums := [2]map[string]int64{{}, {}} // of the first hour, and of the second
		start := func(hour, i int) time.Time {
			return noon.Add(time.Duration(hour)*time.Hour + time.Duration(i)*4*time.Second)
		}
		for hour := range sums {
			for i := range 600 {
				name := fmt.Sprintf("v%02d", rnd.IntN(90))
				value := []int64{1000, 1000, 1000, 5, -4000, 7}[rnd.IntN(6)] // many are equal
				sums[hour][name] += value
				resource, sample := []any{"service.name", "shop"}, profiletest.Value(value, "leaf")
				if key == "request" {
					sample = sample.With(profiletest.Attr(key, name))
				} else {
					resource = append(resource, key, name)
				}
				pd := profiletest.New().Resource(resource...).Profile("cpu", "nanoseconds").
					Time(uint64(start(hour, i).UnixNano()), 2e9).Sample(sample).Build()
				require.Zero(t, disk.Add(pd, start(hour, i)).Refused)
				engine.add(pd)
			}
			disk.Maintain(start(hour+1, 0))
		}
		now := start(2, 0)
		check := func(what string, s *answers.Querier) {
			sel := model.Selection{Service: "shop", Profile: "process_cpu", GroupBy: key, From: start(0, 0).UnixNano(),
				Until: start(1, 0).UnixNano()}
			base := sel
			base.From, base.Until = sel.Until, now.UnixNano()
			want, others := largest(sums[0], sizesOf(sums[0]))
			g, err := s.FlameGraph(t.Context(), sel, 10_000)
			require.NoError(t, err)
			require.Equal(t, want, groupsOf(g, key, g.Total), "%d %s", seed, what)
			require.Equal(t, others, g.MoreGroups, what)
			tl, err := s.Timeline(t.Context(), sel, 10, now)
			require.NoError(t, err)
			line := map[string]int64{}
			for _, group := range tl.Groups {
				if sum, _ := answers.Sum(group.Values); sum != 0 {
					line[group.Name] = int64(sum)
				}
			}
			require.Equal(t, want, line, "%d %s", seed, what)
			require.Equal(t, others, tl.MoreGroups, what)
			sizes := sizesOf(sums[0])
			for name, value := range sizesOf(sums[1]) {
				sizes[name] = max(sizes[name], value)
			}
			d, err := s.Diff(t.Context(), sel, base, 10_000)
			require.NoError(t, err)
			want, others = largest(sums[0], sizes)
			require.Equal(t, want, groupsOf(d, key, d.Total), "%d %s", seed, what)
			want, _ = largest(sums[1], sizes)
			require.Equal(t, want, groupsOf(d, key, d.BaseTotal), "%d %s", seed, what)
			require.Equal(t, others, d.MoreGroups, what)
		}
		check("engine", answers.NewEngineSource(engine, 3*time.Hour, time.Second, func() time.Time { return now }).Querier)
		for _, hours := range []int{0, 7, 30, 60} {
			disk.Maintain(now.Add(time.Duration(hours) * time.Hour))
			check(fmt.Sprint("disk ", hours), disk.Querier)
		}
		require.NoError(t, disk.Close())
	}
}

func sizesOf(sums map[string]int64) map[string]int64 {
	sizes := map[string]int64{}
	for name, sum := range sums {
		sizes[name] = max(sum, -sum)
	}
	return sizes
}

// More values than there is memory for are counted in parts.
func TestVeryManyGroups(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	const blocks, perBlock = 3, 30_000
	s := open(t, diskConfig(t, t.TempDir()))
	sums := map[string]int64{}
	for hour := range blocks {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
			Time(uint64(at(3600*hour)), 1e9)
		for i := range perBlock {
			name, value := fmt.Sprintf("request %d.%d", hour, i), int64(1+i%5000)
			sums[name] = value
			b.Sample(profiletest.Value(value, "leaf").With(profiletest.Attr("request", name)))
		}
		require.Zero(t, s.Add(b.Build(), noon.Add(time.Duration(hour)*time.Hour)).Refused)
		s.Maintain(noon.Add(time.Duration(hour+1) * time.Hour))
	}
	sel := model.Selection{Service: "shop", Profile: "process_cpu", GroupBy: "request"}
	want, others := largest(sums, sums)
	for _, limit := range []int{0, 40 << 20} {
		if sel.Meter = nil; limit > 0 {
			sel.Meter = bounded(limit)
		}
		g, err := s.FlameGraph(t.Context(), sel, 1000)
		require.NoError(t, err)
		require.Equal(t, want, groupsOf(g, "request", g.Total))
		require.Equal(t, others, g.MoreGroups)
	}
	require.NoError(t, s.Close())
}
