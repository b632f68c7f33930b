// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// cpuTime is the CPU time of the process, including the garbage collector.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measured runs f on fresh input, whose making is not measured, nor the collection of what making it has left behind, and
// reports CPU time in addition to wall-clock time.
func measured[T any](b *testing.B, fresh func() T, f func(T)) {
	b.ReportAllocs()
	cpu := time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		input := fresh()
		runtime.GC()
		b.StartTimer()
		before := cpuTime(b)
		f(input)
		cpu += cpuTime(b) - before
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

// BenchmarkNth adds one message to a batch that has some already: the cost of the last beside that of the second. What
// is measured is eight messages, since the tables of a growing batch double now and then.
func BenchmarkNth(b *testing.B) {
	for _, o := range []overlap{same, half, disjoint} {
		messages := generated(b, 128, o)
		for _, first := range []int{1, 120} {
			b.Run(fmt.Sprint(o, "/", first+1, "-", first+8), func(b *testing.B) {
				var batch Batch
				fresh := func() []pprofile.Profiles {
					batch.Reset(all)
					for _, pd := range messages[:first] {
						batch.Add(pd)
					}
					return cloneAll(messages[first : first+8])
				}
				measured(b, fresh, func(messages []pprofile.Profiles) {
					for _, pd := range messages {
						batch.Consume(pd)
					}
				})
			})
		}
	}
}

// BenchmarkAlone compacts one request. The yardstick is what pdata's unmarshaller spends on its bytes, the collection of
// the garbage that it makes included, so what is set beside it is unmarshalling alone and unmarshalling with compacting:
// the difference is what compacting costs in all, garbage included.
func BenchmarkAlone(b *testing.B) {
	inputs := captured(b)
	inputs["generated"] = generated(b, 1, same)[0]
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		wire := marshal(b, inputs[name])
		var c consumer
		run := func(name string, f func()) {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				runtime.GC()
				before := cpuTime(b)
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
		messages := make([]pprofile.Profiles, 1)
		run(name+"/unmarshal", func() { messages[0] = unmarshal(b, wire) })
		run(name+"/unmarshal+compact", func() {
			messages[0] = unmarshal(b, wire)
			c.run(messages)
		})
	}
}
