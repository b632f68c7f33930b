// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestDeltaEqualsTheNaiveOne runs imaginary processes: their profiles grow, change, get another order
// and other ids, and now and then another process replaces them.
func TestDeltaEqualsTheNaiveOne(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		process := drawDeltaProcess(t)
		baseline, naive := NewBaseline(0), &naiveBaseline{}
		at := time.Unix(1_700_000_000, 0)
		for range rapid.IntRange(2, 5).Draw(t, "payloads") {
			at = at.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			process.live(t)
			payload := process.payload(t)
			p, err := profile.ParseUncompressed(payload)
			require.NoError(t, err)
			want := naive.delta(p, at)
			pd, stats, err := Decode(payload, Options{Temporality: kind.StatedCumulative, Baseline: baseline, At: at})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			require.Equal(t, want.stats, stats.Delta)
			require.Equal(t, len(p.Sample), stats.Samples)
			checkDelta(t, &want, pd)
			seen[stats.Delta.Reason.String()]++
			if want.counted != nil {
				seen["counted"]++
			}
			if rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
				baseline.Discard()
				continue
			}
			baseline.Commit()
			*naive = want.next
		}
	})
	t.Log(seen)
	require.NotZero(t, seen["counted"])
}

// checkDelta compares by way of pprof, where the two scopes are two profiles.
func checkDelta(t require.TestingT, want *naiveDelta, got pprofile.Profiles) {
	encoded, _, err := encode.Encode(got)
	require.NoError(t, err)
	var profiles []*profile.Profile
	for _, e := range encoded {
		p, err := profile.ParseUncompressed(e.Bytes)
		require.NoError(t, err)
		profiles = append(profiles, p)
	}
	for _, w := range []*profile.Profile{want.counted, want.present} {
		if w == nil {
			continue
		}
		i := slices.IndexFunc(profiles, func(p *profile.Profile) bool {
			return naiveIsCumulative(p.SampleType[0]) == naiveIsCumulative(w.SampleType[0])
		})
		require.GreaterOrEqual(t, i, 0, "no profile with the types %s", typeNames(w.SampleType))
		require.NoError(t, profiletest.EqualPprof(w, profiles[i], profiletest.CanonicalLinks()))
		profiles = slices.Delete(profiles, i, i+1)
	}
	require.Empty(t, profiles)
}

// deltaProcess is a process that counts: its profile has everything that it has counted so far.
type deltaProcess struct{ p *profile.Profile }

func drawDeltaProcess(t *rapid.T) *deltaProcess {
	p := profileGenerator().Draw(t, "profile")
	names := []string{"alloc_space", "alloc_objects", "contentions", "inuse_space", "objects", "space", "inuse_objects"}
	if len(p.SampleType) == 0 {
		p.SampleType = []*profile.ValueType{{}}
		p.Sample = []*profile.Sample{{Value: []int64{0}}}
	}
	for _, v := range p.SampleType {
		v.Type = rapid.SampledFrom(names).Draw(t, "type")
	}
	p.DefaultSampleType = rapid.SampledFrom(append(names, "", "", "")).Draw(t, "default type")
	p.TimeNanos = min(p.TimeNanos, 1<<60)
	for _, s := range p.Sample {
		clear(s.Value)
	}
	return &deltaProcess{p: p}
}

// live makes the process count, or do one of the things after which there is no delta.
func (d *deltaProcess) live(t *rapid.T) {
	p := d.p
	p.TimeNanos = max(0, p.TimeNanos) + rapid.SampledFrom([]int64{0, 1, 1e9, 1e9, 1e9}).Draw(t, "time passes")
	for _, s := range p.Sample {
		d.count(t, s)
	}
	if n := len(p.Sample); n > 0 && rapid.Bool().Draw(t, "a new stack") {
		old := p.Sample[rapid.IntRange(0, n-1).Draw(t, "like")]
		s := &profile.Sample{Location: old.Location,
			Label: map[string][]string{"new": {rapid.String().Draw(t, "label") + "x"}}, Value: make([]int64, len(p.SampleType))}
		d.count(t, s)
		p.Sample = append(p.Sample, s)
	}
	if rapid.IntRange(0, 3).Draw(t, "ends a delta") != 0 {
		return
	}
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		p.Period++
	case 1:
		p.TimeNanos = max(0, p.TimeNanos-int64(2e9))
	case 2:
		if n := len(p.Sample); n > 0 {
			clear(p.Sample[rapid.IntRange(0, n-1).Draw(t, "starts again")].Value)
		}
	case 3:
		if n := len(p.Sample); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "forgotten")
			p.Sample = slices.Delete(p.Sample, i, i+1)
		}
	case 4:
		for _, s := range p.Sample {
			clear(s.Value)
			d.count(t, s)
		}
	}
}

func (d *deltaProcess) count(t *rapid.T, s *profile.Sample) {
	for i, v := range d.p.SampleType {
		if !naiveIsCumulative(v) {
			s.Value[i] = rapid.SampledFrom([]int64{0, 0, 1, -1, 1 << 40}).Draw(t, "in use")
			continue
		}
		more := rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 1 << 30, math.MaxInt64 / 3}).Draw(t, "more")
		s.Value[i] = saturatedSum(s.Value[i], more)
	}
}

// payload writes the profile in a new layout, with a new order and new ids of its entries.
func (d *deltaProcess) payload(t *rapid.T) []byte {
	p := d.p.Copy()
	shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
	shuffleAll(shuffle, p.Sample)
	shuffleAll(shuffle, p.Function)
	shuffleAll(shuffle, p.Location)
	shuffleAll(shuffle, p.Mapping)
	for i, f := range p.Function {
		f.ID = uint64(i + 1)
	}
	for i, l := range p.Location {
		l.ID = uint64(i+1) * 3
	}
	for i, m := range p.Mapping {
		m.ID = uint64(i + 7)
		m.HasFunctions = shuffle.IntN(2) == 0
	}
	return layOut(t, p)
}

func shuffleAll[T any](rnd *rand.Rand, list []T) {
	rnd.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
}

func saturatedSum(a, b int64) int64 {
	switch sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b)); {
	case sum.IsInt64():
		return sum.Int64()
	case sum.Sign() > 0:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}
