// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/metadata"
)

// hostMessage is as large as the profiler's: stacks of 20 frames, each with its type, five attributes or more on a
// sample.
func hostMessage(processes, samples int) pprofile.Profiles {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := profiletest.New().Resource("container.id", "").Scope("go.opentelemetry.io/ebpf-profiler", "v0.0.202606").
		Profile("samples", "count").Time(1_000, 5_000_000_000).Period(50_000_000, "cpu", "nanoseconds")
	for i := range samples {
		pid := 1 + rnd.IntN(processes)
		functions := make([]string, 20)
		for k := range functions {
			functions[k] = fmt.Sprintf("program%d/package.function%d", pid%40, rnd.IntN(1+k*k)+100*k)
		}
		s := profiletest.Observed([]uint64{1_000 + uint64(i)}, functions...)
		for k := range s.Stack {
			s.Stack[k].Attributes = []profiletest.Attribute{profiletest.Attr("profile.frame.type", "go")}
		}
		b.Sample(s.With(process(pid, fmt.Sprint("/usr/bin/program", pid%40),
			profiletest.Attr("cpu.logical_number", int64(i%4)))...))
	}
	return b.Build()
}

// BenchmarkMessage compares the processor with what dictionary_dedup does to the same message.
func BenchmarkMessage(b *testing.B) {
	for _, size := range []struct{ processes, samples int }{{20, 200}, {100, 2_000}, {400, 8_000}} {
		pd := hostMessage(size.processes, size.samples)
		run := func(impl string, do func(pprofile.Profiles)) {
			b.Run(fmt.Sprintf("processes=%d/samples=%d/impl=%s", size.processes, size.samples, impl), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64((&pprofile.ProtoMarshaler{}).ProfilesSize(pd)))
				cpu := time.Duration(0) // the clock also shows what else the machine does
				for range b.N {
					b.StopTimer()
					own := profiletest.Clone(pd)
					b.StartTimer()
					began := profiletest.ProcessCPU()
					do(own)
					cpu += profiletest.ProcessCPU() - began
				}
				b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*size.samples), "cpu-ns/sample")
			})
		}
		config := createDefaultConfig().(*Config)
		p, err := NewFactory().(xprocessor.Factory).CreateProfiles(b.Context(), processortest.NewNopSettings(metadata.Type),
			config, consumertest.NewNop())
		require.NoError(b, err)
		run("process_resource", func(pd pprofile.Profiles) { require.NoError(b, p.ConsumeProfiles(b.Context(), pd)) })
		var batch compact.Batch
		run("dictionary_dedup", func(pd pprofile.Profiles) {
			batch.Reset(compact.Options{MaxBytes: 4_000_000, MaxGrowth: 2, OrderByFrequency: true, CombineSamples: true})
			batch.Consume(pd)
			for range batch.Parts() {
				continue
			}
		})
		require.NoError(b, p.Shutdown(context.Background()))
	}
}
