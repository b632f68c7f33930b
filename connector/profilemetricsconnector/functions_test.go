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
		if !strings.HasPrefix(name, metric+"{") ||
			slices.ContainsFunc(having, func(s string) bool { return !strings.Contains(name, s) }) {
			continue
		}
		_, function, _ := strings.Cut(name, hotFunction)
		function, _, _ = strings.Cut(function, ",profile.") // names of generic functions have commas
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
	f := start(t,
		"top_functions: [{profile: process_cpu/cpu, count: 2, window: 1m}, {profile: process_cpu/cpu, of: total, count: 1, window: 1m}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	f.consume(t, profileOf("1", map[string]int{"a": 50, "b": 30, "c": 15}), profileOf("1", map[string]int{"c": 5}))
	points := f.collect(t)
	requireShares(t, map[string]float64{"a": 0.5, "b": 0.3, "other": 0.2},
		named(points, "profile.function.share", "share.of=self"))
	requireShares(t, map[string]float64{"main.main": 1}, named(points, "profile.function.share", "share.of=total"))
	assert.Empty(t, named(f.collect(t), "profile.function.share"), "nothing happened in the next window")
	assert.Zero(t, f.dropped(t, "max_series"))
}

// Shares that the next window does not have end, once: Prometheus would add them to its own for five minutes.
func TestSharesEnd(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, count: 1, window: 1m, compare: {to: 1m}}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	f.consume(t, profileOf("1", map[string]int{"a": 50, "b": 30}))
	assert.Empty(t, f.collectEnds(t))
	f.consume(t, profileOf("1", map[string]int{"a": 30, "b": 50}))
	ends := f.collectEnds(t)
	require.Len(t, ends, 1)
	assert.Contains(t, ends[0], "profile.function.share{code.function.name=a,")
	f.consume(t, profileOf("1", map[string]int{"a": 50, "b": 30}))
	for _, end := range f.collectEnds(t) {
		assert.Contains(t, end, hotFunction+"b,")
	}
	ends = f.collectEnds(t)
	assert.Len(t, ends, 2+3, "the service has ended: share, other and what was compared")
	assert.Empty(t, f.collectEnds(t))
}

// TestManyNames has a stranger who sends new names all the time beside two hot functions: they keep their shares, which
// are too small by at most a 512th, and the rest is `other`.
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
			assert.Empty(t, named(points, "profile.function.share.change"), "there is nothing to compare with in minute %d",
				minute)
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
		named(points, "profile.function.share.change", "service.version=2", "profile.baseline.version=1",
			"profile.baseline=service.version"))
	requireShares(t, map[string]float64{"a": 0.8, "b": 0.1, "new": 0.1, "other": 0},
		named(points, "profile.function.share"))
}

// TestFunctionsAreBounded has services and versions that come all the time.
func TestFunctionsAreBounded(t *testing.T) {
	f := start(t,
		"{max_bytes: 131072, max_series: 110, top_functions: [{profile: process_cpu/cpu, count: 10, window: 1m, compare: {to: 5m, by: service.version}}]}")
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
	assert.Equal(t, TopFunctions{Profile: "process_cpu/cpu", Count: 10, Of: hot.Self, Window: 10 * time.Minute},
		cfg.TopFunctions[0])
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

// TestSharesWithoutRoom has more services than there is memory for: each has the right shares, or none and its samples
// are counted.
func TestSharesWithoutRoom(t *testing.T) {
	for name, compare := range map[string]string{"": "", "versions": ", compare: {by: service.version, to: 5m}"} {
		t.Run(name, func(t *testing.T) {
			const services, windows = 40, 3
			f := start(t, "max_bytes: 4194304\ntop_functions: [{profile: process_cpu/cpu, window: 1m"+compare+"}]")
			f.clock.at = f.clock.at.Truncate(time.Minute)
			for window := range windows {
				dropped := f.dropped(t, "max_series")
				for i := range services {
					for part := range 2 {
						samples := map[string]int{"half": 300}
						for k := range 300 {
							samples[fmt.Sprintf("service%d.function%d.%d", i, part, k)] = 1
						}
						pd := profileOf(fmt.Sprint("v", window), samples)
						pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", fmt.Sprint("shop", i))
						f.consume(t, pd)
					}
				}
				require.LessOrEqual(t, f.functions.Bytes(), f.config.MaxBytes/2)
				points, right := f.collect(t), 0
				for i := range services {
					shares := named(points, "profile.function.share", fmt.Sprintf("service.name=shop%d}", i))
					if len(shares) > 0 {
						require.InDelta(t, 0.5, shares["half"], 1.0/512, "service %d in window %d", i, window)
						right++
					}
				}
				assert.Greater(t, right, 5, "window %d", window)
				assert.GreaterOrEqual(t, f.dropped(t, "max_series")-dropped, int64(services-right)*602, "window %d", window)
			}
		})
	}
}

// TestHistoryMakesRoom has services that come when history has used up the memory: the oldest windows go.
func TestHistoryMakesRoom(t *testing.T) {
	f := start(t,
		"{max_bytes: 262144, top_functions: [{profile: process_cpu/cpu, count: 20, window: 1m, compare: {to: 24h}}]}")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	samples := map[string]int{}
	for i := range 60 {
		samples[fmt.Sprint("f", i)] = 1
	}
	for range 200 {
		f.consume(t, profileOf("1", samples))
		require.NotEmpty(t, named(f.collect(t), "profile.function.share"))
		require.LessOrEqual(t, f.functions.Bytes(), 1<<17)
	}
	assert.Zero(t, f.dropped(t, "max_series"))
}

// TestTotalSharesOfDeepStacks has stacks of 60 functions, most of which are new each time.
func TestTotalSharesOfDeepStacks(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, of: total, count: 3, window: 1m}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	for i := range 40 {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Period(10_000_000, "cpu",
			"nanoseconds")
		for k := range 25 {
			stack := make([]string, 60)
			for n := range stack {
				stack[n] = fmt.Sprintf("f%d.%d.%d", i, k, n)
			}
			if k == 0 {
				stack[30] = "hot"
			}
			stack[59] = "main.main"
			b.Sample(profiletest.Value(10_000_000, stack...))
		}
		f.consume(t, b.Build())
	}
	shares := named(f.collect(t), "profile.function.share")
	assert.InDelta(t, 1, shares["main.main"], 1.0/512)
	assert.InDelta(t, 0.04, shares["hot"], 1.0/512)
	assert.Zero(t, f.dropped(t, "max_series"))
}

// TestGrowthOfAFunctionWithoutACounter has a function that may have been among those for which the earlier window had
// no counters.
func TestGrowthOfAFunctionWithoutACounter(t *testing.T) {
	f := start(t, "top_functions: [{profile: process_cpu/cpu, count: 1, window: 1m, compare: {to: 1m}}]")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	samples := map[string]int{}
	for i := range 2000 {
		samples[fmt.Sprint("f", i)] = 1
	}
	f.consume(t, profileOf("1", samples))
	f.collect(t)
	f.consume(t, profileOf("1", map[string]int{"new": 1, "old": 1}))
	change := named(f.collect(t), "profile.function.share.change")
	require.Len(t, change, 1)
	for name, v := range change {
		assert.LessOrEqual(t, v, 0.5-3.0/2000, "%s can have had as much as the smallest counter", name)
	}
}
