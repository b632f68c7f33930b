// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
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
