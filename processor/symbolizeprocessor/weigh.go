// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
)

// weigh adds up the weight of samples whose leaf has no function, by module, for the report.
func (m *message) weigh() {
	weights := map[*lookup.Module]lookup.Weight{}
	for _, rp := range m.profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			if p, ok := m.timeProfile(sp.Profiles()); ok {
				m.weighProfile(p, weights)
			}
		}
	}
	for module, w := range weights {
		module.AddUnresolved(w)
	}
}

const nanoseconds = "nanoseconds"

// timeProfile returns the profile of a scope that has the time of its samples: the one whose values are nanoseconds, or
// the first. The others repeat its samples.
func (m *message) timeProfile(profiles pprofile.ProfilesSlice) (pprofile.Profile, bool) {
	for _, p := range profiles.All() {
		if m.text(p.SampleType().UnitStrindex()) == nanoseconds {
			return p, true
		}
	}
	if profiles.Len() == 0 {
		return pprofile.Profile{}, false
	}
	return profiles.At(0), true
}

func (m *message) weighProfile(p pprofile.Profile, weights map[*lookup.Module]lookup.Weight) {
	isNanos := m.text(p.SampleType().UnitStrindex()) == nanoseconds
	isCount := m.text(p.SampleType().UnitStrindex()) == "count"
	period := 0.0
	if m.text(p.PeriodType().UnitStrindex()) == nanoseconds {
		period = float64(max(0, p.Period()))
	}
	stacks := m.dictionary.StackTable()
	for _, sample := range p.Samples().All() {
		index := sample.StackIndex()
		if index < 0 || int(index) >= stacks.Len() || stacks.At(int(index)).LocationIndices().Len() == 0 {
			continue
		}
		leaf := stacks.At(int(index)).LocationIndices().At(0)
		if leaf < 0 || int(leaf) >= len(m.modules) || m.modules[leaf] == nil {
			continue
		}
		sum, observations := 0.0, float64(max(1, sample.TimestampsUnixNano().Len()))
		for _, v := range sample.Values().All() {
			sum += float64(max(0, v))
		}
		w := weights[m.modules[leaf]]
		switch {
		case isNanos:
			w.Nanos += sum
			if period > 0 && sample.TimestampsUnixNano().Len() == 0 {
				observations = max(1, sum/period)
			}
		case isCount && sum > 0:
			observations = sum
			w.Nanos += sum * period
		default:
			w.Nanos += observations * period
		}
		w.Samples += observations
		weights[m.modules[leaf]] = w
	}
}
