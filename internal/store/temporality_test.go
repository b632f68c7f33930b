// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

const (
	temporalityDelta      = 1
	temporalityCumulative = 2
)

// exportOf17 is an export request of layout 1.7: one sample type with an aggregation temporality, one sample.
func exportOf17(typ string, at time.Time, value, temporality uint64) []byte {
	message := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	numbers := func(b []byte, pairs ...uint64) []byte {
		for i := 0; i < len(pairs); i += 2 {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(pairs[i]), protowire.VarintType), pairs[i+1])
		}
		return b
	}
	sample := append(numbers(nil, 2, 1), message(3, protowire.AppendVarint(nil, value))...)
	profile := append(message(1, numbers(nil, 1, 1, 2, 2, 3, temporality)), message(2, sample)...)
	profile = append(profile, message(3, []byte{0})...)
	profile = numbers(profile, 4, uint64(at.UnixNano()), 5, uint64(10*time.Second))
	dict := append(message(2, message(3, nil)), message(3, numbers(nil, 1, 3))...)
	for _, s := range []string{"", typ, "count", "main"} {
		dict = append(dict, message(5, []byte(s))...)
	}
	return append(message(1, message(2, message(2, profile))), message(2, dict)...)
}

// Old layouts state whether values are totals. Totals of 100, 150 and 170 are an increase of 70, whatever their type.
func TestStatedTemporality(t *testing.T) {
	for typ, name := range map[string]string{"contentions": "mutex", "faults": "faults"} {
		for temporality, want := range map[uint64]float64{temporalityDelta: 420, temporalityCumulative: 70} {
			now := time.Now().Truncate(time.Second)
			s := New(Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
			for i, value := range []uint64{100, 150, 170} {
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
