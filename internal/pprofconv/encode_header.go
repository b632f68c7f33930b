// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// writeValueType writes a sample type or period type of a profile.
func (e *encoder) writeValueType(field int, t pprofile.ValueType, profile int, name string) {
	typ, typOK := e.strings.index(t.TypeStrindex())
	unit, unitOK := e.strings.index(t.UnitStrindex())
	n := e.strings.table.Len()
	if !typOK {
		e.fail(e.profilePath(profile)+"."+name+".type_strindex", t.TypeStrindex(), n)
	}
	if !unitOK {
		e.fail(e.profilePath(profile)+"."+name+".unit_strindex", t.UnitStrindex(), n)
	}
	b, start := encOpen(e.out, field)
	b = encAppendUint(b, 1, typ)
	b = encAppendUint(b, 2, unit)
	e.out = encClose(b, start)
}

// writeHeader writes pprof's single fields. The profiles of a group agree in them.
func (e *encoder) writeHeader(scope pprofile.ScopeProfiles, group []int) {
	index := group[0]
	p := scope.Profiles().At(index)
	path := func() string { return e.profilePath(index) }
	e.entries(p.AttributeIndices(), path, func(_ int32, key string, v pcommon.Value) {
		if !e.writeProfileAttribute(key, v) {
			e.stats.Omitted[OmitProfileAttribute]++
		}
	})
	e.out = encAppendUint(e.out, encProfileTimeNanos, uint64(p.Time()))
	e.out = encAppendUint(e.out, encProfileDurationNanos, p.DurationNano())
	if t := p.PeriodType(); t.TypeStrindex() != 0 || t.UnitStrindex() != 0 {
		e.writeValueType(encProfilePeriodType, t, index, "period_type")
	}
	e.out = encAppendUint(e.out, encProfilePeriod, uint64(p.Period()))
	e.writeDefaultSampleType(scope, group)
}

// writeDefaultSampleType writes what the scope names, as Decode has recorded it. Profiles that were
// never a pprof have no such record: their default is the first, which pprof has to be told, since its
// own is the last.
func (e *encoder) writeDefaultSampleType(scope pprofile.ScopeProfiles, group []int) {
	attributes := scope.Scope().Attributes()
	if v, ok := attributes.Get(attrDefaultSampleType); ok && v.Type() == pcommon.ValueTypeStr {
		e.out = encAppendUint(e.out, encProfileDefaultSampleType, e.strings.text(v.Str()))
		return
	}
	if _, ok := attributes.Get(attrSampleTypeOrder); ok || len(group) == 1 {
		return
	}
	first := scope.Profiles().At(group[0]).SampleType().TypeStrindex()
	if typ, ok := e.strings.index(first); ok {
		e.out = encAppendUint(e.out, encProfileDefaultSampleType, typ)
	}
}

// writeProfileAttribute reports whether the attribute is one that pprof has a field for.
func (e *encoder) writeProfileAttribute(key string, v pcommon.Value) bool {
	if key == attrComment && v.Type() == pcommon.ValueTypeSlice {
		for _, comment := range v.Slice().All() {
			// Comment 0 is an empty one, which is why encAppendUint would not do.
			e.out = append(e.out, encVarintTag(encProfileComment))
			e.out = encAppendVarint(e.out, e.strings.text(encText(comment)))
		}
		return true
	}
	if v.Type() != pcommon.ValueTypeStr {
		return false
	}
	field := 0
	switch key {
	case attrComment:
		field = encProfileComment
	case attrDropFrames:
		field = encProfileDropFrames
	case attrKeepFrames:
		field = encProfileKeepFrames
	case attrDocURL:
		field = encProfileDocURL
	default:
		return false
	}
	e.out = encAppendUint(e.out, field, e.strings.text(v.Str()))
	return true
}
