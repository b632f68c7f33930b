// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// TestCapturedAlone compacts each captured payload: nothing is lost, and it becomes no larger, but for the hundredth
// part that an order for compression may cost.
func TestCapturedAlone(t *testing.T) {
	for name, pd := range captured(t) {
		t.Run(name, func(t *testing.T) {
			out := whole(t, batchOf(all, pd))
			require.NoError(t, profiletest.Check(out))
			require.NoError(t, profiletest.Equal(pd, out))
			before, after := len(profiletest.Marshal(t, pd)), len(profiletest.Marshal(t, out))
			require.LessOrEqual(t, after, before+before/100)
			t.Logf("%d bytes, were %d", after, before)
		})
	}
}

// hugeHeap takes seconds where the others take milliseconds, so that it is in fewer tests.
const hugeHeap = "go-compile-nethttp-heap-huge"

// TestCapturedTogether batches all captured payloads except hugeHeap, each twice.
func TestCapturedTogether(t *testing.T) {
	b := batchOf(all)
	var want []pprofile.Profiles
	bytes := 0
	payloads := captured(t)
	delete(payloads, hugeHeap)
	for _, pd := range payloads {
		for range 2 {
			b.Add(pd)
			bytes += len(profiletest.Marshal(t, pd))
			want = append(want, pd)
		}
	}
	out := whole(t, b)
	require.NoError(t, profiletest.Check(out))
	require.NoError(t, profiletest.EqualAll(want, []pprofile.Profiles{out}))
	require.Less(t, len(profiletest.Marshal(t, out)), bytes*6/10, "every payload stands in it twice")
}

// The order of entries saves a tenth of what is sent, compared with that in which they were interned.
func TestOrderHelpsCompression(t *testing.T) {
	interned, ordered := batchOf(Options{CombineSamples: true}), batchOf(all)
	payloads := captured(t)
	for _, name := range slices.Sorted(maps.Keys(payloads)) {
		if pd := payloads[name]; name != hugeHeap {
			interned.Add(profiletest.Clone(pd))
			ordered.Add(pd)
		}
	}
	before, after := profiletest.Marshal(t, whole(t, interned)), profiletest.Marshal(t, whole(t, ordered))
	t.Logf("zstd: %d bytes instead of %d; gzip: %d instead of %d", len(worst.Zstd(after)), len(worst.Zstd(before)),
		len(profiletest.Gzip(after)), len(profiletest.Gzip(before)))
	assert.Less(t, len(worst.Zstd(after)), len(worst.Zstd(before))*14/15)
	assert.Less(t, len(profiletest.Gzip(after)), len(profiletest.Gzip(before))*11/12)
	assert.Less(t, len(after), len(before))
}

// TestCapturedSplit splits all captured payloads at limits that cut between and inside of profiles.
func TestCapturedSplit(t *testing.T) {
	for name, pd := range captured(t) {
		size := len(profiletest.Marshal(t, pd))
		for _, divisor := range []int{2, 5, 40} {
			limit := size / divisor
			if limit < 1500 || name == hugeHeap && divisor != 5 {
				continue
			}
			options := all
			options.MaxBytes = limit
			parts := parts(batchOf(options, pd))
			requireWithin(t, limit, parts)
			requireMerged(t, parts, pd)
			total, largest, smallest := 0, 0, limit
			for _, part := range parts {
				total, largest, smallest = total+part.Bytes, max(largest, part.Bytes), min(smallest, part.Bytes)
			}
			t.Logf("%s: %d bytes at %d: %d parts of %d to %d, %d in all", name, size, limit, len(parts), smallest, largest,
				total)
		}
	}
}

// requireWithin expects conformant parts, each within the limit in both forms, with correct sizes.
func requireWithin(t testing.TB, limit int, parts []Part) {
	t.Helper()
	for i, part := range parts {
		require.NoError(t, profiletest.Check(part.Profiles), "part %d", i)
		inPlace, referenced := encodedSizes(t, part.Profiles)
		require.LessOrEqual(t, max(inPlace, referenced), part.Bytes, "part %d", i)
		require.LessOrEqual(t, part.Bytes, max(inPlace, referenced)+16+slack(part.Profiles), "part %d", i)
		if !part.Oversized {
			require.LessOrEqual(t, part.Bytes, limit, "part %d", i)
		}
	}
}
