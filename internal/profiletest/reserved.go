// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

// MeasureReserved is MeasureCost of a decoder that is bounded by a Meter, which it passes to run. It fails the test if the
// decoder took more than constantBytes and one and a half times what it had reserved.
func MeasureReserved(tb testing.TB, constantBytes int, run func(*pdatasize.Meter)) Cost {
	tb.Helper()
	reserved := 0
	meter := &pdatasize.Meter{Context: tb.Context(), Reserve: func(n int) error {
		reserved += n
		return nil
	}}
	cost := MeasureCost(tb, func() { run(meter) })
	if t, ok := tb.(*testing.T); ok {
		t.Logf("%.1f MB of %.1f reserved", float64(cost.PeakHeapBytes)/1e6, float64(reserved)/1e6)
	}
	if cost.PeakHeapBytes > int64(constantBytes+reserved*3/2) {
		tb.Errorf("%d bytes were reserved: %v", reserved, cost)
	}
	return cost
}
