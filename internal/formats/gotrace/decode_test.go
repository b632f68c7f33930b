// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"cmp"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// testTraces were made by testdata/generate.
var testTraces = []string{"go1.21", "go1.22", "go1.23", "go1.25", "go1.26", "go1.26-flightrecorder"}

// testTrace reads a trace of testdata.
func testTrace(t testing.TB, name string) []byte {
	return profiletest.ReadFile(t, "testdata/"+name+".trace.gz")
}

// everything returns options that leave nothing out.
func everything() Options {
	o := DefaultOptions()
	o.MinDuration, o.Everything = 0, true
	return o
}

func decode(t testing.TB, data []byte, o Options) (pprofile.Profiles, events.Stats) {
	t.Helper()
	pd, stats, err := Decode(data, o)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	return pd, stats
}

// interval is an observation of a profile.
type interval struct {
	profile       string
	goroutine     int64
	state, region string
	link          [16]byte
	end           uint64
	length        int64
	stack         string
	isTask        bool
}

// intervals lists all observations, with the names of their stacks, leaf first.
func intervals(pd pprofile.Profiles) (all []interval) {
	for o := range profiletest.Observations(pd) {
		of := o.Attributes()
		one := interval{profile: o.SampleType, stack: o.Stack(), end: o.Timestamp, isTask: of[attributeTaskType] == "request",
			link: pd.Dictionary().LinkTable().At(int(o.Sample.LinkIndex())).TraceID()}
		one.goroutine, _ = of[events.AttributeGoroutine].(int64)
		one.state, _ = cmp.Or(of[events.AttributeGoroutineState], of[attributeRange]).(string)
		one.region, _ = of[attributeRegion].(string)
		if o.Sample.Values().Len() > 0 {
			one.length = o.Value
		}
		all = append(all, one)
	}
	return all
}

// Traces of all versions have every way in which the program waits.
func TestVersions(t *testing.T) {
	arrival := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range testTraces {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.Anchor = events.Anchor{EndNanos: uint64(arrival.UnixNano()), Guess: "arrival"}
			pd, stats := decode(t, testTrace(t, name), o)
			states, profiles := map[string]int{}, map[string]int{}
			traceID := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
			isRegion, isLinked := false, false
			for _, i := range intervals(pd) {
				states[i.state]++
				profiles[i.profile]++
				isRegion = isRegion || i.region == "compute" && i.isTask && i.state == "running" &&
					strings.Contains(i.stack, "main.compute")
				isLinked = isLinked || i.link == traceID && i.region == "compute"
			}
			for _, state := range []string{"running", "runnable", "syscall", "chan receive", "select", "sleep", "network",
				"sync"} {
				assert.Positive(t, states[state], "%s in %v", state, states)
			}
			for _, p := range []string{"samples", "off_cpu", "on_cpu", "gc_pause"} {
				if p != "samples" || !strings.Contains(name, "flight") {
					assert.Positive(t, profiles[p], p)
				}
			}
			assert.True(t, isRegion, "the region and its task")
			assert.True(t, isLinked, "the traceparent")

			rendered := profiletest.Render(pd)
			first := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
			isGuess := name < "go1.25"
			assert.Equal(t, isGuess, stats.GuessedClock)
			assert.Equal(t, isGuess, strings.Contains(rendered, `profile.clock.guess="arrival"`))
			if isGuess {
				assert.EqualValues(t, arrival.UnixNano(), uint64(first.Time())+first.DurationNano()-1)
			} else {
				assert.WithinRange(t, first.Time().AsTime(), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
					time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
			}
		})
	}
}

// The profiles of a small trace, as text.
func TestGolden(t *testing.T) {
	o := DefaultOptions()
	o.MinDuration = 5 * time.Millisecond
	for _, name := range []string{"go1.21", "go1.26"} {
		pd, _ := decode(t, testTrace(t, name), o)
		profiletest.Golden(t, filepath.Join("testdata", name+".txt"), profiletest.Render(pd))
	}
}

// With nothing left out, the states of a goroutine follow each other without a gap.
func TestNoHoles(t *testing.T) {
	for _, name := range testTraces {
		pd, _ := decode(t, testTrace(t, name), everything())
		of := map[int64][]interval{}
		for _, i := range intervals(pd) {
			if i.profile == "on_cpu" || i.profile == "off_cpu" {
				of[i.goroutine] = append(of[i.goroutine], i)
			}
		}
		require.Greater(t, len(of), 10)
		for id, list := range of {
			slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.end, b.end) })
			for i := 1; i < len(list); i++ {
				require.Equal(t, list[i-1].end, list[i].end-uint64(list[i].length), "%s: goroutine %d between %q and %q", name, id,
					list[i-1].state, list[i].state)
			}
		}
	}
}

// Sums equal those of go tool trace, stack by stack.
func TestAggregatedEqualsGoToolTrace(t *testing.T) {
	o := everything()
	o.Aggregate, o.WithoutUnfinished = true, true
	for _, name := range testTraces {
		data := testTrace(t, name)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		pd, _ := decode(t, data, o)
		for kind, isIn := range map[string]func(state string) bool{
			"net": func(state string) bool { return state == "network" },
			"sync": func(state string) bool {
				return strings.Contains(state, "chan") || strings.Contains(state, "sync") || strings.Contains(state, "select")
			},
			"syscall": func(state string) bool { return state == "syscall" },
		} {
			out, err := exec.Command("go", "tool", "trace", "-pprof="+kind, path).Output()
			if err != nil {
				t.Skip("no go tool trace here: ", err)
			}
			theirs := profiletest.ParsePprof(t, out)
			want, got := map[string]int64{}, map[string]int64{}
			for _, s := range theirs.Sample {
				var frames []string
				for _, l := range s.Location {
					frames = append(frames, l.Line[0].Function.Name)
				}
				want[strings.Join(frames, ";")] += s.Value[1]
			}
			for _, i := range intervals(pd) {
				if i.profile == "off_cpu" && isIn(i.state) {
					got[i.stack] += i.length
				}
			}
			require.NotEmpty(t, want, "%s of %s", kind, name)
			assert.Equal(t, want, got, "%s of %s", kind, name)
		}
	}
}

// Options include what is left out by default.
func TestLeftOut(t *testing.T) {
	data := testTrace(t, "go1.26")
	count := func(change func(*Options), is func(interval) bool) (n int) {
		o := DefaultOptions()
		o.MinDuration = 0
		change(&o)
		pd, _ := decode(t, data, o)
		for _, i := range intervals(pd) {
			if is(i) {
				n++
			}
		}
		return n
	}
	nothing, everything := func(*Options) {}, func(o *Options) { o.Everything = true }
	system := func(i interval) bool { return i.profile == "off_cpu" && strings.HasSuffix(i.stack, "runtime.bgsweep") }
	worker := func(i interval) bool {
		return strings.Contains(i.stack, "runtime.gcBgMarkWorker") && strings.HasSuffix(i.profile, "_cpu")
	}
	forever := func(i interval) bool { return strings.HasSuffix(i.stack, "main.leak") && i.state == "waiting" }
	short := func(i interval) bool { return i.length < 1e6 && i.profile == "off_cpu" }
	assert.Zero(t, count(nothing, system))
	assert.Positive(t, count(everything, system))
	assert.Zero(t, count(nothing, worker))
	assert.Positive(t, count(everything, worker))
	assert.Zero(t, count(nothing, forever))
	assert.Equal(t, 1, count(everything, forever))
	assert.Positive(t, count(nothing, short))
	assert.Zero(t, count(func(o *Options) { o.MinDuration = time.Millisecond }, short))
}

// A trace that breaks off results in profiles of what is before; a trace that is damaged at the start is refused.
func TestDamaged(t *testing.T) {
	data := testTrace(t, "go1.26")
	_, _, err := Decode(data[:100], DefaultOptions())
	require.Error(t, err)
	_, _, err = Decode([]byte("go 1.99 trace\x00\x00\x00"), DefaultOptions())
	require.Error(t, err)
	_, _, err = Decode([]byte("hello"), DefaultOptions())
	require.ErrorContains(t, err, "header")

	two := append(slices.Clone(worst.TraceGeneration(worst.TraceHeader, 1)), worst.TraceGeneration("", 2)...)
	_, stats := decode(t, two, everything())
	require.Zero(t, stats.Dropped)
	pd, stats := decode(t, append(two, "\x01\x03\x05garbage"...), everything())
	require.Equal(t, 1, stats.Dropped)
	require.NotEmpty(t, intervals(pd))
}

// Wall clocks that cannot be right, and the same input.
func TestClocks(t *testing.T) {
	old := testTrace(t, "go1.22")
	o := DefaultOptions()
	pd, stats := decode(t, old, o)
	require.False(t, stats.GuessedClock)
	require.Zero(t, pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Time(), "nothing is known of it")
	o.Anchor = events.Anchor{EndNanos: math.MaxUint64}
	decode(t, old, o)
	for _, name := range testTraces {
		one, _ := decode(t, testTrace(t, name), everything())
		two, _ := decode(t, testTrace(t, name), everything())
		m := &pprofile.ProtoMarshaler{}
		a, err := m.MarshalProfiles(one)
		require.NoError(t, err)
		b, err := m.MarshalProfiles(two)
		require.NoError(t, err)
		require.Equal(t, a, b, "the same input gives the same bytes out")
	}
}

func TestTraceParent(t *testing.T) {
	for text, ok := range map[string]bool{
		"00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01":     true,
		"01-0102030405060708090a0b0c0d0e0f10-1112131415161718-01-new": true,
		"00-00000000000000000000000000000000-1112131415161718-01":     false,
		"00-0102030405060708090a0b0c0d0e0f10-0000000000000000-01":     false,
		"00-0102030405060708090a0b0c0d0e0f1-1112131415161718-01":      false,
		"ff-0102030405060708090a0b0c0d0e0f10-1112131415161718-01":     false,
		"": false,
	} {
		_, got := events.TraceParent(text)
		assert.Equal(t, ok, got, text)
	}
}

// Decoding costs little more processor time and memory than the reader alone.
func TestCostBesideTheReader(t *testing.T) {
	data := testTrace(t, "go1.26")
	reader := profiletest.RequireCost(t, profiletest.Bound{}, func() { require.NoError(t, readAll(data)) })
	bound := profiletest.Bound{HeapBytes: 3*len(data) + 4<<20, CPU: 3*reader.CPU + 20*time.Millisecond}
	var pd pprofile.Profiles
	profiletest.RequireCost(t, bound, func() { pd, _, _ = Decode(data, DefaultOptions()) })
	require.NotZero(t, pd.SampleCount())
}
