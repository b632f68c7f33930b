// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

var (
	someTrace = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	someSpan  = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
)

// sound returns a Builder of profiles that pass Check, with entries in every table, all of which are used.
func sound() *Builder { return addSound(New()) }

func addSound(b *Builder) *Builder {
	binary := &Mapping{Start: 0x1000, Limit: 0x2000, Offset: 0x40, File: "/bin/shop", Attributes: []Attribute{
		Attr("process.executable.build_id.gnu", "abcd"),
	}}
	leaf := Location{
		Address: 0x1010, Mapping: binary,
		Lines: []Line{
			{Function: Function{Name: "inlined", File: "shop.go", StartLine: 3}, Line: 4, Column: 2},
			{Function: Function{Name: "leaf", SystemName: "_leaf", File: "shop.go"}, Line: 12},
		},
		Attributes: []Attribute{Attr("pprof.location.is_folded", true)},
	}
	return b.
		Resource("service.name", "shop", "tags", []any{"a", map[string]any{"deep": "b"}}).
		Scope("scope", "1.0", "scope.key", "scope value").
		SchemaURLs("https://example.test/resource", "https://example.test/scope").
		Profile("cpu", "nanoseconds").
		ID([16]byte{9}).Time(1000, 50).Period(10, "cpu", "cycles").
		Attributes(Attr("pprof.profile.comment", []any{"one"})).
		Payload("pprof", []byte("bytes")).
		Sample(
			Sample{Values: []int64{30}, Stack: []Location{leaf}}.
				With(Attr("thread", "main"), Attribute{"bytes", 7, "By"}).Linked(someTrace, someSpan),
			Value(20, "leaf", "main"),
		).
		Profile("wall", "nanoseconds").Time(1000, 50).
		Sample(Observed([]uint64{1000, 1049}, "leaf"))
}

func TestCheckAcceptsWhatIsSound(t *testing.T) {
	require.NoError(t, Check(sound().Build()))
	require.NoError(t, Check(pprofile.NewProfiles()))
	require.NoError(t, Check(New().Build()))
}

func TestCheckKnowsStringsOfMarshalledResources(t *testing.T) {
	pd := sound().Build()
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	read, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	require.NoError(t, err)
	require.Contains(t, read.Dictionary().StringTable().AsRaw(), "deep",
		"marshalling keeps a resource's strings in the table")
	require.NoError(t, Check(read))
}

// Each change spoils what sound builds. The golden file has all faults that Check finds then.
func TestCheckFindsFaults(t *testing.T) {
	type (
		profiles = pprofile.Profiles
		tables   = pprofile.ProfilesDictionary
	)
	changes := map[string]func(profiles, tables){
		"key twice in a sample": func(pd profiles, _ tables) {
			SampleAt(pd, 0).AttributeIndices().Append(attributeOf(pd, Attr("thread", "other")))
		},
		"key twice in a profile": func(pd profiles, _ tables) {
			ProfileAt(pd, 0).AttributeIndices().Append(attributeOf(pd, Attr("pprof.profile.comment", "two")))
		},
		"key twice in a location":     func(_ profiles, d tables) { repeatFirst(d.LocationTable().At(1).AttributeIndices()) },
		"key twice in a mapping":      func(_ profiles, d tables) { repeatFirst(d.MappingTable().At(1).AttributeIndices()) },
		"no values and no timestamps": func(pd profiles, _ tables) { SampleAt(pd, 0).Values().FromRaw(nil) },
		"two values":                  func(pd profiles, _ tables) { SampleAt(pd, 0).Values().Append(1) },
		"fewer values than timestamps": func(pd profiles, _ tables) {
			ProfileAt(pd, 1).Samples().At(0).Values().Append(1)
		},
		"two shapes":     func(pd profiles, _ tables) { SampleAt(pd, 1).TimestampsUnixNano().Append(1001) },
		"identity twice": func(pd profiles, _ tables) { SampleAt(pd, 0).CopyTo(ProfileAt(pd, 0).Samples().AppendEmpty()) },
		"timestamp before the profile": func(pd profiles, _ tables) {
			ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(0, 999)
		},
		"timestamp at the profile's end": func(pd profiles, _ tables) {
			ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(1, 1050)
		},
		"payload without format": func(pd profiles, _ tables) { ProfileAt(pd, 0).SetOriginalPayloadFormat("") },
		"format without payload": func(pd profiles, _ tables) { ProfileAt(pd, 0).OriginalPayload().FromRaw(nil) },

		"link without span":  func(_ profiles, d tables) { d.LinkTable().At(1).SetSpanID([8]byte{}) },
		"link without trace": func(_ profiles, d tables) { d.LinkTable().At(1).SetTraceID([16]byte{}) },
		"mapping that ends where it starts": func(_ profiles, d tables) {
			d.MappingTable().At(1).SetMemoryLimit(0x1000)
		},
		"negative line":       func(_ profiles, d tables) { d.LocationTable().At(1).Lines().At(1).SetLine(-1) },
		"negative column":     func(_ profiles, d tables) { d.LocationTable().At(1).Lines().At(1).SetColumn(-2) },
		"negative start line": func(_ profiles, d tables) { d.FunctionTable().At(1).SetStartLine(-3) },

		"orphaned string":    func(_ profiles, d tables) { d.StringTable().Append("orphan") },
		"orphaned mapping":   func(_ profiles, d tables) { d.MappingTable().AppendEmpty().SetFileOffset(1) },
		"orphaned function":  func(_ profiles, d tables) { d.FunctionTable().AppendEmpty().SetStartLine(1) },
		"orphaned attribute": func(_ profiles, d tables) { d.AttributeTable().AppendEmpty().Value().SetInt(5) },
		"orphaned stack":     func(_ profiles, d tables) { d.StackTable().AppendEmpty().LocationIndices().Append(1, 1) },
		"orphaned link": func(_ profiles, d tables) {
			link := d.LinkTable().AppendEmpty()
			link.SetTraceID(someTrace)
			link.SetSpanID([8]byte{1})
		},
		"orphan of an orphan": func(_ profiles, d tables) {
			d.LocationTable().AppendEmpty().SetAddress(5)
			d.StackTable().AppendEmpty().LocationIndices().Append(4)
		},
		"no dictionary": func(pd profiles, _ tables) {
			pprofile.NewProfiles().MoveTo(pd)
			pd.ResourceProfiles().AppendEmpty()
		},
		"entries 0 that are not zero": func(_ profiles, d tables) {
			d.MappingTable().At(0).SetFileOffset(1)
			d.LocationTable().At(0).SetAddress(1)
			d.FunctionTable().At(0).SetStartLine(1)
			d.LinkTable().At(0).SetTraceID(someTrace)
			d.StringTable().SetAt(0, "x")
			d.AttributeTable().At(0).Value().SetStr("")
			d.StackTable().At(0).LocationIndices().Append(0)
		},
		"an equal function, location and stack, by an equal string": func(pd profiles, d tables) {
			d.StringTable().Append("shop.go")
			d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
			d.FunctionTable().At(5).SetFilenameStrindex(int32(d.StringTable().Len() - 1))
			d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
			d.LocationTable().At(4).Lines().At(0).SetFunctionIndex(5)
			d.StackTable().AppendEmpty().LocationIndices().Append(4)
			SampleAt(pd, 0).CopyTo(ProfileAt(pd, 0).Samples().AppendEmpty())
			SampleAt(pd, 2).SetStackIndex(4)
		},
		"an equal mapping and link": func(_ profiles, d tables) {
			d.MappingTable().At(1).CopyTo(d.MappingTable().AppendEmpty())
			d.LinkTable().At(1).CopyTo(d.LinkTable().AppendEmpty())
		},
		"attributes 6 and 7 are equal, 8 to 10 others": func(_ profiles, d tables) {
			for _, v := range []any{
				map[string]any{"a": int64(1), "b": []any{"x", math.NaN()}}, map[string]any{"b": []any{"x", math.NaN()}, "a": int64(1)},
				map[string]any{"a": int64(1), "b": []any{"x", 0.0}},
				map[string]any{"a": 1.0, "b": []any{"x", 0.0}}, map[string]any{"a": 1.0, "b": []any{"x", 0.0}},
			} {
				setRaw(d.AttributeTable().AppendEmpty().Value(), v)
			}
			d.AttributeTable().At(10).SetUnitStrindex(1)
		},
		"text that is not UTF-8": func(pd profiles, d tables) {
			const bad = "a\xff"
			rp := pd.ResourceProfiles().At(0)
			rp.SetSchemaUrl(bad)
			rp.Resource().Attributes().PutEmptySlice("list").AppendEmpty().SetStr(bad)
			firstScope(pd).SetSchemaUrl(bad)
			firstScope(pd).Scope().SetName(bad)
			firstScope(pd).Scope().SetVersion(bad)
			firstScope(pd).Scope().Attributes().PutStr(bad, "v")
			ProfileAt(pd, 0).SetOriginalPayloadFormat(bad)
			d.StringTable().SetAt(d.StringTable().Len()-1, bad)
			d.AttributeTable().At(1).Value().SetEmptyMap().PutEmptyMap("k").PutStr("deep", bad)
		},
	}
	for i := range indexSetters(sound().Build()) {
		for _, index := range []int32{-1, 1000} {
			changes[fmt.Sprintf("index %2d is %d", i, index)] = func(pd profiles, _ tables) { indexSetters(pd)[i](index) }
		}
	}
	var found strings.Builder
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		pd := sound().Build()
		changes[name](pd, pd.Dictionary())
		fmt.Fprintf(&found, "%s\n%v\n\n", name, Check(pd))
	}
	Golden(t, "testdata/faults.golden", found.String())
}

func repeatFirst(indices pcommon.Int32Slice) { indices.Append(indices.At(0)) }

// attributeOf adds an attribute whose key the dictionary has, and returns its index.
func attributeOf(pd pprofile.Profiles, a Attribute) int32 {
	strings, attributes := pd.Dictionary().StringTable(), pd.Dictionary().AttributeTable()
	to := attributes.AppendEmpty()
	setRaw(to.Value(), a.Value)
	for i, s := range strings.All() {
		if s == a.Key {
			to.SetKeyStrindex(int32(i))
		}
	}
	return int32(attributes.Len() - 1)
}

func requireFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, strings.Join(want, "\n"), err.Error())
}
