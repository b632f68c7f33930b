// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package decode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// TestDecodeAllocatesLittleMoreThanTheResult compares with pdata's own copy of the result, which
// allocates what the result consists of and nothing else. The race detector empties pools at random.
func TestDecodeAllocatesLittleMoreThanTheResult(t *testing.T) {
	for name, payload := range captured(t) {
		pd, _, err := Decode(payload, Options{})
		require.NoError(t, err)
		// A garbage collection in between empties the pool; in the average of many runs it does not matter.
		runs := max(5, 1<<20/len(payload))
		decode := testing.AllocsPerRun(runs, func() {
			_, _, _ = Decode(payload, Options{})
		})
		result := testing.AllocsPerRun(5, func() { pd.CopyTo(pprofile.NewProfiles()) })
		assert.LessOrEqual(t, decode, result*1.1, "%s: %.0f allocations, the result's are %.0f", name, decode, result)
	}
}
