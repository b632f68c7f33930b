// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// addTime adds to profiles that only count samples, as the eBPF profiler does, the time for which these stand, as a
// profile beside them that is shown instead. Numbers of samples of different periods do not add up, and cannot be
// compared. Where all have one period nothing is added, unless always.
func addTime(pd pprofile.Profiles, always bool) {
	dict := pd.Dictionary()
	type counting struct {
		scope   pprofile.ScopeProfiles
		profile pprofile.Profile
	}
	var found []counting
	periods := map[int64]bool{}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			has := map[int32]bool{}
			for _, p := range sp.Profiles().All() {
				has[p.SampleType().TypeStrindex()] = true
			}
			for _, p := range sp.Profiles().All() {
				nanos, isCount := profilekind.CPUTimeOf(p, dict)
				if isCount && nanos > 0 && p.Period() > 0 && !has[p.PeriodType().TypeStrindex()] {
					found = append(found, counting{sp, p})
					periods[p.Period()] = true
				}
			}
		}
	}
	if !always && len(periods) < 2 {
		return
	}
	for _, in := range found {
		in.scope.Scope().Attributes().PutStr(profilekind.AttributeDefaultSampleType,
			otlp.StringAt(dict, in.profile.PeriodType().TypeStrindex()))
		added := in.scope.Profiles().AppendEmpty()
		in.profile.CopyTo(added)
		in.profile.PeriodType().CopyTo(added.SampleType())
		for _, sample := range added.Samples().All() {
			values := sample.Values()
			for range sample.TimestampsUnixNano().Len() - values.Len() { // a timestamp alone counts once
				values.Append(1)
			}
			for i, v := range values.All() {
				values.SetAt(i, otlp.SaturatingMultiply(v, in.profile.Period()))
			}
		}
	}
}
