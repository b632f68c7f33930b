// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/require"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Encode takes about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	pt.RequireCorrelatedKeys(t, func(n int, keys pt.Keys) func() {
		pd := pt.KeyedProfiles(n, keys)
		return func() {
			_, stats, err := Encode(pd)
			require.NoError(t, err)
			require.Zero(t, stats.Dropped)
		}
	})
}
