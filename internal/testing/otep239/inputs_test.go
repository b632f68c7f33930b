// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otep239

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pprofdecode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
)

// input is a profile, parsed and as a pprof without compression.
type input struct {
	name    string
	profile *pprofProfile
	payload []byte
	isTimed bool
}

// shape is what a stand-in is generated from. The OTEP published sizes and numbers of objects, not the profiles: these numbers
// were chosen so that the pprof of the stand-in is close to those.
type shape struct {
	name                                   string
	samples, locations, functions, strings int
	// depth is that of new stacks, in the mean; of each, newFrames at the leaf's end are its own in the mean, and the rest
	// is that of an earlier stack.
	depth, newFrames int
	// ancestors is the part of samples whose stack is the outer part of an earlier one, repeated that of whole earlier ones.
	ancestors, repeated float64
	nameBytes           int
	types               int
	// labelSets is the number of sets, labelled the part of samples that have one.
	labelSets int
	labelled  float64
	// idle is the value of one short stack; those of the others are 1. Without it they are from 1 to 3.
	idle int64
	// skew is how much more often the first locations occur than the last ones: 1 is all alike.
	skew float64
}

var shapes = []shape{
	{
		name: "average", samples: 60, locations: 135, functions: 86, strings: 18, depth: 12, newFrames: 6, nameBytes: 24, types: 2, idle: 51, skew: 1,
	},
	{
		name: "ruby", samples: 12_500, locations: 300, functions: 100, strings: 40, depth: 110, newFrames: 3, ancestors: 0.62, repeated: 0.1,
		nameBytes: 42, types: 1, skew: 0.6,
	},
	{
		name: "large", samples: 53_500, locations: 52_000, functions: 7_000, strings: 900, depth: 10, newFrames: 2, ancestors: 0.2, repeated: 0.3,
		nameBytes: 36, types: 2, labelSets: 26, labelled: 0.7, skew: 8,
	},
}

// generate makes a stand-in. It is the same each time.
func (s *shape) generate() *pprofProfile {
	random := rand.New(rand.NewPCG(239, uint64(s.samples)))
	p := &pprofProfile{StringTable: []string{""}}
	text := func(format string, args ...any) int64 {
		p.StringTable = append(p.StringTable, fmt.Sprintf(format, args...))
		return int64(len(p.StringTable) - 1)
	}
	for _, t := range [][2]string{{"samples", "count"}, {"cpu", "nanoseconds"}}[2-s.types:] {
		p.SampleType = append(p.SampleType, &pprofValueType{text("%s", t[0]), text("%s", t[1])})
	}
	p.Mapping = []*pprofMapping{{ID: 1, Start: 0x400000, Limit: 0x900000, Filename: text("/usr/bin/program"), HasFunctions: true}}
	var files []int64
	for i := range s.strings {
		files = append(files, text("/home/build/src/%s/file%d.go", s.word(random, i), i))
	}
	for i := range s.functions {
		name := text("%s.Function%d", s.word(random, i), i)
		p.Function = append(p.Function, &pprofFunction{ID: uint64(i + 1), Name: name, SystemName: name, Filename: files[random.IntN(len(files))]})
	}
	for i := range s.locations {
		p.Location = append(p.Location, &pprofLocation{
			ID: uint64(i + 1), MappingID: 1, Address: 0x400000 + uint64(90*i+random.IntN(90)),
			Line: []*pprofLine{{FunctionID: uint64(i%s.functions + 1), Line: int64(1 + random.IntN(900))}},
		})
	}
	s.generateSamples(random, p, text)
	return p
}

// words are what names consist of, so that they compress as names do.
var words = strings.Fields("request handler service database connection internal context encoder parser controller middleware active record template")

func (s *shape) word(random *rand.Rand, i int) string {
	var b strings.Builder
	for b.Len() < s.nameBytes-12 {
		b.WriteString(words[random.IntN(len(words))])
		b.WriteByte('/')
	}
	return fmt.Sprintf("%s%x", b.String(), i%97)
}

func (s *shape) generateSamples(random *rand.Rand, p *pprofProfile, text func(string, ...any) int64) {
	key := int64(0)
	var values []int64
	if s.labelSets > 0 {
		key = text("endpoint")
	}
	for i := range s.labelSets {
		values = append(values, text("/api/v1/endpoint/%d", i))
	}
	next := 0
	var stacks [][]uint64
	for range s.samples {
		var stack []uint64
		switch draw := random.Float64(); {
		case len(stacks) > 0 && draw < s.repeated:
			stack = recent(random, stacks)
		case len(stacks) > 0 && draw < s.repeated+s.ancestors:
			whole := recent(random, stacks)
			stack = whole[random.IntN(len(whole)):]
		default:
			depth := 1 + s.depth/2 + random.IntN(s.depth)
			own := min(depth, 1+random.IntN(2*s.newFrames))
			for range own {
				id := s.location(random)
				if next < s.locations { // each location at least once
					next++
					id = uint64(next)
				}
				stack = append(stack, id)
			}
			if len(stacks) > 0 {
				outer := recent(random, stacks)
				stack = append(stack, outer[max(0, len(outer)-(depth-own)):]...)
			}
			for len(stack) < depth {
				stack = append(stack, s.location(random))
			}
			stacks = append(stacks, stack)
		}
		value := 1 + random.Int64N(3)
		if s.idle > 0 {
			value = 1
			if len(p.Sample) == 0 {
				stack, value = stack[len(stack)-3:], s.idle
			}
		}
		sample := &pprofSample{LocationID: stack, Value: []int64{value, value * 10_000_000}[2-s.types:]}
		if s.labelSets > 0 && random.Float64() < s.labelled {
			sample.Label = []*pprofLabel{{Key: key, Str: values[random.IntN(len(values))]}}
		}
		p.Sample = append(p.Sample, sample)
	}
}

// location draws the id of a location.
func (s *shape) location(random *rand.Rand) uint64 {
	return uint64(float64(s.locations)*math.Pow(random.Float64(), s.skew)) + 1
}

// recent draws one of the last stacks: profilers write neighbours of the tree of calls one behind the other.
func recent(random *rand.Rand, stacks [][]uint64) []uint64 {
	return stacks[len(stacks)-1-random.IntN(min(len(stacks), 40))]
}

// timed is a profile with a sample for each unit of the first type, each with a timestamp: Unix seconds, as the OTEP's code has
// it.
func timed(p *pprofProfile) *pprofProfile {
	out := *p
	out.StringTable = append(slices.Clone(p.StringTable), timestampLabel)
	out.Sample = nil
	const at = 1_697_700_000
	for _, s := range p.Sample {
		for range s.Value[0] {
			value := []int64{1, 10_000_000}[:len(s.Value)]
			out.Sample = append(out.Sample, &pprofSample{LocationID: s.LocationID, Value: value, Label: append(slices.Clone(s.Label),
				&pprofLabel{Key: int64(len(out.StringTable) - 1), Num: at})})
		}
	}
	return &out
}

// oneType keeps only the last sample type.
func oneType(p *pprofProfile) *pprofProfile {
	out := *p
	out.SampleType = p.SampleType[len(p.SampleType)-1:]
	out.Sample = mapAll(p.Sample, func(s *pprofSample) *pprofSample {
		return &pprofSample{LocationID: s.LocationID, Value: s.Value[len(s.Value)-1:], Label: s.Label}
	})
	return &out
}

func newInput(name string, p *pprofProfile) input {
	return input{name, p, marshal(p), slices.Contains(p.StringTable, timestampLabel)}
}

// inputs are the stand-ins and captures.
func inputs(tb testing.TB) []input {
	var all []input
	for _, s := range shapes {
		p := s.generate()
		all = append(all, newInput(s.name, p))
		if s.name == "average" {
			all = append(all, newInput("averageTimestamps", timed(p)))
		}
	}
	for _, name := range []string{"go-cpu-labels", "go-heap", "node-datadog-wall-cpu", "go-build-merged-cpu-large"} {
		all = append(all, captured(tb, name, filepath.Join("../../../testdata/pprof", name+".pb.gz")))
	}
	if path := os.Getenv("OTEP239_PROFILE"); path != "" { // one of the OTEP's own, for those who have it
		all = append([]input{captured(tb, "own", path)}, all...)
	}
	return all
}

func captured(tb testing.TB, name, path string) input {
	data, err := os.ReadFile(path)
	require.NoError(tb, err)
	plain, err := pprofdecode.Uncompress(data, 1<<30, nil)
	require.NoError(tb, err)
	p := &pprofProfile{}
	unmarshal(plain, reflect.ValueOf(p).Elem())
	renumber(p)
	return newInput(name, p)
}

// renumber makes ids positions, counted from 1.
func renumber(p *pprofProfile) {
	mappings, functions, locations := map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]uint64{}
	for i, m := range p.Mapping {
		mappings[m.ID], m.ID = uint64(i+1), uint64(i+1)
	}
	for i, f := range p.Function {
		functions[f.ID], f.ID = uint64(i+1), uint64(i+1)
	}
	for i, l := range p.Location {
		locations[l.ID], l.ID = uint64(i+1), uint64(i+1)
		l.MappingID = mappings[l.MappingID]
		for _, line := range l.Line {
			line.FunctionID = functions[line.FunctionID]
		}
	}
	for _, s := range p.Sample {
		for i, id := range s.LocationID {
			s.LocationID[i] = locations[id]
		}
	}
}
