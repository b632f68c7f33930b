// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package decode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestDecodeAllocatesLittleMoreThanTheResult compares with pdata's own copy of the result, which
// allocates what the result consists of and nothing else. The race detector empties pools at random.
func TestDecodeAllocatesLittleMoreThanTheResult(t *testing.T) {
	for name, payload := range captured(t) {
		pd, _, err := Decode(payload, Options{})
		require.NoError(t, err)
		// A garbage collection in between empties the pool; in the average of many runs it does not matter.
		runs := max(5, 1<<20/len(payload))
		decode := testing.AllocsPerRun(runs, func() {
			_, _, _ = Decode(payload, Options{})
		})
		result := testing.AllocsPerRun(5, func() { pd.CopyTo(pprofile.NewProfiles()) })
		assert.LessOrEqual(t, decode, result*1.1, "%s: %.0f allocations, the result's are %.0f", name, decode, result)
	}
}

// TestDeltaAllocatesLittleMoreThanTheResult scrapes the same process again and again. In one case the first payload
// stays the Baseline; in the other each payload becomes the Baseline, so that there is nothing new.
func TestDeltaAllocatesLittleMoreThanTheResult(t *testing.T) {
	for _, name := range []string{"go-heap.pb.gz", "go-allocs.pb.gz", "go-mutex.pb.gz", "go-block.pb.gz"} {
		plain := plainBytes(t, captured(t)[name])
		second := grown(t, plain, 10)
		for _, end := range []struct {
			name string
			with func(*Baseline)
		}{{"something new", (*Baseline).Discard}, {"nothing new", (*Baseline).Commit}} {
			t.Run(name+"/"+end.name, func(t *testing.T) {
				s := newDeltaSteps(t, 0)
				s.next(plain)
				decode := func() pprofile.Profiles {
					pd, stats, err := Decode(second, Options{Temporality: kind.StatedCumulative, Baseline: s.baseline, At: s.at})
					require.NoError(t, err)
					require.Equal(t, DeltaStats{}, stats.Delta)
					end.with(s.baseline)
					return pd
				}
				decode()
				pd := decode()
				result := testing.AllocsPerRun(5, func() { pd.CopyTo(pprofile.NewProfiles()) })
				// A garbage collection in between empties the pools; in the average of many runs it does not matter.
				allocs := testing.AllocsPerRun(1000, func() {
					_, _, _ = Decode(second, Options{Temporality: kind.StatedCumulative, Baseline: s.baseline, At: s.at})
					end.with(s.baseline)
				})
				t.Logf("%.0f allocations, the result's are %.0f", allocs, result)
				assert.LessOrEqual(t, allocs, result*1.1+8)
			})
		}
	}
}

func TestEncodeAllocatesLittle(t *testing.T) {
	b := profiletest.New().Profile("cpu", "ns")
	for i := range 200 {
		b.Sample(profiletest.Value(int64(i), "a", string(rune('a'+i))).With(profiletest.Attr("k", i)))
	}
	pd := b.Build()
	got := testing.AllocsPerRun(20, func() {
		_, _, err := encode.Encode(pd)
		require.NoError(t, err)
	})
	assert.LessOrEqual(t, got, 12.0, "allocations must not grow with the samples")
}
