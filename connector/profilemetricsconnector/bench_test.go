// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// tenPatterns are metrics of ten regular expressions of functions.
const tenPatterns = `
metrics:
  json:   {profiles: [process_cpu/cpu, process_cpu/samples], unit: s, functions: ['^encoding/json\.'], below: ['^net/http\.']}
  gc:     {profiles: [process_cpu/cpu, process_cpu/samples], unit: s, functions: ['^runtime\.gc', '^runtime\.mallocgc']}
  sys:    {profiles: [process_cpu/cpu, process_cpu/samples], unit: s, functions: ['^(internal/runtime/)?syscall\.'], match: leaf}
  types:  {profiles: [process_cpu/cpu, process_cpu/samples], unit: s, functions: ['types2?\.\(\*Checker\)', 'ssa\.'], group_by: {frame: package}}
  alloc:  {profiles: [memory/alloc_space], unit: By, functions: ['bytes\.', 'strings\.', 'compress/.*flate']}
  used:   {profiles: [memory/inuse_space], unit: By, functions: ['cache'], group_by: {frame: function}}
`

// BenchmarkMessage compares the connector with what dictionary_dedup does to the same message.
func BenchmarkMessage(b *testing.B) {
	for _, name := range []string{"go-cpu-labels", "go-build-merged-cpu-large", "go-compile-nethttp-heap-large"} {
		payload := profiletest.FileBytes(b, filepath.Join("..", "..", "testdata", "pprof", name+".pb.gz"))
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(b, err)
		run := func(impl string, do func(pprofile.Profiles)) {
			b.Run("input="+strings.TrimPrefix(name, "go-")+"/impl="+impl, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64((&pprofile.ProtoMarshaler{}).ProfilesSize(pd)))
				cpu := time.Duration(0) // the clock also shows what else the machine does
				for range b.N {
					b.StopTimer()
					own := pprofile.NewProfiles() // dictionary_dedup consumes its message
					pd.CopyTo(own)
					b.StartTimer()
					began := profiletest.ProcessCPU()
					do(own)
					cpu += profiletest.ProcessCPU() - began
				}
				b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*pd.SampleCount()), "cpu-ns/sample")
			})
		}
		for impl, section := range map[string]string{
			"built-in": "", "ten-patterns": tenPatterns,
			"top-functions": "top_functions: [{profile: process_cpu/cpu, compare: {to: 24h}}, {profile: memory/inuse_space}]",
		} {
			f := start(b, section)
			run(impl, func(pd pprofile.Profiles) { require.NoError(b, f.ConsumeProfiles(b.Context(), pd)) })
		}
		var batch compact.Batch
		run("dictionary_dedup", func(pd pprofile.Profiles) {
			batch.Reset(compact.Options{MaxBytes: 4_000_000, MaxGrowth: 2, OrderByFrequency: true, CombineSamples: true})
			batch.Consume(pd)
			for range batch.Parts() {
				continue
			}
		})
	}
}
