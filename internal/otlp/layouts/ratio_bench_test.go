// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkRatio reads a captured message of the current layout alternately by Unmarshal and by pdata, as the
// Collector's receiver does. It reports the median of the ratios of their times, and the times for detecting the
// layout, checking the size and measuring the profiles as shares of pdata's; and the memory of the profiles as a
// multiple of the message.
func BenchmarkRatio(b *testing.B) {
	for _, name := range []string{"go-cpu-labels", "go-heap", "go-build-merged-cpu-large", "merged"} {
		b.Run("profile="+name, func(b *testing.B) {
			data := currentMessage(b, name)
			unmarshaler := &pprofile.ProtoUnmarshaler{}
			profiles, err := unmarshaler.UnmarshalProfiles(data)
			require.NoError(b, err)
			measure := func([]byte) error { size.OfProfiles(profiles); return nil }
			var ratios, detecting, checking, measuring []float64
			for n := 0; b.Loop(); n++ {
				var pdata, ours time.Duration
				// Alternate the order, since the second one runs with the garbage of the first.
				for i := range 2 {
					if (i+n)%2 == 0 {
						pdata = timed(b, data, func(data []byte) error { _, err := unmarshaler.UnmarshalProfiles(data); return err })
					} else {
						ours = timed(b, data, func(data []byte) error { _, _, err := Unmarshal(data, nil); return err })
					}
				}
				ratios = append(ratios, float64(ours)/float64(pdata))
				detecting = append(detecting,
					float64(timed(b, data, func(data []byte) error { Detect(data); return nil }))/float64(pdata))
				checking = append(checking,
					float64(timed(b, data, func(data []byte) error { _, err := size.Profiles(data); return err }))/float64(pdata))
				measuring = append(measuring, float64(timed(b, data, measure))/float64(pdata))
			}
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(detecting), "detect-ratio")
			b.ReportMetric(median(checking), "size-check-ratio")
			b.ReportMetric(median(measuring), "measure-ratio")
			b.ReportMetric(float64(size.OfProfiles(profiles))/float64(len(data)), "memory-ratio")
			b.SetBytes(int64(len(data)))
		})
	}
}

func timed(b *testing.B, data []byte, run func([]byte) error) time.Duration {
	data = bytes.Clone(data)
	start := time.Now()
	err := run(data)
	took := time.Since(start)
	require.NoError(b, err)
	return took
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func currentMessage(b *testing.B, name string) []byte {
	names := []string{name}
	if name == "merged" {
		names = []string{"go-cpu-labels", "go-heap", "go-mutex", "go-block", "go-goroutine"}
	}
	var batch compact.Batch
	batch.Reset(compact.Options{OrderByFrequency: true, CombineSamples: true})
	for _, name := range names {
		payload := profiletest.FileBytes(b, "../../../testdata/pprof/"+name+".pb.gz")
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(b, err)
		batch.Add(pd)
	}
	for part := range batch.Parts() {
		return profiletest.Marshal(b, part.Profiles)
	}
	b.Fatal("there are no profiles")
	return nil
}
