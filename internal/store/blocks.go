// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file has the list of blocks on disk. Package blocks has their directory.

// loadBlocks opens the live blocks.
func (s *Store) loadBlocks() error {
	d := s.disk
	found, err := d.files.Load()
	if err != nil {
		return err
	}
	d.blocks = found.Blocks
	sortBlocks(d.blocks)
	s.nextID = max(s.nextID, found.Next)
	s.stats.Damaged += found.Damaged
	return nil
}

// replace makes blocks live in place of others, which are deleted when no query reads them. of is the block in memory
// that they have, or nil. After an error, the blocks are as they were. It is not known then which list is on disk, so
// no file is deleted.
func (s *Store) replace(old, made []*blocks.Block, of *head.Block) error {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	isOld := func(b *blocks.Block) bool { return slices.Contains(old, b) }
	list := append(slices.DeleteFunc(slices.Clone(d.blocks), isOld), made...)
	sortBlocks(list)
	number, isLost := uint64(0), false
	if of != nil {
		number, isLost = of.ID+1, d.files.Lost[of.ID]
		delete(d.files.Lost, of.ID)
	}
	if err := d.files.SetLive(number, list); err != nil {
		d.files.Doubt(made...)
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
func (s *Store) exchange(list, old []*blocks.Block, then func()) {
	s.adding.Lock()
	s.mu.Lock()
	s.disk.blocks = list
	then()
	s.measure()
	s.mu.Unlock()
	for _, b := range old {
		b.IsGone = true
	}
	old = slices.DeleteFunc(slices.Clone(old), func(b *blocks.Block) bool { return b.Readers > 0 })
	s.adding.Unlock()
	for _, b := range old {
		s.disk.files.Delete(b)
	}
}

// diskBlocks returns the blocks on disk, oldest first.
func (s *Store) diskBlocks() []*blocks.Block {
	s.adding.Lock()
	defer s.adding.Unlock()
	return slices.Clone(s.disk.blocks)
}

// nextNumber returns a number for a new block.
func (s *Store) nextNumber() uint64 {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.nextID++
	return s.nextID - 1
}

func sortBlocks(list []*blocks.Block) {
	slices.SortFunc(list, func(a, b *blocks.Block) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Block, b.Block))
	})
}

// indexPart is the part of the memory that the services of all blocks on disk may take. Beyond it, the oldest blocks
// are deleted.
const indexPart = 4

// drop takes a block that cannot be read out of the store.
func (s *Store) drop(damaged model.Block, err error) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	i := slices.IndexFunc(d.blocks, func(b *blocks.Block) bool { return model.Block(b) == damaged })
	if i < 0 {
		return
	}
	b := d.blocks[i]
	list := slices.Delete(slices.Clone(d.blocks), i, i+1)
	s.exchange(list, nil, func() { s.stats.Damaged++ })
	b.Close()
	d.files.SetAside(b.Block, err)
	if err := d.files.SetLive(0, list); err != nil {
		d.Report("the list of blocks cannot be written; a start reports the one that was set aside as missing", err)
	}
}

// retain deletes the blocks that are too old, and the oldest ones until the rest is within MaxBytes.
func (s *Store) retain(now time.Time) {
	oldest := now.Add(-s.disk.Retention).UnixNano()
	s.deleteBlocks(func(b *blocks.Block) bool { return b.Until < oldest }, model.EvictedAge)
	s.deleteBeyond(0)
}

// deleteBeyond deletes the oldest blocks until there is room for more bytes within MaxBytes.
func (s *Store) deleteBeyond(more int64) {
	total, index := more, 0
	for _, b := range s.diskBlocks() {
		total += b.Bytes()
		index += b.IndexBytes()
	}
	s.deleteBlocks(func(b *blocks.Block) bool {
		if total <= s.disk.MaxBytes && index <= s.cfg.MaxBytes/indexPart {
			return false
		}
		total, index = total-b.Bytes(), index-b.IndexBytes()
		return true
	}, model.EvictedBytes)
}

// deleteBlocks deletes blocks, the oldest first. It does so although the manifest cannot be written: there may be no
// room for it.
func (s *Store) deleteBlocks(which func(*blocks.Block) bool, reason model.Evicted) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	var old, list []*blocks.Block
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
	if err := d.files.SetLive(0, list); err != nil {
		d.Report("the list of blocks cannot be written; a start reports old blocks as missing that are deleted now", err)
	}
	s.exchange(list, old, func() { s.stats.Evicted[reason] += profiles })
}

// ErrUnreadable is wrapped by the error of a query that may work later: files cannot be read at the moment.
var ErrUnreadable = blockfile.ErrUnreadable
