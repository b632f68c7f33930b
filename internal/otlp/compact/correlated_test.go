// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Merging, and assembling of samples, take about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	t.Run("Batch", func(t *testing.T) {
		profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
			pd := profiletest.KeyedProfiles(n, keys)
			return func() {
				b := batchOf(all, pd)
				require.Zero(t, b.Stats().Dropped)
			}
		})
	})
	t.Run("Assembler", func(t *testing.T) {
		profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
			return func() {
				var a Assembler
				a.Reset()
				p := a.Profile(0, Shape{Timestamps: true}, Header{})
				for i := range uint64(n) {
					k := keys(i + 1)
					a.Observe(p, Identity{
						Stack: dictionary.StackIndex(profiletest.KeyIndex(k[0], n)), Attributes: dictionary.AttributeSetIndex(k[1]),
						Link: dictionary.LinkIndex(k[2]),
					}, Observation{Timestamp: k[3]})
				}
			}
		})
	})
}
