// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// captured returns the captured pprof payloads by file name.
func captured(t testing.TB) map[string][]byte {
	files := profiletest.Glob(t, filepath.Join(testdata, "*.pb.gz"))
	payloads := make(map[string][]byte, len(files))
	for _, file := range files {
		payload := profiletest.FileBytes(t, file)
		payloads[filepath.Base(file)] = payload
	}
	return payloads
}

func plainBytes(t testing.TB, payload []byte) []byte {
	var d decompressor
	data, err := d.plain(payload, scan.DefaultLimits().MaxProfileBytes, nil)
	require.NoError(t, err)
	return data
}

// withGolden are payloads whose golden files are small enough to be checked by a reader: one of each shape.
var withGolden = []string{"go-block.pb.gz", "go-threadcreate.pb.gz", "node-datadog-heap.pb.gz",
	"node-datadog-wall-cpu.pb.gz"}

func TestDecodeCapturedPayloads(t *testing.T) {
	for name, payload := range captured(t) {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode(payload, Options{})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			want := profiletest.ParsePprof(t, payload)
			assert.Equal(t, len(want.Sample), stats.Samples)
			assert.Zero(t, stats.DroppedSamples())
			assert.Zero(t, stats.Repaired)
			assert.Equal(t, len(plainBytes(t, payload)), stats.UncompressedBytes)
			golden := filepath.Join("testdata", strings.TrimSuffix(name, ".pb.gz")+".golden")
			if slices.Contains(withGolden, name) {
				profiletest.Golden(t, golden, profiletest.Render(pd))
			}
		})
	}
}

func TestDecodeIsDeterministicOverCompressionAndTime(t *testing.T) {
	for name, payload := range captured(t) {
		plain := plainBytes(t, payload)
		first, _, err := Decode(payload, Options{})
		require.NoError(t, err)
		want := profiletest.Marshal(t, first)
		for _, other := range [][]byte{payload, bytes.Clone(plain), worst.Zstd(plain), profiletest.Gzip(plain)} {
			pd, _, err := Decode(other, Options{})
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, profiletest.Marshal(t, pd)), "%s: the bytes differ", name)
		}
	}
}

func TestDecodeKeepsNothingOfThePayload(t *testing.T) {
	for name, payload := range captured(t) {
		plain := bytes.Clone(plainBytes(t, payload))
		pd, _, err := Decode(plain, Options{IncludeOriginalPayload: true})
		require.NoError(t, err)
		want := profiletest.Marshal(t, pd)
		clear(plain)
		assert.True(t, bytes.Equal(want, profiletest.Marshal(t, pd)), "%s: the result shares memory with the payload", name)
	}
}

func TestDecodeOriginalPayload(t *testing.T) {
	payload := captured(t)["go-heap.pb.gz"]
	pd, _, err := Decode(payload, Options{IncludeOriginalPayload: true})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	for i, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		if i == 0 {
			assert.Equal(t, "pprof", p.OriginalPayloadFormat())
			assert.Equal(t, payload, p.OriginalPayload().AsRaw())
			continue
		}
		assert.Empty(t, p.OriginalPayloadFormat())
		assert.Zero(t, p.OriginalPayload().Len())
	}
}
