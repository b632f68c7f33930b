// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// BenchmarkBytes reports encoded sizes: of the result of a chain of pdata's MergeTo, and of a batch of the same inputs.
// Its times mean nothing.
func BenchmarkBytes(b *testing.B) {
	for _, input := range benchInputs(b) {
		b.Run(input.name, func(b *testing.B) {
			merged := profiletest.Marshal(b, mergeChain(b, cloneAll(input.messages)))
			ours := profiletest.Marshal(b, whole(b, batchOf(all, input.messages...)))
			for b.Loop() {
				continue
			}
			report := func(name string, of func([]byte) []byte) {
				theirs, own := len(of(merged)), len(of(ours))
				b.ReportMetric(float64(theirs), "MergeTo-"+name)
				b.ReportMetric(float64(own), name)
				b.ReportMetric(float64(own)/float64(theirs), name+"/MergeTo")
			}
			report("plain-B", func(wire []byte) []byte { return wire })
			report("gzip-B", profiletest.Gzip)
			report("zstd-B", worst.Zstd)
		})
	}
}

// BenchmarkPprofBytes compares the size of compacted profiles with that of their pprof, both uncompressed.
func BenchmarkPprofBytes(b *testing.B) {
	messages := captured(b)
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		b.Run(name, func(b *testing.B) {
			payload := profiletest.FileBytes(b, filepath.Join(testdata, name+".pb.gz"))
			plain := len(profiletest.Gunzip(b, payload))
			ours := len(profiletest.Marshal(b, whole(b, batchOf(all, messages[name]))))
			for b.Loop() {
				continue
			}
			b.ReportMetric(float64(plain), "pprof-B")
			b.ReportMetric(float64(ours), "OTLP-B")
			b.ReportMetric(float64(ours)/float64(plain), "OTLP/pprof")
			b.ReportMetric(float64(messages[name].ProfileCount()), "sample-types")
		})
	}
}

type benchInput struct {
	name     string
	messages []pprofile.Profiles
}

// benchInputs are 128 messages of each overlap, and of the captured payloads.
func benchInputs(b *testing.B) []benchInput {
	inputs := []benchInput{
		{"same", generated(b, 128, same)}, {"half", generated(b, 128, half)}, {"disjoint", generated(b, 128, disjoint)},
	}
	return append(inputs, benchInput{"captured", capturedMessages(b)})
}

// capturedMessages are 128 messages of the captured payloads in turn, the two largest once only.
func capturedMessages(b *testing.B) []pprofile.Profiles {
	payloads := captured(b)
	names := slices.Sorted(maps.Keys(payloads))
	var messages []pprofile.Profiles
	for i := 0; len(messages) < 128; i++ {
		name := names[i%len(names)]
		if i >= len(names) && strings.HasPrefix(name, "go-compile-") {
			continue
		}
		messages = append(messages, payloads[name])
	}
	return messages
}

func cloneAll(messages []pprofile.Profiles) []pprofile.Profiles {
	copies := make([]pprofile.Profiles, len(messages))
	for i, pd := range messages {
		copies[i] = profiletest.Clone(pd)
	}
	return copies
}

// mergeChain is the peer: pdata's own way, one message after the other into the first.
func mergeChain(t testing.TB, messages []pprofile.Profiles) pprofile.Profiles {
	for _, pd := range messages[1:] {
		require.NoError(t, pd.MergeTo(messages[0]))
	}
	return messages[0]
}

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
