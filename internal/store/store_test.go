// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	pprofencode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// noon is when the tests' profiles arrive.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testConfig() Config {
	return Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 100}
}

// encode returns profiles as one pprof.
func encode(t testing.TB, pd pprofile.Profiles) *profile.Profile {
	t.Helper()
	encoded, _, err := pprofencode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	p := profiletest.ParsePprof(t, encoded[0].Bytes)
	return p
}

// A pprof that was stored is returned unchanged, with all its sample types.
func TestCapturedProfilesAreReturnedUnchanged(t *testing.T) {
	profiletest.SkipLarge(t)
	files := profiletest.Glob(t, "../../testdata/pprof/*.pb.gz")
	require.GreaterOrEqual(t, len(files), 13)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			payload := profiletest.FileBytes(t, file)
			want := profiletest.ParsePprof(t, payload)
			pd, _, err := decode.Decode(payload, decode.Options{})
			require.NoError(t, err)
			s := New(testConfig())
			added := s.Add(pd, noon)
			require.Zero(t, added.Refused)
			require.NotZero(t, added.Samples)
			names := map[string]bool{}
			for _, p := range s.profiles(UnknownService) {
				names[p.Profile] = true
			}
			require.Len(t, names, 1, "one pprof is one profile: %v", names)
			for name := range names {
				merged, err := s.Merge(context.Background(), model.Selection{Service: UnknownService, Profile: name})
				require.NoError(t, err)
				assert.NoError(t, profiletest.EqualPprof(want, encode(t, merged.Profiles), profiletest.CanonicalLinks()))
			}
		})
	}
}

// sum returns the total of a selection.
func sum(t testing.TB, s *Store, sel model.Selection) int64 {
	t.Helper()
	g, err := s.FlameGraph(context.Background(), sel, 1000)
	require.NoError(t, err)
	return g.Total[0]
}

// add adds one profile of a service that begins at second from of the test's hour.
func add(t testing.TB, s *Store, instance, typ, unit string, from, seconds int, samples ...profiletest.Sample) Added {
	t.Helper()
	start := noon.Add(time.Duration(from) * time.Second)
	b := profiletest.New().Resource("service.name", "shop", "service.instance.id", instance).
		Profile(typ, unit).Time(uint64(start.UnixNano()), uint64(seconds)*1e9).Sample(samples...)
	return s.Add(b.Build(), start.Add(time.Duration(seconds)*time.Second))
}

// cpu returns a profile of a service.
func cpu(start time.Time, seconds uint64, samples ...profiletest.Sample) pprofile.Profiles {
	return profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Time(uint64(start.UnixNano()), seconds*1e9).Sample(samples...).Build()
}

// freeze ends the last block in memory.
func freeze(s *Store) {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.blocks[len(s.blocks)-1].Freeze()
}

func at(seconds int) int64 { return noon.Add(time.Duration(seconds) * time.Second).UnixNano() }

// Readers of pprof treat the first mapping as the main binary, whichever sample comes first.
func TestMergedMappingsKeepTheirOrder(t *testing.T) {
	s := New(testConfig())
	observed := func(second int, file string) profiletest.Sample {
		return profiletest.Sample{
			Timestamps: []uint64{uint64(at(second))},
			Stack:      []profiletest.Location{{Address: 64, Mapping: &profiletest.Mapping{Start: 1, Limit: 4096, File: file}}},
		}
	}
	add(t, s, "a", "samples", "count", 10, 10, observed(11, "/bin/main"), observed(12, "/lib/libc.so"))
	add(t, s, "a", "samples", "count", 0, 10, observed(1, "/lib/libc.so"))
	for _, timestamps := range []bool{true, false} {
		merged, err := s.Merge(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu", Timestamps: timestamps})
		require.NoError(t, err)
		p := encode(t, merged.Profiles)
		require.Len(t, p.Mapping, 2)
		assert.Equal(t, "/bin/main", p.Mapping[0].File, timestamps)
	}
}

// A capture that is pushed later is kept under its arrival, is marked as such, and goes out with its own time.
func TestLateProfilesAreKeptUnderTheirArrival(t *testing.T) {
	s := New(testConfig())
	taken := noon.Add(-48 * time.Hour)
	pd := cpu(taken, 30, profiletest.Value(5, "leaf"))
	added := s.Add(pd, noon)
	assert.Equal(t, 1, added.Moved)
	info := s.profiles("shop")[0]
	assert.Equal(t, 1, info.Moved)
	assert.Equal(t, noon.UnixNano(), info.Until)
	sel := model.Selection{Service: "shop", Profile: "process_cpu", From: at(-30)}
	assert.EqualValues(t, 5, sum(t, s, sel))
	merged, err := s.Merge(context.Background(), sel)
	require.NoError(t, err)
	assert.Equal(t, taken.UnixNano(), encode(t, merged.Profiles).TimeNanos)
	// One that began before the window and ended in it has its own time.
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SetDurationNano(uint64(48*time.Hour - time.Minute))
	assert.Zero(t, s.Add(pd, noon).Moved)
}

// Trees and tables of a recursive function.
func TestTreeOfARecursiveProgram(t *testing.T) {
	s := New(testConfig())
	add(t, s, "a", "cpu", "nanoseconds", 0, 10,
		profiletest.Value(1, "fib", "fib", "main"), profiletest.Value(2, "fib", "main"),
		profiletest.Value(4, "leaf", "fib", "main"),
		profiletest.Value(8, "leaf", "main"))
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	g, err := s.FlameGraph(context.Background(), sel, 100)
	require.NoError(t, err)
	var lines []string
	for i := range g.Frame {
		name := "root"
		if i > 0 {
			name = g.Frames[g.Frame[i]].Name
		}
		lines = append(lines, fmt.Sprintf("%d<%d %s %d/%d", i, g.Parent[i], name, g.Self[i], g.Total[i]))
	}
	assert.Equal(t, []string{
		"0<-1 root 0/15", "1<0 main 0/15", "2<1 fib 2/7", "3<2 fib 1/1", "4<2 leaf 4/4", "5<1 leaf 8/8",
	}, lines)
	rows := g.Functions()
	answers.SortFunctions(rows, "total")
	assert.Equal(t, "main 0 15, leaf 12 12, fib 3 7", fmt.Sprintf("%s %d %d, %s %d %d, %s %d %d",
		rows[0].Frame.Name, rows[0].Self, rows[0].Total, rows[1].Frame.Name, rows[1].Self, rows[1].Total,
		rows[2].Frame.Name, rows[2].Self, rows[2].Total))
	small, err := s.FlameGraph(context.Background(), sel, 3)
	require.NoError(t, err)
	assert.Len(t, small.Frame, 3)
	assert.Equal(t, 3, small.Truncated)
	assert.EqualValues(t, 15, small.Total[0])
	base := sel
	base.Attributes = []model.Attribute{{Key: "service.instance.id", Value: "none"}}
	diff, err := s.Diff(context.Background(), sel, base, 100)
	require.NoError(t, err)
	assert.EqualValues(t, 15, diff.Total[0])
	assert.EqualValues(t, 0, diff.BaseTotal[0])
}

// An hour of profiles, in several blocks and dictionaries, merges to the result of profile.Merge.
func TestMergeEqualsPprofs(t *testing.T) {
	pprofs, messages := hour(t, 60, 50)
	cfg := testConfig()
	cfg.Window = 10 * time.Minute
	s := New(cfg)
	for i, m := range messages {
		s.Add(m, noon.Add(time.Duration(i-len(messages)+1)*10*time.Second))
	}
	s.mu.Lock()
	require.Greater(t, len(s.blocks), 3)
	s.mu.Unlock()
	want, err := profile.Merge(pprofs)
	require.NoError(t, err)
	got, err := s.Merge(context.Background(), model.Selection{Service: "shop", Profile: "process_cpu"})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(got.Profiles))
	assert.NoError(t, profiletest.EqualPprof(want, encode(t, got.Profiles)))
	g, err := s.FlameGraph(context.Background(), model.Selection{Service: "shop", Profile: "process_cpu"}, 1<<20)
	require.NoError(t, err)
	total := int64(0)
	for _, sample := range want.Sample {
		total += sample.Value[1]
	}
	assert.Equal(t, total, g.Total[0])
	assert.Equal(t, "cpu/nanoseconds", g.Type.String())
}

// Profiles older than the window are dropped, with their dictionary.
func TestOldProfilesAreDropped(t *testing.T) {
	s := New(testConfig())
	add(t, s, "a", "cpu", "nanoseconds", 0, 10, profiletest.Value(1, "leaf"))
	s.Expire(noon.Add(30 * time.Minute))
	assert.Equal(t, 1, s.Stats().Profiles)
	s.Expire(noon.Add(5 * time.Hour))
	assert.Equal(t, 1, s.Stats().Profiles, "the clock may be wrong")
	s.Expire(noon.Add(5*time.Hour + s.cfg.Window/blockCount))
	stats := s.Stats()
	assert.Equal(t, model.Stats{Evicted: [model.NumEvicted]int{model.EvictedAge: 1}}, stats)
	add(t, s, "a", "cpu", "nanoseconds", 6*3600, 10, profiletest.Value(1, "leaf"))
	assert.Equal(t, 1, s.Stats().Profiles)
}

// An unlimited number of attribute values costs what MaxSeries allows, and earlier series stay.
func TestManySeriesAreRefused(t *testing.T) {
	cfg := testConfig()
	cfg.MaxSeries = 10
	s := New(cfg)
	add(t, s, "first", "cpu", "nanoseconds", 0, 10, profiletest.Value(1, "leaf"))
	for i := range 1000 {
		add(t, s, fmt.Sprint("pod-", i), "cpu", "nanoseconds", 0, 10, profiletest.Value(1, fmt.Sprint("function", i)))
	}
	stats := s.Stats()
	assert.Equal(t, 10, stats.Series)
	assert.Equal(t, 991, stats.Refused[model.RefusedSeries])
	assert.Less(t, stats.Bytes, 200_000, "what is refused leaves nothing behind")
	add(t, s, "first", "cpu", "nanoseconds", 10, 10, profiletest.Value(1, "leaf"))
	assert.EqualValues(t, 11, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
}

// Very many services keep new ones off for as long as they could be services that go on, and take nothing from those
// that do.
func TestNewSeriesReplaceUnusedOnes(t *testing.T) {
	cfg := testConfig()
	s := New(cfg)
	sent := 0
	send := func(now time.Time, services ...string) Added {
		b := profiletest.New()
		for _, service := range services {
			b.Resource("service.name", service).Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()), 1e9).
				Sample(profiletest.Value(1, "leaf"))
		}
		sent += len(services)
		added := s.Add(b.Build(), now)
		stats := s.Stats()
		require.LessOrEqual(t, stats.Series, cfg.MaxSeries)
		require.Equal(t, sent,
			stats.Profiles+stats.Evicted[model.EvictedSeries]+stats.Evicted[model.EvictedAge]+stats.Refused[model.RefusedSeries])
		require.Equal(t, added.Profiles == 0, added.Err != nil)
		require.Equal(t, stats.Profiles, stats.Samples, "each has one")
		return added
	}
	var many []string
	for i := range cfg.MaxSeries {
		many = append(many, fmt.Sprint("service-", i))
	}
	send(noon, "honest")
	require.ErrorIs(t, send(noon, append(many, "one more")...).Err, ErrMessageTooLarge, "it could never be kept")
	require.Equal(t, cfg.MaxSeries, send(noon, many...).Refused[model.RefusedSeries],
		"nothing of a message is kept if not all of it can be")
	require.Equal(t, cfg.MaxSeries-1, send(noon, many[1:]...).Profiles)
	added := send(noon.Add(time.Second), "new", "honest")
	require.Equal(t, 2, added.Refused[model.RefusedSeries])
	require.NotErrorIs(t, added.Err, ErrMessageTooLarge, "it may be kept later")
	now := noon
	for range 30 {
		now = now.Add(time.Minute)
		require.Equal(t, 1, send(now, "honest").Profiles)
	}
	view, err := s.View(t.Context(),
		&answers.Query{Memory: model.NewMemory(t.Context(), nil), Reads: answers.ReadsTypes}) // a query that goes on
	require.NoError(t, err)
	profiles := func() (n int) {
		require.NoError(t, view.Blocks[0].Series("", view.Memory, func(list []model.BlockSeries) error {
			for i := range list {
				n += list[i].Profiles
			}
			return nil
		}))
		return n
	}
	read := profiles()
	assert.Equal(t, 1, send(now, "new").Profiles)
	assert.EqualValues(t, 31, sum(t, s, model.Selection{Service: "honest", Profile: "process_cpu"}))
	assert.EqualValues(t, 1, sum(t, s, model.Selection{Service: "new", Profile: "process_cpu"}))
	assert.Equal(t, cfg.MaxSeries/replacedPart, s.Stats().Evicted[model.EvictedSeries])
	assert.Equal(t, read, profiles(), "a query keeps what it reads")
	// They come back as new ones do, also in the block that had them.
	gone := 0
	for _, service := range many[1:] {
		if !slices.ContainsFunc(s.services(), func(in answers.ServiceInfo) bool { return in.Service == service }) {
			gone++
			send(now, service)
		}
	}
	assert.NotZero(t, gone)
	for range 300 {
		now = now.Add(time.Minute)
		send(now, "honest")
	}
	assert.Equal(t, 1, s.Stats().Series, "all others are too old")
}

// A timeline may begin and end at any time.
func TestTimelineOfAnyTime(t *testing.T) {
	s := New(testConfig())
	add(t, s, "a", "cpu", "nanoseconds", 0, 10, profiletest.Value(100, "leaf"))
	for _, from := range []int64{0, 1, at(0), math.MaxInt64 - 1} {
		for _, until := range []int64{0, 2, at(5), math.MaxInt64 - 1023, math.MaxInt64} {
			for _, points := range []int{1, 360, mostPoints} {
				tl, err := s.Timeline(context.Background(),
					model.Selection{Service: "shop", Profile: "process_cpu", From: from, Until: until}, points, noon)
				require.NoError(t, err)
				assert.LessOrEqual(t, len(tl.Groups[0].Values), mostPoints+1)
			}
		}
	}
	// What a value is does not depend on the time.
	add(t, s, "a", "inuse_space", "bytes", 0, 0, profiletest.Value(100, "leaf"))
	for _, from := range []int64{at(0), at(5000)} {
		tl, err := s.Timeline(t.Context(), model.Selection{Service: "shop", Profile: "memory", From: from, Until: at(9000)},
			mostPoints, noon)
		require.NoError(t, err)
		assert.Equal(t, kind.Gauge, tl.Values)
	}
	// Without a start, it begins with the first profile: a state with the time from which it holds. What is on disk is
	// older than the window of what is in memory.
	disk := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, disk.Close()) }()
	add(t, disk, "a", "cpu", "nanoseconds", 100, 60, profiletest.Value(100, "leaf"))
	add(t, disk, "a", "inuse_space", "bytes", 100, 60, profiletest.Value(100, "leaf"))
	for name, want := range map[string]int64{"process_cpu": at(100), "memory": at(160)} {
		sel := model.Selection{Service: "shop", Profile: name}
		tl, err := disk.Timeline(t.Context(), sel, mostPoints, noon.Add(12*time.Hour))
		require.NoError(t, err)
		assert.Equal(t, want/tl.Step*tl.Step, tl.From, name)
	}
}

// Observations that differ in their time alone and have many attributes are one sample, and each is in the pprof.
func TestObservationsShareTheirAttributes(t *testing.T) {
	s := New(testConfig())
	timestamps := []uint64{uint64(at(1)), uint64(at(2)), uint64(at(3))}
	var many []profiletest.Attribute
	for i := range 16 {
		many = append(many, profiletest.Attr(fmt.Sprint("key", i), 1))
	}
	pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").Time(uint64(at(0)), 60e9).Sample(
		profiletest.Observed(timestamps, "leaf").With(many...).With(profiletest.Attr("a", 1)),
		profiletest.Observed(timestamps[:1], "leaf").With(many...).With(profiletest.Attr("a", 2)),
	).Build()
	s.Add(pd, noon.Add(time.Minute))
	merged, err := s.Merge(context.Background(),
		model.Selection{Service: "shop", Profile: "process_cpu", Timestamps: true})
	require.NoError(t, err)
	samples := profiletest.ProfileAt(merged.Profiles, 0).Samples()
	require.Equal(t, 2, samples.Len())
	assert.Equal(t, timestamps, samples.At(0).TimestampsUnixNano().AsRaw())
	assert.Equal(t, []int64{1, 1, 1}, samples.At(0).Values().AsRaw())
	assert.Len(t, encode(t, merged.Profiles).Sample, 4)
}

// Observations are in the order in which they were sent.
func TestObservationsKeepTheirOrder(t *testing.T) {
	s := New(testConfig())
	pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").Time(uint64(at(0)), 60e9).Sample(
		profiletest.Observed([]uint64{uint64(at(1))}, "a"),
		profiletest.Observed([]uint64{uint64(at(2))}, "b"),
		profiletest.Observed([]uint64{uint64(at(3))}, "a"),
	).Build()
	s.Add(pd, noon.Add(time.Minute))
	merged, err := s.Merge(context.Background(),
		model.Selection{Service: "shop", Profile: "process_cpu", Timestamps: true})
	require.NoError(t, err)
	var names []string
	for _, sample := range encode(t, merged.Profiles).Sample {
		names = append(names, sample.Location[0].Line[0].Function.Name)
	}
	assert.Equal(t, []string{"a", "b", "a"}, names)
}

// A pprof of several sample types may have as many samples as one of a single type.
func TestManySamplesOfSeveralTypes(t *testing.T) {
	profiletest.SkipLarge(t)
	const stacks, threads, types = 1100, 1000, 4
	b := profiletest.New().Resource("service.name", "shop").Scope("s", "1", "pprof.scope.profile_name", "memory")
	for i := range types {
		b.Profile(fmt.Sprint("type", i), "count").Time(uint64(at(0)), 1e9)
		for stack := range stacks {
			b.Sample(profiletest.Value(1, fmt.Sprint("leaf", stack)))
		}
	}
	pd := b.Build()
	d := pd.Dictionary()
	d.StringTable().Append("thread")
	first := d.AttributeTable().Len()
	for i := range threads {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(d.StringTable().Len() - 1))
		a.Value().SetInt(int64(i))
	}
	samples := profiletest.ProfileAt(pd, 0).Samples()
	samples.EnsureCapacity(stacks * (threads + 1))
	for stack := range stacks {
		for i := range threads {
			sample := samples.AppendEmpty()
			sample.SetStackIndex(samples.At(stack).StackIndex())
			sample.AttributeIndices().Append(int32(first + i))
			sample.Values().Append(1)
		}
	}
	cfg := testConfig()
	cfg.MaxBytes = 1 << 30
	s := New(cfg)
	require.Zero(t, s.Add(pd, noon).Refused)
	merged, err := s.Merge(context.Background(), model.Selection{Service: "shop", Profile: "memory"})
	require.NoError(t, err)
	assert.Equal(t, stacks*(threads+1), profiletest.ProfileAt(merged.Profiles, 0).Samples().Len())
}

// A resource is the same in all blocks and in any order of its attributes, and others have series of their own.
func TestSeriesKeepTheirIdentity(t *testing.T) {
	cfg := testConfig()
	cfg.Window = 10 * time.Minute
	s := New(cfg)
	send := func(minute int, keysAndValues ...any) {
		start := noon.Add(time.Duration(minute) * time.Minute)
		s.Add(profiletest.New().Resource(keysAndValues...).Profile("inuse_space", "bytes").Time(uint64(start.UnixNano()), 0).
			Sample(profiletest.Value(12_000, "leaf")).Build(), start)
	}
	for minute := range 6 {
		send(minute, "service.name", "shop", "pod", "a", "n", 1)
		send(minute, "n", 1, "pod", "a", "service.name", "shop")
		send(minute, "service.name", "shop", "pod", "a", "n", "1")
	}
	s.mu.Lock()
	require.Greater(t, len(s.blocks), 2)
	s.mu.Unlock()
	assert.Equal(t, 2, s.Stats().Series)
	info := s.profiles("shop")
	require.Len(t, info, 1)
	assert.Equal(t, 2, info[0].Instances)
	assert.EqualValues(t, 24_000, sum(t, s, model.Selection{Service: "shop", Profile: "memory"}),
		"the mean of each instance")
	s.Expire(noon.Add(5 * time.Hour))
	s.Expire(noon.Add(5*time.Hour + cfg.Window/blockCount)) // the clock is right
	assert.Zero(t, s.Stats().Series)
}

// A query for more frames than it may walk over is an error, and one that has no time left ends between two stacks.
func TestFramesAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	var lines []profiletest.Line
	for i := range 10_000 {
		lines = append(lines, profiletest.Line{Function: profiletest.Function{Name: "inlined"}, Line: int64(i)})
	}
	s := New(testConfig())
	b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(0)), 1e9)
	for i := range 1000 {
		b.Sample(profiletest.Sample{Stack: []profiletest.Location{{Address: uint64(i)}, {Lines: lines}}, Values: []int64{1}})
	}
	s.Add(b.Build(), noon.Add(time.Second))
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	_, err := s.FlameGraph(context.Background(), sel, 1000)
	require.ErrorIs(t, err, model.ErrTooLarge)
}
