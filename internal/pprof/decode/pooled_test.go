// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Workers, decompressors and snapshots are used again and again, and keep nothing of a payload.
func TestPooledForgets(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	packed := map[string]func(payload []byte) []byte{
		"plain": func(payload []byte) []byte { return payload },
		"gzip": func(payload []byte) []byte {
			var b bytes.Buffer
			z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
			require.NoError(t, err)
			_, err = z.Write(payload)
			require.NoError(t, err)
			require.NoError(t, z.Close())
			return b.Bytes()
		},
		"zstd": func(payload []byte) []byte { return encoder.EncodeAll(payload, nil) },
	}
	for name, use := range map[string]func(payload func(value int64) []byte) string{
		"Decode": func(payload func(value int64) []byte) string {
			pd, stats, err := Decode(payload(1), Options{})
			require.NoError(t, err)
			return fmt.Sprint(pd.SampleCount(), stats.Samples, stats.Counts)
		},
		"Decode with a Baseline": func(payload func(value int64) []byte) string {
			baseline := NewBaseline(BaselineOptions{})
			_, first, err := Decode(payload(1), Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			require.NoError(t, err)
			baseline.Commit()
			pd, second, err := Decode(payload(2), Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			require.NoError(t, err)
			baseline.Commit()
			return fmt.Sprint(pd.SampleCount(), first.Delta, second.Delta, second.Counts)
		},
		"Read": func(payload func(value int64) []byte) string {
			samples := 0
			_, err := Read(payload(1), dictionary.New(), ReadOptions{}, func(Sample) { samples++ })
			require.NoError(t, err)
			return fmt.Sprint(samples)
		},
		"Uncompress": func(payload func(value int64) []byte) string {
			_, err := Uncompress(payload(1), 1<<30, nil)
			require.NoError(t, err)
			return ""
		},
		"Head": func(payload func(value int64) []byte) string { return string(Head(payload(1), 16)) },
	} {
		for form, pack := range packed {
			t.Run(name+" "+form, func(t *testing.T) {
				// The plain bytes, and the windows of zstd, which are bounded; a pool may keep two decoders.
				buffers := map[string]int{"plain": 0, "gzip": 1, "zstd": 6}[form]
				pt.RequireForgets(t, buffers, func(text string) string {
					return use(func(value int64) []byte {
						return pack(oddBase().Strings(text).
							Message(pt.PprofSample, oddSample(value, 1).Label(pt.PprofLabel{Key: 1, Str: 15})).
							Message(pt.PprofSample, oddSample(value, 2).Label(pt.PprofLabel{Key: 15, Num: 7, Unit: 15})))
					})
				})
			})
		}
	}
}
