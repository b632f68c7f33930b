// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// valueType is a sample type or period type by name.
type valueType struct{ typ, unit string }

func (w *worker) valueTypeOf(raw scan.ValueType) valueType {
	return valueType{typ: w.orEmpty(raw.Type), unit: w.orEmpty(raw.Unit)}
}

func (w *worker) writeValueType(v valueType, dst pprofile.ValueType) {
	dst.SetTypeStrindex(int32(w.dict.Strings.Intern(v.typ)))
	dst.SetUnitStrindex(int32(w.dict.Strings.Intern(v.unit)))
}

// emit writes the decoded payload as pdata.
func (w *worker) emit(window Window) pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	types := make([]valueType, 0, w.payload.ValuesPerSample())
	for _, raw := range w.payload.SampleTypes {
		types = append(types, w.valueTypeOf(raw))
	}
	if len(types) == 0 {
		if len(w.samples.Entries) == 0 {
			return profiles
		}
		types = append(types, valueType{typ: "samples", unit: "count"})
	}
	defaultType := w.orEmpty(w.payload.Numbers[scan.ProfileDefaultSampleType])
	scopes := w.scopes(types, defaultType)
	if len(scopes) == 0 {
		return profiles
	}
	h := profileHeader{
		types:       types,
		defaultType: defaultType,
		periodType:  w.valueTypeOf(w.payload.PeriodType),
		time:        w.notNegativeTime(scan.ProfileTimeNanos),
		duration:    w.notNegativeTime(scan.ProfileDurationNanos),
		id:          w.comparison.content,
	}
	if window.Duration > 0 {
		h.time, h.duration = window.Time, window.Duration
		w.comparison.fromNanos, w.comparison.forNanos = window.Time, window.Duration
	}
	h.timedFrom, h.timedFor = w.timed.window(h.time, h.duration)
	if !w.comparison.isActive {
		h.id = contentID(w.payload.Data)
	}
	h.attributes = w.profileAttributes(&h)
	resource := profiles.ResourceProfiles().AppendEmpty()
	for _, members := range scopes {
		w.emitScope(resource.ScopeProfiles().AppendEmpty(), &h, members)
	}
	w.orderMappings()
	// Sharing the copied string table saves a copy of each string; it is worth it if most of it is used.
	if w.dict.StringBytes()*2 < len(w.content) {
		w.dict.DetachStrings()
	}
	w.dict.CopyTo(profiles.Dictionary())
	return profiles
}

// profileHeader is what the profiles of one payload share.
type profileHeader struct {
	types          []valueType
	defaultType    string // as the payload names it, or empty
	attributes     dictionary.AttributeSetIndex
	periodType     valueType
	time, duration uint64
	// timedFrom and timedFor are the time and duration of profiles with timestamps.
	timedFrom, timedFor uint64
	id                  otlp.ContentID
}

// emitScope writes the profiles of some sample types.
func (w *worker) emitScope(scope pprofile.ScopeProfiles, h *profileHeader, members []int) {
	order := w.order(h, members, scope.Scope().Attributes())
	scope.Profiles().EnsureCapacity(len(order))
	if w.timed.exist {
		for _, t := range order {
			profile := scope.Profiles().AppendEmpty()
			w.writeProfile(profile, h, t)
			profile.SetTime(pcommon.Timestamp(h.timedFrom))
			profile.SetDurationNano(h.timedFor)
			w.writeSamples(profile.Samples(), timed, t, t == order[0])
		}
		if !slices.ContainsFunc(w.samples.Entries, func(s observedSample) bool { return s.Group == untimed }) {
			return
		}
	}
	for _, t := range order {
		profile := scope.Profiles().AppendEmpty()
		id, time, duration, isFirst := h.id, h.time, h.duration, t == order[0]
		if w.comparison.isActive && w.comparison.isCumulative[t] {
			id, time, duration, isFirst = w.comparison.deltaContent, w.comparison.fromNanos, w.comparison.forNanos, false
		}
		w.writeProfile(profile, h, t)
		if w.timed.exist {
			profile.SetProfileID(profileID(id, len(h.types)+t))
		} else {
			profile.SetProfileID(profileID(id, t))
		}
		profile.SetTime(pcommon.Timestamp(time))
		profile.SetDurationNano(duration)
		w.writeSamples(profile.Samples(), untimed, t, isFirst)
	}
}

// writeProfile writes what all profiles of sample type t share.
func (w *worker) writeProfile(profile pprofile.Profile, h *profileHeader, t int) {
	profile.SetProfileID(profileID(h.id, t))
	w.writeValueType(h.types[t], profile.SampleType())
	w.writeValueType(h.periodType, profile.PeriodType())
	profile.SetPeriod(int64(w.payload.Numbers[scan.ProfilePeriod]))
	w.dict.AttributeSets.CopyTo(h.attributes, profile.AttributeIndices())
}

// notNegativeTime returns the time or duration in a field.
func (w *worker) notNegativeTime(field int) uint64 {
	nanos := w.payload.Numbers[field]
	if int64(nanos) < 0 {
		w.stats.Repaired[scan.RepairNegativeTime]++
		return 0
	}
	return nanos
}

// scopes lists the scopes to write, each by its sample types. Without a Baseline all are in one. With it, the deltas
// that have something new are in a scope of their own, since they have another time; the scope with the default type is
// first.
func (w *worker) scopes(types []valueType, defaultType string) [][]int {
	w.types = w.types[:0]
	for t := range types {
		w.types = append(w.types, t)
	}
	all := w.types
	if !w.comparison.isActive {
		return [][]int{all}
	}
	var cumulative, present []int
	for t, isCumulative := range w.comparison.isCumulative {
		if !isCumulative {
			present = append(present, t)
		} else if w.hasValues(t) {
			cumulative = append(cumulative, t)
		}
	}
	scopes := [][]int{present, cumulative}
	if w.comparison.isCumulative[firstType(types, all, defaultType)] {
		slices.Reverse(scopes)
	}
	return slices.DeleteFunc(scopes, func(members []int) bool { return len(members) == 0 })
}

// firstType returns the position in members of pprof's default: the type that is named, otherwise the last.
func firstType(types []valueType, members []int, defaultType string) int {
	if defaultType != "" {
		if i := slices.IndexFunc(members, func(t int) bool { return types[t].typ == defaultType }); i >= 0 {
			return i
		}
	}
	return len(members) - 1
}

// order returns the sample types of a scope in the order of their Profiles, the default first, and records in
// the scope's attributes what that order hides: OTLP's default is the first profile, pprof's is a named
// type, or the last.
func (w *worker) order(h *profileHeader, members []int, scope pcommon.Map) []int {
	first := firstType(h.types, members, h.defaultType)
	// If there are two scopes, the one that has the type names it.
	if h.defaultType != "" && (!w.comparison.isActive || h.types[members[first]].typ == h.defaultType) {
		scope.PutStr(kind.AttributeDefaultSampleType, strings.Clone(h.defaultType))
	}
	order := slices.Concat(members[first:first+1], members[:first], members[first+1:])
	if first != 0 || haveEqual(h.types, members) {
		indices := scope.PutEmptySlice(kind.AttributeSampleTypeOrder)
		indices.EnsureCapacity(len(order))
		indices.AppendEmpty().SetInt(int64(first))
		for i := range members {
			if i != first {
				indices.AppendEmpty().SetInt(int64(i))
			}
		}
	}
	return order
}

// haveEqual reports whether two sample types are equal. The recorded order then distinguishes profiles of
// one payload from those of two.
func haveEqual(types []valueType, members []int) bool {
	seen := make(map[valueType]struct{}, len(members))
	for _, t := range members {
		seen[types[t]] = struct{}{}
	}
	return len(seen) < len(members)
}

// commentBytes is what a comment costs of the budget, in addition to its bytes.
const commentBytes = 16

func (w *worker) profileAttributes(h *profileHeader) dictionary.AttributeSetIndex {
	attributes := w.formAttributes()
	if w.timed.exist && (h.timedFrom != h.time || h.timedFor != h.duration) {
		attributes = append(attributes, w.attribute(scan.AttributeTimeNanos, dictionary.IntValue(int64(h.time))),
			w.attribute(scan.AttributeDurationNanos, dictionary.IntValue(int64(h.duration))))
	}
	if comments := w.payload.Comments; len(comments) > 0 {
		value := pcommon.NewValueSlice()
		for _, c := range comments {
			if !w.payload.HasString(c) {
				w.stats.Repaired[scan.RepairUnknownReference]++
				continue
			}
			comment := w.at(c)
			if !w.spend(len(comment) + commentBytes) {
				w.stats.Repaired[scan.RepairDroppedComment]++
				continue
			}
			value.Slice().AppendEmpty().SetStr(comment)
		}
		attributes = append(attributes, w.attribute(scan.AttributeComment, dictionary.ValueOf(value)))
	}
	for _, field := range scan.StringFields {
		if s := w.orEmpty(w.payload.Numbers[field.Number]); s != "" {
			attributes = append(attributes, w.attribute(field.Attribute, dictionary.StringValue(s)))
		}
	}
	return w.attributeSet(attributes...)
}

// contentID hashes a plain payload. A payload that is sent again has the same id, however it is compressed.
func contentID(data []byte) (id otlp.ContentID) {
	id.AddBytes(data)
	return id
}

func profileID(id otlp.ContentID, t int) pprofile.ProfileID {
	id.AddNumber(uint64(t))
	return id.ProfileID()
}
