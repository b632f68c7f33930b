// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A sample's attribute counts beside that of its resource with the same key, and decides its group.
func TestAttributesOfSamplesAndResources(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	for i, region := range []string{"eu", "us", "asia"} {
		start := noon.Add(time.Duration(i) * time.Second)
		b := profiletest.New().Resource("service.name", "shop", "region", region).Profile("cpu", "nanoseconds").
			Time(uint64(start.UnixNano()), 1e9)
		b.Sample(profiletest.Value(10, "plain"))
		if region == "eu" {
			b.Sample(profiletest.Value(1, "abroad").With(profiletest.Attr("region", "us")))
		}
		require.Zero(t, s.Add(b.Build(), start.Add(time.Second)).Refused)
	}
	for _, where := range []string{"memory", "disk"} {
		if where == "disk" {
			s.Maintain(noon.Add(time.Hour))
			require.Positive(t, s.Stats().DiskBlocks)
		}
		for value, want := range map[string]int64{"eu": 11, "us": 11, "asia": 10} {
			sel := model.Selection{Service: "shop", Profile: "process_cpu",
				Attributes: []model.Attribute{{Key: "region", Value: value}}}
			require.Equal(t, want, sum(t, s, sel), "%s, %s", value, where)
		}
		g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu", GroupBy: "region"}, 100)
		require.NoError(t, err)
		groups := map[string]int64{}
		for i, parent := range g.Parent {
			if parent == 0 {
				groups[g.Frames[g.Frame[i]].Name] = g.Total[i]
			}
		}
		require.Equal(t, map[string]int64{"region=eu": 10, "region=us": 11, "region=asia": 10}, groups, where)
	}
}
