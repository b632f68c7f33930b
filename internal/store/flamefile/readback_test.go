// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/flamefile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// totals returns the sum of each stack. Names are compared without what Collapsed replaces.
func totals(pd pprofile.Profiles) map[string]int64 {
	d := pd.Dictionary()
	sums := map[string]int64{}
	for p := range otlp.Profiles(pd) {
		for _, s := range p.Samples().All() {
			var names []string
			for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				f := d.FunctionTable().At(int(d.LocationTable().At(int(l)).Lines().At(0).FunctionIndex()))
				name := strings.Trim(d.StringTable().At(int(f.NameStrindex())), " \t\n\x00")
				if name == "" {
					name = "(unknown)"
				}
				names = append(names, strings.Map(func(r rune) rune {
					if strings.ContainsRune(" \t\n\x00_;:", r) {
						return -1
					}
					return r
				}, name))
			}
			stack := strings.Join(names, "|")
			if len(names) == 0 {
				stack = "[nostack]"
			}
			sums[stack] += s.Values().At(0)
		}
	}
	for stack, sum := range sums {
		if sum == 0 {
			delete(sums, stack)
		}
	}
	return sums
}

func requireReadBack(t require.TestingT, want map[string]int64, text string) {
	if text == "" {
		require.Empty(t, want)
		return
	}
	if !strings.Contains(text, ": ") { // "a; 1" becomes "a: 1", which on its own may be YAML
		require.Equal(t, formats.Folded, formats.Sniff([]byte(text)), "%q", text)
	}
	back, stats, err := folded.Decode([]byte(text), folded.Options{})
	require.NoError(t, err, "%q", text)
	require.Zero(t, stats.Dropped, "%q", text)
	require.Equal(t, want, totals(back), "%q", text)
}

// Whatever names and values are, what Collapsed writes is read back with the same total for each stack.
func TestCollapsedReadsBack(t *testing.T) {
	pieces := []string{"a", "b", " ", "  ", ";", "\n", "\t", "\x00", "#", "=", "_", "-", "1", "23", "k=v", " 4", "ä", "[",
		"{", "<", ",", "@"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
		})
		value := rapid.OneOf(rapid.Int64Range(-3, 3),
			rapid.SampledFrom([]int64{1687841528, 1687841528000000000, math.MaxInt64 / 4, -1687841528}))
		b := profiletest.New().Profile("cpu", "nanoseconds")
		for range rapid.IntRange(0, 5).Draw(t, "samples") {
			b.Sample(profiletest.Value(value.Draw(t, "value"), rapid.SliceOfN(name, 0, 3).Draw(t, "stack")...))
		}
		pd := b.Build()
		var text strings.Builder
		lists, err := flamefile.OfProfiles(pd.Dictionary(), []pprofile.Profile{profiletest.ProfileAt(pd, 0)})
		require.NoError(t, err)
		require.NoError(t, flamefile.Collapsed(&text, lists[0]))
		requireReadBack(t, totals(pd), text.String())
	})
}

// The stacks of the store, too: samples without frames are a line of their own.
func TestStoreReadsBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	pd := profiletest.New().Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano())-1e9, 1e9).Sample(
		profiletest.Value(3, "leaf", "main"), profiletest.Value(4), profiletest.Value(5, "main"),
		profiletest.Value(6, "worker 7", "#<Class>"),
	).Build()
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 10})
	s.Add(pd, now)
	g, err := s.FlameGraph(t.Context(),
		model.Selection{Service: store.UnknownService, Profile: "process_cpu", From: now.Add(-time.Hour).UnixNano(),
			Until: now.UnixNano()}, math.MaxInt32)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, flamefile.Collapsed(&text, flamefile.OfGraph(g, func(name string) string { return name })))
	require.ElementsMatch(t, []string{"[no stack] 4", "main 5", "main;leaf 3", "_#<Class>;worker_7 6"},
		strings.Split(strings.TrimSpace(text.String()), "\n"))
	want := totals(pd)
	require.Len(t, want, 4)
	requireReadBack(t, want, text.String())
}
