// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// FuzzDelta decodes two arbitrary payloads with one Baseline. The result of the second is conformant and never
// negative, and if profile.Parse can read both, it equals the naive delta.
func FuzzDelta(f *testing.F) {
	for _, payload := range captured(f) {
		if plain := bytes.Clone(plainBytes(f, payload)); len(plain) < 10<<10 {
			f.Add(plain, plain)
			f.Add(grown(f, plain, 3), plain)
			f.Add(plain, grown(f, plain, 3))
		}
	}
	for _, wire := range oddPayloads() {
		f.Add([]byte(wire), []byte(wire))
		f.Add([]byte(oddPayloads()["sparse ids"]), []byte(wire))
	}
	limits := scan.Limits{MaxProfileBytes: 1 << 20, MaxSamples: 1 << 16, MaxTableEntries: 1 << 16}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		baseline, naive := NewBaseline(0), &naiveBaseline{}
		for i, payload := range [][]byte{first, second} {
			at := time.Unix(int64(1000+i), 0)
			pd, stats, err := Decode(payload,
				Options{Limits: limits, Temporality: kind.StatedCumulative, Baseline: baseline, At: at})
			_, plainStats, plainErr := Decode(payload, Options{Limits: limits})
			require.Equal(t, plainErr == nil, err == nil, "%v, without a Baseline %v", err, plainErr)
			if err != nil {
				var format *scan.FormatError
				require.True(t, errors.As(err, &format) || errors.Is(err, scan.ErrTooLarge), "%v", err)
				return
			}
			require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			require.Equal(t, plainStats.Samples, stats.Samples)
			require.Equal(t, plainStats.Dropped, stats.Dropped)
			checkNotNegative(t, pd)
			baseline.Commit()
			p := peerReading(payload, limits)
			if p == nil || len(p.SampleType) == 0 || hasNegativeCount(p) {
				return
			}
			want := naive.delta(p, at)
			require.Equal(t, want.stats, stats.Delta)
			checkDelta(t, &want, pd)
			*naive = want.next
		}
	})
}

func checkNotNegative(t *testing.T, pd pprofile.Profiles) {
	for p := range otlp.Profiles(pd) {
		typ := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
		if !naiveIsCumulative(&profile.ValueType{Type: typ}) {
			continue
		}
		for _, sample := range p.Samples().All() {
			require.Positive(t, sample.Values().At(0))
		}
	}
}

func hasNegativeCount(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Sample, func(s *profile.Sample) bool {
		return slices.ContainsFunc(s.Value, func(v int64) bool { return v < 0 })
	})
}

// grown returns a payload in which every n-th sample has counted more.
func grown(t testing.TB, payload []byte, n int) []byte {
	p := profiletest.ParsePprof(t, payload)
	for i, s := range p.Sample {
		for k, v := range s.Value {
			if i%n == 0 && naiveIsCumulative(p.SampleType[k]) {
				s.Value[k] = v + v/8 + 1
			}
		}
	}
	p.TimeNanos += int64(15 * time.Second)
	var out bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&out))
	return out.Bytes()
}
