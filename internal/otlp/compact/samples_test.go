// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func observed(values []int64, timestamps []uint64, functions ...string) profiletest.Sample {
	s := profiletest.Observed(timestamps, functions...)
	s.Values = values
	return s
}

func firstProfile(pd pprofile.Profiles) pprofile.Profile { return profiletest.ProfileAt(pd, 0) }

func TestSamplesOfOneIdentityAreCombined(t *testing.T) {
	attribute := profiletest.Attr("thread", "main")
	pd := profiletest.New().Sample(
		profiletest.Value(1, "leaf", "main"),
		profiletest.Value(2, "leaf", "main").With(attribute),
		profiletest.Value(4, "other", "main"),
		profiletest.Value(8, "leaf", "main").With(attribute),
		profiletest.Value(16, "leaf", "main").Linked([16]byte{1}, [8]byte{1}),
		profiletest.Value(32, "leaf", "main"),
	).Build()
	out := firstProfile(whole(t, batchOf(all, pd))).Samples()
	var values []int64
	for _, s := range out.All() {
		values = append(values, s.Values().At(0))
	}
	assert.Equal(t, []int64{33, 10, 4, 16}, values)

	apart := all
	apart.CombineSamples = false
	assert.Equal(t, 6, whole(t, batchOf(apart, pd)).SampleCount())
}

func TestTimestampsAreAppended(t *testing.T) {
	pd := profiletest.New().Profile("cpu", "ns").Time(0, 1000).Sample(
		observed([]int64{1, 2}, []uint64{10, 20}, "leaf"),
		observed([]int64{3}, []uint64{15}, "other"),
		observed([]int64{4}, []uint64{5}, "leaf"),
	).Build()
	out := firstProfile(whole(t, batchOf(all, pd))).Samples()
	require.Equal(t, 2, out.Len())
	assert.Equal(t, []uint64{10, 20, 5}, out.At(0).TimestampsUnixNano().AsRaw())
	assert.Equal(t, []int64{1, 2, 4}, out.At(0).Values().AsRaw())
	assert.Equal(t, []uint64{15}, out.At(1).TimestampsUnixNano().AsRaw())
}

func TestASumThatOverflowsStaysApart(t *testing.T) {
	pd := profiletest.New().Sample(
		profiletest.Value(math.MaxInt64-1, "leaf"), profiletest.Value(2, "leaf"), profiletest.Value(1, "leaf"),
		profiletest.Value(math.MinInt64, "low"), profiletest.Value(-1, "low"),
	).Build()
	var values []int64
	for _, s := range firstProfile(whole(t, batchOf(all, pd))).Samples().All() {
		values = append(values, s.Values().At(0))
	}
	assert.Equal(t, []int64{math.MaxInt64, 2, math.MinInt64, -1}, values)
}

// Samples of several shapes become one profile for each, all with the profile's own fields. The payload is there once.
func TestShapesAreNeverMixed(t *testing.T) {
	pd := profiletest.New().Profile("cpu", "ns").ID([16]byte{7}).Time(0, 1000).Payload("pprof", []byte("raw")).Sample(
		observed(nil, []uint64{1}, "leaf"),
		profiletest.Value(2, "leaf"),
		observed([]int64{3}, []uint64{3}, "leaf"),
		observed(nil, []uint64{4}, "leaf"),
	).Build()
	out := whole(t, batchOf(all, pd))
	require.NoError(t, profiletest.Check(out))
	require.NoError(t, profiletest.Equal(pd, out, profiletest.MergeProfiles()))
	require.Equal(t, 3, out.ProfileCount())
	for i := range 3 {
		assert.Equal(t, pprofile.ProfileID{7}, profiletest.ProfileAt(out, i).ProfileID())
		assert.Equal(t, i == 0, profiletest.ProfileAt(out, i).OriginalPayload().Len() > 0)
	}
	assert.Equal(t, []uint64{1, 4}, firstProfile(out).Samples().At(0).TimestampsUnixNano().AsRaw())
}

func TestEqualResourcesAndScopesBecomeOne(t *testing.T) {
	profile := func(id byte, b *profiletest.Builder) pprofile.Profiles {
		return b.Profile("cpu", "ns").ID([16]byte{id}).Sample(profiletest.Value(int64(id), "main")).Build()
	}
	shop := func() *profiletest.Builder {
		return profiletest.New().Resource("service.name", "shop", "zone", "a")
	}
	reordered := profiletest.New().Resource("zone", "a", "service.name", "shop")
	otherSchema := shop().Scope("agent", "1").SchemaURLs("https://schema/2", "")
	out := whole(t, batchOf(all,
		profile(1, shop().Scope("agent", "1")),
		profile(2, shop().Scope("agent", "2")),
		profile(3, otherSchema),
		profile(4, reordered.Scope("agent", "1")),
		profile(5, shop().Scope("agent", "1")),
	))
	require.Equal(t, 2, out.ResourceProfiles().Len())
	require.Equal(t, 2, out.ResourceProfiles().At(0).ScopeProfiles().Len())
	var ids []byte
	eachProfile(out, func(p pprofile.Profile) { ids = append(ids, p.ProfileID()[0]) })
	assert.Equal(t, []byte{1, 4, 5, 2, 3}, ids, "within a scope they keep their order")
}

// A profile that is split keeps its own fields in every part. Its payload goes with the first.
func TestASplitProfileKeepsItsMetadata(t *testing.T) {
	b := profiletest.New().Resource("service.name", "shop").Scope("agent", "1").
		Profile("cpu", "ns").ID([16]byte{7}).Time(5, 1000).Period(10, "cpu", "ns").
		Attributes(profiletest.Attr("pid", int64(1))).Payload("pprof", []byte("raw"))
	for i := range 300 {
		b.Sample(profiletest.Value(int64(i), fmt.Sprint("function-", i), "main"))
	}
	options := all
	options.MaxBytes = 2000
	parts := parts(batchOf(options, b.Build()))
	require.Greater(t, len(parts), 3)
	requireWithin(t, 2000, parts)
	for i, part := range parts {
		p := firstProfile(part.Profiles)
		assert.Equal(t, pprofile.ProfileID{7}, p.ProfileID())
		assert.EqualValues(t, 1000, p.DurationNano())
		assert.EqualValues(t, 10, p.Period())
		assert.Equal(t, 1, p.AttributeIndices().Len())
		assert.Equal(t, i == 0, p.OriginalPayload().Len() > 0)
		assert.Equal(t, i == 0, p.OriginalPayloadFormat() != "")
		assert.Greater(t, part.Bytes, 1000, "no part is a crumb")
	}
	requireMerged(t, parts, b.Build())
}

func TestASampleIsSplitBetweenItsTimestamps(t *testing.T) {
	timestamps, values := make([]uint64, 5000), make([]int64, 5000)
	for i := range timestamps {
		timestamps[i], values[i] = uint64(i), int64(i)*1000
	}
	pd := profiletest.New().Profile("cpu", "ns").Time(0, 10_000).Sample(observed(values, timestamps, "leaf", "main")).
		Build()
	options := all
	options.MaxBytes = 8000
	parts := parts(batchOf(options, pd))
	requireWithin(t, 8000, parts)
	require.Len(t, parts, 8)
	requireMerged(t, parts, pd)
}

func TestAnObservationLargerThanTheLimitGoesOutAlone(t *testing.T) {
	pd := profiletest.New().Sample(
		profiletest.Value(1, "small"), profiletest.Value(2, strings.Repeat("large", 1000)), profiletest.Value(3, "tiny"),
	).Build()
	options := all
	options.MaxBytes = 1000
	oversized := 0
	all := parts(batchOf(options, pd))
	for _, part := range all {
		if part.Oversized {
			oversized++
			assert.Equal(t, 1, part.SampleCount)
		}
	}
	assert.Equal(t, 1, oversized)
	requireMerged(t, all, pd)
}

// The resource's texts are written in place by one exporter and moved into the dictionary by another: both must fit.
func TestManyResourcesFitInBothForms(t *testing.T) {
	for _, texts := range []string{"same", "different"} {
		b := profiletest.New()
		for i := range 200 {
			value := "a value that all resources have"
			if texts == "different" {
				value = fmt.Sprintf("a value that only resource %d has", i)
			}
			b.Resource("service.instance.id", fmt.Sprint(i), "description", value).
				Scope("agent", "1", "note", value).Profile("cpu", "ns").Sample(profiletest.Value(1, "main"))
		}
		options := all
		options.MaxBytes = 5000
		parts := parts(batchOf(options, b.Build()))
		requireWithin(t, 5000, parts)
		requireMerged(t, parts, b.Build())
	}
}

// A consumed message is compacted in its own memory, but for entries that have another length than the one before at
// this index.
func TestConsumingAllocatesLittle(t *testing.T) {
	message := fromPprof(t, "go-build-merged-cpu-large.pb.gz")
	var c consumer
	c.run([]pprofile.Profiles{profiletest.Clone(message)})
	copies := cloneAll(slices.Repeat([]pprofile.Profiles{message}, 4))
	consume := testing.AllocsPerRun(2, func() {
		c.run(copies[:1])
		copies = copies[1:]
	})
	copying := testing.AllocsPerRun(1, func() { profiletest.Clone(message) })
	assert.Less(t, consume, copying/6, "a copy takes %.0f allocations", copying)
}

// A small batch after a large one costs as much as any small batch: the batch keeps memory, not entries.
func TestResetForgets(t *testing.T) {
	b := batchOf(all, fromPprof(t, "go-build-merged-cpu-large.pb.gz"))
	whole(t, b)
	b.Reset(all)
	assert.Zero(t, b.Samples()+b.Profiles()+b.ApproximateBytes())
	require.Empty(t, parts(b))
	small := profiletest.New().Sample(profiletest.Value(1, "main")).Build()
	b.Add(small)
	assert.Equal(t, profiletest.Marshal(t, whole(t, batchOf(all, small))), profiletest.Marshal(t, whole(t, b)))
}

// The estimate that decides when a batch is sent is close to the batch's size.
func TestApproximateBytes(t *testing.T) {
	for name, pd := range captured(t) {
		b := batchOf(all, pd)
		size := len(profiletest.Marshal(t, whole(t, b)))
		assert.GreaterOrEqual(t, b.ApproximateBytes(), size*95/100, name)
		assert.LessOrEqual(t, b.ApproximateBytes(), size*14/10+200, name)
	}
}
