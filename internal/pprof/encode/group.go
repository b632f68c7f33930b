// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

const (
	// maxAlwaysJoined is the number of profiles that are always joined if they belong together.
	maxAlwaysJoined = 64
	// maxJoinedValues bounds the values that are written if more of them are joined. A pprof has a value for
	// each sample and type, so that a few megabytes of OTLP could become a pprof of any size.
	maxJoinedValues = 4 << 20
)

// groupKey is what profiles must share to be sample types of one pprof. Within one dictionary
// equal values have equal indices.
type groupKey struct {
	origin                 origin
	period                 int64
	periodType, periodUnit int32
	attributes             dictionary.AttributeSetIndex
	name                   string
}

type valueType struct{ typ, unit int32 }

func sampleType(p pprofile.Profile) valueType {
	return valueType{p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex()}
}

// origin is the time, the duration and the timestamp label of the pprof that a profile was decoded from, as its
// attributes record them. What they do not record are the profile's own fields, and the default label.
type origin struct {
	time, duration uint64
	label, unit    string
}

func (e *encoder) originOf(p pprofile.Profile, profile int) origin {
	o := origin{time: uint64(p.Time()), duration: p.DurationNano(), label: scan.KeyTimestamp, unit: scan.TimestampUnit}
	path := func() string { return e.profilePath(profile) }
	e.entries(p.AttributeIndices(), path, func(_ int32, key string, v pcommon.Value) {
		switch t := v.Type(); {
		case key == scan.AttributeTimeNanos && t == pcommon.ValueTypeInt:
			o.time = uint64(v.Int())
		case key == scan.AttributeDurationNanos && t == pcommon.ValueTypeInt:
			o.duration = uint64(v.Int())
		case key == scan.AttributeTimestampLabel && t == pcommon.ValueTypeStr:
			o.label = v.Str()
		case key == scan.AttributeTimestampUnit && t == pcommon.ValueTypeStr:
			o.unit = v.Str()
		}
	})
	return o
}

// group lists the profiles that become one pprof, in the order of its sample types. There are as many as types, or
// twice as many: first those with timestamps, then those without. In a view there can be any multiple of the types.
type group struct {
	profiles []int
	types    int
}

// groupProfiles lists the pprofs that the profiles of a scope become.
func (e *encoder) groupProfiles(scope pprofile.ScopeProfiles) []group {
	var groups [][]int
	byKey := map[groupKey]int{}
	profiles := scope.Profiles()
	if e.cpuTimes = nil; e.view.CPUTimes != nil {
		e.cpuTimes = e.view.CPUTimes(profiles)
	}
	var namer kind.Namer
	namer.Begin(scope.Scope().Attributes(), profiles, e.dict)
	stated := kind.Stated(scope.Scope().Attributes())
	for i := range profiles.Len() {
		p := profiles.At(i)
		key := groupKey{
			origin: e.originOf(p, i), period: p.Period(),
			periodType: p.PeriodType().TypeStrindex(), periodUnit: p.PeriodType().UnitStrindex(),
			attributes: e.attributeSet(p.AttributeIndices()),
		}
		if e.view.SplitProfiles {
			key.name = namer.Name(p, stated)
		}
		g, ok := byKey[key]
		if !ok {
			g = len(groups)
			byKey[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	var pprofs []group
	for _, members := range groups {
		split := splitGroup(profiles, members, e.order, e.view.SplitNames)
		if e.view.Sample == nil { // samples keep their timestamps
			pprofs = append(pprofs, joinTimed(profiles, splitMixed(profiles, split))...)
			continue
		}
		pprofs = append(pprofs, joinSame(profiles, split)...)
	}
	return pprofs
}

// splitMixed splits each pprof in which some profiles have samples with timestamps and others without. Otherwise the
// decoder would emit every sample type twice, with and without timestamps.
func splitMixed(profiles pprofile.ProfilesSlice, pprofs [][]int) (split [][]int) {
	for _, members := range pprofs {
		var parts [2][]int // those like the first profile with samples, and the others
		first := slices.IndexFunc(members, func(p int) bool { return profiles.At(p).Samples().Len() > 0 })
		for _, p := range members {
			part := 0
			if profiles.At(p).Samples().Len() > 0 && isTimed(profiles.At(p)) != isTimed(profiles.At(members[first])) {
				part = 1
			}
			parts[part] = append(parts[part], p)
		}
		split = append(split, parts[0])
		if parts[1] != nil {
			split = append(split, parts[1])
		}
	}
	return split
}

// isTimed reports whether the first of a profile's samples has timestamps.
func isTimed(p pprofile.Profile) bool { return p.Samples().At(0).TimestampsUnixNano().Len() > 0 }

// joinSame joins consecutive pprofs that have the same sample types, for a view without timestamps: a server that
// takes one profile of a series and time keeps one of them.
func joinSame(profiles pprofile.ProfilesSlice, pprofs [][]int) (joined []group) {
	for i, members := range pprofs {
		if last := len(joined) - 1; i > 0 && haveSameTypes(profiles, pprofs[i-1], members) {
			joined[last].profiles = append(joined[last].profiles, members...)
			continue
		}
		joined = append(joined, group{profiles: slices.Clip(members), types: len(members)}) // others follow them
	}
	return joined
}

// joinTimed joins two consecutive pprofs if they have the same sample types, the first with timestamps and the second
// without.
func joinTimed(profiles pprofile.ProfilesSlice, pprofs [][]int) (joined []group) {
	for i := 0; i < len(pprofs); i++ {
		g := group{profiles: pprofs[i], types: len(pprofs[i])}
		if i+1 < len(pprofs) && haveSameTypes(profiles, pprofs[i], pprofs[i+1]) &&
			haveTimes(profiles, pprofs[i], true) && haveTimes(profiles, pprofs[i+1], false) {
			i++
			g.profiles = slices.Concat(g.profiles, pprofs[i])
		}
		joined = append(joined, g)
	}
	return joined
}

func haveSameTypes(profiles pprofile.ProfilesSlice, a, b []int) bool {
	return slices.EqualFunc(a, b, func(x, y int) bool {
		return sampleType(profiles.At(x)) == sampleType(profiles.At(y))
	})
}

// haveTimes reports whether there are samples, and all of them have timestamps (if timed) or none has.
func haveTimes(profiles pprofile.ProfilesSlice, members []int, timed bool) bool {
	n := 0
	for _, p := range members {
		for _, s := range profiles.At(p).Samples().All() {
			if n++; (s.TimestampsUnixNano().Len() > 0) != timed {
				return false
			}
		}
	}
	return n > 0
}

// splitGroup orders a group's profiles by the scope's attribute, and splits those that cannot be one pprof.
func splitGroup(profiles pprofile.ProfilesSlice, group, order []int, splitNames bool) [][]int {
	if n := len(order); n > 0 && len(group)%n == 0 {
		var chunks [][]int
		mayJoin := true
		for chunk := range slices.Chunk(group, n) {
			ordered := make([]int, n)
			for i, at := range order {
				ordered[at] = chunk[i]
			}
			chunks, mayJoin = append(chunks, ordered), mayJoin && isSmall(profiles, chunk)
		}
		if mayJoin {
			return chunks
		}
	}
	var pprofs [][]int
	mayJoinAll := isSmall(profiles, group)
	seen := map[valueType]bool{}
	for i, p := range group {
		t := sampleType(profiles.At(p))
		if splitNames {
			t.unit = 0
		}
		if i == 0 || seen[t] || (!mayJoinAll && len(seen) == maxAlwaysJoined) {
			clear(seen)
			pprofs = append(pprofs, nil)
		}
		seen[t] = true
		last := len(pprofs) - 1
		pprofs[last] = append(pprofs[last], p)
	}
	return pprofs
}

// isSmall reports whether profiles can become one pprof of a reasonable size.
func isSmall(profiles pprofile.ProfilesSlice, group []int) bool {
	if len(group) <= maxAlwaysJoined {
		return true
	}
	samples := 0
	for _, p := range group {
		for _, s := range profiles.At(p).Samples().All() {
			samples += max(1, s.TimestampsUnixNano().Len())
		}
	}
	return samples <= maxJoinedValues/len(group)
}

// readScope reads the attributes of a scope, once for all of its pprofs: there can be many of both.
func (e *encoder) readScope(scope pcommon.Map) {
	order, ok := scope.Get(kind.AttributeSampleTypeOrder)
	e.order, e.hasOrder = nil, ok
	if ok && order.Type() == pcommon.ValueTypeSlice {
		e.order = permutation(order.Slice())
	}
	typ, ok := scope.Get(kind.AttributeDefaultSampleType)
	e.defaultType, e.hasDefault = "", ok && typ.Type() == pcommon.ValueTypeStr
	if e.hasDefault {
		e.defaultType = typ.Str()
	}
}

// permutation reads the order of sample types: element i is profile i's position in the pprof. It returns nil if it is
// not a permutation.
func permutation(list pcommon.Slice) []int {
	n := list.Len()
	order, isUsed := make([]int, n), make([]bool, n)
	for i, element := range list.All() {
		at := element.Int()
		if element.Type() != pcommon.ValueTypeInt || at < 0 || at >= int64(n) || isUsed[at] {
			return nil
		}
		order[i], isUsed[at] = int(at), true
	}
	return order
}

// attributeSet identifies a set of attribute indices, regardless of their order: 0 for none, -1-i for {i}, the
// others by interning. Most samples have at most one.
func (e *encoder) attributeSet(indices pcommon.Int32Slice) dictionary.AttributeSetIndex {
	e.set = appendIndices(e.set[:0], indices)
	return e.setOf(e.set)
}

func (e *encoder) setOf(attributes []int32) dictionary.AttributeSetIndex {
	switch n := len(attributes); {
	case n == 0:
		return 0
	case n == 1 && attributes[0] >= 0:
		return -1 - dictionary.AttributeSetIndex(attributes[0])
	}
	return e.sets.Intern(attributes)
}

func appendIndices(b []int32, indices pcommon.Int32Slice) []int32 {
	for k := range indices.Len() {
		b = append(b, indices.At(k))
	}
	return b
}

// writeValueType writes a sample type or period type of a profile.
func (e *encoder) writeValueType(field int, t pprofile.ValueType, profile int, name string) {
	b, start := openMessage(e.out, field)
	for k, strindex := range [...]int32{t.TypeStrindex(), t.UnitStrindex()} {
		at, ok := e.typeName(strindex, k == 1)
		if !ok {
			path := e.profilePath(profile) + "." + name + [...]string{".type_strindex", ".unit_strindex"}[k]
			e.fail(path, strindex, e.strings.table.Len())
		}
		b = appendUint(b, scan.ValueTypeType+k, at)
	}
	e.out = closeMessage(b, start)
}

// writeHeader writes pprof's single fields, which are the same for all profiles of a group.
func (e *encoder) writeHeader(scope pprofile.ScopeProfiles, members group) {
	index := members.profiles[0]
	p := scope.Profiles().At(index)
	path := func() string { return e.profilePath(index) }
	e.entries(p.AttributeIndices(), path, e.writeProfileAttribute)
	e.out = appendUint(e.out, scan.ProfileTimeNanos, e.origin.time)
	e.out = appendUint(e.out, scan.ProfileDurationNanos, e.origin.duration)
	period := uint64(p.Period())
	if at := slices.IndexFunc(members.profiles, e.hasCPUTime); at >= 0 {
		period = uint64(e.cpuTimes[members.profiles[at]].Period)
		e.writeCPUType(scan.ProfilePeriodType)
	} else if t := p.PeriodType(); t.TypeStrindex() != 0 || t.UnitStrindex() != 0 || e.view.EmptyPeriodType {
		e.writeValueType(scan.ProfilePeriodType, t, index, "period_type")
	}
	e.out = appendUint(e.out, scan.ProfilePeriod, period)
	e.writeDefaultSampleType(scope, members)
}

// writeDefaultSampleType writes the type that the scope names, as Decode has recorded it. Profiles that were
// never a pprof have no such record: their default is the first one. It has to be written, since pprof's is the last.
func (e *encoder) writeDefaultSampleType(scope pprofile.ScopeProfiles, members group) {
	if e.hasDefault {
		e.out = appendUint(e.out, scan.ProfileDefaultSampleType, e.strings.add(e.defaultType))
		return
	}
	if e.hasOrder || members.types == 1 && len(e.cpuTimes) == 0 {
		return
	}
	first := scope.Profiles().At(members.profiles[0]).SampleType().TypeStrindex()
	if typ, ok := e.typeName(first, false); ok {
		e.out = appendUint(e.out, scan.ProfileDefaultSampleType, typ)
	}
}

func (e *encoder) writeComment(comment string) {
	// Comment 0 is an empty one, which appendUint would leave out.
	e.out = append(e.out, varintTag(scan.ProfileComment))
	e.out = protowire.AppendVarint(e.out, e.strings.add(comment))
}

// writeProfileAttribute writes an attribute that pprof has a field for. originOf has read times and their label.
func (e *encoder) writeProfileAttribute(_ int32, key string, v pcommon.Value) {
	switch t := v.Type(); {
	case key == scan.AttributeComment && t == pcommon.ValueTypeStr:
		e.writeComment(v.Str())
	case key == scan.AttributeComment && t == pcommon.ValueTypeSlice:
		for _, comment := range v.Slice().All() {
			e.writeComment(valueString(comment))
		}
	case t == pcommon.ValueTypeStr:
		for _, field := range scan.StringFields {
			if field.Attribute == key {
				e.out = appendUint(e.out, field.Number, e.strings.add(v.Str()))
			}
		}
	}
}
