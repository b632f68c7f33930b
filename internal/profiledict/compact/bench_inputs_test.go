// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// overlap says what the dictionaries of generated messages share.
type overlap int

const (
	same overlap = iota
	half
	disjoint
)

func (o overlap) String() string { return [...]string{"same", "half", "disjoint"}[o] }

// generated gives n messages of about 330 KB, each a CPU profile of one service with labels. The program
// of message i has the same functions as the others', half of them, or none.
func generated(t testing.TB, n int, o overlap) []pprofile.Profiles {
	t.Helper()
	messages := make([]pprofile.Profiles, n)
	for i := range messages {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		own := i * 2000
		name := func(function int) int {
			if o == same || o == half && function%2 == 0 {
				return function
			}
			return 1_000_000 + own + function
		}
		p := callTree{functions: 1600, samples: 2600, depth: 28, labelSets: 12, name: name}.profile(rnd)
		messages[i] = fromProfile(t, p, fmt.Sprintf("service-%d", i%8))
	}
	return messages
}

// callTree makes profiles of a program whose stacks branch as those of real ones do: few functions near the root
// are in most stacks, and a function calls the same few others.
type callTree struct {
	functions, samples, depth, labelSets int
	// name gives the number that names a function.
	name func(function int) int
}

func (c callTree) profile(rnd *rand.Rand) *pprof.Profile {
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &pprof.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     10_000_000, TimeNanos: 1_700_000_000_000_000_000, DurationNanos: 10_000_000_000,
		Mapping: []*pprof.Mapping{{ID: 1, Start: 0x400000, Limit: 0x9000000, File: "/usr/bin/server",
			BuildID: "5bc3f1b2a0e94c6d8f7e6d5c4b3a29180f1e2d3c", HasFunctions: true}},
	}
	for i := range c.functions {
		n := c.name(i)
		p.Function = append(p.Function, &pprof.Function{
			ID:         uint64(i + 1),
			Name:       fmt.Sprintf("example.com/company/product/module%d.(*Handler%d).Method%d", n%53, n%307, n),
			SystemName: fmt.Sprintf("example.com/company/product/module%d.(*Handler%d).Method%d", n%53, n%307, n),
			Filename:   fmt.Sprintf("/src/company/product/module%d/handler%d.go", n%53, n%307),
			StartLine:  int64(10 + n%500),
		})
		for k := range 2 {
			p.Location = append(p.Location, &pprof.Location{
				ID: uint64(2*i + k + 1), Mapping: p.Mapping[0], Address: 0x400000 + uint64(n)*64 + uint64(k)*16,
				Line: []pprof.Line{{Function: p.Function[i], Line: int64(12 + n%500 + k*3)}},
			})
		}
	}
	for i := range c.samples {
		s := &pprof.Sample{Value: []int64{int64(1+rnd.IntN(20)) * 10_000_000}}
		depth := c.depth/2 + rnd.IntN(c.depth/2+1)
		at := rnd.IntN(4)
		stack := make([]*pprof.Location, 0, depth)
		for range depth {
			stack = append(stack, p.Location[at])
			// A small number of callees, chosen by a skewed draw, spread over the program as a hash would.
			callee := int(rnd.ExpFloat64() * 1.2)
			at = (at*7 + callee*31 + len(stack)*13) % len(p.Location)
		}
		for k := len(stack) - 1; k >= 0; k-- {
			s.Location = append(s.Location, stack[k])
		}
		if c.labelSets > 0 {
			set := i % c.labelSets
			s.Label = map[string][]string{
				"endpoint": {fmt.Sprintf("/api/v1/resource/%d", set)},
				"tenant":   {fmt.Sprintf("tenant-%d", set%40)},
			}
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func fromProfile(t testing.TB, p *pprof.Profile, service string) pprofile.Profiles {
	t.Helper()
	require.NoError(t, p.CheckValid())
	var payload bytes.Buffer
	require.NoError(t, p.Compact().WriteUncompressed(&payload))
	pd, _, err := pprofconv.Decode(payload.Bytes(), pprofconv.DecodeOptions{})
	require.NoError(t, err)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", service)
	return pd
}
