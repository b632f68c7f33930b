// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// TestAsyncProfiler reads what async-profiler wrote.
func TestAsyncProfiler(t *testing.T) {
	for name, want := range map[string]Layout{"4.1": V1_7, "4.3": V1_9, "4.3-threads": V1_9, "4.5": V1_10,
		"4.5-threads": V1_10} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Unmarshal(readFixture(t, "async-profiler/"+name+".otlp"), nil)
			require.NoError(t, err)
			assert.Equal(t, Stats{Layout: want}, stats)
			// In three tables of 4.3, entry 0 is not the zero value but a real one, which has to move.
			var batch compact.Batch
			pd = batch.Merge([]pprofile.Profiles{pd})
			assert.Zero(t, batch.Stats().Dropped)
			assert.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			text := profiletest.Render(pd)
			assert.Contains(t, text, "profile itimer in ")
			assert.Contains(t, text, "Busy.spin")
			total := int64(0)
			for _, s := range profiletest.ProfileAt(pd, 0).Samples().All() {
				total += s.Values().At(0)
			}
			assert.Positive(t, total)
		})
	}
}

// TestUnpackedLists reads samples in which each attribute and value is a field of its own.
func TestUnpackedLists(t *testing.T) {
	for name, c := range map[string]struct {
		sample       fieldsOf
		want         Layout
		uncertain    bool
		links, attrs int
	}{
		"1.10: a value": {sample: fieldsOf{1, 1, 4, 7}, want: V1_10, links: 1, attrs: 1},
		"1.10: an attribute, a value above all links": {sample: fieldsOf{1, 1, 2, 1, 4, 7}, want: V1_10, links: 1, attrs: 2},
		"1.9: a value above all attributes, a link":   {sample: fieldsOf{1, 1, 2, 9, 4, 1}, want: V1_9, links: 2, attrs: 2},
		"either": {sample: fieldsOf{1, 1, 2, 1, 4, 1}, want: V1_10, uncertain: true, links: 2,
			attrs: 2},
		"1.9: a value":                  {sample: fieldsOf{1, 1, 2, 7}, want: V1_9, links: 1, attrs: 1},
		"1.9: a value and an attribute": {sample: fieldsOf{1, 1, 2, 7, 3, 1}, want: V1_9, links: 1, attrs: 2},
	} {
		dictionary := slices.Concat(worst.Many(c.links, 4, ""), worst.Many(c.attrs, 6, ""),
			fieldsOf{7, fieldsOf{1, []byte{1}}})
		layout, certain := Detect(request(fieldsOf{2, c.sample, 3, uint64(1e18)}, 2, dictionary))
		assert.Equal(t, c.want, layout, name)
		assert.Equal(t, !c.uncertain, certain, name)
	}
}
