// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// BenchmarkSize measures what OTEP 239 compares formats by: bytes, gzipped_bytes, and the objects
// that a decoded payload keeps in memory. It measures zstd as well as gzip, and profile.Parse as well as Decode.
func BenchmarkSize(b *testing.B) {
	for _, input := range benchInputs(b) {
		plain := bytes.Clone(plainBytes(b, input.payload))
		b.Run(input.name+"/impl=otlp", func(b *testing.B) {
			pd, _, err := Decode(input.payload, Options{})
			require.NoError(b, err)
			reportSizes(b, otlpBytes(b, pd), func() any {
				pd, _, err := Decode(input.payload, Options{})
				require.NoError(b, err)
				return pd
			})
			b.ReportMetric(float64(len(otlpBytes(b, pd)))/float64(len(plain)), "of-pprof")
			b.ReportMetric(float64(pd.ProfileCount()), "types")
		})
		b.Run(input.name+"/impl=pprof", func(b *testing.B) {
			reportSizes(b, plain, func() any {
				p, err := profile.ParseData(input.payload)
				require.NoError(b, err)
				return p
			})
		})
	}
}

func reportSizes(b *testing.B, wire []byte, decode func() any) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(wire)
	require.NoError(b, err)
	require.NoError(b, w.Close())
	encoder, err := zstd.NewWriter(nil)
	require.NoError(b, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := decode()
	runtime.GC()
	runtime.GC() // twice: the second one frees what sync.Pool holds
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	b.ReportAllocs()
	for b.Loop() {
		decode()
	}
	b.ReportMetric(float64(len(wire)), "bytes")
	b.ReportMetric(float64(zipped.Len()), "gzipped_bytes")
	b.ReportMetric(float64(len(encoder.EncodeAll(wire, nil))), "zstd_bytes")
	b.ReportMetric(float64(after.HeapObjects)-float64(before.HeapObjects), "retained_objects")
	b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "retained_bytes")
}
