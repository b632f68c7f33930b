// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otep239

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	pprofdecode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// flavour is a representation: convert makes it of an input, marshal bytes of that.
type flavour struct {
	name    string
	convert func(in *input) any
	marshal func(any) []byte
}

// of is a representation of the OTEP's, made from a parsed pprof.
func of(name string, convert func(*pprofProfile) *wrapper) flavour {
	return flavour{name, func(in *input) any { return convert(in.profile) }, marshal}
}

// Ours are made from the pprof's bytes, so that parsing is part of what they cost.
var flavours = []flavour{
	of("pprof", toPprof),
	of("denormalized", toDenormalized),
	of("normalized", toNormalized),
	of("arrays", toArrays),
	of("pprofextended", toExtended),
	{"otlp", func(in *input) any { return decode(in) }, marshalOTLP},
	{"otlp_dedup", func(in *input) any { return dedup(decode(in)) }, marshalOTLP},
}

// decode reads the pprof as the receiver does.
func decode(in *input) pprofile.Profiles {
	if in.isTimed {
		return decodeTimed(in)
	}
	pd, _, err := pprofdecode.Decode(in.payload, pprofdecode.Options{})
	if err != nil {
		panic(err)
	}
	return pd
}

// decodeTimed makes timestamps of the label that the benchmark's inputs have them in. Samples of one stack become one.
func decodeTimed(in *input) pprofile.Profiles {
	var a compact.Assembler
	a.Reset()
	dict := a.Dictionary()
	scope := a.Scope(a.Resource(pcommon.NewResource(), ""), pcommon.NewInstrumentationScope(), "")
	var profiles []compact.ProfileIndex
	for _, t := range in.profile.SampleType {
		profiles = append(profiles, a.Profile(scope, compact.Shape{Timestamps: true, Values: true}, compact.Header{
			SampleType: compact.ValueType{
				Type: dict.Strings.Intern(in.profile.StringTable[t.Type]), Unit: dict.Strings.Intern(in.profile.StringTable[t.Unit]),
			},
		}))
	}
	_, err := pprofdecode.Read(in.payload, dict, scan.DefaultLimits(), "", nil, func(s pprofdecode.Sample) {
		for i, p := range profiles {
			a.Observe(p, compact.Identity{Stack: s.Stack}, compact.Observation{Timestamp: uint64(s.Labels[0].Labels[0].Num) * 1e9, Value: s.Values[i]})
		}
	})
	if err != nil {
		panic(err)
	}
	dict.DetachStrings()
	return a.Build()
}

func dedup(pd pprofile.Profiles) pprofile.Profiles {
	var batch compact.Batch
	batch.Reset(compact.Options{OrderByFrequency: true, CombineSamples: true})
	batch.Consume(pd)
	for part := range batch.Parts() {
		return part.Profiles
	}
	panic("nothing is left")
}

func marshalOTLP(v any) []byte {
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(v.(pprofile.Profiles))
	if err != nil {
		panic(err)
	}
	return b
}

// row is the OTEP's columns. The last two of them twice: whole is as the OTEP measured, the collections of garbage,
// marshalling and gzip included; conversion is without those.
type row struct {
	bytes, gzipped, retained, labelSets int
	whole, conversion                   allocated
}

type allocated struct{ bytes, objects uint64 }

func allocatedBy(run func()) allocated {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return allocated{after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs}
}

// retained returns how many objects the result of convert is.
func retained(convert func() any) (int, any) {
	var before, after runtime.MemStats
	collect()
	runtime.ReadMemStats(&before)
	kept := convert()
	collect()
	runtime.ReadMemStats(&after)
	return int(after.HeapObjects) - int(before.HeapObjects), kept
}

func collect() {
	for range 3 {
		runtime.GC()
	}
}

func measure(in *input, f *flavour) (r row) {
	f.convert(in) // once, for the memory that is kept between runs
	r.labelSets = labelSets(in.profile)
	r.whole = allocatedBy(func() {
		var kept any
		r.retained, kept = retained(func() any { return f.convert(in) })
		message := f.marshal(kept)
		r.bytes, r.gzipped = len(message), gzippedBytes(message)
		runtime.KeepAlive(kept)
	})
	r.conversion = allocatedBy(func() { runtime.KeepAlive(f.convert(in)) })
	return r
}

func gzippedBytes(b []byte) int {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Len()
}

func labelSets(p *pprofProfile) int {
	sets := map[string]bool{}
	for _, s := range p.Sample {
		key := ""
		others, _ := labels(p, s)
		for _, a := range others {
			key += a.Key + *a.Value.Text
		}
		sets[key] = true
	}
	return len(sets)
}

// BenchmarkOTEP239 reports the columns, and writes them as tables to bin/otep-239.md.
func BenchmarkOTEP239(b *testing.B) {
	var report strings.Builder
	for _, in := range inputs(b) {
		for _, types := range []string{"all", "one"} {
			if types == "one" {
				if len(in.profile.SampleType) == 1 {
					continue
				}
				in = newInput(in.name, oneType(in.profile))
			}
			fmt.Fprintf(&report, "\n%s, %d samples, sample types: %d\n\n", in.name, len(in.profile.Sample), len(in.profile.SampleType))
			report.WriteString("|name|bytes|gzipped_bytes|retained_objects|unique_label_sets|bytes_allocated|allocs|conversion only: bytes_allocated|allocs|\n|---|---|---|---|---|---|---|---|---|\n")
			for _, f := range flavours {
				b.Run(fmt.Sprintf("profile=%s/types=%s/impl=%s", in.name, types, f.name), func(b *testing.B) {
					var r row
					for b.Loop() {
						r = measure(&in, &f)
					}
					b.ReportMetric(float64(r.bytes), "bytes")
					b.ReportMetric(float64(r.gzipped), "gzipped_bytes")
					b.ReportMetric(float64(r.retained), "retained_objects")
					b.ReportMetric(float64(r.labelSets), "unique_label_sets")
					b.ReportMetric(float64(r.whole.bytes), "bytes_allocated")
					b.ReportMetric(float64(r.whole.objects), "allocs")
					b.ReportMetric(float64(r.conversion.bytes), "conversion_bytes")
					b.ReportMetric(float64(r.conversion.objects), "conversion_allocs")
					results[b.Name()] = r
				})
				if r, ok := results[fmt.Sprintf("%s/profile=%s/types=%s/impl=%s", b.Name(), in.name, types, f.name)]; ok {
					fmt.Fprintf(&report, "|%s|%s|%s|%s|%d|%s|%s|%s|%s|\n", f.name, thousands(r.bytes), thousands(r.gzipped), thousands(r.retained), r.labelSets,
						thousands(int(r.whole.bytes)), thousands(int(r.whole.objects)), thousands(int(r.conversion.bytes)), thousands(int(r.conversion.objects)))
				}
			}
		}
	}
	if len(results) > 0 {
		_ = os.MkdirAll("../../../bin", 0o755)
		require.NoError(b, os.WriteFile("../../../bin/otep-239.md", []byte(report.String()), 0o644))
	}
}

// results are the rows by the benchmark's name, without the suffix for the number of processors.
var results = map[string]row{}

// thousands writes n as the OTEP does: 1,234,567.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestSameContent checks that every representation holds what the pprof holds, as far as the OTEP's do: their
// sizes are for nothing else.
func TestSameContent(t *testing.T) {
	for _, in := range inputs(t)[:2] {
		samples := len(in.profile.Sample)
		require.Len(t, toPprof(in.profile).Resources[0].Scopes[0].Profiles[0].Pprof.Sample, samples)
		require.Len(t, toDenormalized(in.profile).Resources[0].Scopes[0].Profiles[0].Denormalized.Samples, samples)
		require.Len(t, toNormalized(in.profile).Resources[0].Scopes[0].Profiles[0].Normalized.Samples, samples)
		require.Len(t, toArrays(in.profile).Resources[0].Scopes[0].Profiles[0].Arrays.ProfileTypes[0].Values, samples)
		extended := toExtended(in.profile).Resources[0].Scopes[0].Profiles[0].Extended
		stacks := map[string]int{}
		for _, s := range in.profile.Sample {
			stacks[fmt.Sprint(s.LocationID)]++
		}
		for _, s := range extended.Sample {
			stacks[fmt.Sprint(extended.LocationIndices[s.Start:s.Start+s.Length])]--
		}
		for stack, n := range stacks {
			require.Zero(t, n, stack)
		}
	}
}
