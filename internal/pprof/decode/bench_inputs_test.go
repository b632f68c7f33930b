// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

const testdata = "../../../testdata/pprof"

// benchInputs returns gzip pprof payloads of the shapes that a collector receives: captured ones, and
// generated ones for shapes of which there is no capture.
func benchInputs(b *testing.B) []benchInput {
	file := func(name string) []byte {
		payload, err := os.ReadFile(filepath.Join(testdata, name))
		require.NoError(b, err)
		return payload
	}
	return []benchInput{
		{"small-cpu", file("node-datadog-wall-cpu.pb.gz")},
		{"labelled-cpu", file("go-cpu-labels.pb.gz")},
		{"heap-4-types", file("go-heap.pb.gz")},
		{"large-cpu", file("go-build-merged-cpu-large.pb.gz")},
		{"cpp-like-large", compress(b, cppLike())},
		{"huge-heap", file("go-compile-nethttp-heap-huge.pb.gz")},
		{"163-label-sets", compress(b, manyLabelSets())},
		{"deep-ruby-like", compress(b, rubyLike())},
	}
}

type benchInput struct {
	name    string
	payload []byte
}

func compress(b *testing.B, p *profile.Profile) []byte {
	// Compact numbers locations and functions as the samples reach them, as producers do.
	p = p.Compact()
	require.NoError(b, p.CheckValid())
	var out bytes.Buffer
	require.NoError(b, p.Write(&out))
	return out.Bytes()
}

// program returns a profile with functions and locations: each function has perFunction
// locations of inlined+1 lines.
func program(rnd *rand.Rand, types []*profile.ValueType, functions, perFunction, inlined int) *profile.Profile {
	p := &profile.Profile{SampleType: types, PeriodType: types[len(types)-1], Period: 10_000_000,
		TimeNanos: 1_700_000_000_000_000_000, DurationNanos: 10_000_000_000}
	p.Mapping = []*profile.Mapping{{ID: 1, Start: 0x400000, Limit: 0x9000000, File: "/usr/bin/server",
		BuildID: "5bc3f1b2a0e94c6d8f7e6d5c4b3a29180f1e2d3c", HasFunctions: true}}
	for i := range functions {
		p.Function = append(p.Function, &profile.Function{
			ID: uint64(i + 1),
			Name: fmt.Sprintf("company::product::module%d::Class%d<std::string, int>::method%d(std::vector<int> const&)",
				i%97, i%1009, i),
			SystemName: fmt.Sprintf("_ZN7company7product8module%d5Class%dI3strE6method%dEv", i%97, i%1009, i),
			Filename:   fmt.Sprintf("src/company/product/module%d/class%d.cc", i%97, i%1009),
			StartLine:  int64(10 + i%500),
		})
	}
	for i := range functions * perFunction {
		l := &profile.Location{ID: uint64(i + 1), Mapping: p.Mapping[0], Address: 0x400000 + uint64(i)*37}
		for k := range inlined + 1 {
			f := p.Function[(i/perFunction+k*31)%functions]
			l.Line = append(l.Line, profile.Line{Function: f, Line: f.StartLine + int64(rnd.IntN(80))})
		}
		p.Location = append(p.Location, l)
	}
	return p
}

func addSamples(rnd *rand.Rand, p *profile.Profile, n, depth int, labels func(i int) map[string][]string) {
	// Stacks share their roots, as those of a program do: each begins with a part of the one before.
	var stack []*profile.Location
	for i := range n {
		keep := min(rnd.IntN(depth), len(stack))
		next := make([]*profile.Location, depth/2+rnd.IntN(depth/2+1))
		for k := range next {
			if at := len(next) - 1 - k; at < keep {
				next[k] = stack[len(stack)-1-at]
			} else {
				next[k] = p.Location[rnd.IntN(len(p.Location))]
			}
		}
		stack = next
		s := &profile.Sample{Location: next, Label: labels(i)}
		count := int64(1 + rnd.IntN(100))
		for range p.SampleType {
			s.Value = append(s.Value, count)
			count *= 10_000_000
		}
		p.Sample = append(p.Sample, s)
	}
}

func cpuTypes() []*profile.ValueType {
	return []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}
}

func noLabels(int) map[string][]string { return nil }

// cppLike has many long names and inlined lines.
func cppLike() *profile.Profile {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := program(rnd, cpuTypes(), 12_000, 3, 2)
	addSamples(rnd, p, 20_000, 30, noLabels)
	return p
}

// manyLabelSets is about 17 MB uncompressed: 163 sets of labels in the same program.
func manyLabelSets() *profile.Profile {
	rnd := rand.New(rand.NewPCG(3, 4))
	p := program(rnd, cpuTypes()[1:], 20_000, 2, 0)
	addSamples(rnd, p, 125_000, 50, func(i int) map[string][]string {
		set := i % 163
		return map[string][]string{
			"endpoint": {fmt.Sprintf("/api/v1/resource/%d", set)},
			"tenant":   {fmt.Sprintf("tenant-%d", set%40)},
			"thread":   {fmt.Sprintf("worker-%d", set%8)},
		}
	})
	return p
}

// rubyLike has stacks of hundreds of frames.
func rubyLike() *profile.Profile {
	rnd := rand.New(rand.NewPCG(5, 6))
	p := program(rnd, cpuTypes()[1:], 3_000, 4, 0)
	addSamples(rnd, p, 5_000, 600, noLabels)
	return p
}
