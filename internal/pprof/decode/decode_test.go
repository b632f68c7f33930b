// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// captured returns the captured pprof payloads by file name.
func captured(t testing.TB) map[string][]byte {
	files, err := filepath.Glob(filepath.Join(testdata, "*.pb.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	payloads := make(map[string][]byte, len(files))
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(t, err)
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

func otlpBytes(t testing.TB, pd pprofile.Profiles) []byte {
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	return wire
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
			want, err := profile.ParseData(payload)
			require.NoError(t, err)
			assert.Equal(t, len(want.Sample), stats.Samples)
			assert.Zero(t, stats.DroppedSamples())
			assert.Zero(t, stats.Repaired)
			assert.Equal(t, len(plainBytes(t, payload)), stats.UncompressedBytes)
			assertSums(t, want, pd)
			golden := filepath.Join("testdata", strings.TrimSuffix(name, ".pb.gz")+".golden")
			if slices.Contains(withGolden, name) {
				profiletest.Golden(t, golden, profiletest.Render(pd))
			}
		})
	}
}

// assertSums compares the sum of each sample type, which no decoder gets right by accident.
func assertSums(t *testing.T, want *profile.Profile, pd pprofile.Profiles) {
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, len(want.SampleType), profiles.Len())
	got := map[string]int64{}
	for _, p := range profiles.All() {
		name := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
		for _, s := range p.Samples().All() {
			got[name] += s.Values().At(0)
		}
	}
	for i, sampleType := range want.SampleType {
		sum := int64(0)
		for _, s := range want.Sample {
			sum += s.Value[i]
		}
		assert.Equal(t, sum, got[sampleType.Type], sampleType.Type)
	}
}

func TestDecodeIsDeterministicOverCompressionAndTime(t *testing.T) {
	for name, payload := range captured(t) {
		plain := plainBytes(t, payload)
		encoder, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		var again bytes.Buffer
		w := gzip.NewWriter(&again)
		_, err = w.Write(plain)
		require.NoError(t, err)
		require.NoError(t, w.Close())

		first, _, err := Decode(payload, Options{})
		require.NoError(t, err)
		want := otlpBytes(t, first)
		for _, other := range [][]byte{payload, bytes.Clone(plain), encoder.EncodeAll(plain, nil), again.Bytes()} {
			pd, _, err := Decode(other, Options{})
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, otlpBytes(t, pd)), "%s: the bytes differ", name)
		}
	}
}

func TestDecodeKeepsNothingOfThePayload(t *testing.T) {
	for name, payload := range captured(t) {
		plain := bytes.Clone(plainBytes(t, payload))
		pd, _, err := Decode(plain, Options{IncludeOriginalPayload: true})
		require.NoError(t, err)
		want := otlpBytes(t, pd)
		clear(plain)
		assert.True(t, bytes.Equal(want, otlpBytes(t, pd)), "%s: the result shares memory with the payload", name)
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

func TestDecodeDetachesFewStringsOfALargeTable(t *testing.T) {
	// A table of many strings is not kept in memory if the samples need only two of them.
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "ns"}}}
	for range 2000 {
		p.Comments = append(p.Comments, strings.Repeat("c", 100))
	}
	var out bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&out))
	pd, _, err := Decode(out.Bytes(), Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
}

func TestDecodeForgetsThePayloadBefore(t *testing.T) {
	first, second := oddPayloads()["sparse ids"], oddPayloads()["sample without entities"]
	want, stats, err := newWorker().rendered(second)
	require.NoError(t, err)
	assert.Equal(t, 1, stats.Dropped[scan.DropUnknownLocation])
	w := newWorker()
	for _, payload := range [][]byte{first, second} {
		got, stats, err := w.rendered(payload)
		require.NoError(t, err)
		if &payload[0] == &second[0] {
			assert.Equal(t, 1, stats.Dropped[scan.DropUnknownLocation])
			assert.Equal(t, want, got)
		}
	}
}

// rendered decodes with this worker instead of one from the pool.
func (w *worker) rendered(data []byte) (string, Stats, error) {
	pd, err := w.run(data, Options{})
	if err != nil {
		return "", w.stats, err
	}
	return profiletest.Render(pd), w.stats, nil
}
