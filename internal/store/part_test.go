// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Described returns all that a Block has, sorted, without what differs between implementations: numbers, places and
// bytes. Of a block whose samples are elsewhere, it leaves out what is not known there.
func Described(t *testing.T, b model.Block, isElsewhere bool) (lines []string) {
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
			if isElsewhere {
				in.ID, in.Instance, in.Position, in.Samples = model.SeriesID{}, 0, 0, 0
			}
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
		rows, sums := make([]int, len(profiles)), map[string]int64{}
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
					sums[fmt.Sprint("row ", list[profiles[i].in].Type, profiles[i].Start, frames, timestamp,
						model.LabelsOf(p.Dict(),
							&model.BlockSeries{Resource: dictionary.AttributeSetIndex(model.At(c.Attributes, k))}),
						p.Dict().Links.At(dictionary.LinkIndex(model.At(c.Links, k))))] += c.Values[k]
				}
				return nil
			}))
		for i, c := range profiles {
			meta := p.Meta(&c.Profile)
			require.Equal(t, starts[i], c.Start)
			if c.At, c.MetaAt = 0, 0; isElsewhere {
				c.Samples = 0
			} else {
				require.EqualValues(t, c.Samples, rows[i])
			}
			lines = append(lines,
				fmt.Sprintf("profile %s %+v %d %s", list[c.in].Type, c.Profile, meta.Period, meta.PeriodUnit))
		}
		for row, sum := range sums {
			if sum != 0 {
				lines = append(lines, fmt.Sprint(row, " ", sum))
			}
		}
		return nil
	}))
	slices.Sort(lines)
	return lines
}

// EachKind calls add with profiles of two services, of each kind of values. isLate ones have no time of their own.
func EachKind(add func(pd pprofile.Profiles, arrived time.Time, isLate bool)) {
	for i := range 4 {
		now := noon.Add(time.Duration(10*i) * time.Second)
		for _, service := range []string{"shop", "cart"} {
			start := uint64(now.Add(-10 * time.Second).UnixNano())
			resource := []any{"service.name", service, "host.name", fmt.Sprint("host", i%2)}
			b := profiletest.New().Resource(resource...)
			b.Profile("cpu", "nanoseconds").Time(start, 10e9).Period(1e7, "cpu", "nanoseconds").Sample(
				profiletest.Value(int64(20+i), "leaf", "main").With(profiletest.Attr("endpoint", "/pay")).Linked([16]byte{1},
					[8]byte{2}),
				profiletest.Value(3, "other", "main"))
			b.Profile("inuse_space", "bytes").Time(start, 10e9).Sample(profiletest.Value(int64(50*i+1), "alloc", "main"))
			b.Profile("wall", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Observed([]uint64{start + 5, start + 7}, "wait", "main"))
			b.Profile("alloc_space", "bytes").Time(start, 0).
				Sample(profiletest.Value(int64(100*i+1), "alloc", "main"), profiletest.Value(7, "same", "main"))
			add(b.Build(), now, false)
			late := profiletest.New().Resource(resource...)
			late.Profile("alloc_objects", "count").Time(0, 0).Sample(profiletest.Value(int64(100*i), "alloc", "main"))
			add(late.Build(), now, true)
		}
	}
}

// A snapshot, a block on disk, one that was written again, and what an engine lists have the same, for each kind of
// values.
func TestBlocksConform(t *testing.T) {
	s, engine := open(t, diskConfig(t, t.TempDir())), &fakeEngine{}
	defer func() { require.NoError(t, s.Close()) }()
	EachKind(func(pd pprofile.Profiles, arrived time.Time, isLate bool) {
		require.Zero(t, s.Add(pd, arrived).Refused)
		if !isLate {
			engine.add(pd)
		}
	})
	inMemory, inMemoryAlone := DescribedStore(t, s)
	require.NotEmpty(t, inMemory)
	s.Maintain(noon.Add(time.Hour))
	onDisk, _ := DescribedStore(t, s)
	require.Equal(t, inMemory, onDisk)
	again, err := s.disk.files.Write(t.Context(), "again", []compaction.Source{compaction.FromDisk(s.Blocks()[0])}, 0)
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, inMemory, Described(t, again, false))
	source := answers.NewEngineSource(engine, time.Hour, s.cfg.Resolution, func() time.Time {
		return noon.Add(time.Minute)
	})
	require.Equal(t, inMemoryAlone, DescribedEngine(t, source))
}

// DescribedStore returns what the only block of a store has, and what of it an engine has, too.
func DescribedStore(t *testing.T, s *Store) (all, elsewhere []string) {
	v, err := s.View(t.Context(), &answers.Query{Memory: model.NewMemory(t.Context(), nil), Reads: answers.ReadsTypes})
	require.NoError(t, err)
	defer v.Release()
	require.Len(t, v.Blocks, 1)
	return Described(t, v.Blocks[0], false), slices.DeleteFunc(Described(t, v.Blocks[0], true), func(line string) bool {
		return strings.Contains(line, "alloc_objects")
	})
}

// DescribedEngine returns what an engine has.
func DescribedEngine(t *testing.T, s *answers.EngineSource) []string {
	v, err := s.View(t.Context(), &answers.Query{Memory: model.NewMemory(t.Context(), nil), Reads: answers.ReadsSeries})
	require.NoError(t, err)
	return Described(t, v.Blocks[0], true)
}
