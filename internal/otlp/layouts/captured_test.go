// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"path/filepath"
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

// withoutIndices returns a message of each layout whose samples have ranges, and whose profiles have no location
// indices, so that the ranges count in the location table. It has four samples: leaf ← main with the value 1, main
// with 2, one of a range that ends beyond the two locations, and one without a value. testdata/ranges has the same
// messages in JSON.
func withoutIndices() map[Layout][]byte {
	texts := func(number int) fieldsOf {
		return fieldsOf{number, "", number, "leaf", number, "main", number, "samples", number, "count"}
	}
	location := func(address, function int) fieldsOf { return fieldsOf{2, address, 3, fieldsOf{1, function}} }
	samples := []any{
		2, fieldsOf{1, 0, 2, 2, 3, []int{1}}, 2, fieldsOf{1, 1, 2, 1, 3, []int{2}},
		2, fieldsOf{1, 1, 2, 2, 3, []int{3}}, 2, fieldsOf{1, 0, 2, 1},
	}
	own := append(append(fieldsOf{
		1, fieldsOf{1, 3, 2, 4}, 4, location(0x10, 0), 4, location(0x20, 1), 6, fieldsOf{1, 1}, 6, fieldsOf{1, 2},
	}, samples...), texts(10)...)
	first := fieldsOf{
		1, fieldsOf{1, 3, 2, 4}, 4, fieldsOf{3, 0x10, 4, fieldsOf{1, 0}}, 4, fieldsOf{3, 0x20, 4, fieldsOf{1, 1}},
		5, fieldsOf{2, 1}, 5, fieldsOf{2, 2},
		2, fieldsOf{7, 0, 8, 2, 2, []int{1}}, 2, fieldsOf{7, 1, 8, 1, 2, []int{2}},
		2, fieldsOf{7, 1, 8, 2, 2, []int{3}}, 2, fieldsOf{7, 0, 8, 1},
	}
	header := append(fieldsOf{1, fieldsOf{1, 3, 2, 4, 3, 1}, 4, 1000, 9, 0}, samples...)
	functions := fieldsOf{4, location(0x10, 0), 4, location(0x20, 1)}
	shared1x6 := append(fieldsOf{3, functions[1], 3, functions[3], 4, fieldsOf{1, 1}, 4, fieldsOf{1, 2}}, texts(6)...)
	dictionary := append(fieldsOf{2, functions[1], 2, functions[3], 3, fieldsOf{1, 1}, 3, fieldsOf{1, 2}}, texts(5)...)
	return map[Layout][]byte{
		V1_3: request(fieldsOf{2, uint64(1000), 3, uint64(3000), 8, append(first, texts(6)...)}),
		V1_4: request(own),
		V1_6: request(header, shared1x6...),
		V1_7: request(header, 2, dictionary),
	}
}

func TestRangesOfTheLocationTable(t *testing.T) {
	for layout, data := range withoutIndices() {
		path := filepath.Join("testdata", "ranges", layout.String())
		profiletest.Golden(t, path+".pb", string(data))
		text := profiletest.FileBytes(t, path+".json")
		for name, unmarshal := range map[string]func() (pprofile.Profiles, Stats, error){
			"protobuf": func() (pprofile.Profiles, Stats, error) { return Unmarshal(bytes.Clone(data), nil) },
			"JSON":     func() (pprofile.Profiles, Stats, error) { return UnmarshalJSON(text, nil) },
		} {
			t.Run(layout.String()+" "+name, func(t *testing.T) {
				profiles, stats, err := unmarshal()
				require.NoError(t, err)
				require.Equal(t, layout, stats.Layout)
				require.NoError(t, profiletest.Check(profiles))
				require.Regexp(t, `(?s)sample 1\b.*leaf.*at 0x10.*main.*at 0x20.*sample 2\b.*main.*at 0x20`,
					profiletest.Render(profiles))
				require.Equal(t, [NumDropReasons]int{DropStackRange: 1, DropEmpty: 1}, stats.Dropped)
				require.Equal(t, 4, profiles.SampleCount()+stats.DroppedSamples(), "sent = arrived + counted")
				require.Equal(t, 1, stats.IncompleteProfiles)
			})
		}
	}
}

// A message that is cut off inside of a profile is refused, as in today's layout: how many samples it had is unknown.
func TestCutOffProfilesAreRefused(t *testing.T) {
	sample := fieldsOf{1, 0, 2, 1, 3, []int{1}}
	for name, data := range map[string][]byte{
		"profile": fieldsOf{1, fieldsOf{2, fieldsOf{2, append(worst.OldProfile(2, sample).Bytes(), 2<<3|2, 100)}}}.Bytes(),
		"container": request(append(fieldsOf{2, uint64(1), 3, uint64(2), 8,
			fieldsOf{6, "", 4, fieldsOf{3, 1}, 2, fieldsOf{1, []int{0}, 2, []int{1}}}}.Bytes(), 8<<3|2, 100)),
		"sample":   request(worst.OldProfile(2, append(sample.Bytes(), 3<<3|2, 100))),
		"scope":    fieldsOf{1, fieldsOf{2, append(fieldsOf{2, worst.OldProfile(2, sample)}.Bytes(), 2<<3|2, 100)}}.Bytes(),
		"resource": fieldsOf{1, append(fieldsOf{2, fieldsOf{2, worst.OldProfile(2, sample)}}.Bytes(), 2<<3|2, 100)}.Bytes(),
	} {
		_, _, err := Unmarshal(data, nil)
		require.ErrorIs(t, err, errMalformed, name)
	}
}
