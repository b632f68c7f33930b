// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/flamefile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// sample has stacks that differ only in addresses, inlined lines, frames without a name, and timestamps.
func sample() pprofile.Profiles {
	at := func(address uint64) []profiletest.Location {
		return []profiletest.Location{
			{Address: address, Mapping: &profiletest.Mapping{Start: 1, Limit: 9000, File: "/bin/shop"}},
			{Address: address, Lines: []profiletest.Line{
				{Function: profiletest.Function{Name: "inlined"}},
				{Function: profiletest.Function{Name: "a;b\nc", File: "x.go", StartLine: 7}, Line: 9},
			}},
			{Lines: []profiletest.Line{{Function: profiletest.Function{SystemName: "_main"}}}},
			{Lines: []profiletest.Line{{}}},
		}
	}
	different := at(1)
	different[1].Address = 2 // the same names
	return profiletest.New().
		Profile("cpu", "nanoseconds").
		Sample(profiletest.Sample{Stack: at(1), Values: []int64{3}}, profiletest.Sample{Stack: different, Values: []int64{4}},
			profiletest.Value(0, "zero"), profiletest.Value(-5, "less")).
		Profile("samples", "count").Time(1, 10).
		Sample(profiletest.Observed([]uint64{1, 2}, "leaf", "main")).
		Build()
}

func stacks(pd pprofile.Profiles) (all []flamefile.Stacks) {
	for i := range 2 {
		all = append(all, flamefile.OfProfiles(pd.Dictionary(), []pprofile.Profile{profiletest.ProfileAt(pd, i)}))
	}
	return all
}

func TestCollapsed(t *testing.T) {
	all := stacks(sample())
	var b strings.Builder
	for _, s := range all {
		require.NoError(t, flamefile.Collapsed(&b, s))
	}
	assert.Equal(t, "(unknown);_main;a:b c;inlined;0x1 [shop] 7\nless -5\nmain;leaf 2\n", b.String())
}

func TestSpeedscope(t *testing.T) {
	var b strings.Builder
	require.NoError(t, flamefile.Speedscope(&b, "<shop>", stacks(sample())...))
	assert.JSONEq(t, `{
		"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "otelcol-profiles", "name": "<shop>",
		"shared": {"frames": [{"name": "(unknown)"}, {"name": "_main"}, {"name": "a;b\nc", "file": "x.go", "line": 7}, {"name": "inlined"},
			{"name": "0x1 [shop]"}, {"name": "zero"}, {"name": "less"}, {"name": "main"}, {"name": "leaf"}]},
		"profiles": [
			{"type": "sampled", "name": "cpu", "unit": "nanoseconds", "startValue": 0, "endValue": 2, "samples": [[0, 1, 2, 3, 4], [6]], "weights": [7, -5]},
			{"type": "sampled", "name": "samples", "unit": "none", "startValue": 0, "endValue": 2, "samples": [[7, 8]], "weights": [2]}
		]}`, b.String())
	assert.True(t, json.Valid([]byte(b.String())))
}
