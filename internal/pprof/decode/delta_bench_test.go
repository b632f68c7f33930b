// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkDelta scrapes a process in which one stack in twenty has counted since the last time. Its peer does what
// net/http/pprof and others do for a delta, with the last profile kept in memory: profile.ParseData, and profile.Merge
// with the last one's values negated. impl=decode is Decode without a Baseline.
func BenchmarkDelta(b *testing.B) {
	for _, name := range []string{"go-heap", "go-allocs", "go-mutex", "go-block", "go-compile-nethttp-heap-large",
		"go-compile-nethttp-heap-huge"} {
		first, err := os.ReadFile(filepath.Join(testdata, name+".pb.gz"))
		require.NoError(b, err)
		second := profiletest.Gzip(grown(b, first, 20))
		last, err := profile.ParseData(first)
		require.NoError(b, err)
		last.Scale(-1)
		baseline := NewBaseline(BaselineOptions{MaxStacks: 1 << 20})
		_, stats, err := Decode(first, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
		require.NoError(b, err)
		baseline.Commit()
		b.Logf("%s: %d samples, %d bytes of Baseline", name, stats.Samples, baseline.Bytes())
		run := func(impl string, f func() error) { measure(b, name+"/impl="+impl, stats.UncompressedBytes, f) }
		run("peer", func() error {
			p, err := profile.ParseData(second)
			if err != nil {
				return err
			}
			_, err = profile.Merge([]*profile.Profile{last, p})
			return err
		})
		run("decode", func() error {
			_, _, err := Decode(second, Options{})
			return err
		})
		run("ours", func() error {
			_, stats, err := Decode(second, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			require.Equal(b, DeltaStats{}, stats.Delta)
			return err
		})
	}
}
