// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const smallLimit = 65_536

func bounded(maxBytes int) Options {
	return Options{OrderByFrequency: true, CombineSamples: true, MaxBytes: maxBytes}
}

// splitAll splits pd and requires that the parts together resolve to it.
func splitAll(t *testing.T, options Options, pd pprofile.Profiles) (out []Part, total int) {
	t.Helper()
	out = parts(batchOf(options, pd))
	for _, part := range out {
		require.NoError(t, profiletest.Check(part.Profiles, profiletest.AllowRepeatedSamples()))
		total += part.Bytes
	}
	requireMerged(t, out, pd)
	return out, total
}

// Samples that share an entry larger than a part are in few messages, and the rest of the profile in parts of the usual
// size.
func TestAnEntryLargerThanAPart(t *testing.T) {
	long := strings.Repeat("n", 70_000)
	for name, stack := range map[string]func(i int) profiletest.Sample{
		"function at the leaf": func(i int) profiletest.Sample {
			return profiletest.Value(1, long, fmt.Sprint("f", i), "main")
		},
		"function at the root": func(i int) profiletest.Sample {
			return profiletest.Value(1, fmt.Sprint("f", i), "main", long)
		},
		"attribute": func(i int) profiletest.Sample {
			s := profiletest.Value(1, fmt.Sprint("f", i), "main")
			s.Attributes = []profiletest.Attribute{{Key: "query", Value: long}}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds")
			for i := range 2000 {
				b.Sample(stack(i))
			}
			out, total := splitAll(t, bounded(smallLimit), b.Build())
			require.LessOrEqual(t, len(out), 3)
			assert.True(t, out[0].Oversized)
			assert.Less(t, total, 2*250_000)

			for i := range 6000 {
				b.Sample(profiletest.Value(1, fmt.Sprint("g", i%3000), fmt.Sprint("h", i), "main"))
			}
			out, _ = splitAll(t, bounded(smallLimit), b.Build())
			oversized := 0
			for _, part := range out {
				if part.Oversized {
					oversized++
				}
			}
			assert.LessOrEqual(t, oversized, 6)
			assert.Greater(t, len(out)-oversized, 3)
		})
	}
}

// Samples that share much, but nothing that is too large by itself, repeat it no more often than the bound allows.
func TestSharedEntriesAreNotMultiplied(t *testing.T) {
	stacks := map[string][]string{"a name of most of a part": {strings.Repeat("n", 60_000)}, "many names": nil}
	for i := range 100 {
		stacks["many names"] = append(stacks["many names"], fmt.Sprint(i, strings.Repeat("m", 1000)))
	}
	for name, shared := range stacks {
		for _, sharedAttributes := range []bool{false, true} {
			t.Run(fmt.Sprint(name, sharedAttributes), func(t *testing.T) {
				b := profiletest.New().Resource("service.name", "shop")
				if sharedAttributes {
					b = profiletest.New().Resource("service.name", "shop", "command", strings.Repeat("r", 60_000))
				}
				b.Profile("cpu", "nanoseconds")
				for i := range 1500 {
					b.Sample(profiletest.Value(1, append([]string{fmt.Sprint("f", i)}, shared...)...))
				}
				pd := b.Build()
				whole := parts(batchOf(all, pd))[0]
				_, total := splitAll(t, bounded(smallLimit), pd)
				assert.LessOrEqual(t, total, 2*sizer.ProfilesSize(whole.Profiles))
			})
		}
	}
}

// Without large shared entries no part is larger than the limit, however a profile is made.
func TestPartsKeepTheLimit(t *testing.T) {
	timestamps := make([]uint64, 30_000)
	for i := range timestamps {
		timestamps[i] = 1000 + uint64(i)
	}
	manyObservations := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(1000,
		40_000).
		Sample(profiletest.Sample{Stack: profiletest.Stack("f", "main"), Timestamps: timestamps}).
		Sample(profiletest.Sample{Stack: profiletest.Stack("g", "main"), Timestamps: timestamps}).Build()
	manyProfiles := profiletest.New()
	for i := range 3000 {
		manyProfiles.Resource("service.name", fmt.Sprint("shop-", i)).Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, fmt.Sprint("f", i), "main"))
	}
	// The splitter stops measuring them by themselves.
	sameStack := profiletest.New()
	stack := make([]string, 200)
	for i := range stack {
		stack[i] = fmt.Sprint("f", i, strings.Repeat("n", 90))
	}
	for i := range 2000 {
		sameStack.Resource("service.name", fmt.Sprint("shop-", i)).Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, stack...))
	}
	sameStacks := profiletest.New()
	for i := range 4 {
		sameStacks.Resource("host.name", fmt.Sprint("host-", i)).Profile("cpu", "nanoseconds")
		for k := range 2000 {
			sameStacks.Sample(profiletest.Value(1, fmt.Sprint("f", k, strings.Repeat("n", 90)), "main"))
		}
	}
	for name, pd := range map[string]pprofile.Profiles{
		"observations": manyObservations, "profiles": manyProfiles.Build(), "samples": labelled(t, 3),
		"profiles of one stack": sameStack.Build(), "profiles of the same stacks": sameStacks.Build(),
	} {
		t.Run(name, func(t *testing.T) {
			out, total := splitAll(t, bounded(smallLimit), pd)
			for _, part := range out {
				assert.False(t, part.Oversized, part.Bytes)
			}
			assert.Greater(t, len(out), 2)
			t.Logf("%d parts, %d bytes", len(out), total)
		})
	}
}

// labelled is the stacks of a real CPU profile, each seen under most of so many sets of labels.
func labelled(t testing.TB, sets int) pprofile.Profiles {
	pd := fromPprof(t, "go-build-merged-cpu-large.pb.gz")
	dict := pd.Dictionary()
	key := dict.StringTable().Len()
	dict.StringTable().Append("endpoint")
	first := dict.AttributeTable().Len()
	for i := range sets {
		a := dict.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(key))
		a.Value().SetStr(fmt.Sprintf("/api/v1/resource/%d", i))
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	eachProfile(pd, func(p pprofile.Profile) {
		samples := pprofile.NewSampleSlice()
		for _, s := range p.Samples().All() {
			for i := range sets {
				if rnd.IntN(100) < 90 {
					to := samples.AppendEmpty()
					s.CopyTo(to)
					to.AttributeIndices().Append(int32(first + i))
					to.Values().SetAt(0, s.Values().At(0)*int64(1+rnd.IntN(9)))
				}
			}
		}
		samples.CopyTo(p.Samples())
	})
	return pd
}
