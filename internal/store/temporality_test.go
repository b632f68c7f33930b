// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

const (
	temporalityDelta      = 1
	temporalityCumulative = 2
)

// exportOf17 is an export request of layout 1.7: one sample type with an aggregation temporality, one sample.
func exportOf17(typ string, at time.Time, value, temporality int) []byte {
	profile := worst.Fields{
		1, worst.Fields{1, 1, 2, 2, 3, temporality}, 2, worst.Fields{2, 1, 3, []int{value}}, 3, []int{0},
		4, int(at.UnixNano()), 5, int(10 * time.Second),
	}
	dict := worst.Fields{2, worst.Fields{3, ""}, 3, worst.Fields{1, 3}, 5, "", 5, typ, 5, "count", 5, "main"}
	return worst.Fields{1, worst.Fields{2, worst.Fields{2, profile}}, 2, dict}.Bytes()
}

// Old layouts state whether values are totals. Totals of 100, 150 and 170 are an increase of 70, whatever their type.
func TestStatedTemporality(t *testing.T) {
	for typ, name := range map[string]string{"contentions": "mutex", "faults": "faults"} {
		for temporality, want := range map[int]float64{temporalityDelta: 420, temporalityCumulative: 70} {
			now := time.Now().Truncate(time.Second)
			s := New(Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
			for i, value := range []int{100, 150, 170} {
				pd, stats, err := layouts.Unmarshal(exportOf17(typ, now.Add(time.Duration(i-4)*10*time.Second), value, temporality),
					nil)
				require.NoError(t, err)
				require.Equal(t, layouts.V1_7, stats.Layout)
				s.Add(pd, now)
			}
			line, err := s.Timeline(t.Context(), model.Selection{Service: UnknownService, Profile: name}, 10, now)
			require.NoError(t, err)
			total := 0.0
			for _, g := range line.Groups {
				for _, v := range g.Values {
					if !math.IsNaN(v) {
						total += v
					}
				}
			}
			require.InDelta(t, want, total, 1, "%s, temporality %d", typ, temporality)
		}
	}
}
