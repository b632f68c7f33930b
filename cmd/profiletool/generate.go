// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

type loadType struct {
	name, sampleType, unit, periodType, periodUnit string
	period                                         int64
	duration                                       time.Duration
}

var loadTypes = []loadType{
	{profilekind.ProcessCPU, "cpu", "nanoseconds", "cpu", "nanoseconds", 10_000_000, 10 * time.Second},
	{profilekind.Memory, "inuse_space", "bytes", "space", "bytes", 512 << 10, 0},
	{profilekind.Goroutine, "goroutine", "count", "goroutine", "count", 1, 0},
	{profilekind.Mutex, "delay", "nanoseconds", "contentions", "count", 1, 10 * time.Second},
	{profilekind.Block, "delay", "nanoseconds", "contentions", "count", 1, 10 * time.Second},
	{profilekind.Wall, "wall", "nanoseconds", "wall", "nanoseconds", 10_000_000, 10 * time.Second},
}

// The shape of the generated stacks: as deep as those of a Go server, most of them sharing their roots.
const (
	generatedFunctions = 400
	generatedDepth     = 30
)

// generate returns a message of one profile, the same each time.
func (t *loadType) generate(samples int) pprofile.Profiles {
	random := rand.New(rand.NewPCG(1, uint64(len(t.name))))
	var a compact.Assembler
	a.Reset()
	dict := a.Dictionary()
	intern := func(s string) dictionary.StringIndex { return dict.Strings.Intern(s) }
	functions := make([]int32, generatedFunctions)
	for i := range functions {
		function := dict.Functions.Intern(dictionary.Function{
			Name:     intern(fmt.Sprintf("github.com/example/shop/internal/package%02d.(*Service).Function%03d", i%20, i)),
			Filename: intern(fmt.Sprintf("/src/internal/package%02d/service.go", i%20)), StartLine: int64(10 * i),
		})
		functions[i] = int32(dict.Locations.Intern(dictionary.Location{},
			[]dictionary.Line{{Function: function, Line: int64(10*i + 3)}}))
	}
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "load")
	scope := pcommon.NewInstrumentationScope()
	scope.Attributes().PutStr(profilekind.NameAttribute, t.name)
	profile := a.Profile(a.Scope(a.Resource(resource, ""), scope, ""), compact.Shape{Values: true}, compact.Header{
		ID: pprofile.ProfileID{1}, DurationNanos: uint64(t.duration), Period: t.period,
		SampleType: compact.ValueType{Type: intern(t.sampleType), Unit: intern(t.unit)},
		PeriodType: compact.ValueType{Type: intern(t.periodType), Unit: intern(t.periodUnit)},
	})
	stack := make([]int32, 0, generatedDepth)
	for range samples {
		stack = stack[:0]
		for len(stack) < 5+random.IntN(generatedDepth-5) { // leaf first
			stack = append(stack, functions[random.IntN(generatedFunctions)])
		}
		for i := range min(4, len(stack)) { // the roots: one of eight handlers
			stack[len(stack)-1-i] = functions[i*8+random.IntN(8)/(4-i)]
		}
		a.Observe(profile, compact.Identity{Stack: dict.Stacks.Intern(stack)},
			compact.Observation{Value: (1 + random.Int64N(20)) * t.period})
	}
	return a.Build()
}
