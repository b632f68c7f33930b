// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The permitted cost: heap <= constant + factor × bytes.
const (
	encodeConstantBytes = 96 << 20
	encodeFactor        = 128
)

// costOptions are the options for which the cost differs.
var costOptions = []EncodeOptions{
	{Format: FormatOTLP}, {Format: FormatPprof}, {Format: FormatPprof, RepeatsResources: true},
}

// Records of any profiles cost memory in proportion to the profiles' size, and their number is bounded.
func TestEncodeIsBounded(t *testing.T) {
	for name, wire := range worst.Profiles.All(128 << 10) {
		pd := profiletest.Unmarshal(t, wire)
		pd.MarkReadOnly()
		size := new(pprofile.ProtoMarshaler).ProfilesSize(pd)
		want := observations(pd)
		for _, options := range costOptions {
			if options.RepeatsResources && pd.ProfileCount() == 1 {
				continue // it has nothing to repeat, and is not cut between profiles
			}
			t.Run(fmt.Sprintf("%s, %v, %t", name, options.Format, options.RepeatsResources), func(t *testing.T) {
				options.MaxRecordBytes, options.MaxPartBytes = 1_000_000, 3_932_160
				budget := expansionBudget(size)
				bound := profiletest.BoundOf(size, encodeConstantBytes, encodeFactor)
				bound.CPU = profiletest.BoundOf(size+budget, 0, 0).CPU
				var out, seen int
				profiletest.RequireCost(t, bound, func() {
					out, seen = 0, 0
					encoder := NewEncoder(pd, options)
					for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
						out += part.RequestBytes()
						seen += part.Samples + part.Dropped
					}
				})
				assert.Equal(t, want, seen)
				assert.Less(t, out, 2*(budget+options.MaxPartBytes))
			})
		}
	}
}

// FuzzEncodeCost encodes any ProfilesData message, and bounds the cost.
func FuzzEncodeCost(f *testing.F) {
	for _, pd := range pprofs(f) {
		if body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd); err == nil && len(body) < 20_000 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := pdatasize.Profiles(body); err != nil {
			return
		}
		pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(body)
		if err != nil {
			return
		}
		pd.MarkReadOnly()
		for _, options := range costOptions {
			options.MaxRecordBytes, options.MaxPartBytes = 10_000, 40_000
			bound := profiletest.BoundOf(len(body)+expansionBudget(len(body)), encodeConstantBytes, 0)
			profiletest.RequireCost(t, bound, func() {
				encoder := NewEncoder(pd, options)
				for _, ok := encoder.Next(); ok; _, ok = encoder.Next() {
				}
			})
		}
	})
}
