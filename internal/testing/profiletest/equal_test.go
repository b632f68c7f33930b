// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// shuffled returns what sound builds, with a dictionary in another order: its tables begin with unused entries.
func shuffled() pprofile.Profiles {
	b := New()
	b.stack(Stack("unused"))
	b.stack(Stack("main", "leaf"))
	b.attributes([]Attribute{Attr("thread", "main")})
	b.dict.Links.Intern(dictionary.Link{TraceID: [16]byte{5}, SpanID: [8]byte{5}})
	b.dict.Strings.Intern("By")
	return addSound(b).Build()
}

func TestEqualIgnoresTheLayoutOfTheDictionary(t *testing.T) {
	want, got := sound().Build(), shuffled()
	require.NotEqual(t, want.Dictionary().StringTable().AsRaw(), got.Dictionary().StringTable().AsRaw())
	require.NotEqual(t, SampleAt(want, 0).StackIndex(), SampleAt(got, 0).StackIndex())
	require.NoError(t, Equal(want, got))
	require.NoError(t, Equal(got, want))
	assert.Equal(t, Render(want), Render(got))
}

// Each change alters one field, which the error names: the golden file has them.
func TestEqualComparesEveryField(t *testing.T) {
	type (
		profiles = pprofile.Profiles
		tables   = pprofile.ProfilesDictionary
	)
	changes := map[string]func(profiles, tables){
		"value":                   func(pd profiles, _ tables) { SampleAt(pd, 0).Values().SetAt(0, 31) },
		"a sample without values": func(pd profiles, _ tables) { ProfileAt(pd, 0).Samples().AppendEmpty() },
		"a sample less": func(pd profiles, _ tables) {
			ProfileAt(pd, 0).Samples().RemoveIf(func(s pprofile.Sample) bool { return s.LinkIndex() == 0 })
		},
		"timestamp": func(pd profiles, _ tables) {
			ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(1, 1001)
		},
		"resource": func(pd profiles, _ tables) { pd.ResourceProfiles().At(0).Resource().Attributes().Clear() },
		"duration": func(pd profiles, _ tables) { ProfileAt(pd, 0).SetDurationNano(0) },
		"scopes":   func(pd profiles, _ tables) { pd.ResourceProfiles().At(0).ScopeProfiles().AppendEmpty() },
		"resource's dropped": func(pd profiles, _ tables) {
			pd.ResourceProfiles().At(0).Resource().SetDroppedAttributesCount(3)
		},
		"resource's entities": func(pd profiles, _ tables) {
			entity.ResourceEntityRefs(pd.ResourceProfiles().At(0).Resource()).AppendEmpty().SetType("host")
		},
		"resource's schema": func(pd profiles, _ tables) { pd.ResourceProfiles().At(0).SetSchemaUrl("") },
		"resources":         func(pd profiles, _ tables) { pd.ResourceProfiles().AppendEmpty() },
		"scope's schema":    func(pd profiles, _ tables) { firstScope(pd).SetSchemaUrl("") },
		"scope's dropped":   func(pd profiles, _ tables) { firstScope(pd).Scope().SetDroppedAttributesCount(2) },
		"profiles":          func(pd profiles, _ tables) { firstScope(pd).Profiles().AppendEmpty() },
		"id":                func(pd profiles, _ tables) { ProfileAt(pd, 0).SetProfileID([16]byte{}) },
		"time":              func(pd profiles, _ tables) { ProfileAt(pd, 0).SetTime(1) },
		"period":            func(pd profiles, _ tables) { ProfileAt(pd, 0).SetPeriod(0) },
		"attributes":        func(pd profiles, _ tables) { ProfileAt(pd, 0).AttributeIndices().FromRaw(nil) },
		"dropped":           func(pd profiles, _ tables) { ProfileAt(pd, 0).SetDroppedAttributesCount(1) },
		"payload format":    func(pd profiles, _ tables) { ProfileAt(pd, 0).SetOriginalPayloadFormat("jfr") },
		"payload":           func(pd profiles, _ tables) { ProfileAt(pd, 0).OriginalPayload().FromRaw([]byte("b")) },
		"a value of 0":      func(pd profiles, _ tables) { ProfileAt(pd, 0).Samples().AppendEmpty().Values().Append(0) },
		"address":           func(_ profiles, d tables) { d.LocationTable().At(1).SetAddress(1) },
		"not folded":        func(_ profiles, d tables) { d.LocationTable().At(1).AttributeIndices().FromRaw(nil) },
		"lines":             func(_ profiles, d tables) { d.LocationTable().At(1).Lines().AppendEmpty() },
		"line":              func(_ profiles, d tables) { d.LocationTable().At(1).Lines().At(0).SetLine(9) },
		"column":            func(_ profiles, d tables) { d.LocationTable().At(1).Lines().At(0).SetColumn(9) },
		"start line":        func(_ profiles, d tables) { d.FunctionTable().At(1).SetStartLine(1) },
		"memory start":      func(_ profiles, d tables) { d.MappingTable().At(1).SetMemoryStart(1) },
		"memory limit":      func(_ profiles, d tables) { d.MappingTable().At(1).SetMemoryLimit(1) },
		"file offset":       func(_ profiles, d tables) { d.MappingTable().At(1).SetFileOffset(1) },
		"no build id":       func(_ profiles, d tables) { d.MappingTable().At(1).AttributeIndices().FromRaw(nil) },
		"trace id":          func(_ profiles, d tables) { d.LinkTable().At(1).SetTraceID([16]byte{1}) },
		"span id":           func(_ profiles, d tables) { d.LinkTable().At(1).SetSpanID([8]byte{1}) },
		"attribute":         func(_ profiles, d tables) { d.AttributeTable().At(2).Value().SetBool(false) },
		"depth":             func(_ profiles, d tables) { d.StackTable().At(1).LocationIndices().Append(1) },
	}
	want := sound().Build()
	var differences strings.Builder
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		got := sound().Build()
		changes[name](got, got.Dictionary())
		err := Equal(want, got)
		require.Error(t, err, name)
		assert.NotEqual(t, Render(want), Render(got), name)
		fmt.Fprintf(&differences, "%s\n%v\n\n", name, err)
	}
	Golden(t, "testdata/differences.golden", differences.String())
	seen := 0
	for i := range indexSetters(want) {
		got := sound().Build()
		indexSetters(got)[i](1000)
		if Render(want) != Render(got) { // nothing refers to some entries 0
			require.Error(t, Equal(want, got), "index %d", i)
			seen++
		}
	}
	assert.Greater(t, seen, 40)
}

func firstScope(pd pprofile.Profiles) pprofile.ScopeProfiles {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
}

// Texts whose concatenations are equal, and parts of different kinds with the same bytes, are different values.
func TestEqualKeepsPartsApart(t *testing.T) {
	for _, pair := range [][2]Function{
		{{Name: "ab", SystemName: "c"}, {Name: "a", SystemName: "bc"}},
		{{Name: "a", File: "b"}, {Name: "a", SystemName: "b"}},
	} {
		sample := func(f Function) pprofile.Profiles {
			return New().Sample(Sample{Values: []int64{1}, Stack: []Location{{Lines: []Line{{Function: f}}}}}).Build()
		}
		require.Error(t, Equal(sample(pair[0]), sample(pair[1])))
	}
	list := func(values ...any) pprofile.Profiles { return New().Sample(Value(1).With(Attr("k", values))).Build() }
	require.Error(t, Equal(list("a", "bc"), list("ab", "c")))
	require.Error(t, Equal(list([]any{"a"}, "b"), list([]any{"a", "b"})))
}

func TestEqualAddsUpSamplesOfOneIdentity(t *testing.T) {
	a, b := Attr("a", "1"), Attr("b", 2)
	want := New().Profile("cpu", "nanoseconds").Sample(Value(5, "leaf").With(a, b)).Build()
	got := New().Profile("cpu", "nanoseconds").Sample(Value(2, "leaf").With(b, a), Value(3, "leaf").With(a, b, a)).Build()
	require.NoError(t, Equal(want, got))

	want = New().Profile("wall", "ns").Sample(Sample{Values: []int64{1, 2, 2}, Timestamps: []uint64{7, 8, 7}}).Build()
	got = New().Profile("wall", "ns").Sample(
		Sample{Values: []int64{2}, Timestamps: []uint64{7}},
		Sample{Values: []int64{2, 1}, Timestamps: []uint64{8, 7}},
	).Build()
	require.NoError(t, Equal(want, got))
	SampleAt(got, 1).Values().FromRaw([]int64{1, 2})
	require.EqualError(t, Equal(want, got),
		"resource_profiles[0].scope_profiles[0].profiles[0]: sample <>: is 1@8 2@7 2@7, want 1@7 2@7 2@8")
}

func TestEqualTreatsLinkZeroAsNoLink(t *testing.T) {
	want := New().Sample(Value(5, "leaf")).Build()
	got := New().Sample(Value(5, "leaf")).Build()
	got.Dictionary().LinkTable().At(0).SetTraceID(someTrace)
	require.NoError(t, Equal(want, got))
}

func TestEqualListsTheFirstDifferences(t *testing.T) {
	want, got := New().Profile("a", "b"), New().Profile("a", "b")
	for i := range 15 {
		want.Sample(Value(1, strconv.Itoa(i)))
		got.Sample(Value(2, strconv.Itoa(i)))
	}
	err := Equal(want.Build(), got.Build())
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, maxListedDifferences+1)
	assert.Contains(t, lines[0], "sample <0>: is 2, want 1")
	assert.Equal(t, "and 5 more differences", lines[maxListedDifferences])
}

func TestEqualShortensDeepStacks(t *testing.T) {
	frames := make([]string, 100)
	for i := range frames {
		frames[i] = strconv.Itoa(i)
	}
	err := Equal(New().Sample(Value(1, frames...)).Build(), New().Sample(Value(2, frames...)).Build())
	require.ErrorContains(t, err, "< 39 < and 60 more>: is 2, want 1")
}

func TestIgnoreOrder(t *testing.T) {
	want := New().
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(1, "x")).
		Profile("cpu", "ns").Sample(Value(2, "x")).
		Resource("service.name", "b").Scope("s", "1").
		Profile("wall", "ns").Sample(Value(3, "x")).Build()
	got := New().
		Resource("service.name", "b").Scope("s", "1").
		Profile("wall", "ns").Sample(Value(3, "x")).
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(2, "x")).
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(1, "x")).Build()
	require.Error(t, Equal(want, got))
	require.NoError(t, Equal(want, got, IgnoreOrder()))
	require.NoError(t, Equal(want, got, MergeProfiles()))

	ProfileAt(got, 1).Samples().At(0).Values().SetAt(0, 4)
	for _, option := range []EqualOption{IgnoreOrder(), MergeProfiles()} {
		require.EqualError(t, Equal(want, got, option),
			`resource {service.name="a"} scope s 1 profile, sample_type cpu in ns: sample <x>: is 5, want 3`)
	}
	got.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetVersion("2")
	require.ErrorContains(t, Equal(want, got, IgnoreOrder()),
		`resource {service.name="b"} scope s 2 profile, sample_type wall in ns: is there 1 times, want none`)
}

func TestMergeProfilesMergesASplitProfile(t *testing.T) {
	want := New().Profile("cpu", "ns").Payload("pprof", []byte("bytes")).Sample(Value(1, "x"), Value(2, "y"),
		Value(4, "z")).Build()
	got := New().
		Profile("cpu", "ns").Payload("pprof", []byte("bytes")).Sample(Value(1, "x")).
		Profile("cpu", "ns").Payload("pprof", []byte("bytes")).Sample(Value(2, "y"), Value(4, "z")).Build()
	require.ErrorContains(t, Equal(want, got, IgnoreOrder()), "is there 2 times, want there 1 times")
	require.NoError(t, Equal(want, got, MergeProfiles()))
	ProfileAt(got, 0).OriginalPayload().FromRaw(nil)
	ProfileAt(got, 0).SetOriginalPayloadFormat("")
	require.NoError(t, Equal(want, got, MergeProfiles()))

	ProfileAt(got, 1).OriginalPayload().FromRaw([]byte("other bytes"))
	require.Error(t, Equal(want, got, MergeProfiles()))

	got = New().Profile("cpu", "ns").Time(1, 0).Sample(Value(1, "x"), Value(2, "y"), Value(4, "z")).Build()
	require.ErrorContains(t, Equal(want, got, MergeProfiles()), "time 1 ns: is there 1 times, want none")
}

// The parts of a message are together what it was, whatever their dictionaries.
func TestEqualAll(t *testing.T) {
	of := func(samples ...Sample) pprofile.Profiles {
		return New().Resource("service.name", "shop").Profile("cpu", "ns").Sample(samples...).Build()
	}
	a, b := Value(1, "a", "main"), Value(2, "b", "main")
	whole := []pprofile.Profiles{of(a, b)}
	require.NoError(t, EqualAll(whole, []pprofile.Profiles{of(b), of(a)}, MergeProfiles()))
	require.ErrorContains(t, EqualAll(whole, []pprofile.Profiles{of(b), of(b)}, MergeProfiles()), "is absent, want 1")
	require.ErrorContains(t, EqualAll(whole, []pprofile.Profiles{of(b), of(a)}), "is there 2 times, want there 1 times")
}
