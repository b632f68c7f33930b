// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkDecode compares Decode (gzip bytes → Profiles) with its peer, profile.Parse of the same
// bytes, and its floor: gunzip, and pdata's own ProtoUnmarshaler of the result.
func BenchmarkDecode(b *testing.B) {
	for _, input := range benchInputs(b) {
		profiles, stats, err := Decode(input.payload, Options{})
		require.NoError(b, err)
		wire := profiletest.Marshal(b, profiles)
		run := func(name string, f func() error) { measure(b, input.name+"/impl="+name, stats.UncompressedBytes, f) }
		run("peer", func() error {
			_, err := profile.ParseData(input.payload)
			return err
		})
		run("ours", func() error {
			_, _, err := Decode(input.payload, Options{})
			return err
		})
		run("floor", func() error { return floor(input.payload, wire) })
		run("copy", func() error {
			profiles.CopyTo(pprofile.NewProfiles())
			return nil
		})
	}
}

// measure runs f as a sub-benchmark over as many bytes. Processor time includes the garbage collector's share, which
// elapsed time hides if another core is idle.
func measure(b *testing.B, name string, size int, f func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		start := profiletest.ProcessCPU()
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(profiletest.ProcessCPU()-start)/float64(b.N), "cpu-ns/op")
	})
}

var floorReader gzip.Reader

func floor(payload, wire []byte) error {
	if err := floorReader.Reset(bytes.NewReader(payload)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, &floorReader); err != nil {
		return err
	}
	_, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	return err
}

// BenchmarkEncode writes each input as pprof, and compares that with google/pprof's writer of the same profile.
// Both end in uncompressed bytes: gzip would cost the same for both.
func BenchmarkEncode(b *testing.B) {
	for _, input := range benchInputs(b) {
		pd, _, err := Decode(input.payload, Options{})
		require.NoError(b, err)
		p := profiletest.ParsePprof(b, input.payload)
		encoded, _, err := encode.Encode(pd)
		require.NoError(b, err)
		require.Len(b, encoded, 1)
		size := len(encoded[0].Bytes)

		measure(b, input.name+"/impl=peer", size, func() error { return p.WriteUncompressed(io.Discard) })
		measure(b, input.name+"/impl=ours", size, func() error {
			_, _, err := encode.Encode(pd)
			return err
		})
	}
}

// BenchmarkDelta scrapes a process in which one stack in twenty has counted since the last time. Its peer does what
// net/http/pprof and others do for a delta, with the last profile kept in memory: profile.ParseData, and profile.Merge
// with the last one's values negated. impl=decode is Decode without a Baseline.
func BenchmarkDelta(b *testing.B) {
	for _, name := range []string{"go-heap", "go-allocs", "go-mutex", "go-block", "go-compile-nethttp-heap-large",
		"go-compile-nethttp-heap-huge"} {
		first := profiletest.FileBytes(b, filepath.Join(testdata, name+".pb.gz"))
		second := profiletest.Gzip(grown(b, first, 20))
		last := profiletest.ParsePprof(b, first)
		last.Scale(-1)
		baseline := NewBaseline(1 << 20)
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
