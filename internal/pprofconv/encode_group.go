// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const (
	// encMaxSampleTypes is the number of profiles that are always joined where they belong together.
	encMaxSampleTypes = 64
	// encMaxJoinedValues bounds the values that joining more of them may write. A pprof has a value for
	// each sample and type, so that a few megabytes of OTLP could become a pprof of any size.
	encMaxJoinedValues = 4 << 20
)

// encGroupKey is what profiles must share to be sample types of one pprof. Within one dictionary
// equal values have equal indices.
type encGroupKey struct {
	time, duration         uint64
	period                 int64
	periodType, periodUnit int32
	attributes             encSetID
}

type encValueType struct{ typ, unit int32 }

// groupProfiles lists the pprofs that the profiles of a scope make, each by its profiles' indices in
// the order of its sample types.
func (e *encoder) groupProfiles(scope pprofile.ScopeProfiles) [][]int {
	var groups [][]int
	byKey := map[encGroupKey]int{}
	profiles := scope.Profiles()
	for i := range profiles.Len() {
		p := profiles.At(i)
		key := encGroupKey{
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
	order := encSampleTypeOrder(scope.Scope())
	var pprofs [][]int
	for _, group := range groups {
		pprofs = append(pprofs, encSplitGroup(profiles, group, order)...)
	}
	return pprofs
}

// encSplitGroup orders a group's profiles as the scope's attribute says, and parts what cannot be one pprof.
func encSplitGroup(profiles pprofile.ProfilesSlice, group, order []int) [][]int {
	var pprofs [][]int
	if n := len(order); n > 0 && len(group)%n == 0 && encFitsEach(profiles, group, n) {
		for chunk := range slices.Chunk(group, n) {
			ordered := make([]int, n)
			for i, at := range order {
				ordered[at] = chunk[i]
			}
			pprofs = append(pprofs, ordered)
		}
		return pprofs
	}
	mayJoinAll := encFits(profiles, group)
	seen := map[encValueType]bool{}
	for i, p := range group {
		t := encValueType{profiles.At(p).SampleType().TypeStrindex(), profiles.At(p).SampleType().UnitStrindex()}
		if i == 0 || seen[t] || (!mayJoinAll && len(seen) == encMaxSampleTypes) {
			clear(seen)
			pprofs = append(pprofs, nil)
		}
		seen[t] = true
		last := len(pprofs) - 1
		pprofs[last] = append(pprofs[last], p)
	}
	return pprofs
}

// encFitsEach reports whether each n consecutive profiles may become one pprof.
func encFitsEach(profiles pprofile.ProfilesSlice, group []int, n int) bool {
	for chunk := range slices.Chunk(group, n) {
		if !encFits(profiles, chunk) {
			return false
		}
	}
	return true
}

// encFits says whether profiles may become one pprof without it growing out of proportion.
func encFits(profiles pprofile.ProfilesSlice, group []int) bool {
	if len(group) <= encMaxSampleTypes {
		return true
	}
	samples := 0
	for _, p := range group {
		list := profiles.At(p).Samples()
		for i := range list.Len() {
			samples += max(1, list.At(i).TimestampsUnixNano().Len())
		}
	}
	return samples <= encMaxJoinedValues/len(group)
}

// encSampleTypeOrder reads the scope's attribute: element i is profile i's place in the pprof. It gives
// nil where there is none or where it is no permutation.
func encSampleTypeOrder(scope pcommon.InstrumentationScope) []int {
	v, ok := scope.Attributes().Get(attrSampleTypeOrder)
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
