// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlp iterates over the profiles of a message, whatever their resource and scope.
package otlp

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Profiles returns all profiles of a message in order. Nothing may be added or removed meanwhile.
func Profiles(pd pprofile.Profiles) iter.Seq[pprofile.Profile] {
	return func(yield func(pprofile.Profile) bool) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}
