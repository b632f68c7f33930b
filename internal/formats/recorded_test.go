// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// A file of folded stacks or of speedscope has recorded what happened: its allocations are no totals of the process,
// which would be subtracted from those of the next file. What is in use stays a state.
func TestRecordingsAreNoTotals(t *testing.T) {
	const speedscope = `{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},
		"profiles":[{"type":"sampled","name":"x","unit":"bytes","startValue":0,"endValue":8,"samples":[[0]],"weights":[8]}]}`
	for name, tt := range map[string]struct {
		format  formats.Format
		typ     string
		payload string
		want    kind.Values
	}{
		"Austin, memory":          {formats.Folded, "", "# mode: memory\nP1;main;a 5\n", kind.Delta},
		"folded, alloc_space":     {formats.Folded, "alloc_space", "main;a 5\n", kind.Delta},
		"folded, contentions":     {formats.Folded, "contentions", "main;a 5\n", kind.Delta},
		"folded, inuse_space":     {formats.Folded, "inuse_space", "main;a 5\n", kind.Gauge},
		"speedscope, alloc_space": {formats.Speedscope, "alloc_space", speedscope, kind.Delta},
		"speedscope":              {formats.Speedscope, "", speedscope, kind.Gauge},
	} {
		options := formats.Options{Folded: folded.Options{SampleType: tt.typ, Unit: "bytes"}}
		if tt.typ == "" {
			options.Folded = folded.Options{}
		}
		pd, _, err := formats.Decode([]byte(tt.payload), tt.format, options)
		require.NoError(t, err, name)
		for profile := range otlp.Profiles(pd) {
			assert.Equal(t, tt.want, kind.ValuesOfProfile(profile, pd.Dictionary()), name)
		}
	}
}
