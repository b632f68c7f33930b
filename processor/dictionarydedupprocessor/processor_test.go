// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func alone(c *Config) { c.Timeout = 0 }

func TestAloneEveryRequestGoesAtOnce(t *testing.T) {
	f := start(t, alone)
	first, second := message("shop", 30), message("cart", 20)
	f.consume(profiletest.Clone(first))
	require.Len(t, f.sink.all(), 1, "it has been passed on when the sender gets its answer")
	f.consume(profiletest.Clone(second))
	received := f.sink.all()
	require.Len(t, received, 2)
	for i, want := range []pprofile.Profiles{first, second} {
		require.NoError(t, profiletest.Check(received[i]))
		require.NoError(t, profiletest.Equal(want, received[i]))
	}
	assert.EqualValues(t, 2, f.sum("batches", "reason", "timeout"))
}

func TestAloneAnErrorReachesTheSender(t *testing.T) {
	f := start(t, alone)
	refusal := errors.New("come back later")
	f.sink.accept = func(context.Context, pprofile.Profiles) error { return refusal }
	err := f.processor.ConsumeProfiles(t.Context(), message("shop", 3))
	require.ErrorIs(t, err, refusal)
	assert.Zero(t, f.sum("outgoing_samples"))
	assert.Zero(t, f.sum("batches"))
}

func TestAloneTheContextIsTheSenders(t *testing.T) {
	type key struct{}
	f := start(t, alone)
	ctx := context.WithValue(t.Context(), key{}, "value")
	require.NoError(t, f.processor.ConsumeProfiles(ctx, message("shop", 3)))
	assert.Equal(t, "value", f.sink.contexts[0].Value(key{}))
}

func TestNothingGoesOnWithoutProfiles(t *testing.T) {
	f := start(t, alone)
	f.consume(pprofile.NewProfiles())
	orphans := message("shop", 3)
	orphans.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().RemoveIf(func(pprofile.Profile) bool { return true })
	f.consume(orphans)
	assert.Empty(t, f.sink.all())
}

func TestReadOnlyInputIsNotChanged(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		f := start(t, func(c *Config) { c.Timeout = timeout })
		shared := message("shop", 30)
		before := profiletest.Clone(shared)
		shared.MarkReadOnly()
		f.consume(shared)
		f.stop()
		require.NoError(t, profiletest.Equal(before, shared))
		require.Len(t, f.sink.all(), 1)
		require.NoError(t, profiletest.Equal(before, f.sink.all()[0]))
		assert.False(t, f.sink.all()[0].IsReadOnly())
	}
}

func TestSplitByBytes(t *testing.T) {
	f := start(t, func(c *Config) {
		alone(c)
		c.MaxBatchBytes = minMaxBatchBytes
	})
	pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds")
	for i := range 3000 {
		name := strings.Repeat("x", 40) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		pd.Sample(profiletest.Value(int64(i), name, "main.main"))
	}
	want := profiletest.Clone(pd.Build())
	f.consume(pd.Build())
	received := f.sink.all()
	require.Greater(t, len(received), 2)
	merged := profiletest.Clone(received[0])
	for i, part := range received {
		require.NoError(t, profiletest.Check(part))
		wire := profiletest.Marshal(t, part)
		assert.LessOrEqual(t, len(wire), minMaxBatchBytes)
		if i > 0 {
			require.NoError(t, profiletest.Clone(part).MergeTo(merged))
		}
	}
	require.NoError(t, profiletest.Equal(want, merged, profiletest.MergeProfiles()))
	assert.EqualValues(t, len(received)-1, f.sum("splits"))
	assert.EqualValues(t, 3000, f.sum("outgoing_samples"))
}

func TestAnOversizedObservationGoesOutWithAWarning(t *testing.T) {
	f := start(t, func(c *Config) {
		alone(c)
		c.MaxBatchBytes = minMaxBatchBytes
	})
	huge := strings.Repeat("huge", minMaxBatchBytes)
	pd := profiletest.New().Sample(profiletest.Value(1, huge), profiletest.Value(2, "small")).Build()
	f.consume(pd)
	require.Len(t, f.sink.all(), 2)
	assert.Equal(t, 2, f.sink.samples())
	assert.EqualValues(t, 1, f.sum("oversized"))
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("larger than `max_batch_bytes`").Len())
}

// What is wrong with a message is counted by reason, and the rest of it arrives.
func TestFaultsAreCounted(t *testing.T) {
	f := start(t, alone)
	pd := message("shop", 10)
	samples := profiletest.ProfileAt(pd, 0).Samples()
	samples.At(0).SetStackIndex(-7)
	samples.At(1).Values().FromRaw(nil)
	samples.At(2).Values().FromRaw([]int64{1, 2})
	samples.At(3).TimestampsUnixNano().FromRaw([]uint64{1, 2})
	samples.At(4).SetLinkIndex(99)
	samples.At(5).AttributeIndices().FromRaw([]int32{-1})
	pd.Dictionary().StackTable().At(int(samples.At(6).StackIndex())).LocationIndices().SetAt(0, 1<<30)
	profiletest.ProfileAt(pd, 0).SampleType().SetUnitStrindex(-1)
	f.consume(pd)
	require.Len(t, f.sink.all(), 1)
	require.NoError(t, profiletest.Check(f.sink.all()[0]))
	assert.Equal(t, 5, f.sink.samples())
	for reason, n := range map[string]int64{
		"stack_index": 1, "no_observation": 1, "several_values": 1, "lengths": 1, "location_index": 1,
	} {
		assert.Equal(t, n, f.sum("dropped_samples", "reason", reason), reason)
	}
	for fault, n := range map[string]int64{"link_index": 1, "attribute_index": 1, "profile_field": 1} {
		assert.Equal(t, n, f.sum("repaired", "fault", fault), fault)
	}
}

func TestMetricsOfWhatGoesThrough(t *testing.T) {
	f := start(t, alone)
	pd := message("shop", 30)
	in := profiletest.Clone(pd)
	f.consume(pd)
	out := f.sink.all()[0]
	assert.EqualValues(t, 30, f.sum("incoming_samples"))
	assert.EqualValues(t, 30, f.sum("outgoing_samples"))
	assert.EqualValues(t, 1, f.sum("incoming_profiles"))
	assert.EqualValues(t, 1, f.sum("outgoing_profiles"))
	assert.EqualValues(t, sizer.ProfilesSize(in), f.sum("incoming_bytes"))
	assert.InDelta(t, sizer.ProfilesSize(out), f.sum("outgoing_bytes"), 100)
	for i, n := range compact.EntriesOf(in.Dictionary()) {
		assert.EqualValues(t, n, f.sum("incoming_entries", "table", compact.Tables[i]))
	}
	for i, n := range compact.EntriesOf(out.Dictionary()) {
		assert.EqualValues(t, n, f.sum("outgoing_entries", "table", compact.Tables[i]))
	}
	assert.EqualValues(t, 30, f.sum("outgoing_samples", "processor", "dictionary_dedup"))
}
