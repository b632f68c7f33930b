// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Add, and what flame graphs are made by, take about as long if the fields of entries are correlated as if they are
// random.
func TestCorrelatedKeys(t *testing.T) {
	profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
		pd := profiletest.KeyedProfiles(n, keys)
		return func() {
			s := New(testConfig())
			require.NotZero(t, s.Add(pd, noon).Profiles)
			_, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, 1000)
			require.NoError(t, err)
		}
	})
}
