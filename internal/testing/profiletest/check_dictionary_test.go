// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

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

	pd.Dictionary().StringTable().Append("orphan")
	require.Error(t, Check(pd, AllowOrphans()))
	require.NoError(t, Check(pd, AllowOrphans(), AllowDuplicates()))
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
