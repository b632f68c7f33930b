// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const splitBytes = 4_000_000

// BenchmarkSplit splits messages of 12 to 18 MB to parts of 4 MB and reports the bytes of all parts beside those of the
// whole: of what came in, and of what is made of it without a limit. The peer is exporterhelper's batcher.
func BenchmarkSplit(b *testing.B) {
	for _, input := range []struct {
		name    string
		message func() pprofile.Profiles
	}{
		{"163-label-sets-of-real-stacks", func() pprofile.Profiles { return labelled(b, 163) }},
		{"two-real-heaps", func() pprofile.Profiles { return twoHeaps(b) }},
		{"64-generated-profiles", func() pprofile.Profiles { return mergeChain(b, cloneAll(generated(b, 64, half))) }},
		{"one-generated-profile", func() pprofile.Profiles {
			name := func(i int) int { return i }
			return callTree{functions: 20000, samples: 104000, depth: 60, labelSets: 163, name: name}.
				profile(rand.New(rand.NewPCG(3, 4)), "shop")
		}},
	} {
		message := input.message()
		in := marshal(b, message)
		b.Run(input.name+"/batch", func(b *testing.B) {
			options := all
			options.MaxBytes = splitBytes
			var sizes []int
			samples := 0
			for _, part := range parts(batchOf(options, message)) {
				sizes = append(sizes, len(marshal(b, part.Profiles)))
				samples += part.SampleCount
			}
			measured(b, func() pprofile.Profiles { return clone(message) }, func(pd pprofile.Profiles) {
				for range batchOf(options, pd).Parts() {
					continue
				}
			})
			reportParts(b, sizes, len(in))
			unsplit := whole(b, batchOf(all, message))
			b.ReportMetric(sum(sizes)/float64(len(marshal(b, unsplit))), "parts/unsplit")
			b.ReportMetric(float64(unsplit.SampleCount()-samples), "lost-samples")
		})
		b.Run(input.name+"/exporterhelper", func(b *testing.B) {
			var sizes []int
			lost := 0
			measured(b, func() pprofile.Profiles { return clone(message) }, func(pd pprofile.Profiles) {
				sizes, lost = throughExporterHelper(b, pd)
			})
			reportParts(b, sizes, len(in))
			b.ReportMetric(float64(lost), "lost-samples")
		})
	}
}

func sum(sizes []int) (total float64) {
	for _, size := range sizes {
		total += float64(size)
	}
	return total
}

func reportParts(b *testing.B, sizes []int, in int) {
	smallest, largest := 0, 0
	for i, size := range sizes {
		if i == 0 || size < smallest {
			smallest = size
		}
		largest = max(largest, size)
	}
	b.ReportMetric(float64(in), "in-B")
	b.ReportMetric(float64(len(sizes)), "parts")
	b.ReportMetric(float64(smallest), "smallest-B")
	b.ReportMetric(float64(largest), "largest-B")
	b.ReportMetric(sum(sizes)/float64(in), "parts/in")
}

// throughExporterHelper returns the encoded sizes of what an exporter with a batcher of the same limit sends, and the
// number of samples that it does not.
func throughExporterHelper(b *testing.B, pd pprofile.Profiles) (sizes []int, lost int) {
	var mu sync.Mutex
	lost = pd.SampleCount()
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer = exporterhelper.RequestSizerTypeBytes
	queue.QueueSize = 1 << 40
	queue.WaitForResult = true
	queue.Batch = configoptional.Some(exporterhelper.BatchConfig{
		FlushTimeout: time.Millisecond, Sizer: exporterhelper.RequestSizerTypeBytes, MinSize: 1, MaxSize: splitBytes,
	})
	set := exporter.Settings{ID: component.MustNewID("otlp"), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	push := func(_ context.Context, part pprofile.Profiles) error {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(marshal(b, part)))
		lost -= part.SampleCount()
		return nil
	}
	e, err := xexporterhelper.NewProfiles(b.Context(), set, &struct{}{}, push, exporterhelper.WithQueue(configoptional.Some(queue)))
	require.NoError(b, err)
	require.NoError(b, e.Start(b.Context(), componenttest.NewNopHost()))
	// It drops a profile that is larger than the limit, and reports that.
	_ = e.ConsumeProfiles(b.Context(), pd)
	require.NoError(b, e.Shutdown(context.Background()))
	return sizes, lost
}

// labelled is the stacks of a real CPU profile, each seen under most of so many sets of labels.
func labelled(t testing.TB, sets int) pprofile.Profiles {
	pd := fromPprof(t, "go-build-merged-cpu-large.pb.gz")
	dict := pd.Dictionary()
	key := dict.StringTable().Len()
	dict.StringTable().Append("endpoint")
	first := dict.AttributeTable().Len()
	for i := range sets {
		a := dict.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(key))
		a.Value().SetStr(fmt.Sprintf("/api/v1/resource/%d", i))
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	eachProfile(pd, func(p pprofile.Profile) {
		samples := pprofile.NewSampleSlice()
		for _, s := range p.Samples().All() {
			for i := range sets {
				if rnd.IntN(100) < 90 {
					to := samples.AppendEmpty()
					s.CopyTo(to)
					to.AttributeIndices().Append(int32(first + i))
					to.Values().SetAt(0, s.Values().At(0)*int64(1+rnd.IntN(9)))
				}
			}
		}
		samples.CopyTo(p.Samples())
	})
	return pd
}

// twoHeaps is the heap of the Go compiler, all allocations, of two services.
func twoHeaps(t testing.TB) pprofile.Profiles {
	pd := fromPprof(t, hugeHeap+".pb.gz")
	second := pd.ResourceProfiles().AppendEmpty()
	pd.ResourceProfiles().At(0).CopyTo(second)
	second.Resource().Attributes().PutStr("service.name", "second")
	return pd
}
