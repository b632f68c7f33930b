// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/hot"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// profileOf returns a profile of 100 samples a second: how many each function has.
func profileOf(version string, samples map[string]int) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", "shop", "service.version", version).Profile("cpu", "nanoseconds").
		Period(10_000_000, "cpu", "nanoseconds")
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		b.Sample(profiletest.Value(int64(samples[name])*10_000_000, name, "main.main"))
	}
	return b.Build()
}

// named returns the points of a metric by function, without the attributes that all of them have.
func named(points map[string]float64, metric string, having ...string) map[string]float64 {
	list := map[string]float64{}
	for name, v := range points {
		if !strings.HasPrefix(name, metric+"{") || slices.ContainsFunc(having, func(s string) bool { return !strings.Contains(name, s) }) {
			continue
		}
		_, function, _ := strings.Cut(name, hotFunction)
		function, _, _ = strings.Cut(function, ",")
		list[strings.TrimSuffix(function, "}")] = v
	}
	return list
}

const hotFunction = "code.function.name="

// requireShares compares points with shares, which are kept with 24 bits.
func requireShares(t *testing.T, want, got map[string]float64) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, v := range want {
		assert.InDelta(t, v, got[name], 1e-6, name)
	}
}

func TestTopFunctions(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, count: 2, window: 1m}, {profile: process_cpu/cpu, of: total, count: 1, window: 1m}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	f.consume(t, profileOf("1", map[string]int{"a": 50, "b": 30, "c": 15}), profileOf("1", map[string]int{"c": 5}))
	points := f.collect(t)
	requireShares(t, map[string]float64{"a": 0.5, "b": 0.3, "other": 0.2}, named(points, "profile.function.share", "share.of=self"))
	requireShares(t, map[string]float64{"main.main": 1}, named(points, "profile.function.share", "share.of=total"))
	assert.Empty(t, named(f.collect(t), "profile.function.share"), "nothing happened in the next window")
	assert.Zero(t, f.dropped(t, "max_series"))
}

// TestManyNames has a stranger who sends new names all the time beside two hot functions: they keep their shares, which are too small by
// at most a 512th, and the rest is `other`.
func TestManyNames(t *testing.T) {
	f := start(t, "{max_bytes: 1048576, top_functions: [{profile: process_cpu/cpu, count: 3, window: 1m}]}")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		samples := map[string]int{"hot": 300, "warm": 100}
		for range 600 {
			samples[fmt.Sprintf("name%d.%s", rnd.Uint64(), strings.Repeat("x", 200))] = 1
		}
		f.consume(t, profileOf("1", samples))
	}
	assert.LessOrEqual(t, f.functions.Bytes(), 1<<19)
	shares := named(f.collect(t), "profile.function.share")
	assert.InDelta(t, 0.3, shares["hot"], 1.0/512)
	assert.InDelta(t, 0.1, shares["warm"], 1.0/512)
	assert.LessOrEqual(t, len(shares), 4)
	sum := 0.0
	for _, v := range shares {
		sum += v
	}
	assert.InDelta(t, 1, sum, 1e-6)
}

// TestCompare has a function that takes 10 points more than a day before, and one that chance explains.
func TestCompare(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, count: 5, window: 10m, compare: {to: 30m}}]")
	f.clock.at = f.clock.at.Truncate(10 * time.Minute)
	var points map[string]float64
	for minute := range 40 {
		samples := map[string]int{"a": 100, "b": 700, "c": 200}
		if minute >= 30 {
			samples = map[string]int{"a": 200, "b": 601, "c": 199}
		}
		samples["b"] += minute % 3
		f.consume(t, profileOf("1", samples))
		points = f.collect(t)
		if minute < 39 {
			assert.Empty(t, named(points, "profile.function.share.change"), "there is nothing to compare with in minute %d", minute)
		}
	}
	change := named(points, "profile.function.share.change", "baseline=30m")
	assert.InDelta(t, 0.1, change["a"], 0.001)
	assert.InDelta(t, -0.1, change["b"], 0.002)
	p := named(points, "profile.function.share.change.p_value")
	assert.Less(t, p["a"], 1e-6)
	assert.Greater(t, p["c"], 0.5)
	assert.InDelta(t, 10_009, named(points, "profile.function.share.samples")["a"], 0.1)
}

func TestCompareVersions(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, count: 5, window: 1m, compare: {by: service.version}}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	f.consume(t, profileOf("1", map[string]int{"a": 900, "b": 100}))
	assert.Empty(t, named(f.collect(t), "profile.function.share.change"))
	f.consume(t, profileOf("2", map[string]int{"a": 800, "b": 100, "new": 100}))
	points := f.collect(t)
	requireShares(t, map[string]float64{"a": -0.1, "b": 0, "new": 0.1},
		named(points, "profile.function.share.change", "service.version=2", "profile.baseline.version=1", "profile.baseline=service.version"))
	requireShares(t, map[string]float64{"a": 0.8, "b": 0.1, "new": 0.1, "other": 0}, named(points, "profile.function.share"))
}

// TestFunctionsAreBounded has services and versions that come all the time.
func TestFunctionsAreBounded(t *testing.T) {
	f := start(t, "{max_bytes: 131072, max_series: 110, top_functions: [{profile: process_cpu/cpu, count: 10, window: 1m, compare: {to: 5m, by: service.version}}]}")
	for i := range 100 {
		pd := profileOf(fmt.Sprint(i), map[string]int{"a": 1, "b": 2, "c": 3})
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", fmt.Sprint("shop", i%20))
		f.consume(t, pd)
		f.collect(t)
		require.LessOrEqual(t, f.functions.Bytes(), 1<<16)
		require.LessOrEqual(t, f.functions.Len(), 10)
	}
	assert.Positive(t, f.dropped(t, "max_series"))
	f.clock.at = f.clock.at.Add(30 * time.Hour)
	f.collect(t)
	assert.Zero(t, f.functions.Bytes())
}

func TestCumulativeHasNoTopFunctions(t *testing.T) {
	f := start(t, "top_functions: [{profile: memory/alloc_space}]")
	f.consume(t, state("a", "alloc_space", 10, 1, 2))
	assert.Equal(t, int64(2), f.dropped(t, "cumulative"))
}

func TestTopFunctionsConfig(t *testing.T) {
	cfg := load(t, "top_functions: [{profile: process_cpu/cpu}, {profile: memory/inuse_space, count: 3}]")
	assert.Equal(t, TopFunctions{Profile: "process_cpu/cpu", Count: 10, Of: hot.Self, Window: 10 * time.Minute}, cfg.TopFunctions[0])
	assert.Equal(t, 3, cfg.TopFunctions[1].Count)
	for entry, want := range map[string]string{
		"{}":                                "`top_functions[0].profile`: \"\" must be a profile and a sample type",
		"{profile: a/b, count: 0}":          "`top_functions[0].count` must be 1 to 100, found 0",
		"{profile: a/b, of: both}":          "`top_functions[0].of` must be self or total, found \"both\"",
		"{profile: a/b, window: 1ms}":       "`top_functions[0].window` must be at least 1s",
		"{profile: a/b, compare: {to: 7m}}": "`top_functions[0].compare.to` must be a multiple of `window`",
	} {
		_, err := collectortest.LoadYAML(createDefaultConfig().(*Config), "top_functions: ["+entry+"]")
		assert.ErrorContains(t, err, want, entry)
	}
}
