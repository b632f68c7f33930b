// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// sound returns profiles with entries in every table. The sample uses those with index 1.
func sound() pprofile.Profiles {
	sample := profiletest.Sample{Values: []int64{1}, Stack: []profiletest.Location{{
		Mapping:    &profiletest.Mapping{File: "bin", Attributes: []profiletest.Attribute{profiletest.Attr("m", true)}},
		Lines:      []profiletest.Line{{Function: profiletest.Function{Name: "f"}}},
		Attributes: []profiletest.Attribute{profiletest.Attr(scan.AttributeIsFolded, true)},
	}}}
	sample = sample.With(profiletest.Attribute{Key: "k", Value: 1, Unit: "ms"}).Linked([16]byte{1}, [8]byte{1})
	return profiletest.New().Profile("cpu", "ns").Attributes(profiletest.Attr("p", "v")).Sample(sample).Build()
}

// indexOf is an index of an entry: how to set it, the error's text before ": index ...", and the length of its table.
type indexOf struct {
	set  func(int32)
	want string
	n    int
}

func indicesOf(pd pprofile.Profiles) map[string]indexOf {
	const profile = "resource_profiles[0].scope_profiles[0].profiles[0]"
	d, p, s := pd.Dictionary(), profiletest.ProfileAt(pd, 0), profiletest.SampleAt(pd, 0)
	mapping, location, function := d.MappingTable().At(1), d.LocationTable().At(1), d.FunctionTable().At(1)
	ofProfile, ofSample := d.AttributeTable().At(1), d.AttributeTable().At(int(s.AttributeIndices().At(0)))
	first := func(list pcommon.Int32Slice) func(int32) { return func(i int32) { list.SetAt(0, i) } }
	return map[string]indexOf{
		"stack":              {s.SetStackIndex, profile + ".samples[0].stack_index", 2},
		"link":               {s.SetLinkIndex, profile + ".samples[0].link_index", 2},
		"sample attribute":   {first(s.AttributeIndices()), profile + ".samples[0].attribute_indices[0]", 5},
		"profile attribute":  {first(p.AttributeIndices()), profile + ".attribute_indices[0]", 5},
		"sample type":        {p.SampleType().SetTypeStrindex, profile + ".sample_type.type_strindex", 10},
		"sample unit":        {p.SampleType().SetUnitStrindex, profile + ".sample_type.unit_strindex", 10},
		"period type":        {p.PeriodType().SetTypeStrindex, profile + ".period_type.type_strindex", 10},
		"period unit":        {p.PeriodType().SetUnitStrindex, profile + ".period_type.unit_strindex", 10},
		"location":           {first(d.StackTable().At(1).LocationIndices()), "stack_table[1].location_indices[0]", 2},
		"mapping":            {location.SetMappingIndex, "location_table[1].mapping_index", 2},
		"function":           {location.Lines().At(0).SetFunctionIndex, "location_table[1].lines[0].function_index", 2},
		"location attribute": {first(location.AttributeIndices()), "location_table[1].attribute_indices[0]", 5},
		"mapping attribute":  {first(mapping.AttributeIndices()), "mapping_table[1].attribute_indices[0]", 5},
		"mapping file":       {mapping.SetFilenameStrindex, "mapping_table[1].filename_strindex", 10},
		"function name":      {function.SetNameStrindex, "function_table[1].name_strindex", 10},
		"system name":        {function.SetSystemNameStrindex, "function_table[1].system_name_strindex", 10},
		"function file":      {function.SetFilenameStrindex, "function_table[1].filename_strindex", 10},
		"attribute key":      {ofSample.SetKeyStrindex, "attribute_table[4].key_strindex", 10},
		"attribute unit":     {ofSample.SetUnitStrindex, "attribute_table[4].unit_strindex", 10},
		"profile's key":      {ofProfile.SetKeyStrindex, "attribute_table[1].key_strindex", 10},
	}
}

func TestEncodeNamesWhatIsOutOfRange(t *testing.T) {
	for name := range indicesOf(sound()) {
		t.Run(name, func(t *testing.T) {
			encodeOne(t, sound())
			for _, index := range []int32{-1, math.MinInt32, 99, math.MaxInt32} {
				pd := sound()
				of := indicesOf(pd)[name]
				of.set(index)
				encoded, _, err := Encode(pd)
				require.EqualError(t, err, fmt.Sprintf("%s: index %d is out of range [0..%d)", of.want, index, of.n))
				assert.Nil(t, encoded)
			}
		})
	}
}

// The same faults if profiles are joined: in the second profile, and in another order than that of the first.
func TestEncodeNamesFaultsOfJoinedProfiles(t *testing.T) {
	two := func() pprofile.Profiles {
		return profiletest.New().
			Profile("a", "").Sample(profiletest.Value(1, "f"), profiletest.Value(2, "g")).
			Profile("b", "").Sample(profiletest.Value(1, "h")).Build()
	}
	for name, test := range map[string]struct {
		breakIt func(s pprofile.Sample)
		want    string
	}{
		"stack": {func(s pprofile.Sample) { s.SetStackIndex(9) }, ".stack_index: index 9 is out of range [0..4)"},
		"link":  {func(s pprofile.Sample) { s.SetLinkIndex(-9) }, ".link_index: index -9 is out of range [0..1)"},
		"attribute": {func(s pprofile.Sample) { s.AttributeIndices().Append(-9) },
			".attribute_indices[0]: index -9 is out of range [0..1)"},
		"attributes": {func(s pprofile.Sample) { s.AttributeIndices().Append(0, 7) },
			".attribute_indices[1]: index 7 is out of range [0..1)"},
		"no value": {func(s pprofile.Sample) { s.Values().FromRaw(nil) },
			": without timestamps, a sample has exactly one value, found 0"},
		"two values": {func(s pprofile.Sample) { s.Values().Append(2) },
			": without timestamps, a sample has exactly one value, found 2"},
		"too few values": {func(s pprofile.Sample) { s.TimestampsUnixNano().Append(1, 2) },
			": found 1 values for 2 timestamps"},
	} {
		t.Run(name, func(t *testing.T) {
			pd := two()
			test.breakIt(profiletest.ProfileAt(pd, 1).Samples().At(0))
			_, _, err := Encode(pd)
			assert.EqualError(t, err, "resource_profiles[0].scope_profiles[0].profiles[1].samples[0]"+test.want)

			aligned := build(profiletest.Value(1, "f"), profiletest.Value(2, "g"))
			test.breakIt(profiletest.SampleAt(aligned, 1))
			_, _, err = Encode(aligned)
			assert.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[1]")
		})
	}
}

// In a dictionary without zero values, such as that of pprofile.NewProfiles, index 0 still means "not set"
// wherever OTLP defines it so.
func TestEncodeEmptyDictionary(t *testing.T) {
	pd := pprofile.NewProfiles()
	s := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	s.Values().Append(3)
	p, _ := encodeOne(t, pd)
	require.Len(t, p.Sample, 1)
	assert.Equal(t, []int64{3}, p.Sample[0].Value)
	assert.Empty(t, p.Sample[0].Location)
}

// If a sender has put something else at index 0, index 0 means that, except for links.
func TestEncodeDictionaryWithoutZeroValues(t *testing.T) {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("name")
	d.FunctionTable().AppendEmpty()
	m := d.MappingTable().AppendEmpty()
	m.SetMemoryLimit(5)
	l := d.LocationTable().AppendEmpty()
	l.SetAddress(7)
	l.Lines().AppendEmpty()
	d.StackTable().AppendEmpty().LocationIndices().Append(0)
	d.LinkTable().AppendEmpty().SetTraceID([16]byte{1})
	d.AttributeTable().AppendEmpty().Value().SetStr("v")
	profile := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	s := profile.Samples().AppendEmpty()
	s.Values().Append(3)
	s.AttributeIndices().Append(0)

	p, _ := encodeOne(t, pd)
	require.Len(t, p.Sample, 1)
	assert.Equal(t, "name", p.SampleType[0].Type)
	assert.Equal(t, map[string][]string{"name": {"v"}}, p.Sample[0].Label)
	require.Len(t, p.Sample[0].Location, 1)
	got := p.Sample[0].Location[0]
	assert.Equal(t, uint64(7), got.Address)
	assert.Equal(t, uint64(5), got.Mapping.Limit)
	assert.Equal(t, "name", got.Line[0].Function.Name)
}
