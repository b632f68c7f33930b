// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// overlap is what the dictionaries of generated messages share.
type overlap int

const (
	same overlap = iota
	half
	disjoint
)

func (o overlap) String() string { return [...]string{"same", "half", "disjoint"}[o] }

// generated returns n messages of 290 to 380 KB, each a CPU profile with labels of one of eight services. The program
// of a message has the same functions as the others', half of them, or none.
func generated(t testing.TB, n int, o overlap) []pprofile.Profiles {
	t.Helper()
	messages := make([]pprofile.Profiles, n)
	for i := range messages {
		name := func(function int) int {
			if o == same || o == half && function%2 == 0 {
				return function
			}
			return 1_000_000 + i*2000 + function
		}
		tree := callTree{functions: 1500, samples: 2150, depth: 28, labelSets: 12, name: name}
		messages[i] = tree.profile(rand.New(rand.NewPCG(uint64(i), 7)), fmt.Sprintf("service-%d", i%8))
		size := len(profiletest.Marshal(t, messages[i]))
		require.True(t, size >= 290_000 && size <= 380_000, "%d bytes", size)
	}
	return messages
}

// callTree makes profiles of a program whose stacks branch as those of real ones do: a function calls few
// others, and some functions are called from everywhere. In the captured Go profiles the 127 commonest locations are
// 65 to 84 percent of all references; here they are about two thirds. Its tables are in the order of the program, as a
// plain translator takes them from a pprof: each entry once, and only what samples refer to.
type callTree struct {
	functions, samples, depth, labelSets int
	// name returns the number in a function's name.
	name func(function int) int
}

func (c callTree) profile(rnd *rand.Rand, service string) pprofile.Profiles {
	d := dictionary.New()
	cpu, nanoseconds := int32(d.Strings.Intern("cpu")), int32(d.Strings.Intern("nanoseconds"))
	pd := pprofile.NewProfiles()
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", service)
	rp.Resource().Attributes().PutStr("host.name", "host-of-"+service)
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SetTime(1_700_000_000_000_000_000)
	p.SetDurationNano(10_000_000_000)
	p.SetPeriod(10_000_000)
	for _, t := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		t.SetTypeStrindex(cpu)
		t.SetUnitStrindex(nanoseconds)
	}
	stacks := make([][]int32, c.samples)
	for i := range stacks {
		stacks[i] = c.stack(rnd)
	}
	c.program(d, stacks)
	sets := c.sets(d)
	p.Samples().EnsureCapacity(c.samples)
	for i, stack := range stacks {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(d.Stacks.Intern(stack)))
		s.Values().Append(int64(1+rnd.IntN(20)) * 10_000_000)
		if len(sets) > 0 {
			s.AttributeIndices().FromRaw(sets[i%len(sets)])
		}
	}
	d.CopyTo(pd.Dictionary())
	return pd
}

// program makes the functions and locations that are in stacks, and numbers the locations there as in the table.
func (c callTree) program(d *dictionary.Dictionary, stacks [][]int32) {
	mapping := d.Mappings.Intern(dictionary.Mapping{MemoryStart: 0x400000, MemoryLimit: 0x9000000,
		Filename: d.Strings.Intern("/usr/bin/server")})
	index := make([]int32, 2*c.functions)
	for _, stack := range stacks {
		for _, at := range stack {
			index[at] = 1
		}
	}
	for at := range index {
		if index[at] != 0 {
			n := c.name(at / 2)
			index[at] = int32(d.Locations.Intern(
				dictionary.Location{Mapping: mapping, Address: 0x400000 + uint64(n)*64 + uint64(at%2)*16},
				[]dictionary.Line{{Function: function(d, n), Line: int64(12 + n%500 + at%2*3)}}))
		}
	}
	for _, stack := range stacks {
		for k, at := range stack {
			stack[k] = index[at]
		}
	}
}

func function(d *dictionary.Dictionary, n int) dictionary.FunctionIndex {
	name := d.Strings.Intern(fmt.Sprintf("example.com/company/product/module%d.(*Handler%d).Method%d", n%53, n%307, n))
	return d.Functions.Intern(dictionary.Function{
		Name: name, SystemName: name, StartLine: int64(10 + n%500),
		Filename: d.Strings.Intern(fmt.Sprintf("/src/company/product/module%d/handler%d.go", n%53, n%307)),
	})
}

func (c callTree) sets(d *dictionary.Dictionary) [][]int32 {
	attribute := func(key, value string) int32 {
		return int32(d.Attributes.Intern(dictionary.Attribute{
			Key: d.Strings.Intern(key), Value: dictionary.StringValue(value),
		}))
	}
	sets := make([][]int32, c.labelSets)
	for i := range sets {
		sets[i] = []int32{
			attribute("endpoint", fmt.Sprintf("/api/v1/resource/%d", i)), attribute("tenant", fmt.Sprintf("tenant-%d", i)),
		}
	}
	return sets
}

// stack draws a stack, leaf first, of numbers below twice the number of functions: a trunk that all stacks of a thread
// share, then a walk through the call graph, in a module, now and then to another, and at last in the
// libraries that all modules call, which are a fifth of the program.
func (c callTree) stack(rnd *rand.Rand) []int32 {
	depth := c.depth/2 + rnd.IntN(c.depth/2+1)
	stack := make([]int32, depth)
	locations := uint64(2 * c.functions)
	libraries := locations / 5
	perModule := min(160, locations/10)
	modules := (locations - libraries) / perModule
	module := uint64(math.Pow(rnd.Float64(), 2) * float64(modules))
	thread := uint64(rnd.IntN(3))
	at, inLibrary := thread*1000+module, false
	for k := range depth {
		if k < depth/4 {
			stack[depth-1-k] = int32((thread*40 + uint64(k)) * 97 % locations)
			continue
		}
		call := mix(at*16 + uint64(rnd.ExpFloat64()*0.9))
		switch choice := call >> 40 % 100; {
		case inLibrary || choice < 12:
			inLibrary = true
			at = locations - 1 - uint64(math.Pow(float64(call%(1<<30))/(1<<30), 5)*float64(libraries))
		case choice < 16:
			module = call % modules
			fallthrough
		default:
			at = module*perModule + call>>8%perModule
		}
		stack[depth-1-k] = int32(at)
	}
	return stack
}

func mix(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}
