// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Builder builds OTLP profiles from names. It interns them, so that the result passes Check if the content does.
// Resource, Scope and Profile each begin a new one, to which the later calls apply; a Scope without a Resource gets an
// empty one, and so on.
//
//	pd := profiletest.New().
//		Resource("service.name", "shop").
//		Profile("cpu", "nanoseconds").Period(10_000_000, "cpu", "nanoseconds").
//		Sample(profiletest.Value(30, "main.leaf", "main.main")).
//		Build()
type Builder struct {
	pd      pprofile.Profiles
	intern  *interner
	rp      *pprofile.ResourceProfiles
	sp      *pprofile.ScopeProfiles
	profile *pprofile.Profile
}

// New has no resource yet, and a dictionary with the zero value of each table.
func New() *Builder {
	pd := pprofile.NewProfiles()
	return &Builder{pd: pd, intern: newInterner(pd.Dictionary())}
}

// Build returns the profiles. Later calls still change them.
func (b *Builder) Build() pprofile.Profiles { return b.pd }

// Break calls change with the profiles so far, to make something that Check refuses:
//
//	Break(func(pd pprofile.Profiles) { profiletest.SampleAt(pd, 0).SetStackIndex(9) })
func (b *Builder) Break(change func(pprofile.Profiles)) *Builder {
	change(b.pd)
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
	p.SampleType().SetTypeStrindex(b.intern.str(sampleType))
	p.SampleType().SetUnitStrindex(b.intern.str(unit))
	b.profile = &p
	return b
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
	b.current().PeriodType().SetTypeStrindex(b.intern.str(periodType))
	b.current().PeriodType().SetUnitStrindex(b.intern.str(unit))
	return b
}

// Attributes sets the profile's attributes.
func (b *Builder) Attributes(attributes ...Attribute) *Builder {
	b.current().AttributeIndices().FromRaw(b.intern.attributes(attributes))
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
		to.SetStackIndex(b.intern.stack(s.Stack))
		to.SetLinkIndex(b.intern.link(s.TraceID, s.SpanID))
		to.AttributeIndices().FromRaw(b.intern.attributes(s.Attributes))
		to.Values().FromRaw(s.Values)
		to.TimestampsUnixNano().FromRaw(s.Timestamps)
	}
	return b
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

// ProfileAt is profile i of pd, counted through all resources and scopes.
func ProfileAt(pd pprofile.Profiles, i int) pprofile.Profile {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			if i < sp.Profiles().Len() {
				return sp.Profiles().At(i)
			}
			i -= sp.Profiles().Len()
		}
	}
	panic("the profiles have no such profile")
}

// SampleAt is sample i of pd's first profile.
func SampleAt(pd pprofile.Profiles, i int) pprofile.Sample { return ProfileAt(pd, 0).Samples().At(i) }
