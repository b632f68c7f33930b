// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestBuilderInternsWhatRepeats(t *testing.T) {
	pd := New().
		Resource("service.name", "shop").
		Profile("cpu", "nanoseconds").Period(10_000_000, "cpu", "nanoseconds").
		Sample(Value(30, "main.leaf", "main.main"), Value(10, "main.main")).
		Sample(Value(2, "main.leaf", "main.main").With(Attr("b", 1), Attr("a", 2)).Linked(someTrace, someSpan)).
		Sample(Value(4, "main.main").With(Attr("a", 2), Attr("b", 1)).Linked(someTrace, someSpan)).
		Build()
	require.NoError(t, Check(pd))
	d := pd.Dictionary()
	assert.Equal(t, []string{"", "cpu", "nanoseconds", "main.leaf", "main.main", "b", "a"}, d.StringTable().AsRaw())
	assert.Equal(t, 3, d.FunctionTable().Len())
	assert.Equal(t, 3, d.LocationTable().Len())
	assert.Equal(t, 3, d.StackTable().Len())
	assert.Equal(t, 3, d.AttributeTable().Len())
	assert.Equal(t, 2, d.LinkTable().Len())
	assert.Equal(t, 1, d.MappingTable().Len())
	for i := range 4 {
		assert.True(t, slices.IsSorted(SampleAt(pd, i).AttributeIndices().AsRaw()))
	}
	assert.Equal(t, SampleAt(pd, 2).AttributeIndices().AsRaw(), SampleAt(pd, 3).AttributeIndices().AsRaw())
}

func TestBuilderBeginsWhatIsMissing(t *testing.T) {
	for _, pd := range []pprofile.Profiles{
		New().Sample(Value(1)).Build(),
		New().Resource().Sample(Value(1)).Build(),
		New().Scope("", "").Sample(Value(1)).Build(),
		New().SchemaURLs("", "").Sample(Value(1)).Build(),
		New().Profile("samples", "count").Sample(Value(1)).Build(),
	} {
		require.NoError(t, Check(pd))
		require.NoError(t, Equal(New().Sample(Value(1)).Build(), pd))
	}
	two := New().Sample(Value(1)).Scope("next", "").Sample(Value(1)).Resource().Sample(Value(1)).Build()
	assert.Equal(t, 2, two.ResourceProfiles().Len())
	assert.Equal(t, 2, two.ResourceProfiles().At(0).ScopeProfiles().Len())
	assert.Equal(t, 3, two.ProfileCount())
	assert.Equal(t, 1, ProfileAt(two, 2).Samples().Len())
}

func TestBuilderRefusesWhatItCannotRead(t *testing.T) {
	odd := []any{"key without a value"}
	assert.Panics(t, func() { New().Resource(odd...) })
	assert.Panics(t, func() { New().Attributes(Attr("key", struct{}{})) })
	assert.Panics(t, func() { ProfileAt(New().Build(), 0) })
}

func TestBuilderBreaks(t *testing.T) {
	pd := New().Sample(Value(1)).Break(func(pd pprofile.Profiles) { SampleAt(pd, 0).SetStackIndex(9) }).Build()
	requireFaults(t, Check(pd),
		"resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index: index 9 is out of range [0..1)")
}

// With shares no memory with the sample that it is called on.
func TestWithLeavesItsSampleAlone(t *testing.T) {
	base := Value(1).With(Attr("a", 1), Attr("b", 1))
	one, two := base.With(Attr("c", 1)), base.With(Attr("c", 2))
	assert.Len(t, base.Attributes, 2)
	assert.Equal(t, 1, one.Attributes[2].Value)
	assert.Equal(t, 2, two.Attributes[2].Value)
}
