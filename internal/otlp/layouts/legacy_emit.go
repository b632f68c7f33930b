// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// shape is which of values and timestamps a sample has. All samples of a profile have one shape.
type shape int

const (
	valueOnly shape = iota
	timestampsOnly
	valuesAndTimestamps
	numShapes
)

// emit adds a Profile to scope for each sample type, and within that for each shape.
func (r *legacyReader) emit(p *legacyProfile, t *legacyTables, scope pprofile.ScopeProfiles) {
	order := p.order(r, t)
	if len(order) > 1 {
		r.recordOrder(p, t, order, scope.Scope().Attributes())
	}
	if len(p.comments) > 0 {
		p.attributes.add("pprof.profile.comment", r.profileComments(t, p.comments), 0)
	}
	e := emitter{r: r, p: p, t: t, scope: scope, attributes: p.attributes.intern(), isCount: make(map[uint64]bool, 1)}
	e.from, e.duration = p.window()
	e.samples = make([][numShapes][]int32, len(p.types))
	e.each(order[0], func(k int, s shape, sample int32) { e.samples[k][s] = append(e.samples[k][s], sample) })
	for _, k := range order {
		for s, samples := range e.samples[k] {
			if len(samples) > 0 {
				e.profile(k, shape(s), samples)
			}
		}
	}
}

// emitter writes one old profile in the current form.
type emitter struct {
	r          *legacyReader
	p          *legacyProfile
	t          *legacyTables
	scope      pprofile.ScopeProfiles
	attributes dictionary.AttributeSetIndex
	from       uint64
	duration   uint64
	// samples are the samples that have a value to be written, by sample type and shape.
	samples [][numShapes][]int32
	isCount map[uint64]bool // by the string index of a unit: whether it is "count"
	emitted int
	divided []int64 // scratch
}

// profile writes the profile of sample type k and one shape.
func (e *emitter) profile(k int, s shape, samples []int32) {
	r, p := e.r, e.p
	if !e.mayCopy(e.attributes, 0) {
		r.stats.Dropped[DropExpansion] += len(samples)
		return
	}
	sampleType, periodType := r.valueType(e.t, p.types[k]), r.valueType(e.t, p.periodType)
	if p.types[k] == (legacyType{}) {
		sampleType = [2]dictionary.StringIndex{r.dict.Strings.Intern("samples"), r.dict.Strings.Intern("count")}
	}
	profile := e.scope.Profiles().AppendEmpty()
	profile.SetProfileID(derivedID(p.id, e.emitted))
	profile.SampleType().SetTypeStrindex(int32(sampleType[0]))
	profile.SampleType().SetUnitStrindex(int32(sampleType[1]))
	profile.PeriodType().SetTypeStrindex(int32(periodType[0]))
	profile.PeriodType().SetUnitStrindex(int32(periodType[1]))
	profile.SetPeriod(p.period)
	profile.SetTime(pcommon.Timestamp(e.from))
	profile.SetDurationNano(e.duration)
	profile.SetDroppedAttributesCount(p.dropped)
	r.dict.AttributeSets.CopyTo(e.attributes, profile.AttributeIndices())
	declared := profilekind.Declared{
		SampleType: r.dict.Strings.At(sampleType[0]), Unit: r.dict.Strings.At(sampleType[1]),
		PeriodType: r.dict.Strings.At(periodType[0]), DurationNanos: e.duration,
	}
	if values := p.types[k].temporality.ValuesOf(declared); values != profilekind.ValuesOf(declared) {
		set := attributeSet{reader: r}
		set.add(profilekind.TemporalityAttribute, dictionary.StringValue(values.String()), 0)
		profile.AttributeIndices().Append(set.indices...)
	}
	if e.emitted == 0 && len(p.payload) > 0 && p.payloadFormat != "" {
		profile.SetOriginalPayloadFormat(p.payloadFormat)
		profile.OriginalPayload().FromRaw(p.payload)
	}
	e.emitted++
	profile.Samples().EnsureCapacity(len(samples))
	for _, i := range samples {
		old := &p.samples[i]
		if !e.mayCopy(old.attributes, e.numbers(s, i)) { // first: dividing a value takes time, too
			r.stats.Dropped[DropExpansion]++
			continue
		}
		values, timestamps := e.event(k, s, i)
		sample := profile.Samples().AppendEmpty()
		sample.SetStackIndex(int32(old.stack))
		sample.SetLinkIndex(int32(old.link))
		r.dict.AttributeSets.CopyTo(old.attributes, sample.AttributeIndices())
		sample.Values().FromRaw(values)
		sample.TimestampsUnixNano().FromRaw(timestamps)
	}
}

// mayCopy reports whether the budget allows one more copy of some attributes, and of that many values and timestamps.
func (e *emitter) mayCopy(attributes dictionary.AttributeSetIndex, numbers int) bool {
	if len(e.p.types) == 1 {
		return true // all is written once
	}
	const attributeBytes, numberBytes = 4, 8
	// each has its own value
	n := attributeBytes*len(e.r.dict.AttributeSets.At(attributes)) + numberBytes*max(0, numbers-1)
	if n > e.r.copyBudget {
		return false
	}
	e.r.copyBudget -= n
	return true
}

func (r *legacyReader) valueType(t *legacyTables, v legacyType) [2]dictionary.StringIndex {
	return [2]dictionary.StringIndex{r.internString(t, v.typ), r.internString(t, v.unit)}
}

// recordOrder records the order that the sample types had, and the default if one was named: OTLP's default is the
// first profile (semantic conventions, registry/attributes/pprof).
func (r *legacyReader) recordOrder(p *legacyProfile, t *legacyTables, order []int, scope pcommon.Map) {
	if p.defaultType < 0 || p.defaultType >= len(p.types) {
		return
	}
	name := r.stringAt(t, p.types[p.defaultType].typ)
	if r.scopeBudget -= len(name) + len(order); r.scopeBudget < 0 {
		r.stats.Repaired[RepairExpansion]++
		return
	}
	scope.PutStr(profilekind.AttributeDefaultSampleType, name)
	if order[0] != 0 {
		indices := scope.PutEmptySlice(profilekind.AttributeSampleTypeOrder)
		for _, k := range order {
			indices.AppendEmpty().SetInt(int64(k))
		}
	}
}

// derivedID returns the id of the nth profile that one old profile became.
func derivedID(id pprofile.ProfileID, n int) pprofile.ProfileID {
	if id != (pprofile.ProfileID{}) {
		id[14] ^= byte(n >> 8)
		id[15] ^= byte(n)
	}
	return id
}

// window returns a profile's time and duration. If the profile has none, the container's are used. Both are extended so
// that all timestamps of the samples lie inside.
func (p *legacyProfile) window() (from, duration uint64) {
	from, duration = cmp.Or(p.time, p.start), p.duration
	if duration == 0 && p.end > from {
		duration = p.end - from
	}
	if len(p.timestamps) == 0 {
		return from, duration
	}
	first, last := slices.Min(p.timestamps), slices.Max(p.timestamps)
	end := from + duration
	if from == 0 || first < from {
		from = first
	}
	if end <= last {
		end = last + 1
	}
	return from, end - from
}

func (p *legacyProfile) observations(sample int32) (values []int64, timestamps []uint64) {
	valuesStart, timestampsStart := 0, 0
	if sample > 0 {
		valuesStart, timestampsStart = p.samples[sample-1].valuesEnd, p.samples[sample-1].timestampsEnd
	}
	return p.values[valuesStart:p.samples[sample].valuesEnd], p.timestamps[timestampsStart:p.samples[sample].timestampsEnd]
}

// each calls visit for each value that is to be written: its sample type, its shape and its sample.
//
// Old layouts have one value for each sample type and any number of timestamps; profilers sent other combinations too:
//
//	values           timestamps   now
//	one each         none         the value
//	none             n            timestamps alone, in the first profile
//	n, of one type   n            each value with its timestamp
//	a count of n     n > 1        timestamps alone: each is one event
//	a count of 1     n > 1        the same: the value was required and means nothing
//	v                n            v is a total: it is divided evenly over the timestamps
func (e *emitter) each(first int, visit func(k int, s shape, sample int32)) {
	p := e.p
	for i := range int32(len(p.samples)) {
		values, timestamps := p.observations(i)
		switch {
		case len(values) == 0:
			visit(first, timestampsOnly, i)
			continue
		case len(p.types) == 1:
			visit(0, e.shapeOf(0, values, timestamps), i)
			continue
		}
		isZero := !slices.ContainsFunc(values, func(v int64) bool { return v != 0 })
		for k, v := range values {
			if v != 0 || isZero && k == min(first, len(values)-1) {
				visit(k, e.shapeOf(k, values, timestamps), i)
			}
		}
	}
}

// shapeOf returns the shape of what a sample has for sample type k.
func (e *emitter) shapeOf(k int, values []int64, timestamps []uint64) shape {
	n := len(timestamps)
	switch {
	case n == 0:
		return valueOnly
	case n > 1 && len(values) <= len(e.p.types) && (values[k] == int64(n) || values[k] == 1) && e.counts(k):
		return timestampsOnly
	default:
		return valuesAndTimestamps
	}
}

// numbers returns how many values and timestamps event returns.
func (e *emitter) numbers(s shape, sample int32) int {
	_, timestamps := e.p.observations(sample)
	if s == timestampsOnly {
		return len(timestamps)
	}
	return len(timestamps) + max(1, len(timestamps))
}

// event returns what a sample has for sample type k, in the shape that each found. The values are valid until the next
// call.
func (e *emitter) event(k int, s shape, sample int32) ([]int64, []uint64) {
	values, timestamps := e.p.observations(sample)
	switch {
	case s == timestampsOnly:
		return nil, timestamps
	case len(values) > len(e.p.types): // of one type, as many as timestamps
		return values, timestamps
	case len(timestamps) <= 1:
		return values[k : k+1], timestamps
	}
	v, n := values[k], int64(len(timestamps))
	e.divided = e.divided[:0]
	for range n {
		e.divided = append(e.divided, v/n)
	}
	e.divided[0] += v % n
	return e.divided, timestamps
}

// counts reports whether the unit of sample type k is a count.
func (e *emitter) counts(k int) bool {
	unit := e.p.types[k].unit
	is, known := e.isCount[unit]
	if !known {
		is = e.r.stringAt(e.t, unit) == "count"
		e.isCount[unit] = is
	}
	return is
}
