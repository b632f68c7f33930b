// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Builder builds OTLP profiles from names. It interns them, so that the result passes Check if the content does.
// Resource, Scope and Profile each begin a new one, to which later calls apply; a Scope without a Resource gets an
// empty one, and so on.
//
//	pd := profiletest.New().
//		Resource("service.name", "shop").
//		Profile("cpu", "nanoseconds").Period(10_000_000, "cpu", "nanoseconds").
//		Sample(profiletest.Value(30, "main.leaf", "main.main")).
//		Build()
type Builder struct {
	pd      pprofile.Profiles
	dict    *dictionary.Dictionary
	rp      *pprofile.ResourceProfiles
	sp      *pprofile.ScopeProfiles
	profile *pprofile.Profile
	// isBroken is set once the dictionary of pd is no longer dict's.
	isBroken bool
}

// New returns a Builder without a resource, and with a dictionary of zero values.
func New() *Builder {
	return &Builder{pd: pprofile.NewProfiles(), dict: dictionary.New()}
}

// Build returns the profiles. After later calls it must be called again.
func (b *Builder) Build() pprofile.Profiles {
	if !b.isBroken {
		tables := pprofile.NewProfilesDictionary()
		b.dict.CopyTo(tables)
		tables.MoveTo(b.pd.Dictionary())
	}
	return b.pd
}

// Break calls change with the profiles, to make something that Check refuses. Nothing can be added afterwards.
//
//	Break(func(pd pprofile.Profiles) { profiletest.SampleAt(pd, 0).SetStackIndex(9) })
func (b *Builder) Break(change func(pprofile.Profiles)) *Builder {
	change(b.Build())
	b.isBroken = true
	return b
}

// Resource begins a resource with attributes: keys, each before its value.
func (b *Builder) Resource(keysAndValues ...any) *Builder {
	rp := b.pd.ResourceProfiles().AppendEmpty()
	putAttributes(rp.Resource().Attributes(), keysAndValues)
	b.rp, b.sp, b.profile = &rp, nil, nil
	return b
}

// Scope begins a scope with attributes: keys, each before its value.
func (b *Builder) Scope(name, version string, keysAndValues ...any) *Builder {
	if b.rp == nil {
		b.Resource()
	}
	sp := b.rp.ScopeProfiles().AppendEmpty()
	sp.Scope().SetName(name)
	sp.Scope().SetVersion(version)
	putAttributes(sp.Scope().Attributes(), keysAndValues)
	b.sp, b.profile = &sp, nil
	return b
}

// Profile begins a profile of one sample type.
func (b *Builder) Profile(sampleType, unit string) *Builder {
	if b.sp == nil {
		b.Scope("", "")
	}
	p := b.sp.Profiles().AppendEmpty()
	b.setValueType(p.SampleType(), sampleType, unit)
	b.profile = &p
	return b
}

func (b *Builder) setValueType(to pprofile.ValueType, name, unit string) {
	to.SetTypeStrindex(int32(b.dict.Strings.Intern(name)))
	to.SetUnitStrindex(int32(b.dict.Strings.Intern(unit)))
}

func (b *Builder) current() pprofile.Profile {
	if b.profile == nil {
		b.Profile("samples", "count")
	}
	return *b.profile
}

// SchemaURLs sets the resource's and the scope's.
func (b *Builder) SchemaURLs(resource, scope string) *Builder {
	if b.sp == nil {
		b.Scope("", "")
	}
	b.rp.SetSchemaUrl(resource)
	b.sp.SetSchemaUrl(scope)
	return b
}

// ID sets the profile's id.
func (b *Builder) ID(profileID [16]byte) *Builder {
	b.current().SetProfileID(profileID)
	return b
}

// Time sets the profile's time and duration, in nanoseconds.
func (b *Builder) Time(unixNanos, durationNanos uint64) *Builder {
	b.current().SetTime(pcommon.Timestamp(unixNanos))
	b.current().SetDurationNano(durationNanos)
	return b
}

// Period sets the profile's period and its type.
func (b *Builder) Period(period int64, periodType, unit string) *Builder {
	b.current().SetPeriod(period)
	b.setValueType(b.current().PeriodType(), periodType, unit)
	return b
}

// Attributes sets the profile's attributes.
func (b *Builder) Attributes(attributes ...Attribute) *Builder {
	b.current().AttributeIndices().FromRaw(b.attributes(attributes))
	return b
}

// Payload sets the profile's original payload.
func (b *Builder) Payload(format string, payload []byte) *Builder {
	b.current().SetOriginalPayloadFormat(format)
	b.current().OriginalPayload().FromRaw(payload)
	return b
}

// Sample adds samples to the profile.
func (b *Builder) Sample(samples ...Sample) *Builder {
	for _, s := range samples {
		to := b.current().Samples().AppendEmpty()
		to.SetStackIndex(int32(b.stack(s.Stack)))
		to.SetLinkIndex(int32(b.dict.Links.Intern(dictionary.Link{TraceID: s.TraceID, SpanID: s.SpanID})))
		to.AttributeIndices().FromRaw(b.attributes(s.Attributes))
		to.Values().FromRaw(s.Values)
		to.TimestampsUnixNano().FromRaw(s.Timestamps)
	}
	return b
}

func (b *Builder) stack(stack []Location) dictionary.StackIndex {
	locations := make([]int32, len(stack))
	for i, l := range stack {
		locations[i] = int32(b.location(l))
	}
	return b.dict.Stacks.Intern(locations)
}

func (b *Builder) location(l Location) dictionary.LocationIndex {
	entry := dictionary.Location{Address: l.Address}
	if m := l.Mapping; m != nil {
		entry.Mapping = b.dict.Mappings.Intern(dictionary.Mapping{
			MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset,
			Filename: b.dict.Strings.Intern(m.File), Attributes: b.dict.AttributeSets.Intern(b.attributes(m.Attributes)),
		})
	}
	entry.Attributes = b.dict.AttributeSets.Intern(b.attributes(l.Attributes))
	lines := make([]dictionary.Line, len(l.Lines))
	for i, line := range l.Lines {
		f := line.Function
		lines[i] = dictionary.Line{Line: line.Line, Column: line.Column,
			Function: b.dict.Functions.Intern(dictionary.Function{
				Name: b.dict.Strings.Intern(f.Name), SystemName: b.dict.Strings.Intern(f.SystemName),
				Filename: b.dict.Strings.Intern(f.File), StartLine: f.StartLine,
			})}
	}
	return b.dict.Locations.Intern(entry, lines)
}

// attributes returns the indices of attributes in ascending order.
func (b *Builder) attributes(attributes []Attribute) []int32 {
	indices := make([]int32, len(attributes))
	for i, a := range attributes {
		value := pcommon.NewValueEmpty()
		setRaw(value, a.Value)
		indices[i] = int32(b.dict.Attributes.Intern(dictionary.Attribute{
			Key: b.dict.Strings.Intern(a.Key), Unit: b.dict.Strings.Intern(a.Unit), Value: dictionary.ValueOf(value),
		}))
	}
	slices.Sort(indices)
	return indices
}

func putAttributes(m pcommon.Map, keysAndValues []any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		setRaw(m.PutEmpty(keysAndValues[i].(string)), keysAndValues[i+1])
	}
	if len(keysAndValues)%2 != 0 {
		panic(fmt.Sprintf("the key %v has no value", keysAndValues[len(keysAndValues)-1]))
	}
}

func setRaw(v pcommon.Value, raw any) {
	if err := v.FromRaw(raw); err != nil {
		panic(err)
	}
}

// ProfileAt returns profile i of pd, counted through all resources and scopes.
func ProfileAt(pd pprofile.Profiles, i int) pprofile.Profile {
	for p := range otlp.Profiles(pd) {
		if i == 0 {
			return p
		}
		i--
	}
	panic("there are fewer profiles")
}

// SampleAt returns sample i of pd's first profile.
func SampleAt(pd pprofile.Profiles, i int) pprofile.Sample { return ProfileAt(pd, 0).Samples().At(i) }
