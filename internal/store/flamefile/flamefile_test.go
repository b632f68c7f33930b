// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/flamefile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
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

func stacks(t *testing.T, pd pprofile.Profiles) []flamefile.Stacks {
	t.Helper()
	all, err := flamefile.OfProfiles(pd.Dictionary(), []pprofile.Profile{profiletest.ProfileAt(pd, 0)},
		[]pprofile.Profile{profiletest.ProfileAt(pd, 1)})
	require.NoError(t, err)
	return all
}

func TestCollapsed(t *testing.T) {
	all := stacks(t, sample())
	var b strings.Builder
	for _, s := range all {
		require.NoError(t, flamefile.Collapsed(&b, s))
	}
	assert.Equal(t, "(unknown);_main;a:b c;inlined;0x1 [shop] 7\nless -5\nmain;leaf 2\n", b.String())
}

func TestSpeedscope(t *testing.T) {
	var b strings.Builder
	require.NoError(t, flamefile.Speedscope(&b, "<shop>", stacks(t, sample())...))
	assert.JSONEq(t, `{
		"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "otelcol-profiles", "name": "<shop>",
		"shared": {"frames": [{"name": "(unknown)"}, {"name": "_main"}, {"name": "a;b\nc", "file": "x.go", "line": 9}, {"name": "inlined"},
			{"name": "0x1 [shop]"}, {"name": "less"}, {"name": "main"}, {"name": "leaf"}]},
		"profiles": [
			{"type": "sampled", "name": "cpu", "unit": "nanoseconds", "startValue": 0, "endValue": 2, "samples": [[0, 1, 2, 3, 4], [5]], "weights": [7, -5]},
			{"type": "sampled", "name": "samples", "unit": "none", "startValue": 0, "endValue": 2, "samples": [[6, 7]], "weights": [2]}
		]}`, b.String())
	assert.True(t, json.Valid([]byte(b.String())))
}

// Stacks and files cost what their input has, and what they may have at most.
func TestFilesAreBounded(t *testing.T) {
	for name, tooLarge := range map[string]bool{
		"a location of many lines in many stacks": true, "a location of many lines, many times in a stack": true,
		"samples of a stack of many frames": true, "functions of a long name": false, "locations of a long mapping": false,
	} {
		m := worst.NewMessage()
		worst.Profiles[name](m, 1<<20)
		t.Run(name, func(t *testing.T) {
			size := (&pprofile.ProtoMarshaler{}).ProfilesSize(m.Profiles)
			const most = 4 << 20
			for format, write := range map[string]func(io.Writer, flamefile.Stacks) error{
				"collapsed":  flamefile.Collapsed,
				"speedscope": func(b io.Writer, s flamefile.Stacks) error { return flamefile.Speedscope(b, "x", s) },
			} {
				var err error
				profiletest.RequireCost(t, profiletest.BoundOf(size, 64<<20, 120), func() {
					var lists []flamefile.Stacks
					lists, err = flamefile.OfProfiles(m.Dict, []pprofile.Profile{profiletest.ProfileAt(m.Profiles, 0)})
					if err == nil {
						err = write(&limited{most: most}, lists[0])
					}
				})
				if tooLarge && format == "collapsed" {
					require.ErrorIs(t, err, model.ErrTooLarge)
				} else if !tooLarge {
					require.NoError(t, err, format)
				}
			}
		})
	}
}

// limited refuses more than most bytes, as the body of an answer does.
type limited struct{ written, most int }

func (l *limited) Write(p []byte) (int, error) {
	if l.written += len(p); l.written > l.most {
		return 0, model.ErrTooLarge
	}
	return len(p), nil
}
