// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// FuzzEncode encodes OTLP bytes, sound or not. The encoder returns an error, or a pprof that pprof's own parser
// can read.
func FuzzEncode(f *testing.F) {
	for _, pd := range []pprofile.Profiles{
		sound(),
		profiletest.New().Scope("", "", kind.AttributeSampleTypeOrder, []any{1, 0}, kind.AttributeDefaultSampleType, "a").
			Profile("b", "").Attributes(profiletest.Attr(scan.AttributeComment, []any{"c"})).
			Sample(profiletest.Value(1, "x", "y"), profiletest.Value(2, "z")).
			Profile("a", "").Attributes(profiletest.Attr(scan.AttributeComment, []any{"c"})).
			Sample(profiletest.Value(2, "z"), profiletest.Value(2, "z"), profiletest.Value(1, "x", "y")).Build(),
		build(profiletest.Observed([]uint64{1, 2}, "f").With(
			profiletest.Attr("list", []any{"a", 1, map[string]any{"value": 1, "unit": "s"}}),
			profiletest.Attr("map", map[string]any{"k": []any{nil, true}}))),
	} {
		seed := profiletest.Marshal(f, pd)
		f.Add(seed)
	}
	for _, seed := range worst.Profiles.All(8 << 10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		if err != nil {
			return
		}
		pd.MarkReadOnly()
		encoded, stats, err := encodeMeasured(t, pd)
		if err != nil {
			require.Nil(t, encoded)
			return
		}
		samples, profiles := 0, 0
		for _, payload := range encoded {
			p := profiletest.ParsePprof(t, payload.Bytes)
			require.NoError(t, p.CheckValid())
			require.Contains(t, []int{len(p.SampleType), 2 * len(p.SampleType)}, len(payload.ProfileIndices))
			samples += len(p.Sample)
			profiles += len(payload.ProfileIndices)
		}
		require.Equal(t, stats.Samples, samples)
		if len(data) < minBytes/maxExpansion {
			require.Equal(t, profileCount(pd), profiles)
		}
	})
}

func profileCount(pd pprofile.Profiles) int {
	n := 0
	for _, r := range pd.ResourceProfiles().All() {
		for _, s := range r.ScopeProfiles().All() {
			n += s.Profiles().Len()
		}
	}
	return n
}
