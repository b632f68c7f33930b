// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file writes blocks to disk: what was in memory, or several blocks as one. Services are merged one after the other, so that the
// dictionaries of one service are in memory.

// source is where profiles of a block come from.
type source struct {
	services []string
	// part returns the series of a service, or nil.
	part func(ctx context.Context, service string) (*block, error)
}

// source returns that of a block in memory.
func (e *block) source() source {
	isEmpty := func(sr series) bool { return sr.profiles == 0 }
	nameOf := func(sr series) string { return e.dict.Strings.At(sr.service) }
	var names []string
	for _, sr := range slices.DeleteFunc(slices.Clone(e.series), isEmpty) {
		names = append(names, nameOf(sr))
	}
	slices.Sort(names)
	return source{slices.Compact(names), func(_ context.Context, service string) (*block, error) {
		part := e.clone()
		part.series = slices.DeleteFunc(part.series, func(sr series) bool { return isEmpty(sr) || nameOf(sr) != service })
		return part, nil
	}}
}

func (b *diskBlock) source() source {
	all := func(*blockfile.Series) bool { return true }
	return source{slices.Collect(maps.Keys(b.services)), func(ctx context.Context, service string) (*block, error) {
		return b.part(service, 0, 0, all, true, newMemory(ctx, nil))
	}}
}

type blockMerger struct {
	name    string
	sources []source
	wants   func(*chunk) bool
	heads   []uint64
	parts   int
	// step makes the profiles coarser; 0 leaves them as they are.
	step time.Duration
	// ctx ends it between two profiles. What was written is deleted.
	ctx context.Context
}

func (m *blockMerger) write(dir string) error {
	services := map[string][]source{}
	for _, s := range m.sources {
		for _, name := range s.services {
			services[name] = append(services[name], s)
		}
	}
	w, err := blockfile.Create(dir, m.name)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if err := m.service(w, name, services[name]); err != nil {
			w.Abort()
			return err
		}
	}
	_, err = w.Close(m.heads, m.parts, m.step)
	return err
}

// mergedPart is a source's part of a service.
type mergedPart struct {
	*block
	mover *mover.Mover
}

type mergedSeries struct {
	first *series
	part  *mergedPart
	runs  []seriesRun
}

// seriesRun are the profiles of a series that one part has.
type seriesRun struct {
	part   *mergedPart
	chunks []*chunk
}

func (m *blockMerger) service(w *blockfile.Writer, name string, sources []source) error {
	dict := dictionary.New()
	byID := map[seriesID]*mergedSeries{}
	for _, s := range sources {
		e, err := s.part(m.ctx, name)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		p := &mergedPart{block: e, mover: mover.New(e.dict, dict)}
		used := make([]bool, e.dict.Stacks.Len())
		for i := range e.series {
			sr := &e.series[i]
			run := seriesRun{part: p}
			for k := range sr.chunks {
				if c := &sr.chunks[k]; m.wants(c) {
					run.chunks = append(run.chunks, c)
					c.markStacks(used)
				}
			}
			if len(run.chunks) == 0 {
				continue
			}
			merged := byID[sr.id]
			if merged == nil {
				merged = &mergedSeries{first: sr, part: p}
				byID[sr.id] = merged
			}
			merged.runs = append(merged.runs, run)
		}
		p.moveStacks(used)
	}
	if len(byID) == 0 {
		return nil
	}
	w.Service(name)
	stringAt := func(s *mergedSeries, i dictionary.StringIndex) string { return s.part.dict.Strings.At(i) }
	list := slices.SortedFunc(maps.Values(byID), func(a, b *mergedSeries) int {
		return cmp.Or(strings.Compare(stringAt(a, a.first.profile), stringAt(b, b.first.profile)), strings.Compare(stringAt(a, a.first.typ), stringAt(b, b.first.typ)),
			strings.Compare(string(a.first.id[:]), string(b.first.id[:])))
	})
	for _, s := range list {
		if err := s.write(m.ctx, w, m.step); err != nil {
			return err
		}
	}
	return w.EndService(dict)
}

func (c *chunk) markStacks(used []bool) {
	if c.data == nil {
		return
	}
	for row := c.rows(); row.next(); {
		used[row.stack] = true
	}
}

// moveStacks moves the stacks that are used, in their order, with the mappings in theirs: all of a part that is on disk.
func (p *mergedPart) moveStacks(used []bool) {
	list := make([]dictionary.StackIndex, 0, len(used))
	for i, isUsed := range used {
		if isUsed || p.disk != nil {
			list = append(list, dictionary.StackIndex(i))
		}
	}
	p.mover.Stacks(list)
}

func (s *mergedSeries) write(ctx context.Context, w *blockfile.Writer, step time.Duration) error {
	strs, sr := &s.part.dict.Strings, s.first
	w.Series(blockfile.Series{
		ID: blockfile.ID(sr.id[:]), Instance: fmt.Sprintf("%016x", sr.instance), Profile: strs.At(sr.profile), Type: strs.At(sr.typ), Unit: strs.At(sr.unit),
		Kind: sr.values.String(), Labels: s.part.labels(sr),
		Resource: int32(s.part.mover.Set(sr.resource)), Attributes: int32(s.part.mover.Set(sr.attributes)),
	})
	slices.SortStableFunc(s.runs, func(a, b seriesRun) int { return cmp.Compare(a.chunks[0].start, b.chunks[0].start) })
	for _, run := range s.runs {
		if step > 0 {
			if err := coarserRun(ctx, &run, step); err != nil {
				return err
			}
		} else if run.part.disk != nil {
			if err := run.part.load(run.chunks, newMemory(ctx, nil)); err != nil {
				return err
			}
		}
		for _, c := range run.chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.Profile(run.part.profile(c), int(c.samples), run.part.rows(c), c.first(), c.last(), c.flags&isMoved != 0); err != nil {
				return err
			}
			if run.part.disk != nil {
				c.data = nil
			}
		}
	}
	return nil
}

func (p *mergedPart) profile(c *chunk) blockfile.Profile {
	m := p.metas[c.meta]
	return blockfile.Profile{
		Time: c.time, DurationNanos: c.duration, Start: c.start, End: c.end, Total: c.total,
		PeriodType: p.dict.Strings.At(m.periodType), PeriodUnit: p.dict.Strings.At(m.periodUnit), Period: m.period,
		AttributeSet: int32(p.mover.Set(m.attributes)), ScopeSet: int32(p.mover.Set(m.scope)),
		Position: m.position, Kind: int32(c.values), Flags: int32(c.flags),
	}
}

// rows returns the samples of a chunk, over the dictionary of the new block.
func (p *mergedPart) rows(c *chunk) iter.Seq[blockfile.Row] {
	return func(yield func(blockfile.Row) bool) {
		for row := c.rows(); row.next(); {
			if !yield(blockfile.Row{
				Stack:      int32(p.mover.Stack(dictionary.StackIndex(row.stack))),
				Attributes: int32(p.mover.Set(dictionary.AttributeSetIndex(row.attribute))),
				Link:       p.dict.Links.At(dictionary.LinkIndex(row.link)),
				Value:      row.value,
				Timestamp:  c.time + row.timestamp, HasTimestamp: c.flags&hasTimestamps != 0,
			}) {
				return
			}
		}
	}
}
