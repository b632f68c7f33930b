// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The permitted cost. A value of one byte of an old sample becomes a sample of its own, of about 118 bytes, and
// copiesPerByte is added for its attributes.
const (
	boundConstant = 8 << 20
	boundFactor   = 136
)

func TestUnmarshalIsBounded(t *testing.T) {
	for name, data := range worst.OTLP.All(1 << 19) {
		t.Run(name, func(t *testing.T) {
			size := len(data)
			var profiles pprofile.Profiles
			bound := profiletest.BoundOf(size, boundConstant, boundFactor)
			profiletest.RequireReserved(t, bound, 8<<20, func(reserve func(int) error) {
				profiles, _, _ = Unmarshal(data, &pdatasize.Meter{Reserve: reserve})
			})
			if profiles != (pprofile.Profiles{}) {
				written := profiletest.Marshal(t, profiles)
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
	for _, data := range worst.OTLP.All(8 << 10) {
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		size := len(data)
		data = bytes.Clone(data)
		var profiles pprofile.Profiles
		var stats Stats
		var err error
		profiletest.RequireCost(t, profiletest.BoundOf(size, boundConstant, boundFactor), func() {
			if isJSON {
				profiles, stats, err = UnmarshalJSON(data, nil)
			} else {
				profiles, stats, err = Unmarshal(data, nil)
			}
		})
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

// Reading takes about as long if the fields of entries are correlated as if they are random. The layouts between the
// oldest and the latest have the tables of one of them.
func TestCorrelatedKeys(t *testing.T) {
	for layout, write := range map[Layout]func(n int, keys profiletest.Keys) []byte{
		V1_3: keyed1x3,
		V1_10: func(n int, keys profiletest.Keys) []byte {
			return profiletest.Marshal(t, profiletest.KeyedProfiles(n, keys))
		},
	} {
		t.Run(layout.String(), func(t *testing.T) {
			profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
				data := write(n, keys)
				return func() {
					_, stats, err := Unmarshal(slices.Clone(data), nil) // it changes data
					require.NoError(t, err)
					require.Equal(t, layout, stats.Layout)
					require.Zero(t, stats.Dropped)
				}
			})
		})
	}
}

// keyed1x3 refers by ids, and a sample has labels.
func keyed1x3(n int, keys profiletest.Keys) []byte {
	at := func(number uint64) int { return profiletest.KeyIndex(number, n) }
	number := func(v uint64) int { return int(v & math.MaxInt64) }
	profile := fieldsOf{6, ""}
	for i := range uint64(n) {
		k := keys(i + 1)
		id := int(i) + 1
		profile = append(profile,
			6, fmt.Sprint("text", i),
			3, fieldsOf{1, id, 2, number(k[0] >> 2), 3, number(k[0]>>2+k[1]>>2) + 1, 4, number(k[2]), 5, at(k[3])},
			5, fieldsOf{1, id, 2, at(k[0]), 3, at(k[1]), 4, at(k[2]), 5, number(k[3])},
			4, fieldsOf{1, id, 2, at(k[0]), 3, number(k[1]), 4, fieldsOf{1, at(k[2]), 2, number(k[3])}},
			2, fieldsOf{1, []int{at(k[0]), at(k[1])}, 2, []int{1}, 3, fieldsOf{1, at(k[2]), 3, number(k[3])}},
		)
	}
	return request(fieldsOf{2, uint64(1), 3, uint64(2), 8, profile})
}
