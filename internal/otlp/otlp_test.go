// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestProfiles(t *testing.T) {
	pd := pprofile.NewProfiles()
	for period := range int64(6) {
		if period%3 == 0 {
			pd.ResourceProfiles().AppendEmpty()
		}
		rp := pd.ResourceProfiles().At(pd.ResourceProfiles().Len() - 1)
		if period%2 == 0 || rp.ScopeProfiles().Len() == 0 {
			rp.ScopeProfiles().AppendEmpty()
		}
		rp.ScopeProfiles().At(rp.ScopeProfiles().Len() - 1).Profiles().AppendEmpty().SetPeriod(period)
	}
	var seen []int64
	for p := range Profiles(pd) {
		seen = append(seen, p.Period())
	}
	assert.Equal(t, []int64{0, 1, 2, 3, 4, 5}, seen)
	for p := range Profiles(pd) {
		assert.Zero(t, p.Period())
		break
	}
}
