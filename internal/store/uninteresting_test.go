// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A tree leaves out what `go tool pprof` leaves out, with what it calls, and adds its values to its callers. The stored
// profile keeps it.
func TestDroppedFrames(t *testing.T) {
	const drop, keep = "malloc|tcmalloc::.*|operator new", "tcmalloc::Kept"
	stacks := []string{ // root first
		"main;use;malloc;tcmalloc::Allocate(int);sys", "main;use", "malloc;sys", "main;tcmalloc::Kept;leaf",
		"main;operator new(unsigned long);x",
		"main;mymalloc;leaf", "main;use;operator()(int);leaf", "main;(anonymous namespace)::f(int)",
	}
	s := New(testConfig())
	b := profiletest.New().Resource("service.name", "shop").Profile("inuse_space", "bytes").Time(uint64(at(0)), 0).
		Attributes(profiletest.Attr("pprof.profile.drop_frames", drop), profiletest.Attr("pprof.profile.keep_frames", keep))
	for i, stack := range stacks {
		names := strings.Split(stack, ";")
		slices.Reverse(names)
		b.Sample(profiletest.Value(1<<i, names...))
	}
	require.Zero(t, s.Add(b.Build(), noon).Refused)
	sel := model.Selection{Service: "shop", Profile: "memory"}
	merged, err := s.Merge(t.Context(), sel)
	require.NoError(t, err)
	p := encode(t, merged.Profiles)
	require.Equal(t, drop, p.DropFrames)
	assert.Len(t, p.Sample, len(stacks))
	want := map[string]int64{}
	require.NoError(t, p.RemoveUninteresting()) // pprof's own
	for _, sample := range p.Sample {
		want[stackOf(sample)] += sample.Value[0]
	}

	g, err := s.FlameGraph(t.Context(), sel, 1000)
	require.NoError(t, err)
	got, paths := map[string]int64{}, make([]string, len(g.Frame))
	for i := 1; i < len(g.Frame); i++ {
		paths[i] = strings.TrimPrefix(paths[g.Parent[i]]+";"+g.Frames[g.Frame[i]].Name, ";")
		if g.Self[i] != 0 {
			got[paths[i]] = g.Self[i]
		}
	}
	assert.Equal(t, want, got)
	assert.EqualValues(t, 1<<len(stacks)-1, g.Total[0])
}

// stackOf returns the functions of a sample, root first.
func stackOf(s *profile.Sample) string {
	var names []string
	for _, l := range slices.Backward(s.Location) {
		for _, line := range slices.Backward(l.Line) {
			names = append(names, line.Function.Name)
		}
	}
	return strings.Join(names, ";")
}
