// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file has the list of blocks on disk. Package blocks has their directory.

// diskBlock is a block that is live, or was.
type diskBlock struct {
	*blocks.Block
	// readers is how many views have it. One that isGone is deleted after the last of them.
	readers int
	isGone  bool
}

// loadBlocks opens the live blocks.
func (s *Store) loadBlocks() error {
	d := s.disk
	found, err := d.files.Load()
	if err != nil {
		return err
	}
	for _, r := range found.Blocks {
		d.blocks = append(d.blocks, d.blockOf(r))
	}
	sortBlocks(d.blocks)
	s.nextID = max(s.nextID, found.Next)
	s.stats.Damaged += found.Damaged
	return nil
}

// setLive writes the list of live blocks.
func (d *disk) setLive(number uint64, list []*diskBlock) error {
	readers := make([]*blockfile.Reader, len(list))
	for i, b := range list {
		readers[i] = b.Reader
	}
	return d.files.SetLive(number, readers)
}

// replace makes blocks live in place of others, which are deleted when no query reads them. of is the block in memory
// that they have, or nil. After an error, the blocks are as they were. It is not known then which list is on disk, so
// no file is deleted.
func (s *Store) replace(old, made []*diskBlock, of *head.Block) error {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	list := append(slices.DeleteFunc(slices.Clone(d.blocks), func(b *diskBlock) bool { return slices.Contains(old, b) }),
		made...)
	sortBlocks(list)
	number, isLost := uint64(0), false
	if of != nil {
		number, isLost = of.ID+1, d.files.Lost[of.ID]
		delete(d.files.Lost, of.ID)
	}
	if err := d.setLive(number, list); err != nil {
		for _, b := range made {
			d.files.Doubt(b.Reader)
		}
		if isLost {
			d.files.Lost[of.ID] = true
		}
		return err
	}
	s.exchange(list, old, func() {
		if of != nil {
			s.release(of)
			s.blocks = slices.DeleteFunc(s.blocks, func(e *head.Block) bool { return e.ID == of.ID })
		}
	})
	return nil
}

// exchange sets the list of blocks without old ones, which are deleted when no query reads them.
func (s *Store) exchange(list, old []*diskBlock, then func()) {
	s.adding.Lock()
	s.mu.Lock()
	s.disk.blocks = list
	then()
	s.measure()
	s.mu.Unlock()
	for _, b := range old {
		b.isGone = true
	}
	old = slices.DeleteFunc(slices.Clone(old), func(b *diskBlock) bool { return b.readers > 0 })
	s.adding.Unlock()
	for _, b := range old {
		s.disk.delete(b)
	}
}

// delete deletes a block that is not live, and that nobody reads.
func (d *disk) delete(b *diskBlock) {
	b.Forget()
	d.files.Delete(b.Reader)
}

// diskBlocks returns the blocks on disk, oldest first.
func (s *Store) diskBlocks() []*diskBlock {
	s.adding.Lock()
	defer s.adding.Unlock()
	return slices.Clone(s.disk.blocks)
}

func (s *Store) isGone(b *diskBlock) bool {
	s.adding.Lock()
	defer s.adding.Unlock()
	return b.isGone
}

// nextNumber returns a number for a new block.
func (s *Store) nextNumber() uint64 {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.nextID++
	return s.nextID - 1
}

// write writes a block of all profiles of the sources. It is not live yet.
func (d *disk) write(
	ctx context.Context, name string, sources []compaction.Source, step time.Duration,
) (*diskBlock, error) {
	r, err := d.files.Write(ctx, name, sources, step)
	if err != nil {
		return nil, err
	}
	return d.blockOf(r), nil
}

func sortBlocks(list []*diskBlock) {
	slices.SortFunc(list, func(a, b *diskBlock) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Reader.Block, b.Reader.Block))
	})
}

func (d *disk) blockOf(r *blockfile.Reader) *diskBlock {
	return &diskBlock{Block: blocks.New(r, d.lists)}
}

// indexPart is the part of the memory that the services of all blocks on disk may take. Beyond it, the oldest blocks
// are deleted.
const indexPart = 4

// drop takes a block that cannot be read out of the store.
func (s *Store) drop(damaged model.Block, err error) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	i := slices.IndexFunc(d.blocks, func(b *diskBlock) bool { return b.Block == damaged })
	if i < 0 {
		return
	}
	b := d.blocks[i]
	list := slices.Delete(slices.Clone(d.blocks), i, i+1)
	s.exchange(list, nil, func() { s.stats.Damaged++ })
	b.Forget()
	b.Close()
	d.files.SetAside(b.Reader.Block, err)
	if err := d.setLive(0, list); err != nil {
		d.Report("the list of blocks cannot be written; a start reports the one that was set aside as missing", err)
	}
}

// retain deletes the blocks that are too old, and the oldest ones until the rest is within MaxBytes.
func (s *Store) retain(now time.Time) {
	oldest := now.Add(-s.disk.Retention).UnixNano()
	s.deleteBlocks(func(b *diskBlock) bool { return b.Until < oldest }, model.EvictedAge)
	s.deleteBeyond(0)
}

// deleteBeyond deletes the oldest blocks until there is room for more bytes within MaxBytes.
func (s *Store) deleteBeyond(more int64) {
	total, index := more, 0
	for _, b := range s.diskBlocks() {
		total += b.Bytes()
		index += b.IndexBytes()
	}
	s.deleteBlocks(func(b *diskBlock) bool {
		if total <= s.disk.MaxBytes && index <= s.cfg.MaxBytes/indexPart {
			return false
		}
		total, index = total-b.Bytes(), index-b.IndexBytes()
		return true
	}, model.EvictedBytes)
}

// deleteBlocks deletes blocks, the oldest first. It does so although the manifest cannot be written: there may be no
// room for it.
func (s *Store) deleteBlocks(which func(*diskBlock) bool, reason model.Evicted) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	var old, list []*diskBlock
	profiles := 0
	for _, b := range d.blocks {
		if which(b) {
			old, profiles = append(old, b), profiles+b.ProfileCount
		} else {
			list = append(list, b)
		}
	}
	if len(old) == 0 {
		return
	}
	if err := d.setLive(0, list); err != nil {
		d.Report("the list of blocks cannot be written; a start reports old blocks as missing that are deleted now", err)
	}
	s.exchange(list, old, func() { s.stats.Evicted[reason] += profiles })
}

// ErrUnreadable is wrapped by the error of a query that may work later: files cannot be read at the moment.
var ErrUnreadable = blockfile.ErrUnreadable
