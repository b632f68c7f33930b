// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
)

// This file is what the store does every few seconds: it writes blocks, joins them and deletes old ones.

// Downsampling is the rule by which days become coarser.
type Downsampling struct {
	// After is the age at which a day is reduced to one profile for each series and Step. 0 is never.
	After, Step time.Duration
}

// Maintain is MaintainContext without an end.
func (s *Store) Maintain(now time.Time) { s.MaintainContext(context.Background(), now) }

// MaintainContext drops profiles that are too old, and writes blocks to disk. It is for one goroutine, every few
// seconds. When ctx ends, it abandons the block that it is writing; the next call writes that block again.
func (s *Store) MaintainContext(ctx context.Context, now time.Time) {
	if s.disk == nil {
		s.Expire(now)
		s.maintained(now)
		return
	}
	s.adding.Lock()
	if n := len(s.blocks); n > 0 && s.blocks[n-1].ByKey != nil && (s.disk.failed != nil || s.isFull(s.blocks[n-1], now)) {
		s.blocks[n-1].Freeze()
	}
	s.adding.Unlock()
	err := s.writeHeads(ctx)
	if ctx.Err() != nil {
		return
	}
	s.reportWrites(err)
	s.reopenLog(now)
	trusted := s.clock.trusted(now)
	if err == nil {
		s.reportJoins(s.compact(ctx, now, trusted), now)
		if s.disk.joinFailed == nil && ctx.Err() == nil {
			s.maintained(now)
		}
	}
	s.retain(trusted)
	s.Expire(trusted)
}

func (s *Store) maintained(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Maintained = now
}

// reportWrites reports when writing blocks fails, and when it works again.
func (s *Store) reportWrites(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	d := s.disk
	s.adding.Lock()
	before := d.writeFailed
	d.writeFailed = err
	d.written.Broadcast()
	s.adding.Unlock()
	d.reportChange(before, err, "the store cannot write a block; its profiles stay in memory, and it tries again",
		"the store writes blocks again")
}

// reportChange reports that something fails if it did not before, or that it works again.
func (d *disk) reportChange(before, err error, fails, works string) {
	if err != nil && before == nil {
		d.Report(fails, err)
	} else if err == nil && before != nil {
		d.Report(works, nil)
	}
}

const minJoinPause, maxJoinPause = time.Minute, time.Hour

// reportJoins reports when blocks cannot be made one, and when they can be again. After a failure it is tried again
// later and later.
func (s *Store) reportJoins(err error, now time.Time) {
	d := s.disk
	if errors.Is(err, context.Canceled) || errors.Is(err, errPause) {
		return
	}
	d.reportChange(d.joinFailed, err,
		"the store cannot join blocks; they stay as they are, queries read them, and it tries again",
		"the store joins blocks again")
	d.joinFailed = err
	if d.joinPause = min(max(minJoinPause, 2*d.joinPause), maxJoinPause); err == nil {
		d.joinPause = 0
	}
	d.joinAfter = now.Add(d.joinPause)
}

// errPause is returned while it is too early to try to join blocks again.
var errPause = errors.New("blocks could not be joined a moment ago")

// compact makes blocks one, or coarser by a clock that is trusted.
func (s *Store) compact(ctx context.Context, now, trusted time.Time) error {
	d := s.disk
	if d.joinFailed != nil && now.Before(d.joinAfter) {
		return errPause
	}
	var list []compaction.Block
	byName := map[string]*blocks.Block{}
	for _, b := range s.diskBlocks() {
		list = append(list, compaction.Block{Name: b.Block, Bytes: b.Bytes(), Step: time.Duration(b.Step)})
		byName[b.Block] = b
	}
	rules := compaction.Rules{CoarserAfter: d.Downsampling.After, Step: d.Downsampling.Step, Trusted: trusted,
		MaxBytes: d.MaxBytes / joinedPart}
	var errs []error
	for _, job := range compaction.Plan(list, now, rules) {
		var sources []*blocks.Block
		for _, b := range job.Blocks {
			sources = append(sources, byName[b.Name])
		}
		errs = append(errs, s.join(ctx, &job, sources))
	}
	return errors.Join(errs...)
}

// join does a job of compaction, for which the oldest blocks are deleted if there is no room within MaxBytes.
func (s *Store) join(ctx context.Context, job *compaction.Job, list []*blocks.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	need := job.Bytes()
	// The log and the blocks that are full come first: there is room for them beside the new block.
	if free := s.disk.freeBytes(s.disk.Directory); free < need+need/8+int64(s.cfg.MaxBytes)/diskBlocks {
		return fmt.Errorf("join %s: %w: its blocks have %d bytes, and %d are free", job.Time, errNoRoom, need, free)
	}
	s.deleteBeyond(need)
	live := s.diskBlocks()
	var sources []compaction.Source
	for _, b := range list {
		if !slices.Contains(live, b) {
			return nil
		}
		sources = append(sources, compaction.FromDisk(b.Reader))
	}
	made, err := s.disk.files.Write(ctx, compaction.Name(job.Time, s.nextNumber()), sources, job.Step)
	if err != nil {
		var damaged *compaction.BlockError
		if errors.As(err, &damaged) && errors.Is(err, blockfile.ErrDamaged) {
			for _, b := range list {
				if b.Block == damaged.Block {
					s.drop(b, err)
				}
			}
			return nil
		}
		return err
	}
	return s.replace(list, []*blocks.Block{made}, nil)
}

var errNoRoom = errors.New("the disk has too little room")
