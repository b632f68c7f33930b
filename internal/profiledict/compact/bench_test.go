package compact

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

func BenchmarkQuick(b *testing.B) {
	for _, o := range []overlap{same, half, disjoint} {
		msgs := generated(b, 16, o)
		wire := marshal(b, msgs[0])
		b.Logf("%s: %d bytes %d samples %d stacks", o, len(wire), msgs[0].SampleCount(), msgs[0].Dictionary().StackTable().Len())
		b.Run(fmt.Sprint(o, "/ours16"), func(b *testing.B) {
			for b.Loop() {
				whole(b, batchOf(all, msgs...))
			}
		})
		b.Run(fmt.Sprint(o, "/ours2"), func(b *testing.B) {
			var x Batch
			for b.Loop() {
				x.Reset(all)
				x.Add(msgs[0])
				x.Add(msgs[1])
				for p := range x.Parts() {
					_ = p
				}
			}
		})
		copies := func(n int) []pprofile.Profiles {
			var c []pprofile.Profiles
			for _, m := range msgs[:n] {
				c = append(c, clone(m))
			}
			return c
		}
		for _, n := range []int{2, 16} {
			b.Run(fmt.Sprint(o, "/merge", n), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					c := copies(n)
					b.StartTimer()
					for _, m := range c[1:] {
						if err := m.MergeTo(c[0]); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
	for name, pd := range map[string]pprofile.Profiles{"gen": generated(b, 1, same)[0], "large": fromPprof(b, "go-build-merged-cpu-large.pb.gz"), "labels": fromPprof(b, "go-cpu-labels.pb.gz"), "heap": fromPprof(b, "go-heap.pb.gz"), "hl": fromPprof(b, "go-compile-nethttp-heap-large.pb.gz")} {
		wire := marshal(b, pd)
		pd = unmarshal(b, wire)
		b.Run(name+"/alone", func(b *testing.B) {
			b.ReportAllocs()
			var x Batch
			for b.Loop() {
				x.Reset(all)
				x.Add(pd)
				for p := range x.Parts() {
					_ = p
				}
			}
		})
		b.Run(name+"/consume", func(b *testing.B) {
			b.ReportAllocs()
			var x Batch
			for b.Loop() {
				b.StopTimer()
				pd := clone(pd)
				b.StartTimer()
				x.Reset(all)
				x.Consume(pd)
				for p := range x.Parts() {
					_ = p
				}
			}
		})
		b.Run(name+"/unmarshal", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				unmarshal(b, wire)
			}
		})
		b.Run(name+"/copy", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clone(pd)
			}
		})
	}
}
