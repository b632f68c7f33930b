// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Attributes of a profile are part of what a series is, as those of its resource are: queries filter and group by them,
// and in a pprof of several series are those that all of them have. What describes one profile is not.
func TestProfileAttributesAreOfTheSeries(t *testing.T) {
	const source = "profiling.instrumentation.source"
	s := New(testConfig())
	for minute := range 20 { // several blocks
		now := noon.Add(time.Duration(minute) * time.Minute)
		b := profiletest.New().Resource("service.name", "shop", "host.name", "h")
		for i, name := range []string{"continuous", "snapshot"} {
			b.Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()), 1e9).
				Attributes(profiletest.Attr("pprof.profile.comment", now.String()), profiletest.Attr(source, name),
					profiletest.Attr("both", "x")).
				Sample(profiletest.Value(int64(1+99*i), "leaf"))
		}
		require.Equal(t, 2, s.Add(b.Build(), now).Profiles)
	}
	require.Greater(t, len(s.blocks), 2)
	assert.Equal(t, 2, s.Stats().Series)
	assert.Equal(t, 1, s.profiles("shop")[0].Instances, "instances are resources")
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	assert.EqualValues(t, 20*101, sum(t, s, sel))
	of := func(key, value string) model.Selection {
		sel := sel
		sel.Attributes = []model.Attribute{{Key: key, Value: value}}
		return sel
	}
	assert.EqualValues(t, 20, sum(t, s, of(source, "continuous")))
	assert.EqualValues(t, 2000, sum(t, s, of(source, "snapshot")))
	assert.Zero(t, sum(t, s, of(source, "none")))
	grouped := sel
	grouped.GroupBy = source
	g, err := s.FlameGraph(t.Context(), grouped, 100)
	require.NoError(t, err)
	var names []string
	for _, f := range g.Frames {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{source + "=continuous", "leaf", source + "=snapshot"}, names)
	infos, err := s.Attributes(t.Context(), sel, 10)
	require.NoError(t, err)
	assert.Equal(t, []answers.AttributeInfo{
		{Key: "host.name", Scope: answers.ResourceScope, Values: []answers.AttributeValue{{Value: "h", Samples: 40}}},
		{Key: "service.name", Scope: answers.ResourceScope, Values: []answers.AttributeValue{{Value: "shop", Samples: 40}}},
		{Key: "both", Scope: answers.ProfileScope, Values: []answers.AttributeValue{{Value: "x", Samples: 40}}},
		{Key: source, Scope: answers.ProfileScope,
			Values: []answers.AttributeValue{{Value: "continuous", Samples: 20}, {Value: "snapshot", Samples: 20}}},
	}, infos)

	attributes := func(sel model.Selection) map[string]string {
		merged, err := s.Merge(t.Context(), sel)
		require.NoError(t, err)
		found := map[string]string{}
		for _, i := range profiletest.ProfileAt(merged.Profiles, 0).AttributeIndices().All() {
			a := merged.Dictionary().AttributeTable().At(int(i))
			found[merged.Dictionary().StringTable().At(int(a.KeyStrindex()))] = a.Value().AsString()
		}
		return found
	}
	newest := noon.Add(19 * time.Minute).String()
	assert.Equal(t, map[string]string{"pprof.profile.comment": newest, "both": "x"}, attributes(sel))
	assert.Equal(t, map[string]string{"pprof.profile.comment": newest, "both": "x", source: "snapshot"},
		attributes(of(source, "snapshot")))
}

// A service has as many profiles as names of them, whatever their sample types.
func TestServicesCountProfiles(t *testing.T) {
	s := New(testConfig())
	b := profiletest.New().Resource("service.name", "shop")
	for _, typ := range []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "cpu"} {
		b.Profile(typ, "count").Time(uint64(noon.UnixNano()), 1e9).Sample(profiletest.Value(1, "leaf"))
	}
	require.Equal(t, 5, s.Add(b.Build(), noon).Profiles)
	assert.Equal(t,
		[]answers.ServiceInfo{{Service: "shop", Profiles: 2, Samples: 5, From: noon.UnixNano(),
			Until: noon.UnixNano() + 1e9}},
		s.services())
}

// Profiles whose times are outside of the window are kept under another one. Views by time have nothing of them, and
// the list says so.
func TestMovedProfilesHaveNoTimes(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.Disk.Retention = time.Hour
	s := open(t, cfg)
	old := noon.Add(-24 * time.Hour)
	pd := cpu(old, 1, profiletest.Observed([]uint64{uint64(old.UnixNano())}, "leaf"))
	require.Equal(t, 1, s.Add(pd, noon).Moved)
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	for blocks := range 2 { // in memory, and on disk
		require.Equal(t, blocks, s.Stats().DiskBlocks)
		h, err := s.HeatMap(t.Context(), sel, 10, 10)
		require.NoError(t, err)
		assert.Zero(t, h.Observations)
		e, err := s.Events(t.Context(), sel, 10)
		require.NoError(t, err)
		assert.Empty(t, e.List)
		assert.False(t, s.profiles("shop")[0].Timestamps, "there are none to show")
		s.Maintain(noon.Add(time.Hour))
	}
	require.NoError(t, s.Close())
}

// Whatever times a profile and its observations have: the list of profiles promises views by time if, and only if, they
// show something.
func TestViewsByTimeAreAsPromised(t *testing.T) {
	moment := func(before time.Duration) uint64 { return uint64(noon.Add(-before).UnixNano()) }
	for name, c := range map[string]struct {
		time, observed uint64
		shown          bool
	}{
		"both in the window":                              {moment(time.Minute), moment(59 * time.Second), true},
		"no time, observed in the window":                 {0, moment(30 * time.Minute), true},
		"no time, observed before the window":             {0, moment(24 * time.Hour), false},
		"no time, observed after the window":              {0, moment(-24 * time.Hour), false},
		"in the window, observed before the window":       {moment(time.Minute), moment(24 * time.Hour), false},
		"in the window, observed elsewhere in the window": {moment(time.Minute), moment(30 * time.Minute), true},
		"before the window, observed in the window":       {moment(24 * time.Hour), moment(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(testConfig())
			b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds")
			if c.time != 0 {
				b.Time(c.time, 2e9)
			}
			added := s.Add(b.Sample(profiletest.Observed([]uint64{c.observed}, "leaf")).Build(), noon)
			require.Equal(t, 1, added.Profiles)
			assert.Equal(t, !c.shown, added.Moved > 0)
			sel := model.Selection{Service: "shop", Profile: "process_cpu"}
			assert.Equal(t, c.shown, s.profiles("shop")[0].Timestamps)
			h, err := s.HeatMap(t.Context(), sel, 10, 10)
			require.NoError(t, err)
			assert.Equal(t, c.shown, h.Observations > 0, "heat map")
			e, err := s.Events(t.Context(), sel, 10)
			require.NoError(t, err)
			assert.Equal(t, c.shown, len(e.List) > 0, "threads")
			assert.EqualValues(t, 1, sum(t, s, sel), "the flame graph has it anyway")
		})
	}
}

// A profile is kept in the window whatever its time and duration are, for as long as others that arrive with it.
func TestProfilesOfAnyTimeAreKept(t *testing.T) {
	moment := func(before time.Duration) uint64 { return uint64(noon.Add(-before).UnixNano()) }
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		time     uint64
		duration time.Duration
		observed []uint64
		// length is the time for which it is kept, until end.
		end    time.Time
		length time.Duration
	}{
		"no time":                      {0, 0, nil, noon, 0},
		"no time, a duration":          {0, 10 * time.Second, nil, noon, 10 * time.Second},
		"no time, a long duration":     {0, math.MaxInt64, nil, noon, time.Hour},
		"no time, observed":            {0, 0, []uint64{moment(time.Minute)}, noon.Add(1 - time.Minute), 2},
		"no time, decades, observed":   {0, math.MaxInt64, []uint64{moment(time.Minute)}, noon.Add(1 - time.Minute), 2},
		"no time, observed long ago":   {0, 10 * time.Second, []uint64{moment(2 * day)}, noon, 10 * time.Second},
		"a time that is the end":       {moment(0), time.Minute, nil, noon.Add(time.Minute), time.Minute},
		"a time that is a late end":    {moment(0), 2 * time.Minute, nil, noon, 2 * time.Minute},
		"the last time that there is":  {math.MaxUint64, 10 * time.Second, nil, noon, 10 * time.Second},
		"a time that overflows":        {math.MaxInt64 - 1, 10 * time.Second, nil, noon, 10 * time.Second},
		"a duration that overflows":    {moment(time.Minute), math.MaxInt64, nil, noon, time.Hour},
		"a minute ago, for its length": {moment(time.Minute), time.Minute, nil, noon, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(testConfig())
			sample := profiletest.Value(7, "leaf")
			if c.observed != nil {
				sample = profiletest.Observed(c.observed, "leaf")
			}
			pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(c.time,
				uint64(c.duration)).Sample(sample).Build()
			require.Equal(t, 1, s.Add(pd, noon).Profiles)
			info := s.services()[0]
			assert.Equal(t, c.end.UnixNano(), info.Until)
			assert.Equal(t, c.end.Add(-c.length).UnixNano(), info.From)
			for minutes := 5; minutes <= 180; minutes += 5 { // a clock that leaps is not trusted
				if s.Expire(noon.Add(time.Duration(minutes) * time.Minute)); minutes <= 50 {
					require.Equal(t, 1, s.Stats().Profiles)
				}
			}
			assert.Zero(t, s.Stats().Profiles)
		})
	}
}
