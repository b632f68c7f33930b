// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplayouts

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
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
	if len(p.types) == 0 {
		p.types = []legacyType{{}}
	}
	order := p.order(r, t)
	if len(order) > 1 {
		r.recordOrder(p, t, order, scope.Scope().Attributes())
	}
	if len(p.comments) > 0 {
		p.attributes.add("pprof.profile.comment", r.profileComments(t, p.comments), 0)
	}
	e := emitter{
		r: r, p: p, t: t, scope: scope, attributes: p.attributes.intern(),
		events: make(map[int]*[numShapes][]event, len(order)), isCount: make(map[uint64]bool, 1),
	}
	e.from, e.duration = p.window()
	for i := range p.samples {
		e.sample(i, order[0])
	}
	for _, k := range order {
		if byShape := e.events[k]; byShape != nil {
			for _, events := range byShape {
				if len(events) > 0 {
					e.profile(k, events)
				}
			}
		}
	}
}

// event is what one sample has for one sample type.
type event struct {
	sample     int
	values     []int64
	timestamps []uint64
}

// emitter writes one old profile in the current form.
type emitter struct {
	r          *legacyReader
	p          *legacyProfile
	t          *legacyTables
	scope      pprofile.ScopeProfiles
	attributes profiledict.AttributeSetIndex
	from       uint64
	duration   uint64
	// events are to be written, by sample type and shape. A sample has an event for each of its values.
	events  map[int]*[numShapes][]event
	isCount map[uint64]bool // by the string index of a unit: whether it is "count"
	emitted int
}

func (e *emitter) add(k, sample int, values []int64, timestamps []uint64) {
	if e.events[k] == nil {
		e.events[k] = &[numShapes][]event{}
	}
	s := shapeOf(values, timestamps)
	e.events[k][s] = append(e.events[k][s], event{sample, values, timestamps})
}

// profile writes the profile of sample type k and one shape.
func (e *emitter) profile(k int, events []event) {
	r, p := e.r, e.p
	sampleType, periodType := r.valueType(e.t, p.types[k]), r.valueType(e.t, p.periodType)
	if p.types[k] == (legacyType{}) {
		sampleType = [2]profiledict.StringIndex{r.dict.Strings.Intern("samples"), r.dict.Strings.Intern("count")}
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
	if p.types[k].cumulative {
		set := attributeSet{reader: r}
		set.add(attrTemporality, profiledict.StringValue("cumulative"), 0)
		profile.AttributeIndices().Append(set.indices...)
	}
	if e.emitted == 0 && len(p.payload) > 0 && p.payloadFormat != "" {
		profile.SetOriginalPayloadFormat(p.payloadFormat)
		profile.OriginalPayload().FromRaw(p.payload)
	}
	e.emitted++
	profile.Samples().EnsureCapacity(len(events))
	for _, event := range events {
		old := &p.samples[event.sample]
		sample := profile.Samples().AppendEmpty()
		sample.SetStackIndex(int32(old.stack))
		sample.SetLinkIndex(int32(old.link))
		r.dict.AttributeSets.CopyTo(old.attributes, sample.AttributeIndices())
		sample.Values().FromRaw(event.values)
		sample.TimestampsUnixNano().FromRaw(event.timestamps)
	}
}

// attrTemporality marks the values of a profile as totals since a fixed start. Layouts up to 1.8 had a field for it;
// the current one does not.
const attrTemporality = "otlp.aggregation_temporality"

func (r *legacyReader) valueType(t *legacyTables, v legacyType) [2]profiledict.StringIndex {
	return [2]profiledict.StringIndex{r.internText(t, v.typ), r.internText(t, v.unit)}
}

// recordOrder records the order that the sample types had, and the default if one was named: OTLP's default is the first
// profile (semantic conventions, registry/attributes/pprof).
func (r *legacyReader) recordOrder(p *legacyProfile, t *legacyTables, order []int, scope pcommon.Map) {
	if p.defaultType < 0 || p.defaultType >= len(p.types) {
		return
	}
	name := r.text(t, p.types[p.defaultType].typ)
	if r.scopeBudget -= len(name) + len(order); r.scopeBudget < 0 {
		r.stats.Repaired[RepairExpansion]++
		return
	}
	scope.PutStr("pprof.scope.default_sample_type", name)
	if order[0] != 0 {
		indices := scope.PutEmptySlice("pprof.scope.sample_type_order")
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

func shapeOf(values []int64, timestamps []uint64) shape {
	switch {
	case len(timestamps) == 0:
		return valueOnly
	case len(values) == 0:
		return timestampsOnly
	default:
		return valuesAndTimestamps
	}
}

// sample adds the events of sample i.
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
func (e *emitter) sample(i, first int) {
	p := e.p
	valuesStart, timestampsStart := 0, 0
	if i > 0 {
		valuesStart, timestampsStart = p.samples[i-1].valuesEnd, p.samples[i-1].timestampsEnd
	}
	values := p.values[valuesStart:p.samples[i].valuesEnd]
	timestamps := p.timestamps[timestampsStart:p.samples[i].timestampsEnd]
	switch {
	case len(values) == 0:
		e.add(first, i, nil, timestamps)
		return
	case len(p.types) == 1 && len(values) == len(timestamps):
		e.add(0, i, values, timestamps)
		return
	case len(values) != len(p.types):
		e.r.stats.Repaired[RepairValueCount]++
		values = values[:min(len(values), len(p.types))]
	}
	isZero := !slices.ContainsFunc(values, func(v int64) bool { return v != 0 })
	for k, v := range values {
		switch {
		case isZero && k == min(first, len(values)-1), v != 0, len(p.types) == 1:
			e.value(k, i, v, timestamps)
		}
	}
}

// value adds the event of one value of a sample that has a value for each sample type.
func (e *emitter) value(k, i int, v int64, timestamps []uint64) {
	n := len(timestamps)
	if len(e.p.types) > 1 {
		// The timestamps are written once for each type.
		if e.r.eventBudget -= n; e.r.eventBudget < 0 {
			e.r.stats.Repaired[RepairExpansion]++
			n, timestamps = 0, nil
		}
	}
	switch {
	case n <= 1:
		e.add(k, i, []int64{v}, timestamps)
		return
	case (v == int64(n) || v == 1) && e.counts(k):
		e.add(k, i, nil, timestamps)
		return
	}
	divided := make([]int64, n)
	for j := range divided {
		divided[j] = v / int64(n)
	}
	divided[0] += v % int64(n)
	e.add(k, i, divided, timestamps)
}

// counts reports whether the unit of sample type k is a count.
func (e *emitter) counts(k int) bool {
	unit := e.p.types[k].unit
	is, known := e.isCount[unit]
	if !known {
		is = e.r.text(e.t, unit) == "count"
		e.isCount[unit] = is
	}
	return is
}
