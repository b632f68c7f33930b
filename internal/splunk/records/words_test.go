// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// attributesOf counts the attributes of profiles and of samples.
func attributesOf(pd pprofile.Profiles) (n int) {
	for p := range otlp.Profiles(pd) {
		n += p.AttributeIndices().Len()
		for _, s := range p.Samples().All() {
			n += s.AttributeIndices().Len()
		}
	}
	return n
}

// Attributes with Splunk's own words do not change what a sample is: they arrive, or they are counted.
func TestAttributesOfSplunksWords(t *testing.T) {
	for seed := range uint64(300) {
		pd := profiletest.WordyProfiles(rand.New(rand.NewPCG(seed, 0)))
		ld, parts := records(t, pd, EncodeOptions{Format: FormatPprof})
		back := Translate(ld, Options{})
		require.Empty(t, back.Rejected)
		require.Equal(t, profiletest.Events(pd), profiletest.Events(back.Profiles), "seed %d", seed)
		require.Zero(t, back.BadTimes, "seed %d", seed)
		links := 0
		for p := range otlp.Profiles(back.Profiles) {
			require.LessOrEqual(t, p.DurationNano(), uint64(1e9), "seed %d", seed)
			for _, s := range p.Samples().All() {
				if s.LinkIndex() != 0 {
					links++
				}
			}
		}
		require.Equal(t, 2, links, "seed %d", seed)
		leftOut := 0
		for _, part := range parts {
			leftOut += part.LeftOutAttributes
		}
		// A word that both samples have with the same value is one entry, which is counted once.
		require.GreaterOrEqual(t, attributesOf(back.Profiles)+2*leftOut, attributesOf(pd), "seed %d", seed)
		require.LessOrEqual(t, attributesOf(back.Profiles)+leftOut, attributesOf(pd), "seed %d", seed)
	}
}
