// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Snapshot is a Block of what a block in memory has of some services at a time. It is for one query.
type Snapshot struct {
	dict  *dictionary.Dictionary
	metas []model.Meta
	// all are the series of the block, of which only what never changes is read.
	all   []Series
	Parts map[string]*snapshotService
}

// snapshotService has copies of the series of a service. list has them in their order when somebody asked for it; their
// First is the position in series.
type snapshotService struct {
	Series     []Series
	start, end int64
	list       []model.BlockSeries
}

// seriesCopyBytes is the memory of a series of a snapshot, and in its list.
const seriesCopyBytes = 768

// SnapshotOf returns a block in memory as it is now, for readers that go on while profiles are added: with the
// services, or with all if none is given.
func SnapshotOf(e *Block, m *model.Memory, services ...string) *Snapshot {
	s := &Snapshot{dict: e.Dict, metas: e.Metas, all: e.Series, Parts: map[string]*snapshotService{}}
	if e.ByKey != nil {
		s.dict = e.Dict.Snapshot()
	}
	counts := map[string]int{}
	for i := range e.Series {
		sr := &e.Series[i]
		if sr.Profiles > 0 && (len(services) == 0 || slices.Contains(services, sr.Service)) {
			counts[sr.Service]++
			_ = m.Grow(seriesCopyBytes) // its caller checks
		}
	}
	for i := range e.Series {
		sr := &e.Series[i]
		n := counts[sr.Service]
		if sr.Profiles == 0 || n == 0 {
			continue
		}
		of := s.Parts[sr.Service]
		if of == nil {
			of = &snapshotService{Series: make([]Series, 0, n), start: sr.Start, end: sr.End}
			s.Parts[sr.Service] = of
		}
		of.Series = append(of.Series, *sr)
		of.Series[len(of.Series)-1].First = int64(len(of.Series) - 1)
		of.start, of.end = min(of.start, sr.Start, sr.From), max(of.end, sr.End, sr.Until)
	}
	return s
}

// Span implements Block.
func (s *Snapshot) Span(service string) (start, end int64, ok bool) {
	if service != "" {
		if of := s.Parts[service]; of != nil {
			return of.start, of.end, true
		}
		return 0, 0, false
	}
	for _, of := range s.Parts {
		if !ok {
			start, end, ok = of.start, of.end, true
		}
		start, end = min(start, of.start), max(end, of.end)
	}
	return start, end, ok
}

// Series implements Block.
func (s *Snapshot) Series(service string, m *model.Memory, use func([]model.BlockSeries) error) error {
	names := []string{service}
	if service == "" {
		names = slices.Sorted(maps.Keys(s.Parts))
	}
	for _, name := range names {
		of := s.Parts[name]
		if of == nil {
			continue
		}
		if of.list == nil {
			of.list = make([]model.BlockSeries, len(of.Series))
			for i := range of.Series {
				of.list[i] = of.Series[i].BlockSeries
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
func (s *Snapshot) Labels(service string) ([]map[string]string, error) {
	list := s.Parts[service].list
	labels := make([]map[string]string, len(list))
	for i := range list {
		labels[i] = model.LabelsOf(s.dict, &list[i])
	}
	return labels, nil
}

// Starts implements Block.
func (s *Snapshot) Starts(list []*model.BlockSeries, use func(in int, starts []int64) error) error {
	var starts []int64
	for in, sr := range list {
		starts = starts[:0]
		chunks := s.Parts[sr.Service].Series[sr.First].Chunks
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
func (s *Snapshot) Open(service string, _ bool, m *model.Memory) (model.Part, error) {
	return &SnapshotPart{Snapshot: s, Series: s.Parts[service].Series, Memory: m}, nil
}

// SnapshotPart is a model.Part of a Snapshot.
type SnapshotPart struct {
	*Snapshot
	Series  []Series
	Memory  *model.Memory
	columns model.Columns
}

// Dict implements Part.
func (p *SnapshotPart) Dict() *dictionary.Dictionary { return p.dict }

// Resources implements Part.
func (p *SnapshotPart) Resources() iter.Seq[dictionary.AttributeSetIndex] {
	return func(yield func(dictionary.AttributeSetIndex) bool) {
		for i := range p.all {
			if !yield(p.all[i].Resource) {
				return
			}
		}
	}
}

// Meta implements Part.
func (p *SnapshotPart) Meta(of *model.Profile) *model.Meta { return &p.metas[of.MetaAt] }

// Profiles implements Part.
func (p *SnapshotPart) Profiles(
	list []*model.BlockSeries, _ bool, wants func(*model.BlockSeries, *model.Profile) bool,
	use func(in, number int, p *model.Profile) error,
) error {
	for in, sr := range list {
		for i := range p.Series[sr.First].Chunks {
			c := &p.Series[sr.First].Chunks[i].Profile
			if !wants(sr, c) {
				continue
			}
			if err := use(in, i, c); err != nil {
				return err
			}
		}
	}
	return p.Memory.Check()
}

// Rows implements Part.
func (p *SnapshotPart) Rows(
	n int, at func(i int) (*model.BlockSeries, *model.Profile), want model.ColumnsWanted,
	use func(i int, c *model.Columns) error,
) error {
	for i := range n {
		sr, of := at(i)
		err := p.Series[sr.First].Chunks[of.At].decode(want, &p.columns, func(c *model.Columns) error {
			return cmp.Or(use(i, c), p.Memory.Check())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements Part.
func (p *SnapshotPart) Close() {}
