// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// stackOf interns a stack of functions, leaf first.
func stackOf(d *dictionary.Dictionary, functions ...string) dictionary.StackIndex {
	var list []int32
	for _, name := range functions {
		f := d.Functions.Intern(dictionary.Function{Name: d.Strings.Intern(name)})
		list = append(list, int32(d.Locations.Intern(dictionary.Location{}, []dictionary.Line{{Function: f}})))
	}
	return d.Stacks.Intern(list)
}

func (a *Assembler) valueType(typ, unit string) ValueType {
	return ValueType{Type: a.Dictionary().Strings.Intern(typ), Unit: a.Dictionary().Strings.Intern(unit)}
}

func newScope(a *Assembler, service, scope string) ScopeIndex {
	r := pcommon.NewResource()
	r.Attributes().PutStr("service.name", service)
	s := pcommon.NewInstrumentationScope()
	s.SetName(scope)
	return a.Scope(a.Resource(r, ""), s, "")
}

func TestAssembler(t *testing.T) {
	var a Assembler
	for range 2 { // again, in the same memory
		a.Reset()
		d := a.Dictionary()
		shop, cart := newScope(&a, "shop", "agent"), newScope(&a, "cart", "agent")
		require.Equal(t, shop, newScope(&a, "shop", "agent"), "equal scopes are one")
		cpu := a.Profile(shop, Shape{Timestamps: true},
			Header{SampleType: a.valueType("samples", "count"), DurationNanos: 10})
		heap := a.Profile(cart, Shape{Values: true}, Header{SampleType: a.valueType("space", "bytes")})
		alloc := a.Profile(shop, Shape{Timestamps: true, Values: true},
			Header{SampleType: a.valueType("alloc", "bytes"), Time: 100, DurationNanos: 10})
		one, other := Identity{Stack: stackOf(d, "f", "main")}, Identity{Stack: stackOf(d, "g", "main")}
		d.Strings.Intern("an orphan")
		a.Observe(cpu, one, Observation{Timestamp: 101})
		a.Observe(alloc, one, Observation{Timestamp: 102, Value: 5})
		a.Observe(cpu, other, Observation{Timestamp: 103})
		a.Observe(cpu, one, Observation{Timestamp: 104})
		a.Observe(heap, one, Observation{Value: 7})
		a.Observe(heap, one, Observation{Value: 8})
		a.Observe(alloc, one, Observation{Timestamp: 105, Value: 6})
		a.Header(cpu).Time = 100

		want := profiletest.New().
			Resource("service.name", "shop").Scope("agent", "").
			Profile("samples", "count").Time(100, 10).
			Sample(profiletest.Observed([]uint64{101, 104}, "f", "main")).
			Sample(profiletest.Observed([]uint64{103}, "g", "main")).
			Profile("alloc", "bytes").Time(100, 10).
			Sample(profiletest.Sample{Stack: profiletest.Stack("f", "main"), Timestamps: []uint64{102, 105},
				Values: []int64{5, 6}}).
			Resource("service.name", "cart").Scope("agent", "").
			Profile("space", "bytes").Sample(profiletest.Value(15, "f", "main")).Build()
		got := a.Build()
		require.NoError(t, profiletest.Check(got))
		require.NoError(t, profiletest.Equal(want, got))
	}
}

func TestAssemblerKeepsSumsThatOverflowApart(t *testing.T) {
	var a Assembler
	a.Reset()
	p := a.Profile(newScope(&a, "shop", ""), Shape{Values: true}, Header{})
	for range 3 {
		a.Observe(p, Identity{}, Observation{Value: math.MaxInt64})
	}
	assert.Equal(t, 3, a.Build().SampleCount())
}

func TestAssemblerRepairsText(t *testing.T) {
	var a Assembler
	a.Reset()
	a.Profile(newScope(&a, "sh\xffop", "ag\xfeent"), Shape{Values: true}, Header{})
	got := a.Build().ResourceProfiles().At(0)
	assert.Equal(t, map[string]any{"service.name": "sh\uFFFDop"}, got.Resource().Attributes().AsRaw())
	assert.Equal(t, "ag\uFFFDent", got.ScopeProfiles().At(0).Scope().Name())
	assert.Equal(t, 2, a.batch.Stats().Repairs[RepairInvalidUTF8])
}

func TestAssemblerOfNothing(t *testing.T) {
	var a Assembler
	a.Reset()
	assert.Zero(t, a.Build().ResourceProfiles().Len())
}
