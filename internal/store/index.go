// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file lists the series of blocks. Those of blocks on disk are in series.parquet alone, and read when they are needed. A cache has the
// lists that were needed last.

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
	lists *simplelru.LRU[*blockfile.Service, []blockfile.Series]
	bytes int
	limit int
}

func newSeriesLists(limit int) *seriesLists {
	l := &seriesLists{limit: limit}
	l.lists, _ = simplelru.NewLRU(maxLists, func(_ *blockfile.Service, list []blockfile.Series) { l.bytes -= len(list) * listedSeriesBytes })
	return l
}

func (l *seriesLists) get(s *blockfile.Service) ([]blockfile.Series, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists.Get(s)
}

func (l *seriesLists) add(s *blockfile.Service, list []blockfile.Series) {
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

// withSeries calls use with the series of a service, which are in the order of their profile, type and ID, and valid until use returns.
func (b *diskBlock) withSeries(service *blockfile.Service, m *Memory, use func([]blockfile.Series) error) error {
	list, isKnown := b.lists.get(service)
	if !isKnown {
		taken := service.SeriesCount * listedSeriesBytes
		defer func() { m.Release(taken) }()
		if err := m.Take(taken); err != nil {
			return err
		}
		var err error
		if list, err = b.Series(service); err != nil {
			return b.fault(err)
		}
		b.lists.add(service, list)
	}
	return use(list)
}

// listed is what lists have of a series of a block.
type listed struct {
	id                              seriesID
	service, profile                string
	typ, period                     SampleType
	values                          kind.Values
	from, until                     int64
	profiles, samples, bytes, moved int
	timestamps                      bool
	position                        int32
	flags                           chunkFlags
	instance                        uint64
}

// listedOf returns a series of a block in memory.
func (e *block) listedOf(sr *series) listed {
	strs := &e.dict.Strings
	return listed{
		id: sr.id, service: strs.At(sr.service), profile: strs.At(sr.profile), typ: SampleType{strs.At(sr.typ), strs.At(sr.unit)},
		period: SampleType{strs.At(sr.periodType), strs.At(sr.periodUnit)}, values: sr.values, from: sr.from, until: sr.until,
		profiles: sr.profiles, samples: sr.samples, bytes: sr.bytes, moved: sr.moved, timestamps: sr.timestamps, position: sr.position,
		flags: sr.flags, instance: sr.instance,
	}
}

// listedOnDisk returns a series of a block on disk.
func listedOnDisk(service string, in *blockfile.Series) listed {
	return listed{
		id: parseID(in.ID), service: service, profile: in.Profile, typ: SampleType{in.Type, in.Unit}, period: SampleType{in.PeriodType, in.PeriodUnit},
		values: valuesOf(in), from: in.From, until: in.Until, profiles: in.Profiles, samples: in.Samples, bytes: in.Samples * diskSampleBytes,
		moved: in.Moved, timestamps: in.Timestamps, position: in.Position, flags: chunkFlags(in.Flags), instance: instanceOfID(in.Instance),
	}
}

// eachListed calls use with the series of a service, or of all if it is empty, the oldest block first. For blocks on disk that selects wants,
// labels reads those of the current series.
func (v *view) eachListed(service string, wants func(*diskBlock) bool, use func(sr *listed, labels func() (map[string]string, error)) error) error {
	for _, d := range v.disk {
		if !wants(d) {
			continue
		}
		if err := v.eachListedOnDisk(d, service, use); err != nil {
			if err = v.withoutDamaged(err); err != nil {
				return err
			}
		}
	}
	for _, e := range v.blocks {
		for i := range e.series {
			sr := &e.series[i]
			if sr.profiles == 0 || service != "" && e.dict.Strings.At(sr.service) != service {
				continue
			}
			in := e.listedOf(sr)
			if err := use(&in, func() (map[string]string, error) { return e.labels(sr), nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *view) eachListedOnDisk(d *diskBlock, service string, use func(*listed, func() (map[string]string, error)) error) error {
	for i := range d.Services {
		s := &d.Services[i]
		if service != "" && s.Name != service {
			continue
		}
		err := d.withSeries(s, v.memory, func(list []blockfile.Series) error { return d.eachOf(s, list, use) })
		if err != nil {
			return err
		}
		if err := v.memory.Check(); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls use with the series of a service, whose labels are read when use first wants any.
func (b *diskBlock) eachOf(s *blockfile.Service, list []blockfile.Series, use func(*listed, func() (map[string]string, error)) error) error {
	var labels []map[string]string
	for k := range list {
		in := listedOnDisk(s.Name, &list[k])
		err := use(&in, func() (_ map[string]string, err error) {
			if labels == nil {
				if labels, err = b.Labels(s); err != nil {
					return nil, b.fault(err)
				}
			}
			return labels[k], nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
