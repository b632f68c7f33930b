// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// snapshot is a Block of what a block in memory has of some services at a time. It is for one query.
type snapshot struct {
	dict  *dictionary.Dictionary
	metas []model.Meta
	// all are the series of the block, of which only what never changes is read.
	all   []series
	parts map[string]*snapshotService
}

// snapshotService has copies of the series of a service. list has them in their order when somebody asked for it; their
// First is the position in series.
type snapshotService struct {
	series     []series
	start, end int64
	list       []model.BlockSeries
}

// seriesCopyBytes is the memory of a series of a snapshot, and in its list.
const seriesCopyBytes = 768

// snapshotOf returns a block in memory as it is now, for readers that go on while profiles are added: with the
// services, or with all if none is given.
func snapshotOf(e *block, m *model.Memory, services ...string) *snapshot {
	s := &snapshot{dict: e.dict, metas: e.metas, all: e.series, parts: map[string]*snapshotService{}}
	if e.byKey != nil {
		s.dict = e.dict.Snapshot()
	}
	counts := map[string]int{}
	for i := range e.series {
		sr := &e.series[i]
		if sr.Profiles > 0 && (len(services) == 0 || slices.Contains(services, sr.Service)) {
			counts[sr.Service]++
			_ = m.Grow(seriesCopyBytes) // its caller checks
		}
	}
	for i := range e.series {
		sr := &e.series[i]
		n := counts[sr.Service]
		if sr.Profiles == 0 || n == 0 {
			continue
		}
		of := s.parts[sr.Service]
		if of == nil {
			of = &snapshotService{series: make([]series, 0, n), start: sr.Start, end: sr.End}
			s.parts[sr.Service] = of
		}
		of.series = append(of.series, *sr)
		of.series[len(of.series)-1].First = int64(len(of.series) - 1)
		of.start, of.end = min(of.start, sr.Start, sr.From), max(of.end, sr.End, sr.Until)
	}
	return s
}

// Span implements Block.
func (s *snapshot) Span(service string) (start, end int64, ok bool) {
	if service != "" {
		if of := s.parts[service]; of != nil {
			return of.start, of.end, true
		}
		return 0, 0, false
	}
	for _, of := range s.parts {
		if !ok {
			start, end, ok = of.start, of.end, true
		}
		start, end = min(start, of.start), max(end, of.end)
	}
	return start, end, ok
}

// Series implements Block.
func (s *snapshot) Series(service string, m *model.Memory, use func([]model.BlockSeries) error) error {
	names := []string{service}
	if service == "" {
		names = slices.Sorted(maps.Keys(s.parts))
	}
	for _, name := range names {
		of := s.parts[name]
		if of == nil {
			continue
		}
		if of.list == nil {
			of.list = make([]model.BlockSeries, len(of.series))
			for i := range of.series {
				of.list[i] = of.series[i].BlockSeries
			}
			slices.SortFunc(of.list, model.CompareSeries)
		}
		if err := cmp.Or(use(of.list), m.Grow(0)); err != nil {
			return err
		}
	}
	return m.Check()
}

// Labels implements Block.
func (s *snapshot) Labels(service string) ([]map[string]string, error) {
	list := s.parts[service].list
	labels := make([]map[string]string, len(list))
	for i := range list {
		labels[i] = model.LabelsOf(s.dict, &list[i])
	}
	return labels, nil
}

// Starts implements Block.
func (s *snapshot) Starts(list []*model.BlockSeries, use func(in int, starts []int64) error) error {
	var starts []int64
	for in, sr := range list {
		starts = starts[:0]
		chunks := s.parts[sr.Service].series[sr.First].chunks
		for i := range chunks {
			starts = append(starts, chunks[i].Start)
		}
		if err := use(in, starts); err != nil {
			return err
		}
	}
	return nil
}

// Open implements Block.
func (s *snapshot) Open(service string, _ bool, m *model.Memory) (model.Part, error) {
	return &snapshotPart{snapshot: s, series: s.parts[service].series, memory: m}, nil
}

type snapshotPart struct {
	*snapshot
	series  []series
	memory  *model.Memory
	columns model.Columns
}

// Dict implements Part.
func (p *snapshotPart) Dict() *dictionary.Dictionary { return p.dict }

// Resources implements Part.
func (p *snapshotPart) Resources() iter.Seq[dictionary.AttributeSetIndex] {
	return func(yield func(dictionary.AttributeSetIndex) bool) {
		for i := range p.all {
			if !yield(p.all[i].Resource) {
				return
			}
		}
	}
}

// Meta implements Part.
func (p *snapshotPart) Meta(of *model.Profile) *model.Meta { return &p.metas[of.Meta] }

// Profiles implements Part.
func (p *snapshotPart) Profiles(
	list []*model.BlockSeries, _ bool, wants func(*model.BlockSeries, *model.Profile) bool,
	use func(in, number int, p *model.Profile) error,
) error {
	for in, sr := range list {
		for i := range p.series[sr.First].chunks {
			c := &p.series[sr.First].chunks[i].Profile
			if !wants(sr, c) {
				continue
			}
			if err := use(in, i, c); err != nil {
				return err
			}
		}
	}
	return p.memory.Check()
}

// Rows implements Part.
func (p *snapshotPart) Rows(
	n int, at func(i int) (*model.BlockSeries, *model.Profile), want model.ColumnsWanted,
	use func(i int, c *model.Columns) error,
) error {
	for i := range n {
		sr, of := at(i)
		err := p.series[sr.First].chunks[of.At].decode(want, &p.columns, func(c *model.Columns) error {
			return cmp.Or(use(i, c), p.memory.Check())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements Part.
func (p *snapshotPart) Close() {}
