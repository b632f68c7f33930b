// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The permitted cost: heap <= constant + factor × bytes.
const (
	encodeConstantBytes = 96 << 20
	encodeFactor        = 128
)

// table is profiles under construction, by the indices of their tables.
type table struct {
	pd pprofile.Profiles
	d  pprofile.ProfilesDictionary
}

func newTable() *table {
	pd := pprofile.NewProfiles()
	t := &table{pd: pd, d: pd.Dictionary()}
	t.text("")
	t.d.StackTable().AppendEmpty()
	t.d.LocationTable().AppendEmpty()
	t.d.FunctionTable().AppendEmpty()
	t.d.MappingTable().AppendEmpty()
	t.d.LinkTable().AppendEmpty()
	t.d.AttributeTable().AppendEmpty()
	return t
}

func (t *table) text(s string) int32 {
	t.d.StringTable().Append(s)
	return int32(t.d.StringTable().Len() - 1)
}

func (t *table) attribute(key string, value any) int32 {
	a := t.d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(t.text(key))
	if err := a.Value().FromRaw(value); err != nil {
		panic(err)
	}
	return int32(t.d.AttributeTable().Len() - 1)
}

func (t *table) location(name int32, line int64) int32 {
	f := t.d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(name)
	f.SetStartLine(line)
	l := t.d.LocationTable().AppendEmpty()
	l.Lines().AppendEmpty().SetFunctionIndex(int32(t.d.FunctionTable().Len() - 1))
	return int32(t.d.LocationTable().Len() - 1)
}

func (t *table) stack(locations ...int32) int32 {
	t.d.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	return int32(t.d.StackTable().Len() - 1)
}

func (t *table) scope() pprofile.ScopeProfiles {
	return t.pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty()
}

func (t *table) profile(to pprofile.ScopeProfiles, typ, unit int32) pprofile.Profile {
	p := to.Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(typ)
	p.SampleType().SetUnitStrindex(unit)
	return p
}

func addSample(p pprofile.Profile, stack int32, attributes []int32, times ...uint64) {
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(stack)
	s.AttributeIndices().FromRaw(attributes)
	s.TimestampsUnixNano().FromRaw(times)
}

// worstProfiles are profiles whose entries are shared by many.
func worstProfiles() map[string]pprofile.Profiles {
	const (
		long = 64 << 10
		many = 4000
	)
	all := map[string]pprofile.Profiles{}
	add := func(name string, build func(t *table, samples, count int32)) {
		t := newTable()
		build(t, t.text("samples"), t.text("count"))
		all[name] = t.pd
	}
	times := make([]uint64, many)
	for i := range times {
		times[i] = uint64(i + 1)
	}
	add("many attributes", func(t *table, samples, count int32) {
		p := t.profile(t.scope(), samples, count)
		for i := range 40_000 {
			p.AttributeIndices().Append(t.attribute("k"+strconv.Itoa(i), "x"))
		}
		addSample(p, 0, nil, 1)
	})
	add("many attributes of a sample", func(t *table, samples, count int32) {
		var attributes []int32
		for i := range 100_000 {
			attributes = append(attributes, t.attribute("k"+strconv.Itoa(i), "x"))
		}
		addSample(t.profile(t.scope(), samples, count), 0, attributes, 1)
	})
	add("a deep stack", func(t *table, samples, count int32) {
		stack := make([]int32, many)
		for i := range stack {
			stack[i] = t.location(t.text("f"+strconv.Itoa(i)), 0)
		}
		p, s := t.profile(t.scope(), samples, count), t.stack(stack...)
		addSample(p, s, nil, times...)
		for i := range many {
			addSample(p, s, []int32{t.attribute("k", i)}, 1)
		}
	})
	add("a deep stack of many profiles", func(t *table, samples, count int32) {
		stack := make([]int32, many)
		for i := range stack {
			stack[i] = t.location(0, int64(i))
		}
		sp, s := t.scope(), t.stack(stack...)
		for i := range many / 4 { // enough for the budget: more would only take longer
			p := t.profile(sp, samples, count)
			p.SetPeriod(int64(i))
			addSample(p, s, nil, 1)
		}
	})
	add("a location of many lines", func(t *table, samples, count int32) {
		p, location := t.profile(t.scope(), samples, count), t.location(0, 1)
		for range 20 * many {
			t.d.LocationTable().At(int(location)).Lines().AppendEmpty()
		}
		s := t.stack(location)
		for i := range many {
			addSample(p, s, []int32{t.attribute("k", i)}, 1)
		}
	})
	add("a long attribute", func(t *table, samples, count int32) {
		p, shared := t.profile(t.scope(), samples, count), t.attribute("long", strings.Repeat("x", long))
		for i := range many {
			addSample(p, 0, []int32{shared, t.attribute("k", i)}, 1)
		}
	})
	add("an array of many values", func(t *table, samples, count int32) {
		values := make([]any, 4000)
		for i := range values {
			values[i] = "x"
		}
		p, shared := t.profile(t.scope(), samples, count), t.attribute("list", values)
		for i := range many {
			addSample(p, 0, []int32{shared, t.attribute("k", i)}, 1)
		}
	})
	add("a long attribute of many profiles", func(t *table, samples, count int32) {
		sp, shared := t.scope(), t.attribute("long", strings.Repeat("x", long))
		for i := range many {
			p := t.profile(sp, samples, count)
			p.SetPeriod(int64(i))
			p.AttributeIndices().Append(shared)
			addSample(p, 0, nil, 1)
		}
	})
	add("a long type of many profiles", func(t *table, _, _ int32) {
		sp, shared := t.scope(), t.text(strings.Repeat("x", long))
		for i := range many {
			p := t.profile(sp, shared, shared)
			p.SetPeriod(int64(i))
			addSample(p, 0, nil, 1)
		}
	})
	add("a long resource and scope of many profiles", func(t *table, samples, count int32) {
		sp := t.scope()
		t.pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("long", strings.Repeat("x", long))
		sp.Scope().SetName(strings.Repeat("x", long))
		cpu, nanoseconds := t.text("cpu"), t.text("nanoseconds")
		for i := range many {
			for _, typ := range [][2]int32{{samples, count}, {cpu, nanoseconds}} {
				p := t.profile(sp, typ[0], typ[1])
				p.SetTime(1)
				p.SetDurationNano(uint64(i))
				addSample(p, 0, nil, 1)
			}
		}
	})
	add("a long resource of many scopes", func(t *table, samples, count int32) {
		rp := t.pd.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("long", strings.Repeat("x", long))
		cpu, nanoseconds := t.text("cpu"), t.text("nanoseconds")
		for i := range many {
			sp := rp.ScopeProfiles().AppendEmpty()
			sp.Scope().SetName(strconv.Itoa(i))
			addSample(t.profile(sp, samples, count), 0, nil, 1)
			addSample(t.profile(sp, cpu, nanoseconds), 0, nil, 1)
		}
	})
	add("a long name of many functions", func(t *table, samples, count int32) {
		p, name := t.profile(t.scope(), samples, count), t.text(strings.Repeat("f", long))
		for i := range many {
			addSample(p, t.stack(t.location(name, int64(i))), nil, 1)
		}
	})
	add("a long name that many profiles share", func(t *table, samples, count int32) {
		sp, stack := t.scope(), t.stack(t.location(t.text(strings.Repeat("f", long)), 0))
		for i := range many {
			p := t.profile(sp, samples, count)
			p.SetPeriod(int64(i))
			addSample(p, stack, nil, 1)
		}
	})
	return all
}

// costOptions are the options for which the cost differs.
var costOptions = []EncodeOptions{
	{Format: FormatOTLP}, {Format: FormatPprof}, {Format: FormatPprof, RepeatsResources: true},
}

// Records of any profiles cost memory in proportion to the profiles' size, and their number is bounded.
func TestEncodeIsBounded(t *testing.T) {
	for name, pd := range worstProfiles() {
		pd.MarkReadOnly()
		size := new(pprofile.ProtoMarshaler).ProfilesSize(pd)
		want := observations(pd)
		for _, options := range costOptions {
			if options.RepeatsResources && pd.ProfileCount() == 1 {
				continue // it has nothing to repeat, and is not cut between profiles
			}
			t.Run(fmt.Sprintf("%s, %v, %t", name, options.Format, options.RepeatsResources), func(t *testing.T) {
				options.MaxRecordBytes, options.MaxPartBytes = 1_000_000, 3_932_160
				budget := expansionBudget(size)
				bound := profiletest.BoundOf(size, encodeConstantBytes, encodeFactor)
				bound.CPU = profiletest.BoundOf(size+budget, 0, 0).CPU
				var out, seen int
				profiletest.RequireCost(t, bound, func() {
					out, seen = 0, 0
					encoder := NewEncoder(pd, options)
					for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
						out += part.RequestBytes()
						seen += part.Samples + part.Dropped
					}
				})
				assert.Equal(t, want, seen)
				assert.Less(t, out, 2*(budget+options.MaxPartBytes))
			})
		}
	}
}

// FuzzEncodeCost encodes any ProfilesData message, and bounds the cost.
func FuzzEncodeCost(f *testing.F) {
	for _, pd := range pprofs(f) {
		if body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd); err == nil && len(body) < 20_000 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := pdatasize.Profiles(body); err != nil {
			return
		}
		pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(body)
		if err != nil {
			return
		}
		pd.MarkReadOnly()
		for _, options := range costOptions {
			options.MaxRecordBytes, options.MaxPartBytes = 10_000, 40_000
			bound := profiletest.BoundOf(len(body)+expansionBudget(len(body)), encodeConstantBytes, 0)
			profiletest.RequireCost(t, bound, func() {
				encoder := NewEncoder(pd, options)
				for _, ok := encoder.Next(); ok; _, ok = encoder.Next() {
				}
			})
		}
	})
}
