// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Merge writes a block of all profiles of the sources to a directory, which must not be there. step makes them coarser;
// 0 leaves them as they are. The block has the longest step of all, whatever finer profiles it has: nobody may expect
// what the others have lost. When ctx ends, or after another error, nothing is left of the block.
func Merge(ctx context.Context, dir, name string, sources []Source, step time.Duration) error {
	services, longest := map[string][]Source{}, step
	for _, s := range sources {
		longest = max(longest, s.Step())
		for _, name := range s.Services() {
			services[name] = append(services[name], s)
		}
	}
	w, err := blockfile.Create(dir, name)
	if err != nil {
		return err
	}
	m := &merger{ctx: ctx, w: w, step: step}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if err := m.service(name, services[name]); err != nil {
			w.Abort()
			return err
		}
	}
	_, err = w.Close(longest)
	return err
}

type merger struct {
	ctx  context.Context
	w    *blockfile.Writer
	step time.Duration
}

// service writes a service, of which all stacks and attributes are moved before anything is written.
func (m *merger) service(name string, sources []Source) error {
	dict := dictionary.New()
	byID := map[model.SeriesID][]Series{}
	for _, s := range sources {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		defer s.End()
		list, err := s.Begin(name, dict)
		if err != nil {
			return err
		}
		for _, sr := range list {
			byID[sr.ID] = append(byID[sr.ID], sr)
		}
	}
	if len(byID) == 0 {
		return nil
	}
	m.w.Service(name)
	ordered := slices.SortedFunc(maps.Values(byID), func(a, b []Series) int {
		return model.CompareSeries(a[0].BlockSeries, b[0].BlockSeries)
	})
	for _, parts := range ordered {
		if err := m.series(parts); err != nil {
			return err
		}
	}
	return m.w.EndService(dict)
}

// series writes the profiles that sources have of a series.
func (m *merger) series(parts []Series) error {
	first := &parts[0]
	m.w.Series(model.BlockSeries{
		ID: first.ID, Instance: first.Instance, Profile: first.Profile, Type: first.Type, Resource: first.Resource,
		Attributes: first.Attributes,
	}, first.Labels)
	if m.step == 0 {
		return m.each(parts, m.write)
	}
	c := newCoarser(m.step, m.write)
	if err := m.each(parts, c.add); err != nil {
		return err
	}
	return c.end()
}

func (m *merger) write(p *Profile) error { return m.w.Profile(p.Profile, p.Rows) }

// each calls use with the profiles of a series, by start.
func (m *merger) each(parts []Series, use func(*Profile) error) error {
	slices.SortStableFunc(parts, func(a, b Series) int { return cmp.Compare(a.Start, b.Start) })
	var open []*stream
	defer func() {
		for _, s := range open {
			s.stop()
		}
	}()
	for len(open)+len(parts) > 0 {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		first := -1
		for i, s := range open {
			if first < 0 || s.head.Start < open[first].head.Start {
				first = i
			}
		}
		// One that starts later is not opened yet.
		if len(parts) > 0 && (first < 0 || parts[0].Start < open[first].head.Start) {
			s := &stream{}
			s.next, s.stop = iter.Pull2(parts[0].Profiles)
			parts = parts[1:]
			open = append(open, s)
			first = len(open) - 1
		} else if err := use(&open[first].head); err != nil {
			return err
		}
		isLeft, err := open[first].advance()
		if err != nil {
			return err
		}
		if !isLeft {
			open[first].stop()
			open = slices.Delete(open, first, first+1)
		}
	}
	return nil
}

// stream has the profiles of a series that one source has.
type stream struct {
	head Profile
	next func() (Profile, error, bool)
	stop func()
}

func (s *stream) advance() (isLeft bool, err error) {
	s.head, err, isLeft = s.next()
	return isLeft, err
}
