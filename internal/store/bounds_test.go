// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pprofencode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The permitted costs of Add and of all queries on what it kept, by the message's bytes.
const (
	addConstant, addFactor     = 16 << 20, 24
	queryConstant, queryFactor = 64 << 20, 64
)

// queryAll runs every query on one profile.
func queryAll(s *Store, service, profile string) {
	ctx := context.Background()
	sel := model.Selection{Service: service, Profile: profile, Timestamps: true}
	grouped := sel
	grouped.GroupBy = "key"
	_, _ = s.FlameGraph(ctx, sel, 1000)
	_, _ = s.FlameGraph(ctx, grouped, 1000)
	_, _ = s.Merge(ctx, sel)
	_, _ = s.Timeline(ctx, grouped, 100, noon)
	_, _ = s.Attributes(ctx, sel, 100)
	_, _ = s.HeatMap(ctx, sel, 600, 50)
	_, _ = s.Events(ctx, sel, 5000)
	sel.Attributes = []model.Attribute{{Key: "key", Value: "1"}}
	_, _ = s.FlameGraph(ctx, sel, 1000)
}

// queryEverything runs every query on the first few profiles of the store.
func queryEverything(s *Store) {
	list := slices.CompactFunc(s.profiles(""), func(a, b answers.ProfileInfo) bool {
		return a.Service == b.Service && a.Profile == b.Profile
	})
	for _, p := range list[:min(len(list), 3)] {
		queryAll(s, p.Service, p.Profile)
	}
}

func TestCostFollowsFromTheBytes(t *testing.T) {
	profiletest.SkipLarge(t)
	for name, wire := range worst.Profiles.All(512 << 10) {
		t.Run(name, func(t *testing.T) {
			// Texts that attributes refer to are shared, as in a message that has arrived.
			pd := profiletest.Unmarshal(t, wire)
			size := len(wire)
			cfg := testConfig()
			cfg.MaxSeries = 0 // the default
			var s *Store
			profiletest.RequireCostOfEach(t, profiletest.BoundOf(size, addConstant, addFactor), func() func() {
				s = New(cfg)
				return func() { require.NotZero(t, s.Add(pd, noon).Profiles) }
			})
			bound := profiletest.BoundOf(size, queryConstant, queryFactor)
			bound.CPU *= 2 // there are at least eight queries
			profiletest.RequireCost(t, bound, func() { queryEverything(s) })
		})
	}
}

// The bytes that the store reports are about those that it holds.
func TestBytesAreWhatTheStoreHolds(t *testing.T) {
	profiletest.SkipLarge(t)
	_, messages := hour(t, 40, 500)
	s, _ := filled(t, messages)
	bound := profiletest.Bound{HeapBytes: 1<<20 + s.Stats().Bytes*10/6}
	s = nil
	profiletest.RequireCost(t, bound, func() { s, _ = filled(t, messages) })
}

// If a hundred times the bound arrives, the newest profiles stay.
func TestOldestAreDropped(t *testing.T) {
	profiletest.SkipLarge(t)
	cfg := testConfig()
	cfg.MaxBytes = 2 << 20
	s := New(cfg)
	m := worst.NewMessage()
	m.Resource.Resource().Attributes().PutStr("service.name", "shop")
	p, first := m.Profile(), m.Dict.StringTable().Len()
	for i := range 100 {
		m.Sample(p, m.Stack(m.Location(m.Function(m.Text(fmt.Sprint("f", i))))))
	}
	pad := strings.Repeat("x", 900)
	sent := 0
	for round := 0; sent < 100*cfg.MaxBytes; round++ {
		for i := range 100 {
			name := fmt.Sprintf("%d.%d.%s", round, i, pad)
			m.Dict.StringTable().SetAt(first+i, name)
			sent += len(name)
		}
		now := noon.Add(time.Duration(round) * time.Second)
		p.SetTime(pcommon.NewTimestampFromTime(now))
		added := s.Add(m.Profiles, now.Add(time.Second))
		require.Equal(t, 1, added.Profiles)
		require.LessOrEqual(t, s.Stats().Bytes, cfg.MaxBytes)
	}
	stats := s.Stats()
	assert.NotZero(t, stats.Evicted[model.EvictedBytes])
	assert.Greater(t, stats.Bytes, cfg.MaxBytes*6/10, "no more goes than must")
	assert.NotZero(t, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
}

// A message that is too large for the store does not change it, whatever part of it is large.
func TestTooLargeMessagesAreRefused(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	s := New(cfg)
	add(t, s, "a", "cpu", "nanoseconds", 0, 1, profiletest.Value(1, "leaf"))
	text := strings.Repeat("x", cfg.MaxBytes/2)
	for name, change := range map[string]func(pprofile.Profiles){
		"function": func(pd pprofile.Profiles) { pd.Dictionary().StringTable().Append(text) },
		"resource": func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("key", text) },
		"scope": func(pd pprofile.Profiles) {
			pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutEmptySlice("key").AppendEmpty().
				SetStr(text)
		},
		"sample": func(pd pprofile.Profiles) {
			pd.Dictionary().AttributeTable().AppendEmpty().Value().SetEmptyMap().PutStr(text, "")
		},
		"bytes": func(pd pprofile.Profiles) {
			pd.Dictionary().AttributeTable().AppendEmpty().Value().SetEmptyBytes().FromRaw([]byte(text))
		},
	} {
		huge := profiletest.New().Resource("service.name", "huge").Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, "leaf")).Build()
		change(huge)
		assert.Equal(t, 1, s.Add(huge, noon).Refused[model.RefusedSize], name)
		assert.Equal(t, 1, s.Stats().Profiles, name)
	}
}

// Attributes of many keys that share a string take its memory for each of them. What is kept of such a message stays;
// one that would not leave room for others is refused.
func TestSharedStringsCountForEachKey(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	s := New(cfg)
	message := func(keys int) pprofile.Profiles {
		text := strings.Repeat("x", cfg.MaxBytes/64)
		pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, "leaf")).Build()
		table := pd.Dictionary()
		table.StringTable().Append(text)
		for i := range keys {
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr(fmt.Sprint("key", i), text)
			table.StringTable().Append(fmt.Sprint("sample", i))
			a := table.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(int32(table.StringTable().Len() - 1))
			a.Value().SetStr(text)
			pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).AttributeIndices().
				Append(int32(table.AttributeTable().Len() - 1))
		}
		return pd
	}
	require.Equal(t, 1, s.Add(message(6), noon).Profiles)
	for range 3 {
		require.Equal(t, 1, s.Add(message(16), noon).Refused[model.RefusedSize])
		require.LessOrEqual(t, s.Stats().Bytes, cfg.MaxBytes)
	}
	require.Equal(t, 1, s.Stats().Profiles)
	require.EqualValues(t, 1, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
}

// A timeline costs as much as its profiles and its points, not their product.
func TestTimelineOfLongIntervals(t *testing.T) {
	const profiles = 60_000
	pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(1,
		uint64(noon.UnixNano())).
		Sample(profiletest.Value(10_000, "leaf")).Build()
	sp := pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
	for range profiles - 1 {
		sp.Profiles().At(0).CopyTo(sp.Profiles().AppendEmpty())
	}
	s := New(testConfig())
	require.Equal(t, profiles, s.Add(pd, noon).Profiles)
	profiletest.RequireCost(t, profiletest.BoundOf(8*(profiles+mostPoints), 4<<20, 16), func() {
		tl, err := s.Timeline(context.Background(), model.Selection{Service: "shop", Profile: "process_cpu", From: 1},
			mostPoints, noon)
		require.NoError(t, err)
		require.Greater(t, len(tl.Groups[0].Values), mostPoints*9/10)
		total := 0.0
		for _, value := range tl.Groups[0].Values {
			total += value
		}
		require.InEpsilon(t, profiles*10_000, total, 1e-6)
	})
}

// A store in which hardly any two samples share a function makes the most costly queries: their memory follows from its
// bytes.
func TestQueriesOfAFullStoreAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	const maxBytes = 16 << 20
	s := fullStore(t, maxBytes)
	ctx := context.Background()
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	grouped := sel
	grouped.GroupBy = "key"
	for _, query := range map[string]func() error{
		"flame graph": func() error { _, err := s.FlameGraph(ctx, sel, 500_000); return err },
		"groups":      func() error { _, err := s.FlameGraph(ctx, grouped, 500_000); return err },
		"diff":        func() error { _, err := s.Diff(ctx, sel, sel, 500_000); return err },
		"timeline":    func() error { _, err := s.Timeline(ctx, grouped, mostPoints, noon); return err },
		"pprof": func() error {
			merged, err := s.Merge(ctx, sel)
			if err == nil {
				_, _, err = pprofencode.Encode(merged.Profiles)
			}
			return err
		},
	} {
		profiletest.RequireCost(t, profiletest.BoundOf(maxBytes, 64<<20, 6), func() { require.NoError(t, query()) })
	}
}

// FuzzAdd adds arbitrary messages and runs every query.
func FuzzAdd(f *testing.F) {
	for _, wire := range worst.Profiles.All(8 << 10) {
		f.Add(wire)
	}
	small := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Sample(profiletest.Value(1, "leaf", "main").With(profiletest.Attr("key", "1")).Linked([16]byte{1}, [8]byte{1})).
		Profile("alloc_space", "bytes").Sample(profiletest.Value(1, "leaf")).Build()
	wire := profiletest.Marshal(f, small)
	f.Add(wire)
	f.Fuzz(func(t *testing.T, wire []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
		if err != nil {
			return
		}
		cfg := testConfig()
		cfg.MaxBytes = 1 << 20
		var s *Store
		profiletest.RequireCost(t, profiletest.BoundOf(len(wire), queryConstant, 3*queryFactor), func() {
			s = New(cfg)
			for range 3 {
				s.Add(pd, noon)
			}
			queryEverything(s)
		})
		if stats := s.Stats(); stats.Bytes > cfg.MaxBytes || stats.Series > cfg.MaxSeries {
			t.Fatalf("beyond the bounds: %+v", stats)
		}
	})
}

// Queries run while profiles arrive and the oldest are dropped; each sees whole profiles.
func TestQueriesWhileProfilesArrive(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	s := New(cfg)
	pad := strings.Repeat("x", 500)
	add(t, s, "a", "cpu", "nanoseconds", 0, 1, profiletest.Value(10, "leaf"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			add(t, s, "a", "cpu", "nanoseconds", i%60, 1, profiletest.Value(10, fmt.Sprint("leaf", i, pad)))
		}
	}()
	for {
		select {
		case <-done:
			assert.NotZero(t, s.Stats().Evicted[model.EvictedBytes])
			return
		default:
			require.Zero(t, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"})%10)
			queryAll(s, "shop", "process_cpu")
		}
	}
}

// Queries of many blocks hold few files open.
func TestOpenFilesAreBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files are counted in /proc")
	}
	s := open(t, diskConfig(t, memoryDir(t)))
	b := profiletest.New().Resource("service.name", "shop")
	const hours = 40
	for hour := range hours {
		b.Profile("cpu", "nanoseconds").Time(uint64(noon.Add(time.Duration(hour-hours)*time.Hour).UnixNano()), 1e9).
			Sample(profiletest.Value(1, "leaf"))
	}
	require.Equal(t, hours, s.Add(b.Build(), noon).Profiles)
	freeze(s)
	require.NoError(t, s.flush())
	require.Len(t, s.Blocks(), hours)
	require.EqualValues(t, hours, sum(t, s, allOfShop))
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	open := 0
	for _, fd := range files {
		if target, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); filepath.Ext(target) == ".parquet" {
			open++
		}
	}
	assert.Less(t, open, 2*hours, "a block has three that are read")
	require.NoError(t, s.Close())
}
