// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// MeasureReserved is MeasureCost of a decoder that reserves its memory with the function that is passed to run. It
// fails the test if the decoder took more than constantBytes and one and a half times what it had reserved. A run that
// took more is repeated twice: on a busy machine the collector comes late, so that garbage is counted; what the
// decoder keeps is there each time.
func MeasureReserved(tb testing.TB, constantBytes int, run func(reserve func(n int) error)) (cost Cost) {
	tb.Helper()
	reserved := 0
	for range 3 {
		reserved = 0
		cost = MeasureCost(tb, func() {
			run(func(n int) error {
				reserved += n
				return nil
			})
		})
		if t, ok := tb.(*testing.T); ok {
			t.Logf("%.1f MB of %.1f reserved", float64(cost.PeakHeapBytes)/1e6, float64(reserved)/1e6)
		}
		if cost.PeakHeapBytes <= int64(constantBytes+reserved*3/2) {
			return cost
		}
	}
	tb.Errorf("%d bytes were reserved: %v", reserved, cost)
	return cost
}

// RequireDecodeBounded runs a decoder of so many bytes: it may take perByte times as much memory beside a constant, all
// of it reserved, and its profiles must be valid. It returns the decoder's error.
func RequireDecodeBounded(tb testing.TB, inputBytes int, perByte float64,
	decode func(reserve func(n int) error) (pprofile.Profiles, error)) (err error) {
	tb.Helper()
	const constantBytes = 8 << 20 // a parser of JSON leaves that much garbage on a busy machine
	var got pprofile.Profiles
	cost := MeasureReserved(tb, constantBytes, func(reserve func(int) error) {
		got, err = decode(reserve)
	})
	RequireBounded(tb, cost, inputBytes, constantBytes, perByte)
	if err == nil {
		require.NoError(tb, Check(got))
	}
	return err
}
