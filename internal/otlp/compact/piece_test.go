// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// observationsPerProfile counts the observations of each profile by its sample type.
func observationsPerProfile(pd pprofile.Profiles) map[string]int {
	counts := map[string]int{}
	for p := range otlp.Profiles(pd) {
		name := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
		counts[name] += 0
		for _, s := range p.Samples().All() {
			counts[name] += max(s.Values().Len(), s.TimestampsUnixNano().Len())
		}
	}
	return counts
}

// Pieces, and pieces of pieces, are together what they were cut from, wherever cuts fall within samples. Only profiles
// that are to stay whole, and those without samples, are in one piece.
func TestPiecesAreTheWhole(t *testing.T) {
	b := profiletest.New().Resource("service.name", "shop")
	for i, times := range []int{1, 7, 0, 12} {
		b.Profile(fmt.Sprint("type", i), "count").Time(1, 200)
		for s := range times {
			var timestamps []uint64
			for o := range s%4 + 1 {
				timestamps = append(timestamps, uint64(1+10*s+o))
			}
			b.Sample(profiletest.Observed(timestamps, fmt.Sprint("f", s), "main"))
		}
	}
	want := b.Build()
	batch := batchOf(Options{}, want)
	total := observationsPerProfile(want)
	for n := 2; n <= 40; n++ {
		for _, keepProfiles := range []bool{false, true} {
			var out []Part
			var cut func(whole Piece, depth int)
			cut = func(whole Piece, depth int) {
				pieces := batch.Cut(whole, n, keepProfiles)
				for _, piece := range pieces {
					if depth > 0 && len(pieces) > 1 {
						cut(piece, depth-1)
						continue
					}
					part := batch.Part(piece)
					require.NoError(t, profiletest.Check(part.Profiles, profiletest.AllowRepeatedSamples()))
					require.LessOrEqual(t, new(pprofile.ProtoMarshaler).ProfilesSize(part.Profiles), part.Bytes)
					require.Equal(t, piece.Len(), part.Profiles.ProfileCount())
					out = append(out, part)
					for name, count := range observationsPerProfile(part.Profiles) {
						if keepProfiles || total[name] == 0 {
							require.Equal(t, total[name], count)
						}
					}
				}
			}
			cut(batch.All(), 2)
			assert.Greater(t, len(out), 1)
			requireMerged(t, out, want)
		}
	}
}

// The sample types of one pprof have the same stacks in the same order: each piece has the same ones of all.
func TestPiecesHaveTheSameShareOfEachProfile(t *testing.T) {
	b := profiletest.New().Resource("service.name", "shop")
	for _, name := range []string{"samples", "cpu"} {
		b.Profile(name, "count")
		for s := range 10 {
			b.Sample(profiletest.Value(1, fmt.Sprint("f", s)))
		}
	}
	batch := batchOf(Options{}, b.Build())
	for i, piece := range batch.Cut(batch.All(), 3, false) {
		share := 10*(i+1)/3 - 10*i/3
		part := batch.Part(piece)
		assert.Equal(t, map[string]int{"samples": share, "cpu": share}, observationsPerProfile(part.Profiles))
		assert.Equal(t, share+1, part.Profiles.Dictionary().FunctionTable().Len())
	}
}
