// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Every way to read a payload takes about as long if the fields of its entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	for name, test := range map[string]struct {
		timed bool
		read  func(payload, next []byte) (Stats, error)
	}{
		"Decode": {false, func(payload, _ []byte) (Stats, error) {
			_, stats, err := Decode(payload, Options{})
			return stats, err
		}},
		"Decode of times": {true, func(payload, _ []byte) (Stats, error) {
			_, stats, err := Decode(payload, Options{TimestampLabels: DefaultTimestampLabels()})
			return stats, err
		}},
		"Decode with a Baseline": {false, func(payload, next []byte) (Stats, error) {
			baseline := NewBaseline(BaselineOptions{})
			_, _, err := Decode(payload, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			baseline.Commit()
			_, stats, nextErr := Decode(next, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			return stats, errors.Join(err, nextErr)
		}},
		"Read": {true, func(payload, _ []byte) (Stats, error) {
			return Read(payload, dictionary.New(), ReadOptions{}, func(Sample) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pt.RequireCorrelatedKeys(t, func(n int, keys pt.Keys) func() {
				payload, next := pt.KeyedPprof(n, keys, 1, test.timed), pt.KeyedPprof(n, keys, 2, test.timed)
				return func() {
					stats, err := test.read(payload, next)
					require.NoError(t, err)
					require.Equal(t, n, stats.Samples)
				}
			})
		})
	}
}
