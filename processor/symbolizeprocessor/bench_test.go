// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols/symbolstest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkMessage passes messages whose locations are all in the cache: lookup, functions, strings, lines and attributes.
func BenchmarkMessage(b *testing.B) {
	p := read(b, symbolstest.Go(b, []string{"CGO_ENABLED=0"}))
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprintf("locations=%d", n), func(b *testing.B) {
			h := start(b, nil)
			m := p.mapping(0x10000000, p.ids)
			var stack []profiletest.Location
			for i := range n {
				stack = append(stack, profiletest.Location{Address: m.Start + 0x1000 + uint64(i)*61, Mapping: m})
			}
			pd := sampled(stack...)
			first := pprofile.NewProfiles()
			pd.CopyTo(first)
			h.pass(first)
			var cpu float64
			for b.Loop() {
				again := pprofile.NewProfiles()
				pd.CopyTo(again)
				h.sink.Reset()
				before := profiletest.ProcessCPU()
				if err := h.ConsumeProfiles(b.Context(), again); err != nil {
					b.Fatal(err)
				}
				cpu += (profiletest.ProcessCPU() - before).Seconds()
			}
			b.ReportMetric(float64(b.N*n)/cpu, "locations/s/core")
		})
	}
}
