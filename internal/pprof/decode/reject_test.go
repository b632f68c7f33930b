// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

func TestDecodeNamesTheFormatOfWhatIsNotPprof(t *testing.T) {
	file := func(name string) []byte {
		data := pt.FileBytes(t, filepath.Join(testdata, name))
		return data
	}
	heap := captured(t)["go-heap.pb.gz"]
	for _, tt := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"empty", nil, "an empty body"},
		{"empty gzip", pt.Gzip(nil), "an empty gzip stream"},
		{"text dump", file("go-goroutine-debug1.txt"), "a text dump of goroutines"},
		{"compressed twice", pt.Gzip(pt.Gzip([]byte("x"))), "compressed twice, by gzip within (compress it once)"},
		{"zstd in gzip", pt.Gzip([]byte("\x28\xb5\x2f\xfd")), "compressed twice, by zstd within (compress it once)"},
		{"compressed text dump", pt.Gzip(file("go-goroutine-debug1.txt")), "a text dump of goroutines"},
		{"gperftools", file("cpp-gperftools-legacy.prof"), "a legacy gperftools"},
		{"gperftools cpu", append([]byte{0: 0, 8: 3, 24: 100, 40: 0}, "build=/bin/x\n"...),
			"a legacy gperftools CPU profile"},
		{"execution trace", file("go-exec.trace"), "a Go execution trace"},
		{"html", []byte("\n <!doctype html><html><body>404</body></html>"), "HTML"},
		{"json", []byte(`{"resourceProfiles":[]}`), "JSON"},
		{"truncated gzip", heap[:len(heap)/2], "a truncated gzip stream"},
		{"damaged gzip", append(bytes.Clone(heap[:len(heap)/2]), heap[len(heap)/2+9:]...), "gzip stream"},
		{"only a gzip header", heap[:2], "a truncated gzip stream"},
		{"truncated zstd", []byte("\x28\xb5\x2f\xfd\x24"), "a truncated zstd stream"},
		{"a large window", []byte("\x28\xb5\x2f\xfd\x00\xa0\x09\x00\x00x"), "whose window is above 8 MiB"},
		{"other text", []byte("profile taken at noon\n"), "text"},
		{"truncated", plainBytes(t, heap)[:4000], "cut off"},
		{"two profiles", append(bytes.Clone(plainBytes(t, heap)), plainBytes(t, heap)...), "several profiles"},
		{"another protobuf", []byte{0x82, 0x01, 0x02, 'h', 'i'}, "no field of pprof's Profile message"},
		{"messages of another kind", []byte("\x0a\x02\x40\x05\x0a\x02\x40\x06"), "no string_table"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pd, _, err := Decode(tt.payload, Options{})
			require.ErrorContains(t, err, tt.want)
			var format *scan.FormatError
			require.ErrorAs(t, err, &format)
			assert.Zero(t, pd.ResourceProfiles().Len())
			// The next payload is decoded with the scratch memory of the failed one.
			_, stats, err := Decode(heap, Options{})
			require.NoError(t, err)
			assert.Positive(t, stats.Samples)
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	heap := captured(t)["go-heap.pb.gz"]
	size := len(plainBytes(t, heap))
	plain := bytes.Clone(plainBytes(t, heap))
	for _, tt := range []struct {
		name    string
		payload []byte
		limits  scan.Limits
		want    string
	}{
		{"gzip bytes", heap, scan.Limits{MaxProfileBytes: size - 1}, "bytes uncompressed"},
		{"zstd bytes", worst.Zstd(plain), scan.Limits{MaxProfileBytes: size - 1}, "bytes uncompressed"},
		{"plain bytes", plain, scan.Limits{MaxProfileBytes: size - 1}, "bytes uncompressed"},
		{"samples", heap, scan.Limits{MaxSamples: 10}, "more than 10 samples"},
		{"samples times types", heap, scan.Limits{MaxSamples: 100}, "more than 100 samples times sample types"},
		{"entries", heap, scan.Limits{MaxTableEntries: 20}, "more than 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Decode(tt.payload, Options{Limits: tt.limits})
			require.ErrorIs(t, err, scan.ErrTooLarge)
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("at the limit", func(t *testing.T) {
		_, _, err := Decode(heap, Options{Limits: scan.Limits{MaxProfileBytes: size}})
		require.NoError(t, err)
	})
	t.Run("labels", func(t *testing.T) {
		_, stats, err := Decode(oddPayloads()["labels"], Options{Limits: scan.Limits{MaxTableEntries: 15}})
		require.NoError(t, err)
		assert.Zero(t, stats.DroppedSamples())
		many := oddBase()
		for i := range 61 {
			many = many.Message(pt.PprofSample, oddSample(1, 1).Label(pt.PprofLabel{Key: sBytes, Num: int64(i + 1)}))
		}
		_, stats, err = Decode(many, Options{Limits: scan.Limits{MaxTableEntries: 15}})
		require.NoError(t, err)
		assert.Equal(t, 1, stats.Dropped[scan.DropTooManyLabels])
		assert.Equal(t, 60, stats.Samples)
	})
	t.Run("stack depth", func(t *testing.T) {
		p := pt.ParsePprof(t, heap)
		deep := 0
		for _, s := range p.Sample {
			if len(s.Location) > 10 {
				deep++
			}
		}
		_, stats, err := Decode(heap, Options{Limits: scan.Limits{MaxStackDepth: 10}})
		require.NoError(t, err)
		assert.Positive(t, deep)
		assert.Equal(t, deep, stats.Dropped[scan.DropStackTooDeep])
		assert.Equal(t, len(p.Sample)-deep, stats.Samples)
	})
}

func TestDecodeBombStopsAtTheLimit(t *testing.T) {
	const limit = 1 << 20
	bomb := pt.Gzip([]byte(strings.Repeat("\x00", 200<<20)))
	require.Less(t, len(bomb), limit)
	pt.RequireCost(t, pt.Bound{AllocatedBytes: 4 * limit}, func() {
		_, _, err := Decode(bomb, Options{Limits: scan.Limits{MaxProfileBytes: limit}})
		require.ErrorIs(t, err, scan.ErrTooLarge)
	})
}
