// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// keepNewest removes the states and totals for which there are newer ones of the same resource, and returns how many:
// live memory of two times is not twice as much, and a total includes those before it. It leaves resources without
// attributes alone: pprofs of several processes cannot be told from those of one.
func keepNewest(pd pprofile.Profiles) (removed int) {
	newest := map[string]uint64{}
	eachHeld(pd, func(key string, end uint64) bool {
		newest[key] = max(newest[key], end)
		return false
	})
	eachHeld(pd, func(key string, end uint64) bool {
		if end == newest[key] {
			return false
		}
		removed++
		return true
	})
	return removed
}

// eachHeld calls older with the series and the end of each state and total, and removes those for which it is true.
func eachHeld(pd pprofile.Profiles, older func(key string, end uint64) bool) {
	dict := pd.Dictionary()
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		if rp.Resource().Attributes().Len() == 0 {
			return false
		}
		resource := fmt.Sprintf("%q", rp.Resource().Attributes().AsRaw()) // sorted
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			scope := fmt.Sprintf("%q %q %q", sp.Scope().Name(), sp.Scope().Version(), sp.Scope().Attributes().AsRaw())
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				if profilekind.ValuesOfProfile(p, dict) == profilekind.Delta {
					return false
				}
				attributes := []string{}
				for key, v := range otlp.Attributes(dict, p.AttributeIndices()) {
					if profilekind.IsSeriesAttribute(key) {
						attributes = append(attributes, fmt.Sprintf("%q=%q", key, v.AsString()))
					}
				}
				slices.Sort(attributes)
				types := fmt.Sprint(p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex())
				key := strings.Join([]string{resource, scope, types, strings.Join(attributes, " ")}, "\n")
				return older(key, uint64(p.Time())+p.DurationNano())
			})
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
}
