// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/findings"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// find returns the findings of the hour before noon, by rule.
func find(t *testing.T, pd pprofile.Profiles) map[string]findings.Finding {
	t.Helper()
	byRule, _ := findAt(t, pd, noon, 48*time.Hour)
	return byRule
}

// findAt returns them of profiles with another time of arrival, and how many seconds of processor time they have.
func findAt(t *testing.T, pd pprofile.Profiles, arrival time.Time,
	window time.Duration) (byRule map[string]findings.Finding, seconds float64) {
	t.Helper()
	s := store.New(store.Config{Window: window, Resolution: 10 * time.Second, MaxBytes: 256 << 20})
	require.Zero(t, s.Add(pd, arrival).Refused)
	list, err := s.Services(t.Context(), nil)
	require.NoError(t, err)
	sel := model.Selection{Service: list[0].Service, From: noon.Add(-time.Hour).UnixNano(), Until: noon.UnixNano()}
	found, _, err := findings.Of(t.Context(), s.Querier, sel, noon)
	require.NoError(t, err)
	sel.Profile, sel.Type = "process_cpu", "cpu/nanoseconds"
	if g, err := s.FlameGraph(t.Context(), sel, 1000); err == nil {
		seconds = float64(g.Total[0]) / 1e9
	}
	byRule = map[string]findings.Finding{}
	for _, f := range found {
		byRule[f.Rule] = f
		_, err := url.ParseQuery(f.Link)
		require.NoError(t, err)
	}
	return byRule, seconds
}

// cpu returns a minute of processor time: seconds of each stack, whose leaf comes first.
func cpu(b *profiletest.Builder, at time.Time, seconds map[string]float64) *profiletest.Builder {
	b.Profile("cpu", "nanoseconds").Time(uint64(at.UnixNano()), 60e9)
	for leaf, value := range seconds {
		b.Sample(profiletest.Value(int64(value*1e9), leaf, "main.handle", "main.main"))
	}
	return b
}

func one(seconds map[string]float64) pprofile.Profiles {
	return cpu(profiletest.New().Resource("service.name", "shop"), noon.Add(-10*time.Minute), seconds).Build()
}

func TestLeaves(t *testing.T) {
	for _, test := range []struct {
		rule, leaf  string
		least, text string
	}{
		{"garbage_collection", "runtime.gcBgMarkWorker", "25.0 %", "garbage collection"},
		{"garbage_collection", "(garbage collector)", "25.0 %", "garbage collection"},
		{"locks", "sync.(*Mutex).lockSlow", "10.0 %", "locks"},
		{"regexp_compile", "regexp.Compile", "3.0 %", "regular expressions"},
		{"json", "encoding/json.Marshal", "20.0 %", "JSON"},
		{"copy", "runtime.memmove", "10.0 %", "copying memory"},
	} {
		var share float64
		_, err := fmt.Sscanf(test.least, "%f", &share)
		require.NoError(t, err)
		at := find(t, one(map[string]float64{test.leaf: share / 5, "main.work": 20 - share/5}))
		require.Len(t, at, 1, test.leaf)
		assert.Contains(t, at[test.rule].Text, test.least+" of the processor time is ")
		assert.Contains(t, at[test.rule].Text, test.text)
		assert.Contains(t, at[test.rule].Link, "q=%2F")
		assert.Empty(t, find(t, one(map[string]float64{test.leaf: share/5 - 0.1, "main.work": 20 - share/5})),
			"%s below its bound", test.leaf)
		assert.Empty(t, find(t, one(map[string]float64{test.leaf: 2, "main.work": 2})), "%s in four seconds", test.leaf)
	}
	assert.Empty(t,
		find(t, one(map[string]float64{"main.regexp.Compiler": 10, "main.encoding/json": 10, "main.memmoves": 10,
			"runtime.gcBgMarkWorkers": 10})),
		"names that only look like it")
}

// typed returns minutes of a pprof of processor time with a type for each of values, whose samples are in a leaf of its
// own.
func typed(periodType, periodUnit string, types ...[3]any) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", "shop").Scope("s", "1", kind.NameAttribute, "process_cpu")
	for m := range 20 {
		for _, in := range types {
			typ, unit, _ := strings.Cut(in[0].(string), "/")
			b.Profile(typ, unit).Time(uint64(noon.Add(time.Duration(m-20)*time.Minute).UnixNano()), 60e9).
				Sample(profiletest.Value(int64(in[1].(int)), in[2].(string), "main.main"))
			if periodType != "" {
				b.Period(10_000_000, periodType, periodUnit)
			}
		}
	}
	return b.Build()
}

// Shares are those of the processor time, regardless of the other types of the same pprof and of how it is written.
func TestProcessorTimeAmongOtherTypes(t *testing.T) {
	const json, work = "encoding/json.Marshal", "main.work"
	type of = [3]any
	for name, test := range map[string]struct {
		pd   pprofile.Profiles
		want bool
	}{
		"wall time first": {typed("", "", of{"wall/nanoseconds", int(6e9), json}, of{"cpu/nanoseconds", int(6e9), work}), false},
		"wall time first, cpu-time": {typed("", "", of{"wall-time/nanoseconds", int(6e9), work},
			of{"cpu-time/nanoseconds", int(6e9), json}), true},
		"waits for locks": {typed("cpu", "nanoseconds", of{"lock_time/nanoseconds", int(6e9), json},
			of{"cpu/nanoseconds", int(6e9), work}), false},
		"few exceptions": {typed("cpu", "nanoseconds", of{"exception/count", 1, work}, of{"cpu/nanoseconds", int(6e9), json}), true},
		"many allocations": {typed("cpu", "nanoseconds", of{"alloc-samples/count", 1000, work},
			of{"cpu/nanoseconds", int(6e9), json}, of{"cpu-samples/count", 3, json}), false},
		"microseconds":           {typed("", "", of{"cpu/microseconds", int(6e6), json}), true},
		"samples alone, as eBPF": {typed("cpu", "nanoseconds", of{"samples/count", 30, json}), true},
		"too few samples":        {typed("cpu", "nanoseconds", of{"samples/count", 20, json}), false},
		"samples of a wall":      {typed("wall", "nanoseconds", of{"wall/nanoseconds", int(6e9), json}), false},
	} {
		_, found := find(t, test.pd)["json"]
		assert.Equal(t, test.want, found, name)
	}
}

// versions returns 20 minutes of two versions, in which a function takes the given share of the samples.
func versions(before, after float64, seconds float64) pprofile.Profiles {
	b := profiletest.New()
	for _, v := range []struct {
		name  string
		share float64
		start int
	}{{"1.10", after, -20}, {"1.9", before, -40}} {
		b.Resource("service.name", "shop", "service.version", v.name)
		for m := range 20 {
			cpu(b, noon.Add(time.Duration(v.start+m)*time.Minute),
				map[string]float64{"main.price": v.share * seconds / 20, "main.work": (1 - v.share) * seconds / 20})
		}
	}
	return b.Build()
}

func TestGrowthSinceTheLastVersion(t *testing.T) {
	f := find(t, versions(0.1, 0.3, 100))["growth"]
	assert.Equal(t, "main.price takes 30.0 % of the processor time in version 1.10, and took 10.0 % in 1.9.", f.Text)
	link, err := url.ParseQuery(f.Link)
	require.NoError(t, err)
	assert.Equal(t, []string{"diff", "1.10", "1.9", "main.price"},
		[]string{link.Get("view"), link.Get("attr.service.version"), link.Get("base.attr.service.version"), link.Get("q")})

	for name, pd := range map[string]pprofile.Profiles{
		"nothing has changed": versions(0.3, 0.3, 100), "less than three points": versions(0.1, 0.125, 1000),
		"less than a fifth": versions(0.5, 0.55, 1000),
		// 600 samples: 2.2 standard errors
		"too few samples": versions(0.1, 0.9, 4), "within chance": versions(0.30, 0.36, 6),
	} {
		shrunk := find(t, pd)
		assert.NotContains(t, shrunk, "growth", name)
	}
}

// What a version does once, in its first minute, is no growth: the link compares what comes after, too.
func TestStartUpIsNoGrowth(t *testing.T) {
	for minutes, want := range map[int]bool{1: false, 4: true} {
		b := profiletest.New()
		for start, version := range map[int]string{-30: "1.0", -20: "1.1"} {
			b.Resource("service.name", "shop", "service.version", version)
			for m := range 10 {
				seconds := map[string]float64{"main.work": 20}
				if version == "1.1" && m < minutes {
					seconds["main.load"] = 40
				}
				cpu(b, noon.Add(time.Duration(start+m)*time.Minute), seconds)
			}
		}
		f, found := find(t, b.Build())["growth"]
		assert.Equal(t, want, found, "%d minutes: %s", minutes, f.Text)
		if !found {
			continue
		}
		link, err := url.ParseQuery(f.Link)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(noon.Add(-18*time.Minute).UnixMilli()), link.Get("from"))
		assert.Equal(t, fmt.Sprint(noon.Add(-28*time.Minute).UnixMilli()), link.Get("base.from"))
	}
}

// Versions are in the order of their first profile, of all that is kept, and those that have none in the selected time
// do not matter, wherever blocks begin: here two run side by side, and at last the older one again.
func TestGrowthWhileVersionsOverlap(t *testing.T) {
	end := noon.Add(-time.Hour) // its quarter of the day has not ended
	for _, test := range []struct {
		name        string
		first, last float64 // the seconds of main.price in versions 1.9 (the first) and 1.10
		want        string
	}{
		{"the new one is faster", 0.3, 0.1, ""},
		{"the new one is slower", 0.1, 0.3,
			"main.price takes 30.0 % of the processor time in version 1.10, and took 12.5 % in 1.9."},
	} {
		s := store.New(store.Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20,
			Disk: store.DiskConfig{Directory: t.TempDir(), Retention: 14 * 24 * time.Hour, MaxBytes: 1 << 30,
				Report: func(message string, err error) { t.Log(message, err) }}})
		require.NoError(t, s.Open())
		add := func(minute int, version string, price float64) {
			at := end.Add(time.Duration(minute) * time.Minute)
			b := profiletest.New().Resource("service.name", "shop", "service.version", version)
			cpu(b, at, map[string]float64{"main.price": price, "main.work": 0.7})
			require.Zero(t, s.Add(b.Build(), at.Add(59*time.Second)).Refused)
		}
		for minute := -300; minute < 0; minute++ {
			if minute >= -180 && minute < -90 {
				add(minute, "1.10", test.last)
			} else if minute != -61 { // so that nothing reaches into the last hour
				add(minute, "1.9", test.first)
			}
			if minute >= -60 {
				add(minute, "1.10", test.last)
			}
			if (minute+300)%60 == 59 {
				s.Maintain(end.Add(time.Duration(minute+1) * time.Minute))
			}
		}
		// Both of them in the last hour, and 1.10 alone two hours before.
		for _, now := range []time.Time{end, noon, noon.Add(26 * time.Hour)} {
			s.Maintain(now)
			for hour, want := range map[int]string{-1: test.want, -3: ""} {
				begin := end.Add(time.Duration(hour) * time.Hour)
				found, _, err := findings.Of(t.Context(), s.Querier, model.Selection{Service: "shop", From: begin.UnixNano(),
					Until: begin.Add(time.Hour).UnixNano()}, now)
				require.NoError(t, err)
				text := ""
				for _, f := range found {
					text += f.Text
				}
				assert.Equal(t, want, text, "%s, %d h, %d blocks", test.name, hour, s.Stats().DiskBlocks)
			}
		}
		require.NoError(t, s.Close())
	}
}

func TestGrowthSinceYesterday(t *testing.T) {
	two := func(before, now float64) map[string]findings.Finding {
		b := profiletest.New().Resource("service.name", "shop")
		for m := range 30 {
			at := noon.Add(time.Duration(m-40) * time.Minute)
			cpu(b, at, map[string]float64{"main.price": now, "main.work": 0.5})
			cpu(b, at.Add(-24*time.Hour), map[string]float64{"main.price": before, "main.work": 0.5})
		}
		cpu(b, noon.Add(-26*time.Hour), map[string]float64{"main.work": 1})
		return find(t, b.Build())
	}
	assert.Equal(t, "main.price takes 50.0 % of the processor time today, and took 28.6 % a day earlier.",
		two(0.2, 0.5)["growth"].Text)
	assert.Empty(t, two(0.5, 0.2)["growth"], "main.work has more of the total only since main.price is faster")
	assert.Empty(t, two(0.5, 0.5))
}

func states(values func(minute int) int64) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", "shop")
	for m := range 60 {
		b.Profile("goroutine", "count").Time(uint64(noon.Add(time.Duration(m-60)*time.Minute).UnixNano()), 0).
			Sample(profiletest.Value(values(m), "main.wait"))
	}
	return b.Build()
}

func TestGoroutinesThatOnlyGrow(t *testing.T) {
	assert.Regexp(t, `^Goroutines only become more: from 1\d\d to 6\d\d\.$`,
		find(t, states(func(m int) int64 { return 100 + int64(10*m) }))["goroutines"].Text)
	for name, values := range map[string]func(int) int64{
		"constant": func(int) int64 { return 500 }, "few": func(m int) int64 { return int64(m) / 2 },
		"slowly":      func(m int) int64 { return 1000 + int64(m) },
		"up and down": func(m int) int64 { return 100 + int64(m%20)*50 }, "down again": func(m int) int64 {
			return min(int64(m), 50)*20 - max(0, int64(m)-50)*60 + 1000
		},
	} {
		assert.Empty(t, find(t, states(values)), name)
	}
}

func TestWaiting(t *testing.T) {
	waiting := func(begin, seconds, from int) (text string) {
		s := store.New(store.Config{Window: 48 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20})
		at := func(minute int) int64 { return noon.Add(time.Duration(minute) * time.Minute).UnixNano() }
		require.Zero(t, s.Add(profiletest.New().Resource("service.name", "shop").Profile("delay", "nanoseconds").
			Period(1, "contentions", "count").Time(uint64(at(begin)), 3600e9).
			Sample(profiletest.Value(int64(seconds)*1e9, "sync.(*Mutex).Unlock")).Build(), noon).Refused)
		found, _, err := findings.Of(t.Context(), s.Querier, model.Selection{Service: "shop", From: at(from), Until: at(from + 60)},
			noon.Add(2*time.Hour))
		require.NoError(t, err)
		for _, f := range found {
			text += f.Text
		}
		return text
	}
	assert.Equal(t, "3.0 goroutines or threads wait for a lock on average.", waiting(-60, 3*3600, -60))
	assert.Equal(t, "1.5 goroutines or threads wait for a lock on average.", waiting(-60, 3*3600, -30), "half of it")
	assert.Empty(t, waiting(-60, 1800, -60))
}

// Of captured profiles of healthy programs there is little to say: what is said is listed here.
func TestCaptures(t *testing.T) {
	expected := map[string][]string{}
	looked := 0.0
	files := profiletest.Glob(t, "../../../testdata/pprof/*.pb.gz")
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 1<<20 {
			continue
		}
		payload := profiletest.FileBytes(t, file)
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(t, err)
		// they are old, and are kept under the time of their arrival
		found, seconds := findAt(t, pd, noon.Add(-30*time.Minute), time.Hour)
		looked += seconds
		var rules []string
		for rule := range found {
			rules = append(rules, rule)
		}
		assert.ElementsMatch(t, expected[filepath.Base(file)], rules, filepath.Base(file))
	}
	assert.Greater(t, looked, 40.0, "there is processor time to look at")
}
