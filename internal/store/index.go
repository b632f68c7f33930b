// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file lists the series of blocks. Those of blocks on disk are in series.parquet alone, and read when they are
// needed. A cache has the lists that were needed last.

const (
	// listedSeriesBytes is the memory of a series that was read.
	listedSeriesBytes = 512
	// listedPart is the part of the memory that the cache of all blocks on disk may take.
	listedPart = 32
	// maxLists bounds the lists of the cache: a service of a block each.
	maxLists = 16 << 10
)

// seriesLists is the cache.
type seriesLists struct {
	mu    sync.Mutex
	lists *simplelru.LRU[*blockfile.Service, []model.BlockSeries]
	bytes int
	limit int
}

func newSeriesLists(limit int) *seriesLists {
	l := &seriesLists{limit: limit}
	l.lists, _ = simplelru.NewLRU(maxLists, func(_ *blockfile.Service, list []model.BlockSeries) {
		l.bytes -= len(list) * listedSeriesBytes
	})
	return l
}

func (l *seriesLists) get(s *blockfile.Service) ([]model.BlockSeries, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists.Get(s)
}

func (l *seriesLists) add(s *blockfile.Service, list []model.BlockSeries) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes := len(list) * listedSeriesBytes; bytes <= l.limit && !l.lists.Contains(s) {
		l.bytes += bytes
		l.lists.Add(s, list)
	}
	for l.bytes > l.limit {
		l.lists.RemoveOldest()
	}
}

// memory returns the memory of the lists.
func (l *seriesLists) memory() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// forget drops the lists of a block.
func (l *seriesLists) forget(b *diskBlock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range b.Services {
		l.lists.Remove(&b.Services[i])
	}
}

// Series implements Block.
func (b *diskBlock) Series(service string, m *model.Memory, use func([]model.BlockSeries) error) error {
	if service != "" {
		return b.seriesOf(b.services[service], m, use)
	}
	for i := range b.Services {
		if err := b.seriesOf(&b.Services[i], m, use); err != nil {
			return err
		}
	}
	return nil
}

func (b *diskBlock) seriesOf(service *blockfile.Service, m *model.Memory, use func([]model.BlockSeries) error) error {
	if service == nil {
		return nil
	}
	list, isKnown := b.lists.get(service)
	if !isKnown {
		taken := service.SeriesCount * listedSeriesBytes
		defer func() { m.Release(taken) }()
		if err := m.Grow(taken); err != nil {
			return err
		}
		rows, err := b.Reader.Series(service)
		if err != nil {
			return b.fault(err)
		}
		list = make([]model.BlockSeries, len(rows))
		for i := range rows {
			list[i] = blockSeriesOf(service.Name, &rows[i])
		}
		b.lists.add(service, list)
	}
	return cmp.Or(use(list), m.Check())
}

// Labels implements Block.
func (b *diskBlock) Labels(service string) ([]map[string]string, error) {
	list, err := b.Reader.Labels(b.services[service])
	if err != nil {
		return nil, b.fault(err)
	}
	return list, nil
}

// Span implements Block.
func (b *diskBlock) Span(service string) (start, end int64, ok bool) {
	of := b.services[service]
	if of == nil {
		return b.start, b.end, service == ""
	}
	// The interval of a state is not known here.
	return of.Start, of.End + 2*max(model.MaxGaugeInterval, b.Step), true
}

// diskSampleBytes is about what a sample takes on disk.
const diskSampleBytes = 3

// blockSeriesOf returns a row of series.parquet.
func blockSeriesOf(service string, in *blockfile.Series) model.BlockSeries {
	return model.BlockSeries{
		ID: parseID(in.ID), Service: service, Profile: in.Profile, Type: model.SampleType{Type: in.Type, Unit: in.Unit},
		Period:   model.SampleType{Type: in.PeriodType, Unit: in.PeriodUnit},
		Position: in.Position, Values: valuesOf(in), Instance: instanceOfID(in.Instance),
		Resource: dictionary.AttributeSetIndex(in.Resource), Attributes: dictionary.AttributeSetIndex(in.Attributes),
		From: in.From, Until: in.Until, Start: in.Start, End: in.End, Total: in.Total,
		Profiles: in.Profiles, Samples: in.Samples, Bytes: in.Samples * diskSampleBytes, Moved: in.Moved,
		Flags: model.Flags(in.Flags), Timestamps: in.Timestamps, First: in.FirstProfile, FirstSample: in.FirstSample,
	}
}
