// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The bounds of docs/limits.md. A value of one byte of an old sample becomes a sample of its own, of about 118 bytes, and
// copiesPerByte is added for its attributes.
const (
	boundConstant = 8 << 20
	boundFactor   = 144
)

func repeated(n int, number int, content any) fieldsOf {
	f := make(fieldsOf, 0, 2*n)
	for range n {
		f = append(f, number, content)
	}
	return f
}

func today(more ...any) []byte { return fieldsOf(more).bytes() }

// worstMessages are messages whose few bytes expand to much.
func worstMessages() map[string][]byte {
	long := strings.Repeat("x", 1<<20)
	indices := make([]int, 100_000)
	sample := fieldsOf{1, 0, 2, 1, 3, []int{1}}
	keyed := make(fieldsOf, 0, 160_000)
	for i := range 40_000 {
		keyed = append(keyed, 7, fieldsOf{1, fmt.Sprint("k", i), 2, fieldsOf{3, i}})
	}
	every := make([]int, 40_000)
	for i := range every {
		every[i] = i
	}
	types := make(fieldsOf, 0, 40_000)
	for i := range 20_000 {
		types = append(types, 1, fieldsOf{1, 1 + i%2})
	}
	profile1x3 := func(more ...any) []byte { return request(fieldsOf{2, uint64(1), 3, uint64(2), 8, fieldsOf(more)}) }
	manyKeys := fieldsOf{}
	for i := range 40_000 {
		manyKeys = append(manyKeys, 1, fieldsOf{1, fmt.Sprint("k", i), 2, fieldsOf{3, i}})
	}
	ones := slices.Repeat([]int{1}, 5000)
	units := request(append(profile1x4(7, fieldsOf{1, "key", 2, fieldsOf{3, 1}}, 10, long, 10, long), append(repeated(300_000, 8, fieldsOf{1, 6, 2, 7}), 2, sample)...))
	reachedUnits := append(append(keyed[:len(keyed):len(keyed)], 10, long), 2, fieldsOf{1, 0, 2, 1, 3, []int{1}, 4, every})
	for i := range 40_000 {
		reachedUnits = append(reachedUnits, 10, fmt.Sprint("k", i), 8, fieldsOf{1, 7 + i, 2, 6})
	}
	nested := fieldsOf{3, 1}.bytes()
	for range 5000 {
		nested = fieldsOf{5, fieldsOf{1, nested}}.bytes()
	}
	return map[string][]byte{
		"ranges that overlap": request(append(profile1x4(5, indices), repeated(20_000, 2, fieldsOf{1, 0, 2, 100_000, 3, []int{1}})...)),
		"one long label":      profile1x3(append(fieldsOf{6, "", 6, "key", 6, long, 4, fieldsOf{3, 1}}, repeated(4000, 2, fieldsOf{1, []int{0}, 2, []int{1}, 3, fieldsOf{1, 1, 2, 2}})...)...),
		"one long label key":  profile1x3(append(fieldsOf{6, "", 6, "val", 6, long, 4, fieldsOf{3, 1}}, repeated(4000, 2, fieldsOf{1, []int{0}, 2, []int{1}, 3, fieldsOf{1, 2, 2, 1}})...)...),
		"one long build id":   profile1x3(append(append(fieldsOf{6, "", 6, long}, repeated(50_000, 3, fieldsOf{6, 1, 2, 5})...), 4, fieldsOf{2, 7}, 2, fieldsOf{1, []int{0}, 2, []int{1}})...),
		"one long comment":    request(append(profile1x4(10, long, 15, slices.Repeat([]int{6}, 4000)), repeated(10, 2, sample)...)),
		"comments of many profiles": append(fieldsOf{1, fieldsOf{2, repeated(4000, 2, fieldsOf{8, slices.Repeat([]int{1}, 50), 2, sample, 3, []int{0}, 4, 1000})}}.bytes(),
			fieldsOf{2, fieldsOf{2, fieldsOf{2, 1}, 5, "", 5, long}}.bytes()...),
		"comments of many 1.8 profiles": append(fieldsOf{1, fieldsOf{2, repeated(4000, 2, fieldsOf{7, slices.Repeat([]int{1}, 50), 8, "0123456789abcdef", 2, fieldsOf{1, 0, 2, []int{1}}})}}.bytes(),
			fieldsOf{2, fieldsOf{2, fieldsOf{2, 1}, 5, "", 5, long}}.bytes()...),
		"a big scope of many profiles": append(fieldsOf{1, fieldsOf{2, append(repeated(4000, 2, append(fieldsOf{1, fieldsOf{1, 1}, 1, fieldsOf{1, 2}, 4, 1000, 3, []int{0}}, 2, fieldsOf{2, 1, 3, []int{1, 1}})),
			1, fieldsOf{1, long})}}.bytes(), fieldsOf{2, fieldsOf{2, fieldsOf{2, 1}, 5, "", 5, "a", 5, "b"}}.bytes()...),
		"many types and samples":                    request(append(profile1x4(types...), repeated(20_000, 2, sample)...)),
		"many types and timestamps":                 request(append(profile1x4(types[:4000]...), 2, fieldsOf{1, 0, 2, 1, 3, slices.Repeat([]int{3}, 2000), 6, slices.Repeat([]int{3}, 20_000)})),
		"many types and attributes":                 request(append(profile1x4(append(types[:10_000:10_000], keyed[:10_000]...)...), 2, fieldsOf{1, 0, 2, 1, 3, ones, 4, every[:5000]})),
		"many types, and attributes of the profile": request(append(profile1x4(append(types[:10_000:10_000], keyed[:10_000]...)...), 2, fieldsOf{1, 0, 2, 1, 3, ones}, 22, every[:5000])),
		"few types and many samples":                request(append(profile1x4(types[:200]...), repeated(5000, 2, fieldsOf{2, 1, 3, slices.Repeat([]int{1}, 100)})...)),
		"few types, many samples and attributes": request(append(profile1x4(append(types[:200:200], keyed[:200]...)...),
			repeated(5000, 2, fieldsOf{2, 1, 3, slices.Repeat([]int{1}, 100), 4, []int{1, 2, 3, 4}})...)),
		"many types of one sample":      request(append(profile1x4(types...), 2, fieldsOf{2, 1, 3, slices.Repeat([]int{1}, 20_000)})),
		"one long key of many units":    units,
		"one long unit of many keys":    request(append(profile1x4(), reachedUnits...)),
		"many attributes of one sample": request(append(profile1x4(keyed...), 2, fieldsOf{1, 0, 2, 1, 3, []int{1}, 4, every})),
		"one attribute many times":      request(append(profile1x4(keyed[:2]...), 2, fieldsOf{1, 0, 2, 1, 3, []int{1}, 4, make([]int, 1_000_000)})),
		"many keys of one value":        request(append(profile1x4(7, fieldsOf{1, "map", 2, fieldsOf{6, manyKeys}}), 2, fieldsOf{1, 0, 2, 1, 3, []int{1}, 4, []int{0}})),
		"nested values":                 request(append(profile1x4(7, fieldsOf{1, "list", 2, nested}), 2, fieldsOf{1, 0, 2, 1, 3, []int{1}, 4, []int{0}})),
		"many lines":                    request(append(profile1x4(4, repeated(200_000, 3, fieldsOf{}), 5, []int{1}), 2, fieldsOf{1, 1, 2, 1, 3, []int{1}})),
		"many empty samples":            request(append(profile1x4(), repeated(200_000, 2, fieldsOf{})...)),
		"many small samples":            request(append(profile1x4(), repeated(50_000, 2, fieldsOf{3, []int{1}})...)),
		"many small profiles":           fieldsOf{1, fieldsOf{2, repeated(50_000, 2, fieldsOf{2, fieldsOf{3, []int{1}}, 4, fieldsOf{}})}}.bytes(),
		"many scopes":                   fieldsOf{1, append(fieldsOf{2, fieldsOf{2, profile1x4(2, sample)}}, repeated(50_000, 2, fieldsOf{})...)}.bytes(),
		"today's, nested":               today(2, fieldsOf{6, fieldsOf{2, nested}}),
		"today's, empty samples":        today(1, fieldsOf{2, fieldsOf{2, append(fieldsOf{7, "", 2, fieldsOf{4, []int{1}}}, repeated(200_000, 2, fieldsOf{})...)}}),
		"1.9, empty samples":            today(1, fieldsOf{2, fieldsOf{2, append(fieldsOf{2, fieldsOf{2, []int{1}}}, repeated(200_000, 2, fieldsOf{})...)}}),
		"invalid text":                  request(append(profile1x4(10, strings.Repeat("\xff", 128<<10)), repeated(5000, 2, sample)...)),
	}
}

func TestUnmarshalIsBounded(t *testing.T) {
	for name, data := range worstMessages() {
		t.Run(name, func(t *testing.T) {
			size := len(data)
			var profiles pprofile.Profiles
			cost := profiletest.MeasureReserved(t, 8<<20, func(reserve func(int) error) { profiles, _, _ = Unmarshal(data, &pdatasize.Meter{Reserve: reserve}) })
			t.Logf("%.0f × %d; %v", float64(cost.PeakHeapBytes)/float64(size), size, cost)
			profiletest.RequireBounded(t, cost, size, boundConstant, boundFactor)
			if profiles != (pprofile.Profiles{}) {
				written, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiles)
				require.NoError(t, err)
				require.LessOrEqual(t, len(written), 1<<20+16*size, "what is handed on")
			}
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for name := range fixtures {
		f.Add(readFixture(f, name+".pb"), false)
		f.Add(readFixture(f, name+".json"), true)
	}
	for _, data := range worstMessages() {
		if len(data) < 64<<10 {
			f.Add(data, false)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		size := len(data)
		data = bytes.Clone(data)
		var profiles pprofile.Profiles
		var stats Stats
		var err error
		cost := profiletest.MeasureCost(t, func() {
			if isJSON {
				profiles, stats, err = UnmarshalJSON(data, nil)
			} else {
				profiles, stats, err = Unmarshal(data, nil)
			}
		})
		profiletest.RequireBounded(t, cost, size, boundConstant, boundFactor)
		if err != nil {
			return
		}
		if stats.Layout < V1_8 {
			// What this package reads itself is conformant for any input. pdata reads resources and scopes.
			for _, rp := range profiles.ResourceProfiles().All() {
				pcommon.NewResource().MoveTo(rp.Resource())
				rp.SetSchemaUrl("")
				for _, sp := range rp.ScopeProfiles().All() {
					pcommon.NewInstrumentationScope().MoveTo(sp.Scope())
					sp.SetSchemaUrl("")
				}
			}
			require.NoError(t, profiletest.Check(profiles, profiletest.AllowRepeatedSamples(), profiletest.AllowOrphans()))
		}
	})
}
