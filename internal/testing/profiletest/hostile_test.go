// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"
)

// Mutated bytes rarely become another index, so this test sets indices to arbitrary numbers.
func TestHostileIndicesAreReadWithoutPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pd := sound().Build()
		faults := 0
		index := func() int32 {
			faults++
			return rapid.SampledFrom([]int32{-1, math.MinInt32, math.MaxInt32, 1000}).Draw(t, "index")
		}
		setters := indexSetters(pd)
		for range rapid.IntRange(1, 5).Draw(t, "faults") {
			rapid.SampledFrom(setters).Draw(t, "setter")(index())
		}
		pd.MarkReadOnly()
		require.Error(t, Check(pd), "%d indices are out of range", faults)
		require.Error(t, Check(pd, AllowDuplicates(), AllowOrphans(), AllowRepeatedSamples()))
		require.NotEmpty(t, Render(pd))
		require.NoError(t, Equal(pd, pd))
		require.NoError(t, Equal(pd, pd, MergeProfiles()))
	})
}

// indexSetters returns a function for each index in pd.
func indexSetters(pd pprofile.Profiles) []func(int32) {
	var setters []func(int32)
	list := func(indices pcommon.Int32Slice) {
		for i := range indices.Len() {
			setters = append(setters, func(v int32) { indices.SetAt(i, v) })
		}
	}
	d := pd.Dictionary()
	for _, m := range d.MappingTable().All() {
		setters = append(setters, m.SetFilenameStrindex)
		list(m.AttributeIndices())
	}
	for _, l := range d.LocationTable().All() {
		setters = append(setters, l.SetMappingIndex)
		list(l.AttributeIndices())
		for _, line := range l.Lines().All() {
			setters = append(setters, line.SetFunctionIndex)
		}
	}
	for _, f := range d.FunctionTable().All() {
		setters = append(setters, f.SetNameStrindex, f.SetSystemNameStrindex, f.SetFilenameStrindex)
	}
	for _, a := range d.AttributeTable().All() {
		setters = append(setters, a.SetKeyStrindex, a.SetUnitStrindex)
	}
	for _, s := range d.StackTable().All() {
		list(s.LocationIndices())
	}
	for i := range pd.ProfileCount() {
		p := ProfileAt(pd, i)
		setters = append(setters, p.SampleType().SetTypeStrindex, p.SampleType().SetUnitStrindex,
			p.PeriodType().SetTypeStrindex, p.PeriodType().SetUnitStrindex)
		list(p.AttributeIndices())
		for _, s := range p.Samples().All() {
			setters = append(setters, s.SetStackIndex, s.SetLinkIndex)
			list(s.AttributeIndices())
		}
	}
	return setters
}
