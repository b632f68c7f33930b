// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blocks

import (
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Block is a block on disk, as a model.Block.
type Block struct {
	*blockfile.Reader
	// services are those of the index, lists the series that were read.
	services map[string]*blockfile.Service
	lists    *SeriesLists
	// start and end are the time in which its profiles may count.
	start, end int64
	// Readers is how many views have it. One that IsGone is deleted after the last of them. The store guards both.
	Readers int
	IsGone  bool
}

// newBlock returns the block that a reader reads, whose lists of series are in a cache.
func newBlock(r *blockfile.Reader, lists *SeriesLists) *Block {
	b := &Block{Reader: r, services: map[string]*blockfile.Service{}, lists: lists, start: r.From, end: r.Until}
	for i := range r.Services {
		of := &r.Services[i]
		b.services[of.Name] = of
		_, end, _ := b.Span(of.Name)
		b.start, b.end = min(b.start, of.Start), max(b.end, end)
	}
	return b
}

// Close closes its files, and drops its lists of series. It may be read again.
func (b *Block) Close() {
	b.lists.forget(b)
	b.Reader.Close()
}

const indexBlockBytes, indexServiceBytes = 4 << 10, 256

// IndexBytes is the memory that the block takes while nobody reads it: that of its services, and of its open files.
func (b *Block) IndexBytes() int { return indexBlockBytes + len(b.Services)*indexServiceBytes }

// Span implements Block.
func (b *Block) Span(service string) (start, end int64, ok bool) {
	of := b.services[service]
	if of == nil {
		return b.start, b.end, service == ""
	}
	// The interval of a state is not known here.
	return of.Start, of.End + 2*max(model.MaxGaugeInterval, b.Step), true
}

// Labels implements Block.
func (b *Block) Labels(service string) ([]map[string]string, error) {
	list, err := b.Reader.Labels(b.services[service])
	if err != nil {
		return nil, b.fault(err)
	}
	return list, nil
}

// Starts implements Block.
func (b *Block) Starts(list []*model.BlockSeries, use func(in int, starts []int64) error) error {
	scan := b.Scan()
	defer scan.Close()
	first := 0
	for run := range model.Runs(list, isNext) {
		rows := 0
		for _, in := range run {
			rows += in.Profiles
		}
		starts := make([]int64, rows)
		if err := scan.ProfileStarts(run[0].First, starts); err != nil {
			return b.fault(err)
		}
		for i, in := range run {
			if err := use(first+i, starts[:in.Profiles]); err != nil {
				return err
			}
			starts = starts[in.Profiles:]
		}
		first += len(run)
	}
	return nil
}

// isNext reports whether the profiles of a series follow those of another one.
func isNext(last, next **model.BlockSeries) bool {
	return (*last).First+int64((*last).Profiles) == (*next).First
}

// fault returns an error of reading the block: a DamagedError only if its bytes are wrong.
func (b *Block) fault(err error) error {
	if errors.Is(err, blockfile.ErrDamaged) {
		return &model.DamagedError{Block: b, Err: err}
	}
	return fmt.Errorf("block %s: %w", b.Block, err)
}
