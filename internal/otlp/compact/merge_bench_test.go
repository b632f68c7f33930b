// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// measured runs f on fresh input, whose making is not measured, nor the collection of what making it has left behind,
// and reports CPU time in addition to wall-clock time.
func measured[T any](b *testing.B, fresh func() T, f func(T)) {
	b.ReportAllocs()
	cpu := time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		input := fresh()
		runtime.GC()
		b.StartTimer()
		before := profiletest.ProcessCPU()
		f(input)
		cpu += profiletest.ProcessCPU() - before
	}
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
}

// consumer adds messages to a batch that it reuses, as the processor does.
type consumer struct{ batch Batch }

func (c *consumer) run(messages []pprofile.Profiles) {
	c.batch.Reset(all)
	for _, pd := range messages {
		c.batch.Consume(pd)
	}
	for range c.batch.Parts() {
		continue
	}
}

// BenchmarkMerge merges messages into one. The peer is a chain of pdata's MergeTo.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{2, 128} {
		inputs := []benchInput{
			{"same", generated(b, n, same)}, {"half", generated(b, n, half)}, {"disjoint", generated(b, n, disjoint)},
		}
		if n == 128 {
			inputs = append(inputs, benchInput{"captured", capturedMessages(b)})
		}
		for _, input := range inputs {
			fresh := func() []pprofile.Profiles { return cloneAll(input.messages) }
			var c consumer
			b.Run(fmt.Sprint(n, "/", input.name, "/batch"), func(b *testing.B) { measured(b, fresh, c.run) })
			b.Run(fmt.Sprint(n, "/", input.name, "/MergeTo"), func(b *testing.B) {
				measured(b, fresh, func(messages []pprofile.Profiles) { mergeChain(b, messages) })
			})
		}
	}
}
