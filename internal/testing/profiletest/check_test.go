// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// faultCase spoils what sound builds, whose tables have 17 strings, 6 attributes, 2 links, 5 functions, 2 mappings, 4
// locations and 4 stacks. want lists all faults that Check then finds.
type faultCase struct {
	spoil func(pprofile.Profiles)
	want  []string
}

func requireFaultCases(t *testing.T, cases map[string]faultCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pd := sound().Build()
			tc.spoil(pd)
			requireFaults(t, Check(pd), tc.want...)
		})
	}
}

func TestCheckFindsFaultsOfProfiles(t *testing.T) {
	const samples = "resource_profiles[0].scope_profiles[0].profiles[0].samples"
	const profiles = "resource_profiles[0].scope_profiles[0].profiles"
	requireFaultCases(t, map[string]faultCase{
		"stack index too high": {
			func(pd pprofile.Profiles) {
				s := ProfileAt(pd, 0).Samples().AppendEmpty()
				s.SetStackIndex(9)
				s.Values().Append(1)
			},
			[]string{samples + "[2].stack_index: index 9 is out of range [0..4)"},
		},
		"stack index negative": {
			func(pd pprofile.Profiles) {
				s := ProfileAt(pd, 0).Samples().AppendEmpty()
				s.SetStackIndex(-1)
				s.Values().Append(1)
			},
			[]string{samples + "[2].stack_index: index -1 is out of range [0..4)"},
		},
		"link index": {
			func(pd pprofile.Profiles) { SampleAt(pd, 1).SetLinkIndex(2) },
			[]string{samples + "[1].link_index: index 2 is out of range [0..2)"},
		},
		"attribute index of a sample": {
			func(pd pprofile.Profiles) { SampleAt(pd, 1).AttributeIndices().Append(6) },
			[]string{samples + "[1].attribute_indices[0]: index 6 is out of range [0..6)"},
		},
		"attribute index of a profile": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 1).AttributeIndices().Append(-7) },
			[]string{profiles + "[1].attribute_indices[0]: index -7 is out of range [0..6)"},
		},
		"sample type": {
			func(pd pprofile.Profiles) {
				ProfileAt(pd, 0).Samples().At(0).Values().SetAt(0, 1)
				ProfileAt(pd, 1).SampleType().SetTypeStrindex(99)
				ProfileAt(pd, 1).SampleType().SetUnitStrindex(-1)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("referred to", "wall")
			},
			[]string{
				profiles + "[1].sample_type.type_strindex: index 99 is out of range [0..17)",
				profiles + "[1].sample_type.unit_strindex: index -1 is out of range [0..17)",
			},
		},
		"period type": {
			func(pd pprofile.Profiles) {
				ProfileAt(pd, 1).PeriodType().SetTypeStrindex(99)
				ProfileAt(pd, 1).PeriodType().SetUnitStrindex(98)
			},
			[]string{
				profiles + "[1].period_type.type_strindex: index 99 is out of range [0..17)",
				profiles + "[1].period_type.unit_strindex: index 98 is out of range [0..17)",
			},
		},
		"key twice in a sample": {
			func(pd pprofile.Profiles) {
				indexOf := attributeOf(pd, Attr("thread", "other"))
				SampleAt(pd, 0).AttributeIndices().Append(indexOf)
			},
			[]string{samples + "[0].attribute_indices: key thread occurs more than once"},
		},
		"key twice in a profile": {
			func(pd pprofile.Profiles) {
				indexOf := attributeOf(pd, Attr("pprof.profile.comment", "two"))
				ProfileAt(pd, 0).AttributeIndices().Append(indexOf)
			},
			[]string{profiles + "[0].attribute_indices: key pprof.profile.comment occurs more than once"},
		},
		"key twice in a location": {
			func(pd pprofile.Profiles) {
				indices := pd.Dictionary().LocationTable().At(1).AttributeIndices()
				indices.Append(indices.At(0))
			},
			[]string{"location_table[1].attribute_indices: key pprof.location.is_folded occurs more than once"},
		},
		"key twice in a mapping": {
			func(pd pprofile.Profiles) {
				indices := pd.Dictionary().MappingTable().At(1).AttributeIndices()
				indices.Append(indices.At(0))
			},
			[]string{"mapping_table[1].attribute_indices: key process.executable.build_id.gnu occurs more than once"},
		},
		"no values and no timestamps": {
			func(pd pprofile.Profiles) { SampleAt(pd, 0).Values().FromRaw(nil) },
			[]string{samples + "[0]: has neither values nor timestamps"},
		},
		"two values": {
			func(pd pprofile.Profiles) { SampleAt(pd, 0).Values().Append(1) },
			[]string{samples + "[0]: has 2 values without timestamps, not exactly one"},
		},
		"fewer values than timestamps": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 1).Samples().At(0).Values().Append(1) },
			[]string{profiles + "[1].samples[0]: has 2 timestamps and 1 values, not equally many"},
		},
		"two shapes": {
			func(pd pprofile.Profiles) { SampleAt(pd, 1).TimestampsUnixNano().Append(1001) },
			[]string{samples + "[1]: has timestamps and values where an earlier sample of the profile has a value alone"},
		},
		"identity twice": {
			func(pd pprofile.Profiles) { SampleAt(pd, 0).CopyTo(ProfileAt(pd, 0).Samples().AppendEmpty()) },
			[]string{samples + "[2]: has the stack, attributes and link of samples[0]"},
		},
		"timestamp before the profile": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(0, 999) },
			[]string{profiles +
				"[1].samples[0].timestamps_unix_nano[0]: 999 is outside the profile's time, from 1000 for 50 ns"},
		},
		"timestamp at the profile's end": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 1).Samples().At(0).TimestampsUnixNano().SetAt(1, 1050) },
			[]string{profiles +
				"[1].samples[0].timestamps_unix_nano[1]: 1050 is outside the profile's time, from 1000 for 50 ns"},
		},
		"payload without format": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).SetOriginalPayloadFormat("") },
			[]string{profiles + "[0].original_payload_format: is empty beside an original_payload of 5 bytes"},
		},
		"format without payload": {
			func(pd pprofile.Profiles) { ProfileAt(pd, 0).OriginalPayload().FromRaw(nil) },
			[]string{profiles + `[0].original_payload: is empty beside the original_payload_format "pprof"`},
		},
	})
}

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
