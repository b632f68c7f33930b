// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// valueType is a sample type or period type by name.
type valueType struct{ typ, unit string }

func (d *decoder) valueTypeOf(raw rawValueType) valueType {
	return valueType{typ: d.strOrEmpty(raw.typ), unit: d.strOrEmpty(raw.unit)}
}

func (d *decoder) writeValueType(v valueType, dst pprofile.ValueType) {
	dst.SetTypeStrindex(int32(d.dict.Strings.Intern(v.typ)))
	dst.SetUnitStrindex(int32(d.dict.Strings.Intern(v.unit)))
}

// emit writes the decoded payload as pdata.
func (d *decoder) emit() pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	if d.delta.saysNothing() {
		return profiles
	}
	types := make([]valueType, 0, d.valuesPerSample)
	for _, raw := range d.sampleTypes {
		types = append(types, d.valueTypeOf(raw))
	}
	if len(types) == 0 {
		if len(d.kept) == 0 {
			return profiles
		}
		types = append(types, valueType{typ: "samples", unit: "count"})
	}
	defaultType := d.strOrEmpty(d.defaultSampleType)
	scopes := d.scopes(types, defaultType)
	if len(scopes) == 0 {
		return profiles
	}
	h := profileHeader{
		types:       types,
		defaultType: defaultType,
		attributes:  d.profileAttributes(),
		periodType:  d.valueTypeOf(d.periodType),
		time:        d.notNegativeTime(d.timeNanos),
		duration:    d.notNegativeTime(d.durationNanos),
		id:          d.delta.content,
	}
	if !d.delta.active {
		h.id = newContentID(d.data)
	}
	resource := profiles.ResourceProfiles().AppendEmpty()
	for _, members := range scopes {
		d.emitScope(resource.ScopeProfiles().AppendEmpty(), &h, members)
	}
	d.orderMappings()
	// Sharing the copied string table saves a copy of each string; it is worth it where most of it is used.
	if d.dict.StringBytes()*2 < len(d.text) {
		d.dict.DetachStrings()
	}
	d.dict.CopyTo(profiles.Dictionary())
	return profiles
}

// profileHeader is what the profiles of one payload share.
type profileHeader struct {
	types          []valueType
	defaultType    string // as the payload names it, or empty
	attributes     profiledict.AttributeSetIndex
	periodType     valueType
	time, duration uint64
	id             contentID
}

// emitScope writes the profiles of some sample types.
func (d *decoder) emitScope(scope pprofile.ScopeProfiles, h *profileHeader, members []int) {
	order := d.order(h, members, scope.Scope().Attributes())
	scope.Profiles().EnsureCapacity(len(order))
	for _, t := range order {
		profile := scope.Profiles().AppendEmpty()
		id, time, duration, isFirst := h.id, h.time, h.duration, t == order[0]
		if d.delta.active && d.delta.isCumulative[t] {
			id, time, duration, isFirst = d.delta.deltaContent, d.delta.fromNanos, d.delta.forNanos, false
		}
		profile.SetProfileID(id.of(t))
		d.writeValueType(h.types[t], profile.SampleType())
		d.writeValueType(h.periodType, profile.PeriodType())
		profile.SetPeriod(d.period)
		profile.SetTime(pcommon.Timestamp(time))
		profile.SetDurationNano(duration)
		d.dict.AttributeSets.CopyTo(h.attributes, profile.AttributeIndices())
		d.writeSamples(profile.Samples(), t, isFirst)
	}
}

func (d *decoder) notNegativeTime(nanos int64) uint64 {
	if nanos < 0 {
		d.stats.Repaired[RepairNegativeTime]++
		return 0
	}
	return uint64(nanos)
}

// scopes lists the scopes to write, each by its sample types: all in one, or those of deltas apart from
// the others, since they have another time.
func (d *decoder) scopes(types []valueType, defaultType string) [][]int {
	all := d.typeScratch[:0]
	for t := range types {
		all = append(all, t)
	}
	d.typeScratch = all
	if !d.delta.active {
		return [][]int{all}
	}
	return d.deltaScopes(all[firstType(types, all, defaultType)])
}

// firstType gives the place in members of pprof's default: the type that is named, else the last.
func firstType(types []valueType, members []int, defaultType string) int {
	if defaultType != "" {
		if i := slices.IndexFunc(members, func(t int) bool { return types[t].typ == defaultType }); i >= 0 {
			return i
		}
	}
	return len(members) - 1
}

// order gives the sample types of a scope in the order of their Profiles, the default first, and notes in
// the scope's attributes what that order hides: OTLP's default is the first profile, pprof's is a named
// type, or the last.
func (d *decoder) order(h *profileHeader, members []int, scope pcommon.Map) []int {
	first := firstType(h.types, members, h.defaultType)
	// Of a delta's two scopes, the one that has the type names it.
	if h.defaultType != "" && (!d.delta.active || h.types[members[first]].typ == h.defaultType) {
		scope.PutStr(pprofscan.AttributeDefaultSampleType, strings.Clone(h.defaultType))
	}
	order := make([]int, 0, len(members))
	order = append(order, members[first])
	for i, t := range members {
		if i != first {
			order = append(order, t)
		}
	}
	if first != 0 || repeats(h.types, members) {
		indices := scope.PutEmptySlice(pprofscan.AttributeSampleTypeOrder)
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

// repeats reports whether two sample types are equal. The recorded order then tells profiles of
// one payload from those of two.
func repeats(types []valueType, members []int) bool {
	seen := make(map[valueType]struct{}, len(members))
	for _, t := range members {
		seen[types[t]] = struct{}{}
	}
	return len(seen) < len(members)
}

// commentBytes is what a comment counts against the budget beside its text.
const commentBytes = 16

func (d *decoder) profileAttributes() profiledict.AttributeSetIndex {
	var attributes []int32
	if len(d.comments) > 0 {
		value := pcommon.NewValueSlice()
		for _, c := range d.comments {
			if !d.hasString(c) {
				d.stats.Repaired[RepairUnknownReference]++
				continue
			}
			text := d.str(c)
			if !d.spend(len(text) + commentBytes) {
				d.stats.Repaired[RepairDroppedComment]++
				continue
			}
			value.Slice().AppendEmpty().SetStr(text)
		}
		attributes = append(attributes, d.attribute(pprofscan.AttributeComment, profiledict.ValueOf(value)))
	}
	for _, text := range []struct {
		key   string
		index uint64
	}{{pprofscan.AttributeDropFrames, d.dropFrames}, {pprofscan.AttributeKeepFrames, d.keepFrames}, {pprofscan.AttributeDocURL, d.docURL}} {
		if s := d.strOrEmpty(text.index); s != "" {
			attributes = append(attributes, d.attribute(text.key, profiledict.StringValue(s)))
		}
	}
	return d.set(attributes...)
}

// writeSamples writes the samples that have a value of type t. One that is 0 for all types has no
// profile to stand in; it goes to the first, so that nothing is lost.
func (d *decoder) writeSamples(dst pprofile.SampleSlice, t int, isFirst bool) {
	n := d.valuesPerSample
	count := 0
	for i := range d.kept {
		if d.stands(i, t, isFirst) {
			count++
		}
	}
	dst.EnsureCapacity(count)
	for i := range d.kept {
		if !d.stands(i, t, isFirst) {
			continue
		}
		s := &d.kept[i]
		entry := dst.AppendEmpty()
		entry.SetStackIndex(int32(s.stack))
		entry.SetLinkIndex(int32(s.link))
		entry.Values().Append(d.values[i*n+t])
		d.dict.AttributeSets.CopyTo(s.attributes, entry.AttributeIndices())
	}
}

// stands reports whether sample i stands in the profile of type t.
func (d *decoder) stands(i, t int, isFirst bool) bool {
	n := d.valuesPerSample
	if n == 1 || d.values[i*n+t] != 0 {
		return true
	}
	if !isFirst {
		return false
	}
	for _, v := range d.values[i*n : (i+1)*n] {
		if v != 0 {
			return false
		}
	}
	return true
}

// contentID makes profile ids from a hash of the plain payload, so that a payload that is sent
// again, however compressed, carries the same ids.
type contentID [16]byte

func newContentID(data []byte) (id contentID) {
	binary.BigEndian.PutUint64(id[:8], xxhash.Sum64(data))
	second := xxhash.NewWithSeed(uint64(len(data)) + 1)
	_, _ = second.Write(data) // never fails
	binary.BigEndian.PutUint64(id[8:], second.Sum64())
	return id
}

// of gives the id of the profile of sample type t.
func (id contentID) of(t int) pprofile.ProfileID {
	var text [18]byte
	copy(text[:], id[:])
	binary.BigEndian.PutUint16(text[16:], uint16(t))
	var out pprofile.ProfileID
	binary.BigEndian.PutUint64(out[:8], xxhash.Sum64(text[:]))
	binary.BigEndian.PutUint64(out[8:], xxhash.Sum64(text[1:]))
	return out
}
