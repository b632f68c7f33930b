// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

func TestCheckRequiresZeroValuesFirst(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty()
	requireFaults(t, Check(pd),
		"mapping_table: is empty, so index 0 is not the zero value",
		"location_table: is empty, so index 0 is not the zero value",
		"function_table: is empty, so index 0 is not the zero value",
		"link_table: is empty, so index 0 is not the zero value",
		"string_table: is empty, so index 0 is not the zero value",
		"attribute_table: is empty, so index 0 is not the zero value",
		"stack_table: is empty, so index 0 is not the zero value")

	pd = New().Resource().Build()
	d := pd.Dictionary()
	d.MappingTable().At(0).SetFileOffset(1)
	d.LocationTable().At(0).SetAddress(1)
	d.FunctionTable().At(0).SetStartLine(1)
	d.LinkTable().At(0).SetTraceID(someTrace)
	d.StringTable().SetAt(0, "x")
	d.AttributeTable().At(0).Value().SetStr("")
	d.StackTable().At(0).LocationIndices().Append(0)
	requireFaults(t, Check(pd),
		"mapping_table[0]: is not the zero value",
		"location_table[0]: is not the zero value",
		"function_table[0]: is not the zero value",
		"link_table[0]: is not the zero value",
		"string_table[0]: is not the zero value",
		"attribute_table[0]: is not the zero value",
		"stack_table[0]: is not the zero value")
}

// If a sender leaves out the dictionary, everything refers to index 0. Check reports that once for each table.
func TestCheckReadsIndexZeroOfEmptyTables(t *testing.T) {
	pd := pprofile.NewProfiles()
	s := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	s.Values().Append(1)
	s.AttributeIndices().Append(0, 0)
	err := Check(pd)
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 7, "%v", err)
}

func TestCheckFindsDuplicates(t *testing.T) {
	pd := sound().Build()
	d := pd.Dictionary()
	d.StringTable().Append("shop.go")
	again := int32(d.StringTable().Len() - 1)

	// A copy of function 1 that refers to the copy of the string, a location of that function, a stack of that location.
	d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
	d.FunctionTable().At(5).SetFilenameStrindex(again)
	d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
	d.LocationTable().At(4).Lines().At(0).SetFunctionIndex(5)
	d.StackTable().AppendEmpty().LocationIndices().Append(4)
	s := ProfileAt(pd, 0).Samples().AppendEmpty()
	s.SetStackIndex(4)
	s.Values().Append(1)

	want := []string{
		"location_table[4]: equals location_table[1]",
		"function_table[5]: equals function_table[1]",
		"string_table[17]: equals string_table[" + indexText(d.StringTable().AsRaw(), "shop.go") + "]",
		"stack_table[4]: equals stack_table[1]",
	}
	requireFaults(t, Check(pd), want...)
	require.NoError(t, Check(pd, AllowDuplicates()))
}

func TestCheckFindsDuplicatesInTheOtherTables(t *testing.T) {
	pd := sound().Build()
	d := pd.Dictionary()
	d.MappingTable().At(1).CopyTo(d.MappingTable().AppendEmpty())
	d.LinkTable().At(1).CopyTo(d.LinkTable().AppendEmpty())
	for _, v := range []any{
		map[string]any{"a": int64(1), "b": []any{"x", math.NaN()}},
		map[string]any{"b": []any{"x", math.NaN()}, "a": int64(1)},
		map[string]any{"a": int64(1), "b": []any{"x", 0.0}},
		map[string]any{"a": 1.0, "b": []any{"x", 0.0}},
	} {
		setRaw(d.AttributeTable().AppendEmpty().Value(), v)
	}
	unit := d.AttributeTable().AppendEmpty()
	setRaw(unit.Value(), map[string]any{"a": 1.0, "b": []any{"x", 0.0}})
	unit.SetUnitStrindex(1)
	requireFaults(t, Check(pd, AllowOrphans()),
		"mapping_table[2]: equals mapping_table[1]",
		"link_table[2]: equals link_table[1]",
		"attribute_table[7]: equals attribute_table[6]")
}

func indexText(table []string, s string) string {
	return strconv.Itoa(slices.Index(table, s))
}

func TestCheckFindsTextThatIsNotUTF8(t *testing.T) {
	const bad = "a\xff"
	pd := sound().Build()
	rp := pd.ResourceProfiles().At(0)
	sp := rp.ScopeProfiles().At(0)
	rp.SetSchemaUrl(bad)
	rp.Resource().Attributes().PutEmptySlice("list").AppendEmpty().SetStr(bad)
	sp.SetSchemaUrl(bad)
	sp.Scope().SetName(bad)
	sp.Scope().SetVersion(bad)
	sp.Scope().Attributes().PutStr(bad, "v")
	ProfileAt(pd, 0).SetOriginalPayloadFormat(bad)
	pd.Dictionary().StringTable().SetAt(pd.Dictionary().StringTable().Len()-1, bad)
	pd.Dictionary().AttributeTable().At(1).Value().SetEmptyMap().PutEmptyMap("k").PutStr("deep", bad)
	last := fmt.Sprintf("string_table[%d]", pd.Dictionary().StringTable().Len()-1)
	const not = `: "a\xff" is not valid UTF-8 at byte offset 1`
	requireFaults(t, Check(pd),
		last+not,
		`attribute_table[1].value."k"."deep"`+not,
		"resource_profiles[0].schema_url"+not,
		`resource_profiles[0].resource.attributes."list".values[0]`+not,
		"resource_profiles[0].scope_profiles[0].schema_url"+not,
		"resource_profiles[0].scope_profiles[0].scope.name"+not,
		"resource_profiles[0].scope_profiles[0].scope.version"+not,
		"resource_profiles[0].scope_profiles[0].scope.attributes.key"+not,
		"resource_profiles[0].scope_profiles[0].profiles[0].original_payload_format"+not)
}

// A long text is cut between two characters, keeps its quotes, and the offset names a byte beyond the cut.
func TestCheckShortensTexts(t *testing.T) {
	long := strings.Repeat("é ", 66) + "xé" // 201 bytes, of which the last two are one character
	cut := strings.Repeat("é ", 66) + "x…"
	pd := sound().Build()
	ProfileAt(pd, 0).SetOriginalPayloadFormat("\ufffd" + long + "\xff")
	pd.ResourceProfiles().At(0).SetSchemaUrl(long + "\xff")
	key := pd.Dictionary().AttributeTable().At(int(SampleAt(pd, 0).AttributeIndices().At(0))).KeyStrindex()
	pd.Dictionary().StringTable().SetAt(int(key), long)
	SampleAt(pd, 0).AttributeIndices().Append(SampleAt(pd, 0).AttributeIndices().At(0))
	err := Check(pd)
	require.Error(t, err)
	assert.Contains(t, err.Error(), fmt.Sprintf("schema_url: %q is not valid UTF-8 at byte offset 201\n", cut))
	assert.Contains(t, err.Error(), "is not valid UTF-8 at byte offset 204\n")
	assert.Contains(t, err.Error(), fmt.Sprintf("key %q occurs more than once", cut))
}

func TestCheckOptionsTurnOffRules(t *testing.T) {
	pd := sound().Build()
	SampleAt(pd, 0).CopyTo(ProfileAt(pd, 0).Samples().AppendEmpty())
	require.Error(t, Check(pd))
	require.NoError(t, Check(pd, AllowRepeatedSamples()))

	pd = sound().Build()
	pd.Dictionary().StringTable().Append("orphan")
	require.Error(t, Check(pd))
	require.NoError(t, Check(pd, AllowOrphans()))
}

func TestCheckListsABoundedNumberOfFaults(t *testing.T) {
	b := New().Profile("cpu", "nanoseconds")
	for range resolved.MaxListedFaults + 5 {
		b.Sample(Sample{})
	}
	err := Check(b.Build(), AllowRepeatedSamples(), AllowOrphans())
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, resolved.MaxListedFaults+1)
	assert.Equal(t, "and 5 more faults", lines[resolved.MaxListedFaults])
}

// FuzzCheck reads mutated OTLP bytes. Check, Equal and Render can read everything that pdata can unmarshal, and a
// Profiles equals itself.
func FuzzCheck(f *testing.F) {
	var m pprofile.ProtoMarshaler
	for _, pd := range []pprofile.Profiles{sound().Build(), New().Build(), pprofile.NewProfiles(), sound().
		Break(func(pd pprofile.Profiles) {
			SampleAt(pd, 0).SetStackIndex(-1)
			SampleAt(pd, 0).SetLinkIndex(math.MaxInt32)
			pd.Dictionary().StackTable().At(1).LocationIndices().Append(math.MinInt32)
			pd.Dictionary().StringTable().SetAt(0, "not empty")
		}).Build()} {
		wire, err := m.MarshalProfiles(pd)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(bytes.Clone(wire))
		if err != nil {
			return
		}
		pd.MarkReadOnly()
		_ = Check(pd)
		_ = Check(pd, AllowDuplicates(), AllowOrphans(), AllowRepeatedSamples())
		_ = Render(pd)
		require.NoError(t, Equal(pd, pd))
		require.NoError(t, Equal(pd, pd, IgnoreOrder()))
		require.NoError(t, Equal(pd, pd, MergeProfiles()))
	})
}
