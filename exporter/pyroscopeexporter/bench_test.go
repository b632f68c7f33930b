// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// accepting is a transport that accepts every request without a network.
type accepting struct{}

func (accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(strings.NewReader("")),
		Request: r}, err
}

// BenchmarkExport compares the exporter with what it cannot do without: Encode and gzip. With threads, samples have to
// be prepared and combined first.
func BenchmarkExport(b *testing.B) {
	for _, name := range []string{"go-heap", "go-cpu-labels", "go-compile-nethttp-heap-large", "node-datadog-wall-cpu"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pprof", name+".pb.gz"))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(b, err)
		pd, stats, err := decode.Decode(data, decode.Options{})
		require.NoError(b, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "shop")
		run := func(impl string, f func(pprofile.Profiles)) {
			b.Run("input="+name+"/impl="+impl, func(b *testing.B) {
				b.SetBytes(int64(stats.UncompressedBytes))
				b.ReportAllocs()
				// Processor time does not depend on what else the machine does.
				began := profiletest.ProcessCPU()
				for b.Loop() {
					f(pd)
				}
				b.ReportMetric(float64(profiletest.ProcessCPU()-began)/float64(b.N), "cpu-ns/op")
			})
		}
		w := gzip.NewWriter(io.Discard)
		run("encode_gzip", func(pd pprofile.Profiles) {
			payloads, _, err := encode.Encode(pd)
			require.NoError(b, err)
			for _, payload := range payloads {
				w.Reset(io.Discard)
				_, _ = w.Write(payload.Bytes)
				_ = w.Close()
			}
		})
		e := newTestExporter(b, pyroscopetest.New(b), nil)
		e.client.HTTP.Transport = accepting{}
		run("exporter", func(pd pprofile.Profiles) { require.NoError(b, e.push(b.Context(), pd)) })
		threads := profiletest.Clone(pd)
		addThreads(threads, 8)
		run("exporter,threads", func(pprofile.Profiles) { require.NoError(b, e.push(b.Context(), threads)) })
	}
}

// addThreads spreads the samples over n threads: an attribute that does not become a label.
func addThreads(pd pprofile.Profiles, n int) {
	d := pd.Dictionary()
	d.StringTable().Append("thread.id")
	first := d.AttributeTable().Len()
	for i := range n {
		entry := d.AttributeTable().AppendEmpty()
		entry.SetKeyStrindex(int32(d.StringTable().Len() - 1))
		entry.Value().SetInt(int64(i))
	}
	for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		for i, sample := range p.Samples().All() {
			sample.AttributeIndices().Append(int32(first + i%n))
		}
	}
}
