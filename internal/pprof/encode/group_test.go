// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestEncodeGroups(t *testing.T) {
	type builder = profiletest.Builder
	order := func(order ...any) func(*builder) {
		return func(b *builder) { b.Scope("", "", kind.AttributeSampleTypeOrder, order) }
	}
	types := func(names ...string) func(*builder) {
		return func(b *builder) {
			for _, name := range names {
				b.Profile(name, "count")
			}
		}
	}
	for name, test := range map[string]struct {
		steps []func(*builder)
		want  [][]int
	}{
		"in their order":           {[]func(*builder){types("a", "b", "c")}, [][]int{{0, 1, 2}}},
		"reordered":                {[]func(*builder){order(2, 0, 1), types("c", "a", "b")}, [][]int{{1, 2, 0}}},
		"chunk by chunk":           {[]func(*builder){order(1, 0), types("b", "a", "b", "a")}, [][]int{{1, 0}, {3, 2}}},
		"equal types by order":     {[]func(*builder){order(0, 1), types("a", "a")}, [][]int{{0, 1}}},
		"type comes again":         {[]func(*builder){types("a", "b", "a", "b", "c")}, [][]int{{0, 1}, {2, 3, 4}}},
		"order of another length":  {[]func(*builder){order(1, 0), types("a", "b", "c")}, [][]int{{0, 1, 2}}},
		"order out of range":       {[]func(*builder){order(1, 2), types("a", "b")}, [][]int{{0, 1}}},
		"order below range":        {[]func(*builder){order(-1, 0), types("a", "b")}, [][]int{{0, 1}}},
		"order that repeats":       {[]func(*builder){order(0, 0), types("a", "b")}, [][]int{{0, 1}}},
		"order that is no numbers": {[]func(*builder){order("1", "0"), types("a", "b")}, [][]int{{0, 1}}},
		"no order":                 {[]func(*builder){order(), types("a", "b")}, [][]int{{0, 1}}},
		"order that is no array": {
			[]func(*builder){func(b *builder) { b.Scope("", "", kind.AttributeSampleTypeOrder, 1) }, types("a", "b")},
			[][]int{{0, 1}}},
		"unit tells types apart": {[]func(*builder){types("a"), func(b *builder) { b.Profile("a", "bytes") }},
			[][]int{{0, 1}}},
		"time": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Time(1, 0) }, types("c")},
			[][]int{{0, 2}, {1}}},
		"duration": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Time(0, 1) }},
			[][]int{{0}, {1}}},
		"period": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Period(1, "", "") }},
			[][]int{{0}, {1}}},
		"period type": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Period(0, "cpu", "") }},
			[][]int{{0}, {1}}},
		"period unit": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Period(0, "", "ns") }},
			[][]int{{0}, {1}}},
		"attributes": {[]func(*builder){types("a"), func(b *builder) { b.Profile("b", "count").Attributes(profiletest.Attr("k", 1)) }},
			[][]int{{0}, {1}}},
		"order within each of two times": {[]func(*builder){order(1, 0), types("b"),
			func(b *builder) { b.Profile("b", "count").Time(1, 0) }, types("a"),
			func(b *builder) { b.Profile("a", "count").Time(1, 0) }},
			[][]int{{2, 0}, {3, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := profiletest.New()
			for _, step := range test.steps {
				step(b)
			}
			parsed, encoded, _ := encodeAll(t, b.Build())
			var got [][]int
			for i, e := range encoded {
				got = append(got, e.ProfileIndices)
				for k, p := range e.ProfileIndices {
					assert.Equal(t, sampleTypeOf(b.Build(), p), *parsed[i].SampleType[k])
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func sampleTypeOf(pd pprofile.Profiles, i int) profile.ValueType {
	names, t := pd.Dictionary().StringTable(), profiletest.ProfileAt(pd, i).SampleType()
	return profile.ValueType{Type: names.At(int(t.TypeStrindex())), Unit: names.At(int(t.UnitStrindex()))}
}

// Attribute sets are compared as sets.
func TestEncodeGroupsByTheSetOfAttributes(t *testing.T) {
	k, l := profiletest.Attr("k", 1), profiletest.Attr("l", 2)
	pd := profiletest.New().Profile("a", "").Attributes(k, l).Profile("b", "").Attributes(k, l).Build()
	indices := profiletest.ProfileAt(pd, 1).AttributeIndices()
	first, second := indices.At(0), indices.At(1)
	indices.FromRaw([]int32{second, first})
	_, encoded, _ := encodeAll(t, pd)
	assert.Len(t, encoded, 1)
}

// A pprof of many types is not split if it is small: joined values grow with samples times types.
func TestEncodeManySampleTypes(t *testing.T) {
	manyTypes := func(types, samples int, order []any) pprofile.Profiles {
		b := profiletest.New()
		if order != nil {
			b.Scope("", "", kind.AttributeSampleTypeOrder, order)
		}
		for i := range types {
			b.Profile(fmt.Sprint("t", i), "")
			for k := range samples {
				b.Sample(profiletest.Value(1, fmt.Sprint("f", k)))
			}
		}
		return b.Build()
	}
	var reversed []any
	for i := range 200 {
		reversed = append(reversed, 199-i)
	}
	count := func(pd pprofile.Profiles) (lengths []int) {
		groups := newEncoder(pd).groupProfiles(pd.ResourceProfiles().At(0).ScopeProfiles().At(0))
		for _, g := range groups {
			lengths = append(lengths, len(g.profiles))
		}
		return lengths
	}
	assert.Equal(t, []int{200}, count(manyTypes(200, 2, nil)))
	assert.Equal(t, []int{200}, count(manyTypes(200, 2, reversed)))
	assert.Equal(t, []int{64, 64, 64, 8}, count(manyTypes(200, 420, nil)))
	assert.Equal(t, []int{64, 64, 64, 8}, count(manyTypes(200, 420, reversed)))

	parsed, _, _ := encodeAll(t, manyTypes(200, 2, reversed))
	require.Len(t, parsed, 1)
	assert.Equal(t, "t199", parsed[0].SampleType[0].Type)
	assert.Len(t, parsed[0].Sample, 2)
}

// OTLP's default is the first profile of a scope, pprof's the last sample type, or the one that it names.
func TestEncodeKeepsTheDefaultSampleType(t *testing.T) {
	for name, test := range map[string]struct {
		scope []any
		types []string
		want  string
	}{
		"never a pprof":       {nil, []string{"cpu", "samples"}, "cpu"},
		"one type":            {nil, []string{"cpu"}, ""},
		"named by the scope":  {[]any{kind.AttributeDefaultSampleType, "samples"}, []string{"cpu", "samples"}, "samples"},
		"last one of a pprof": {[]any{kind.AttributeSampleTypeOrder, []any{1, 0}}, []string{"cpu", "samples"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := profiletest.New().Resource().Scope("", "", test.scope...)
			for _, typ := range test.types {
				b.Profile(typ, "count")
			}
			encoded, _, err := Encode(b.Build())
			require.NoError(t, err)
			require.Len(t, encoded, 1)
			p := profiletest.ParsePprof(t, encoded[0].Bytes)
			assert.Equal(t, test.want, p.DefaultSampleType)
		})
	}
}
