// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// described returns all that a Block has, sorted, without what differs between implementations: numbers, places and
// bytes.
func described(t *testing.T, b model.Block) (lines []string) {
	m := model.NewMemory(t.Context(), nil)
	require.NoError(t, b.Series("", m, func(list []model.BlockSeries) error {
		require.True(t, slices.IsSortedFunc(list, model.CompareSeries))
		service := list[0].Service
		labels, err := b.Labels(service)
		require.NoError(t, err)
		p, err := b.Open(service, true, m)
		require.NoError(t, err)
		defer p.Close()
		start, end, ok := b.Span(service)
		require.True(t, ok)
		series := make([]*model.BlockSeries, len(list))
		var starts []int64
		for i := range list {
			series[i] = &list[i]
			in := list[i]
			require.LessOrEqual(t, start, in.Start)
			require.GreaterOrEqual(t, end, in.End)
			in.Bytes, in.First, in.FirstSample, in.Resource, in.Attributes = 0, 0, 0, 0, 0
			lines = append(lines, fmt.Sprintf("series %+v %v", in, labels[i]))
		}
		require.NoError(t, b.Starts(series, func(_ int, of []int64) error { starts = append(starts, of...); return nil }))
		type found struct {
			in int
			model.Profile
		}
		var profiles []found
		all := func(*model.BlockSeries, *model.Profile) bool { return true }
		require.NoError(t, p.Profiles(series, true, all, func(in, _ int, c *model.Profile) error {
			profiles = append(profiles, found{in, *c})
			return nil
		}))
		require.Len(t, starts, len(profiles))
		rows := make([]int, len(profiles))
		at := func(i int) (*model.BlockSeries, *model.Profile) { return series[profiles[i].in], &profiles[i].Profile }
		require.NoError(t, p.Rows(len(profiles), at, model.ColumnsWanted{Attributes: true, Timestamps: true, Links: true},
			func(i int, c *model.Columns) error {
				for k := range c.Stacks {
					rows[i]++
					var frames []string
					for _, l := range p.Dict().Stacks.At(dictionary.StackIndex(c.Stacks[k])) {
						_, calls := p.Dict().Locations.At(dictionary.LocationIndex(l))
						frames = append(frames, p.Dict().Strings.At(p.Dict().Functions.At(calls[0].Function).Name))
					}
					timestamp := int64(0)
					if profiles[i].Flags&model.HasTimestamps != 0 {
						timestamp = c.Timestamps[k]
					}
					lines = append(lines, fmt.Sprint("row ", list[profiles[i].in].Type, profiles[i].Start, frames, c.Values[k],
						timestamp, model.LabelsOf(p.Dict(),
							&model.BlockSeries{Resource: dictionary.AttributeSetIndex(model.At(c.Attributes, k))}),
						p.Dict().Links.At(dictionary.LinkIndex(model.At(c.Links, k)))))
				}
				return nil
			}))
		for i, c := range profiles {
			meta := p.Meta(&c.Profile)
			require.Equal(t, starts[i], c.Start)
			require.EqualValues(t, c.Samples, rows[i])
			c.At, c.Meta = 0, 0
			lines = append(lines,
				fmt.Sprintf("profile %s %+v %d %s", list[c.in].Type, c.Profile, meta.Period, p.Dict().Strings.At(meta.PeriodUnit)))
		}
		return nil
	}))
	slices.Sort(lines)
	return lines
}

// What a block on disk has is what the snapshot has of the block in memory of which it was made, for each kind of
// values.
func TestBlocksConform(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	for i := range 4 {
		now := noon.Add(time.Duration(10*i) * time.Second)
		for _, service := range []string{"shop", "cart"} {
			start := uint64(now.Add(-10 * time.Second).UnixNano())
			b := profiletest.New().Resource("service.name", service, "host.name", fmt.Sprint("host", i%2))
			b.Profile("cpu", "nanoseconds").Time(start, 10e9).Period(1e7, "cpu", "nanoseconds").Sample(
				profiletest.Value(int64(20+i), "leaf", "main").With(profiletest.Attr("endpoint", "/pay")).Linked([16]byte{1},
					[8]byte{2}),
				profiletest.Value(3, "other", "main"))
			b.Profile("inuse_space", "bytes").Time(start, 10e9).Sample(profiletest.Value(int64(50*i+1), "alloc", "main"))
			b.Profile("wall", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Observed([]uint64{start + 5, start + 7}, "wait", "main"))
			b.Profile("alloc_space", "bytes").Time(0, 0).Sample(profiletest.Value(int64(100*i), "alloc", "main"))
			require.Zero(t, s.Add(b.Build(), now).Refused)
		}
	}
	views := map[string][]string{}
	for _, where := range []string{"memory", "disk"} {
		if where == "disk" {
			s.Maintain(noon.Add(time.Hour))
		}
		v := s.view(model.NewMemory(t.Context(), nil))
		require.Equal(t, where == "disk", v.onDisk == 1)
		views[where] = described(t, v.blocks[0])
		v.release()
	}
	require.NotEmpty(t, views["memory"])
	require.Equal(t, views["memory"], views["disk"])
}
