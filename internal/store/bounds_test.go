// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
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
)

// The permitted costs of Add and of all queries on what it kept, by the message's bytes.
const (
	addConstant, addFactor     = 16 << 20, 24
	queryConstant, queryFactor = 64 << 20, 64
)

// worst are messages made to be as costly as possible for their size.
func worst() map[string]pprofile.Profiles {
	long := strings.Repeat("long", 64<<10)
	messages := map[string]pprofile.Profiles{}
	add := func(name string, change func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32)) {
		pd := profiletest.New().Resource("service.name", "shop").Scope("s", "1").Profile("cpu", "nanoseconds").
			Time(uint64(noon.UnixNano()), 1e9).Sample(profiletest.Value(1, "leaf", "main")).Build()
		change(pd, pd.ResourceProfiles().At(0).ScopeProfiles().At(0), func(s string) int32 {
			pd.Dictionary().StringTable().Append(s)
			return int32(pd.Dictionary().StringTable().Len() - 1)
		})
		messages[name] = pd
	}
	add("profiles of a large resource and scope",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("long", long)
			sp.Scope().Attributes().PutStr("pprof.scope.profile_name", long)
			typ := str(long)
			for i := range 10_000 {
				p := sp.Profiles().AppendEmpty()
				p.SampleType().SetTypeStrindex(typ)
				p.SampleType().SetUnitStrindex(str(fmt.Sprint(i)))
				p.PeriodType().SetTypeStrindex(typ)
			}
		})
	add("functions of a long name", func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
		name := str(long)
		samples := sp.Profiles().At(0).Samples()
		for i := range 5_000 {
			f := pd.Dictionary().FunctionTable().AppendEmpty()
			f.SetNameStrindex(name)
			f.SetStartLine(int64(i))
			pd.Dictionary().LocationTable().AppendEmpty().Lines().AppendEmpty().
				SetFunctionIndex(int32(pd.Dictionary().FunctionTable().Len() - 1))
			pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(int32(pd.Dictionary().LocationTable().Len() - 1))
			s := samples.AppendEmpty()
			s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
			s.Values().Append(1)
		}
	})
	add("samples that share many attributes",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			var set []int32
			for i := range 1000 {
				a := pd.Dictionary().AttributeTable().AppendEmpty()
				a.SetKeyStrindex(str(fmt.Sprint("key", i)))
				a.Value().SetStr("v")
				set = append(set, int32(pd.Dictionary().AttributeTable().Len()-1))
			}
			for i := range 1000 {
				s := sp.Profiles().At(0).Samples().AppendEmpty()
				s.Values().Append(int64(i))
				s.AttributeIndices().FromRaw(set)
			}
		})
	add("a deep stack with every depth of it",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			var stack []int32
			for i := range 1000 {
				f := pd.Dictionary().FunctionTable().AppendEmpty()
				f.SetNameStrindex(str(fmt.Sprint("f", i)))
				pd.Dictionary().LocationTable().AppendEmpty().Lines().AppendEmpty().
					SetFunctionIndex(int32(pd.Dictionary().FunctionTable().Len() - 1))
				stack = append([]int32{int32(pd.Dictionary().LocationTable().Len() - 1)}, stack...)
				pd.Dictionary().StackTable().AppendEmpty().LocationIndices().FromRaw(stack)
				s := sp.Profiles().At(0).Samples().AppendEmpty()
				s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
				s.Values().Append(1)
			}
		})
	add("one stack of very many links and attributes",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			key := str("key")
			for i := range 20_000 {
				l := pd.Dictionary().LinkTable().AppendEmpty()
				l.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
				l.SetSpanID([8]byte{1})
				a := pd.Dictionary().AttributeTable().AppendEmpty()
				a.SetKeyStrindex(key)
				a.Value().SetInt(int64(i))
				s := sp.Profiles().At(0).Samples().AppendEmpty()
				s.SetStackIndex(1)
				s.SetLinkIndex(int32(pd.Dictionary().LinkTable().Len() - 1))
				s.AttributeIndices().Append(int32(pd.Dictionary().AttributeTable().Len() - 1))
				s.Values().Append(1)
			}
		})
	addSample := func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, stack int32) pprofile.Sample {
		s := sp.Profiles().At(0).Samples().AppendEmpty()
		s.SetStackIndex(stack)
		s.Values().Append(1)
		return s
	}
	addStack := func(pd pprofile.Profiles, locations ...int32) int32 {
		pd.Dictionary().StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
		return int32(pd.Dictionary().StackTable().Len() - 1)
	}
	addLocation := func(pd pprofile.Profiles) (pprofile.Location, int32) {
		return pd.Dictionary().LocationTable().AppendEmpty(), int32(pd.Dictionary().LocationTable().Len() - 1)
	}
	addAttribute := func(pd pprofile.Profiles, key int32) (pcommon.Value, int32) {
		a := pd.Dictionary().AttributeTable().AppendEmpty()
		a.SetKeyStrindex(key)
		return a.Value(), int32(pd.Dictionary().AttributeTable().Len() - 1)
	}
	fillList := func(list pcommon.Slice) {
		for i := range 5_000 {
			list.AppendEmpty().SetStr(fmt.Sprint("item-", i))
		}
	}
	add("resources and scopes that share a long attribute",
		func(pd pprofile.Profiles, _ pprofile.ScopeProfiles, _ func(string) int32) {
			for i := range 1000 {
				rp := pd.ResourceProfiles().AppendEmpty()
				pd.ResourceProfiles().At(0).CopyTo(rp)
				rp.Resource().Attributes().PutStr("long", long)
				rp.Resource().Attributes().PutInt("i", int64(i))
				rp.ScopeProfiles().At(0).Scope().Attributes().PutEmptySlice("pprof.scope.profile_name").AppendEmpty().SetStr(long)
			}
		})
	add("a location of many lines in many stacks",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
			l, many := addLocation(pd)
			for i := range 10_000 {
				line := l.Lines().AppendEmpty()
				line.SetFunctionIndex(1)
				line.SetLine(int64(i))
			}
			for range 10_000 {
				l, leaf := addLocation(pd)
				l.SetAddress(uint64(leaf))
				addSample(pd, sp, addStack(pd, leaf, many))
			}
		})
	add("a location of many lines below many others",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
			l, many := addLocation(pd)
			for range 10_000 {
				l.Lines().AppendEmpty().SetFunctionIndex(1)
			}
			for range 10_000 {
				l, root := addLocation(pd)
				l.SetAddress(uint64(root))
				addSample(pd, sp, addStack(pd, many, root))
			}
		})
	add("a location of many lines very often in a stack",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
			l, many := addLocation(pd)
			for range 10_000 {
				l.Lines().AppendEmpty().SetFunctionIndex(1)
			}
			addSample(pd, sp, addStack(pd, slices.Repeat([]int32{many}, 50_000)...))
		})
	add("locations without lines of a long mapping",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			pd.Dictionary().MappingTable().AppendEmpty().SetFilenameStrindex(str(long))
			for i := range 1000 {
				l, at := addLocation(pd)
				l.SetMappingIndex(int32(pd.Dictionary().MappingTable().Len() - 1))
				l.SetAddress(uint64(i))
				addSample(pd, sp, addStack(pd, at))
			}
		})
	add("locations of a mapping with very many attributes",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			m := pd.Dictionary().MappingTable().AppendEmpty()
			for i := range 20_000 {
				_, a := addAttribute(pd, str(fmt.Sprint("key", i)))
				m.AttributeIndices().Append(a)
			}
			value, frameType := addAttribute(pd, str("profile.frame.type"))
			fillList(value.SetEmptySlice())
			for i := range 20_000 {
				l, at := addLocation(pd)
				l.SetMappingIndex(int32(pd.Dictionary().MappingTable().Len() - 1))
				l.SetAddress(uint64(i))
				l.AttributeIndices().Append(frameType)
				addSample(pd, sp, addStack(pd, at))
			}
		})
	add("very many sample types", func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
		sp.Scope().Attributes().PutStr("pprof.scope.profile_name", "process_cpu")
		for i := range 90 {
			p := sp.Profiles().AppendEmpty()
			p.SampleType().SetTypeStrindex(str("type"))
			p.SampleType().SetUnitStrindex(str(fmt.Sprint(i)))
			for range 800 {
				l, at := addLocation(pd)
				l.SetAddress(uint64(at))
				s := p.Samples().AppendEmpty()
				s.SetStackIndex(addStack(pd, at))
				s.Values().Append(1)
			}
		}
	})
	add("a sample of very many attributes and timestamps",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			s := addSample(pd, sp, 1)
			s.Values().FromRaw(nil)
			for i := range 3000 {
				value, a := addAttribute(pd, str(fmt.Sprint("key", i)))
				value.SetInt(1)
				s.AttributeIndices().Append(a)
			}
			for i := range 15_000 {
				s.TimestampsUnixNano().Append(uint64(noon.UnixNano() + int64(i)))
			}
		})
	add("a sample of some attributes and very many timestamps",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			s := addSample(pd, sp, 1)
			s.Values().FromRaw(nil)
			for i := range 16 {
				value, a := addAttribute(pd, str(fmt.Sprint("key", i)))
				value.SetInt(1)
				s.AttributeIndices().Append(a)
			}
			for i := range 200_000 {
				s.TimestampsUnixNano().Append(uint64(noon.UnixNano() + int64(i)))
			}
		})
	add("very many sample types of a profile with very many attributes",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			sp.Scope().Attributes().PutStr("pprof.scope.profile_name", "process_cpu")
			for i := range 1500 {
				p := sp.Profiles().AppendEmpty()
				p.SampleType().SetUnitStrindex(str(fmt.Sprint(i)))
				p.SetTime(pcommon.Timestamp(noon.UnixNano()))
			}
			last := sp.Profiles().At(sp.Profiles().Len() - 1)
			for i := range 30_000 {
				value, a := addAttribute(pd, str(fmt.Sprint("key", i)))
				value.SetInt(1)
				last.AttributeIndices().Append(a)
			}
			last.SetDurationNano(1e9)
		})
	add("a deep stack with very many timestamps",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
			s := addSample(pd, sp, addStack(pd, slices.Repeat([]int32{1}, 100_000)...))
			s.Values().FromRaw(nil)
			for i := range 30_000 {
				s.TimestampsUnixNano().Append(uint64(noon.UnixNano() + int64(i)))
			}
		})
	add("profiles of a resource with a long list",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
			fillList(pd.ResourceProfiles().At(0).Resource().Attributes().PutEmptySlice("key"))
			for range 5000 {
				sp.Profiles().At(0).CopyTo(sp.Profiles().AppendEmpty())
			}
		})
	add("samples that share a long list", func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
		value, list := addAttribute(pd, str("key"))
		fillList(value.SetEmptySlice())
		n := str("n")
		for i := range 5000 {
			value, a := addAttribute(pd, n)
			value.SetInt(int64(i))
			addSample(pd, sp, 1).AttributeIndices().Append(a, list)
		}
	})
	add("threads of a resource with very many attributes",
		func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, str func(string) int32) {
			resource := pd.ResourceProfiles().At(0).Resource().Attributes()
			resource.EnsureCapacity(20_000)
			for i := range 20_000 {
				value := resource.PutEmpty(fmt.Sprint("key", i))
				value.SetInt(1)
			}
			resource.PutStr("host.name", "h")
			thread := str("thread.id")
			for i := range 20_000 {
				value, a := addAttribute(pd, thread)
				value.SetInt(int64(i))
				s := addSample(pd, sp, 1)
				s.AttributeIndices().Append(a)
				s.TimestampsUnixNano().Append(uint64(noon.UnixNano() + int64(i)))
			}
		})
	add("services of one profile each", func(pd pprofile.Profiles, _ pprofile.ScopeProfiles, _ func(string) int32) {
		for i := range 5000 {
			rp := pd.ResourceProfiles().AppendEmpty()
			pd.ResourceProfiles().At(0).CopyTo(rp)
			rp.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", i))
		}
	})
	add("huge times and values", func(_ pprofile.Profiles, sp pprofile.ScopeProfiles, _ func(string) int32) {
		for i := range 1000 {
			p := sp.Profiles().AppendEmpty()
			sp.Profiles().At(0).CopyTo(p)
			p.SetTime(pprofile.NewProfile().Time() - 1)
			p.SetDurationNano(1<<64 - 1)
			p.Samples().At(0).Values().SetAt(0, -1<<63)
			p.Samples().At(0).TimestampsUnixNano().Append(uint64(i) << 54)
		}
	})
	return messages
}

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
	for name, pd := range worst() {
		t.Run(name, func(t *testing.T) {
			wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
			require.NoError(t, err)
			// Texts that attributes refer to are shared, as in a message that has arrived.
			pd, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
			require.NoError(t, err)
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
	pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(noon.UnixNano()),
		1e9).
		Sample(profiletest.Value(1, "leaf", "main")).Build()
	for i := range 100 {
		pd.Dictionary().StringTable().Append("")
		f := pd.Dictionary().FunctionTable().AppendEmpty()
		f.SetNameStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		f.SetStartLine(int64(i))
		pd.Dictionary().LocationTable().AppendEmpty().Lines().AppendEmpty().
			SetFunctionIndex(int32(pd.Dictionary().FunctionTable().Len() - 1))
		pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(int32(pd.Dictionary().LocationTable().Len() - 1))
		sample := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().AppendEmpty()
		sample.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
		sample.Values().Append(1)
	}
	pad := strings.Repeat("x", 900)
	first := pd.Dictionary().StringTable().Len() - 100
	sent := 0
	for round := 0; sent < 100*cfg.MaxBytes; round++ {
		for i := range 100 {
			name := fmt.Sprintf("%d.%d.%s", round, i, pad)
			pd.Dictionary().StringTable().SetAt(first+i, name)
			sent += len(name)
		}
		now := noon.Add(time.Duration(round) * time.Second)
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SetTime(pcommon.NewTimestampFromTime(now))
		added := s.Add(pd, now.Add(time.Second))
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
	for _, pd := range worst() {
		if wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err == nil && len(wire) < 100_000 {
			f.Add(wire)
		}
	}
	small := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Sample(profiletest.Value(1, "leaf", "main").With(profiletest.Attr("key", "1")).Linked([16]byte{1}, [8]byte{1})).
		Profile("alloc_space", "bytes").Sample(profiletest.Value(1, "leaf")).Build()
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(small)
	require.NoError(f, err)
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
