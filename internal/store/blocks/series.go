// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blocks

import (
	"cmp"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file lists the series of blocks. They are in series.parquet alone, and read when they are needed.

const (
	// listedSeriesBytes is the memory of a series that was read.
	listedSeriesBytes = 512
	// maxLists bounds the lists of the cache: a service of a block each.
	maxLists = 16 << 10
)

// SeriesLists is a cache of the lists that were needed last.
type SeriesLists struct {
	mu    sync.Mutex
	lists *simplelru.LRU[*blockfile.Service, []model.BlockSeries]
	bytes int
	limit int
}

// NewSeriesLists returns a cache of at most limit bytes.
func NewSeriesLists(limit int) *SeriesLists {
	l := &SeriesLists{limit: limit}
	l.lists, _ = simplelru.NewLRU(maxLists, func(_ *blockfile.Service, list []model.BlockSeries) {
		l.bytes -= len(list) * listedSeriesBytes
	})
	return l
}

func (l *SeriesLists) get(s *blockfile.Service) ([]model.BlockSeries, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists.Get(s)
}

func (l *SeriesLists) add(s *blockfile.Service, list []model.BlockSeries) {
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

// Memory returns the memory of the lists.
func (l *SeriesLists) Memory() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// forget drops the lists of a block.
func (l *SeriesLists) forget(b *Block) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range b.Services {
		l.lists.Remove(&b.Services[i])
	}
}

// Series implements Block.
func (b *Block) Series(service string, m *model.Memory, use func([]model.BlockSeries) error) error {
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

func (b *Block) seriesOf(service *blockfile.Service, m *model.Memory, use func([]model.BlockSeries) error) error {
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
		var err error
		if list, err = b.Reader.Series(service); err != nil {
			return b.fault(err)
		}
		b.lists.add(service, list)
	}
	return cmp.Or(use(list), m.Check())
}
