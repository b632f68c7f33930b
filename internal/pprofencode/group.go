// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofencode

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
)

const (
	// maxSampleTypes is the number of profiles that are always joined where they belong together.
	maxSampleTypes = 64
	// maxJoinedValues bounds the values that joining more of them may write. A pprof has a value for
	// each sample and type, so that a few megabytes of OTLP could become a pprof of any size.
	maxJoinedValues = 4 << 20
)

// groupKey is what profiles must share to be sample types of one pprof. Within one dictionary
// equal values have equal indices.
type groupKey struct {
	time, duration         uint64
	period                 int64
	periodType, periodUnit int32
	attributes             setID
}

type valueType struct{ typ, unit int32 }

// groupProfiles lists the pprofs that the profiles of a scope make, each by its profiles' indices in
// the order of its sample types.
func (e *encoder) groupProfiles(scope pprofile.ScopeProfiles) [][]int {
	var groups [][]int
	byKey := map[groupKey]int{}
	profiles := scope.Profiles()
	for i := range profiles.Len() {
		p := profiles.At(i)
		key := groupKey{
			time: uint64(p.Time()), duration: p.DurationNano(), period: p.Period(),
			periodType: p.PeriodType().TypeStrindex(), periodUnit: p.PeriodType().UnitStrindex(),
			attributes: e.sets.intern(p.AttributeIndices()),
		}
		g, ok := byKey[key]
		if !ok {
			g = len(groups)
			byKey[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	order := sampleTypeOrder(scope.Scope())
	var pprofs [][]int
	for _, group := range groups {
		pprofs = append(pprofs, splitGroup(profiles, group, order)...)
	}
	return pprofs
}

// splitGroup orders a group's profiles by the scope's attribute, and splits what cannot be one pprof.
func splitGroup(profiles pprofile.ProfilesSlice, group, order []int) [][]int {
	var pprofs [][]int
	if n := len(order); n > 0 && len(group)%n == 0 && eachIsSmall(profiles, group, n) {
		for chunk := range slices.Chunk(group, n) {
			ordered := make([]int, n)
			for i, at := range order {
				ordered[at] = chunk[i]
			}
			pprofs = append(pprofs, ordered)
		}
		return pprofs
	}
	mayJoinAll := isSmall(profiles, group)
	seen := map[valueType]bool{}
	for i, p := range group {
		t := valueType{profiles.At(p).SampleType().TypeStrindex(), profiles.At(p).SampleType().UnitStrindex()}
		if i == 0 || seen[t] || (!mayJoinAll && len(seen) == maxSampleTypes) {
			clear(seen)
			pprofs = append(pprofs, nil)
		}
		seen[t] = true
		last := len(pprofs) - 1
		pprofs[last] = append(pprofs[last], p)
	}
	return pprofs
}

// eachIsSmall reports whether each n consecutive profiles may become one pprof.
func eachIsSmall(profiles pprofile.ProfilesSlice, group []int, n int) bool {
	for chunk := range slices.Chunk(group, n) {
		if !isSmall(profiles, chunk) {
			return false
		}
	}
	return true
}

// isSmall reports whether profiles may become one pprof without it growing out of proportion.
func isSmall(profiles pprofile.ProfilesSlice, group []int) bool {
	if len(group) <= maxSampleTypes {
		return true
	}
	samples := 0
	for _, p := range group {
		list := profiles.At(p).Samples()
		for i := range list.Len() {
			samples += max(1, list.At(i).TimestampsUnixNano().Len())
		}
	}
	return samples <= maxJoinedValues/len(group)
}

// sampleTypeOrder reads the scope's attribute: element i is profile i's place in the pprof. It returns
// nil if there is none or it is no permutation.
func sampleTypeOrder(scope pcommon.InstrumentationScope) []int {
	v, ok := scope.Attributes().Get(pprofscan.AttributeSampleTypeOrder)
	if !ok || v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	n := v.Slice().Len()
	order, taken := make([]int, n), make([]bool, n)
	for i, element := range v.Slice().All() {
		at := element.Int()
		if element.Type() != pcommon.ValueTypeInt || at < 0 || at >= int64(n) || taken[at] {
			return nil
		}
		order[i], taken[at] = int(at), true
	}
	return order
}

// setID identifies a set of attribute indices: 0 for none, -1-i for {i}, the others by interning.
type setID int32

// setPrefix is a set's elements but the last, and the last.
type setPrefix struct {
	set  setID
	last int32
}

// attributeSets interns sets of attribute indices as paths of a trie, so that equal sets, in whatever
// order they were listed, have equal ids without a hash that could collide.
type attributeSets struct {
	children map[setPrefix]setID
	sorted   []int32
}

func (s *attributeSets) reset() { s.children = cleared(s.children) }

func (s *attributeSets) intern(indices pcommon.Int32Slice) setID {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	if n == 1 && indices.At(0) >= 0 {
		return setID(-1 - indices.At(0))
	}
	s.sorted = s.sorted[:0]
	for k := range n {
		s.sorted = append(s.sorted, indices.At(k))
	}
	if !slices.IsSorted(s.sorted) {
		slices.Sort(s.sorted)
	}
	if s.children == nil {
		s.children = map[setPrefix]setID{}
	}
	id := setID(0)
	for _, last := range s.sorted {
		child, ok := s.children[setPrefix{id, last}]
		if !ok {
			child = setID(len(s.children) + 1)
			s.children[setPrefix{id, last}] = child
		}
		id = child
	}
	return id
}

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
	b, start := openMessage(e.out, field)
	b = appendUint(b, 1, typ)
	b = appendUint(b, 2, unit)
	e.out = closeMessage(b, start)
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
	e.out = appendUint(e.out, pprofscan.ProfileTimeNanos, uint64(p.Time()))
	e.out = appendUint(e.out, pprofscan.ProfileDurationNanos, p.DurationNano())
	if t := p.PeriodType(); t.TypeStrindex() != 0 || t.UnitStrindex() != 0 {
		e.writeValueType(pprofscan.ProfilePeriodType, t, index, "period_type")
	}
	e.out = appendUint(e.out, pprofscan.ProfilePeriod, uint64(p.Period()))
	e.writeDefaultSampleType(scope, group)
}

// writeDefaultSampleType writes what the scope names, as Decode has recorded it. Profiles that were
// never a pprof have no such record: their default is the first, which pprof has to be told, since its
// own is the last.
func (e *encoder) writeDefaultSampleType(scope pprofile.ScopeProfiles, group []int) {
	attributes := scope.Scope().Attributes()
	if v, ok := attributes.Get(pprofscan.AttributeDefaultSampleType); ok && v.Type() == pcommon.ValueTypeStr {
		e.out = appendUint(e.out, pprofscan.ProfileDefaultSampleType, e.strings.text(v.Str()))
		return
	}
	if _, ok := attributes.Get(pprofscan.AttributeSampleTypeOrder); ok || len(group) == 1 {
		return
	}
	first := scope.Profiles().At(group[0]).SampleType().TypeStrindex()
	if typ, ok := e.strings.index(first); ok {
		e.out = appendUint(e.out, pprofscan.ProfileDefaultSampleType, typ)
	}
}

// writeProfileAttribute reports whether the attribute is one that pprof has a field for.
func (e *encoder) writeProfileAttribute(key string, v pcommon.Value) bool {
	if key == pprofscan.AttributeComment && v.Type() == pcommon.ValueTypeSlice {
		for _, comment := range v.Slice().All() {
			// Comment 0 is an empty one, which is why appendUint would not do.
			e.out = append(e.out, varintTag(pprofscan.ProfileComment))
			e.out = protowire.AppendVarint(e.out, e.strings.text(valueText(comment)))
		}
		return true
	}
	if v.Type() != pcommon.ValueTypeStr {
		return false
	}
	field := 0
	switch key {
	case pprofscan.AttributeComment:
		field = pprofscan.ProfileComment
	case pprofscan.AttributeDropFrames:
		field = pprofscan.ProfileDropFrames
	case pprofscan.AttributeKeepFrames:
		field = pprofscan.ProfileKeepFrames
	case pprofscan.AttributeDocURL:
		field = pprofscan.ProfileDocURL
	default:
		return false
	}
	e.out = appendUint(e.out, field, e.strings.text(v.Str()))
	return true
}
