// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

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

func TestEqualNamesWhatDiffers(t *testing.T) {
	const profile0 = "resource_profiles[0].scope_profiles[0].profiles[0]"
	const stack = "{bytes=7 in By, thread=\"main\"} link 0102030405060708090a0b0c0d0e0f10/0102030405060708 " +
		"<inlined from line 3 shop.go:4:2; leaf (_leaf) shop.go:12 at 0x1010 in [/bin/shop 0x1000-0x2000+0x40 " +
		"{process.executable.build_id.gnu=\"abcd\"}] {pprof.location.is_folded=true}>"
	for name, tc := range map[string]struct {
		change func(pprofile.Profiles)
		want   string
	}{
		"value": {
			func(pd pprofile.Profiles) { SampleAt(pd, 0).Values().SetAt(0, 31) },
			profile0 + ": sample " + stack + ": is 31, want 30",
		},
		"missing sample": {
			func(pd pprofile.Profiles) {
				ProfileAt(pd, 0).Samples().RemoveIf(func(s pprofile.Sample) bool { return s.LinkIndex() == 0 })
			},
			profile0 + ": sample <leaf < main>: is absent, want 20",
		},
		"another sample": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).Samples().AppendEmpty().Values().Append(0) },
			profile0 + ": sample <>: is 0, want absent",
		},
		"another empty sample": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).Samples().AppendEmpty() },
			profile0 + ": sample <>: is none, want absent",
		},
		"timestamp": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(1, 1001) },
			"resource_profiles[0].scope_profiles[0].profiles[1]: sample <leaf>: is @1000 @1001, want @1000 @1049",
		},
		"resource": {
			func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).Resource().Attributes().Clear() },
			`resource_profiles[0].resource: is {} schema_url=https://example.test/resource, want ` +
				`{service.name="shop", tags=["a", {deep="b"}]} schema_url=https://example.test/resource`,
		},
		"resource's dropped count": {
			func(pd pprofile.Profiles) {
				pd.ResourceProfiles().At(0).Resource().SetDroppedAttributesCount(3)
			},
			`resource_profiles[0].resource: is {service.name="shop", tags=["a", {deep="b"}]} dropped_attributes_count=3 ` +
				`schema_url=https://example.test/resource, want {service.name="shop", tags=["a", {deep="b"}]} ` +
				`schema_url=https://example.test/resource`,
		},
		"scope": {
			func(pd pprofile.Profiles) {
				scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
				scope.SetSchemaUrl("")
				scope.Scope().SetDroppedAttributesCount(2)
			},
			`resource_profiles[0].scope_profiles[0].scope: is scope 1.0 {scope.key="scope value"} ` +
				`dropped_attributes_count=2, want scope 1.0 {scope.key="scope value"} schema_url=https://example.test/scope`,
		},
		"sample type": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SampleType().SetUnitStrindex(0) },
			profile0 + `.sample_type: is cpu in "", want cpu in nanoseconds`,
		},
		"id": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetProfileID([16]byte{}) },
			profile0 + ".profile_id: is none, want 09000000000000000000000000000000",
		},
		"time": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetTime(1) },
			profile0 + ".time: is 1 ns, want 1000 ns",
		},
		"duration": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetDurationNano(0) },
			profile0 + ".duration: is none, want 50 ns",
		},
		"period": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetPeriod(0) },
			profile0 + ".period: is 0 cpu in cycles, want 10 cpu in cycles",
		},
		"attributes": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).AttributeIndices().FromRaw(nil) },
			profile0 + `.attributes: is none, want {pprof.profile.comment=["one"]}`,
		},
		"dropped count": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetDroppedAttributesCount(1) },
			profile0 + ".dropped_attributes_count: is 1, want none",
		},
		"payload format": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetOriginalPayloadFormat("jfr") },
			profile0 + ".original_payload_format: is jfr, want pprof",
		},
		"payload": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).OriginalPayload().FromRaw([]byte("byte")) },
			profile0 + ".original_payload: has 4 bytes that differ from the 5 wanted",
		},
		"number of profiles": {
			func(pd pprofile.Profiles) {
				pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().AppendEmpty()
			},
			"resource_profiles[0].scope_profiles[0].profiles: has 3 elements, want 2",
		},
		"number of scopes": {
			func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).ScopeProfiles().AppendEmpty() },
			"resource_profiles[0].scope_profiles: has 2 elements, want 1",
		},
		"number of resources": {
			func(pd pprofile.Profiles) { pd.ResourceProfiles().AppendEmpty() },
			"resource_profiles: has 2 elements, want 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := sound().Build(), shuffled()
			tc.change(got)
			require.EqualError(t, Equal(want, got), tc.want)
			assert.NotEqual(t, Render(want), Render(got))
		})
	}
}

// Each change alters one field of a location, function, mapping, attribute or link.
func TestEqualComparesEveryFieldOfTheDictionary(t *testing.T) {
	for name, change := range map[string]func(pprofile.ProfilesDictionary){
		"address":         func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).SetAddress(1) },
		"mapping":         func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).SetMappingIndex(0) },
		"folded":          func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).AttributeIndices().FromRaw(nil) },
		"line":            func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetLine(9) },
		"column":          func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetColumn(9) },
		"function":        func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(0) },
		"number of lines": func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().AppendEmpty() },
		"name":            func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetNameStrindex(1) },
		"system name":     func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetSystemNameStrindex(1) },
		"file":            func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetFilenameStrindex(1) },
		"start line":      func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetStartLine(1) },
		"memory start":    func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetMemoryStart(1) },
		"memory limit":    func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetMemoryLimit(1) },
		"file offset":     func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetFileOffset(1) },
		"mapping's file":  func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetFilenameStrindex(1) },
		"build id":        func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).AttributeIndices().FromRaw(nil) },
		"trace id":        func(d pprofile.ProfilesDictionary) { d.LinkTable().At(1).SetTraceID([16]byte{1}) },
		"span id":         func(d pprofile.ProfilesDictionary) { d.LinkTable().At(1).SetSpanID([8]byte{1}) },
		"attribute":       func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(2).Value().SetBool(false) },
		"unit":            func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(2).SetUnitStrindex(1) },
		"key":             func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(2).SetKeyStrindex(1) },
		"depth":           func(d pprofile.ProfilesDictionary) { d.StackTable().At(1).LocationIndices().Append(1) },
	} {
		t.Run(name, func(t *testing.T) {
			want, got := sound().Build(), sound().Build()
			change(got.Dictionary())
			require.Error(t, Equal(want, got))
			assert.NotEqual(t, Render(want), Render(got))
		})
	}
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
		"resource_profiles[0].scope_profiles[0].profiles[0]: sample <>: is 2@7 2@7 1@8, want 1@7 2@7 2@8")
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
