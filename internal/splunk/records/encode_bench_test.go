// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// BenchmarkEncode compares each format with OTLP's own marshalling of the same profiles.
func BenchmarkEncode(b *testing.B) {
	inputs := map[string]pprofile.Profiles{}
	for name, request := range benchRequests(b) {
		inputs[name] = Translate(request, Options{}).Profiles
	}
	for _, name := range []string{"go-heap.pb.gz", "go-build-merged-cpu-large.pb.gz"} {
		inputs[name] = pprofs(b)[name]
	}
	for name, pd := range inputs {
		pd.MarkReadOnly()
		samples := observations(pd)
		report := func(b *testing.B) {
			b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		}
		b.Run("input="+name+"/impl=otlp-marshal", func(b *testing.B) {
			b.ReportAllocs()
			marshaler := &pprofile.ProtoMarshaler{}
			for b.Loop() {
				if _, err := marshaler.MarshalProfiles(pd); err != nil {
					b.Fatal(err)
				}
			}
			report(b)
		})
		for _, format := range []Format{FormatOTLP, FormatPprof} {
			b.Run("input="+name+"/impl="+format.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					encoder := NewEncoder(pd, EncodeOptions{Format: format, MaxRecordBytes: 1_000_000, MaxPartBytes: 3_932_160})
					sent := 0
					for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
						sent += part.Samples
					}
					if sent != samples {
						b.Fatalf("sent %d of %d samples", sent, samples)
					}
				}
				report(b)
			})
		}
	}
}
