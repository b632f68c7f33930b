// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Attributes with pprof's own words do not change the time or the link of a sample on the way to pprof and back: they
// arrive, or they are counted.
func TestAttributesOfPprofsWords(t *testing.T) {
	for seed := range uint64(300) {
		pd := profiletest.WordyProfiles(rand.New(rand.NewPCG(seed, 0)))
		payloads, stats, err := encode.Encode(pd)
		require.NoError(t, err)
		require.Len(t, payloads, 1)
		back, _, err := Decode(payloads[0].Bytes, Options{TimestampLabels: DefaultTimestampLabels()[1:]})
		require.NoError(t, err)
		arrived := 0
		for i := range 2 {
			sent, got := profiletest.SampleAt(pd, i), profiletest.SampleAt(back, i)
			require.Equal(t, sent.TimestampsUnixNano().AsRaw(), got.TimestampsUnixNano().AsRaw(), "seed %d", seed)
			require.NotZero(t, got.LinkIndex(), "seed %d", seed)
			arrived += got.AttributeIndices().Len() - sent.AttributeIndices().Len()
		}
		require.LessOrEqual(t, arrived+stats.Omitted[encode.OmitReservedAttribute], 0, "seed %d", seed)
		require.GreaterOrEqual(t, arrived+2*stats.Omitted[encode.OmitReservedAttribute], 0, "seed %d", seed)
	}
}

// Id 0 is no mapping, even if a mapping has no id.
func TestMappingWithoutID(t *testing.T) {
	for id, want := range map[uint64]bool{0: false, 1: true} {
		pd, _, err := Decode(profiletest.PprofWire(nil).Strings("", "cpu", "ns", "/lib/x.so").
			ValueType(profiletest.PprofSampleType, 1, 2).
			Message(profiletest.PprofSample,
				profiletest.PprofWire(nil).Packed(profiletest.PprofSampleLocation, 1).Packed(profiletest.PprofSampleValue, 5)).
			Mapping(profiletest.PprofMappingFields{ID: id, File: 3}).
			Location(profiletest.PprofLocationFields{ID: 1, Mapping: id, Address: 7}), Options{})
		require.NoError(t, err)
		text := profiletest.Render(pd)
		require.Equal(t, want, pd.Dictionary().MappingTable().Len() > 1, text)
	}
}
