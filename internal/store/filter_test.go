// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A sample's attribute counts beside that of its resource with the same key, but not beside that of its profile, and
// decides its group: in memory, on disk, and in an engine, which is asked for those of samples only where a resource
// has the key, too.
func TestAttributesOfSamplesAndResources(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	type sample struct {
		value      int64
		key, other string
	}
	type series struct {
		resource, profile string // regions
		samples           []sample
	}
	plain, abroad := sample{value: 10}, sample{1, "region", "us"}
	for name, c := range map[string]struct {
		list []series
		// groups and byValue are the sums by region, and of the samples of one.
		groups, byValue map[string]int64
		isAsked         bool
	}{
		"resources alone": {[]series{{"eu", "", []sample{plain}}, {"us", "", []sample{plain}}},
			map[string]int64{"eu": 10, "us": 10}, map[string]int64{"eu": 10, "us": 10}, false},
		"samples with another attribute": {[]series{{"eu", "", []sample{plain, {1, "thread", "a"}}}},
			map[string]int64{"eu": 11}, map[string]int64{"eu": 11}, true},
		"samples with their own": {
			[]series{{"eu", "", []sample{plain, abroad}}, {"asia", "", []sample{plain}}, {"", "", []sample{{value: 3}}}},
			map[string]int64{"eu": 10, "us": 1, "asia": 10, answers.NoGroup: 3},
			map[string]int64{"eu": 11, "us": 1, "asia": 10}, true},
		"a profile decides": {[]series{{"eu", "asia", []sample{plain, abroad}}},
			map[string]int64{"asia": 11}, map[string]int64{"asia": 11, "us": 0}, false},
		"samples alone": {[]series{{"", "", []sample{plain, abroad}}},
			map[string]int64{answers.NoGroup: 10, "us": 1}, map[string]int64{"us": 1}, false},
	} {
		b := profiletest.New()
		for i, in := range c.list {
			resource := []any{"service.name", "shop", "service.instance.id", string(rune('a' + i))}
			if in.resource != "" {
				resource = append(resource, "region", in.resource)
			}
			b.Resource(resource...).Profile("cpu", "nanoseconds").Time(uint64(noon.UnixNano()), 1e9)
			if in.profile != "" {
				b.Attributes(profiletest.Attr("region", in.profile))
			}
			for _, s := range in.samples {
				one := profiletest.Value(s.value, "leaf")
				if s.key != "" {
					one = one.With(profiletest.Attr(s.key, s.other))
				}
				b.Sample(one)
			}
		}
		memory, disk, engine := New(testConfig()), open(t, diskConfig(t, t.TempDir())), &fakeEngine{}
		pd := b.Build()
		require.Zero(t, memory.Add(pd, noon).Refused)
		require.Zero(t, disk.Add(pd, noon).Refused)
		engine.add(pd)
		disk.Maintain(noon.Add(time.Hour))
		require.Positive(t, disk.Stats().DiskBlocks)
		source := answers.NewEngineSource(engine, time.Hour, time.Second, func() time.Time { return noon.Add(time.Minute) })
		for where, s := range map[string]*answers.Querier{"memory": memory.Querier, "disk": disk.Querier,
			"engine": source.Querier} {
			t.Run(name+" "+where, func(t *testing.T) {
				sel := model.Selection{Service: "shop", Profile: "process_cpu", GroupBy: "region"}
				g, err := s.FlameGraph(t.Context(), sel, 100)
				require.NoError(t, err)
				groups := map[string]int64{}
				for i, parent := range g.Parent {
					if i > 0 && parent == 0 {
						groups[g.Frames[g.Frame[i]].Name[len("region="):]] += g.Total[i]
					}
				}
				require.Equal(t, c.groups, groups)
				line, err := s.Timeline(t.Context(), sel, 10, noon.Add(time.Minute))
				require.NoError(t, err)
				var names []string
				for _, group := range line.Groups {
					names = append(names, group.Name)
				}
				require.ElementsMatch(t, slices.Collect(maps.Keys(c.groups)), names)
				require.Equal(t, c.isAsked && where == "engine", len(engine.asked) > 0 && where == "engine")
				sel.GroupBy = ""
				for value, want := range c.byValue {
					sel.Attributes = []model.Attribute{{Key: "region", Value: value}}
					g, err := s.FlameGraph(t.Context(), sel, 100)
					require.NoError(t, err)
					require.Equal(t, want, g.Total[0], value)
				}
			})
		}
		require.NoError(t, disk.Close())
	}
}
