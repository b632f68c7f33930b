// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Config bounds a Store.
type Config struct {
	// Window is how long profiles are kept.
	Window time.Duration
	// Resolution is the finest step of a timeline, and how long a profile without a duration lasts there.
	Resolution time.Duration
	// MaxBytes bounds what the store holds, dictionaries and indices included.
	MaxBytes int
	// MaxSeries bounds the number of distinct series: service, profile, sample type, and the attributes of the resource
	// and of the profile (kind.IsSeriesAttribute). A message with a new one beyond it waits until others have had no
	// profile for unusedTime. 0 is no bound: series take a part of MaxBytes, and make room as profiles do.
	MaxSeries int
	// Disk is where profiles are kept for longer, if its Directory is set. Window does not limit them then.
	Disk DiskConfig
}

const (
	// blockCount is about how many blocks a full store has: a block ends after this part of the window or of the bytes.
	// Old profiles are dropped a block at a time.
	blockCount = 8
	// useBytes estimates the memory of what the store knows of a series.
	useBytes = 512
	// maxMessagePart is the part of the bytes that a message may take.
	maxMessagePart = 4
)

// Store keeps profiles. It is safe for concurrent use.
type Store struct {
	// Querier has the queries, of which the store is the source.
	*answers.Querier
	cfg Config

	// addingLarge is locked before adding for a large message: small ones and queries wait for one of these at most.
	addingLarge sync.Mutex
	// adding serialises Add and Expire, and guards the fields below.
	adding turns
	adder  *head.Adder
	known  *head.Known

	// mu guards the list of blocks, oldest first, and the statistics. Add writes to the last block.
	mu     sync.Mutex
	blocks []*head.Block
	stats  model.Stats

	// disk is nil if profiles are kept in memory alone. clock is the one by which profiles become too old, nextID the
	// number of the next block.
	disk   *disk
	clock  clock
	nextID uint64
}

// Why a message is not added. ErrMessageTooLarge is of one that never can be.
var (
	ErrMessageTooLarge = errors.New("the message is too large for the store")
	errSeries          = errors.New("there are more series than the store may have, and each had a profile within the last minutes")
	errFull            = errors.New("the store is full, and cannot write to its disk")
)

// New returns an empty store.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, adding: newTurns(), known: head.NewKnown(), clock: clock{maxLeap: cfg.Window / blockCount}}
	s.adder = head.NewAdder(s.known, s.Window(), cfg.Resolution)
	s.Querier = answers.NewQuerier(s)
	return s
}

// Status returns the bounds and the current statistics.
func (s *Store) Status(context.Context) (answers.Status, error) {
	return answers.Status{
		Stats: s.Stats(), Window: s.Window(), Resolution: s.cfg.Resolution, MaxSeries: s.cfg.MaxSeries,
	}, nil
}

// Config returns the bounds.
func (s *Store) Config() Config { return s.cfg }

// Stats returns the current statistics.
func (s *Store) Stats() model.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Refuse counts profiles that were not added.
func (s *Store) Refuse(reason model.Refused, profiles int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Refused[reason] += profiles
}

// Expire drops profiles older than the window, as Add does; it is for times without new profiles.
func (s *Store) Expire(now time.Time) {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.forgetSeries(now)
	s.evict(now)
}

// current returns the block for a message of cost bytes: a new one if the last is full or old. It may wait until others
// have been written.
func (s *Store) current(now time.Time, cost int) *head.Block {
	for {
		var last *head.Block
		if n := len(s.blocks); n > 0 {
			last = s.blocks[n-1]
		}
		isNew := last == nil || s.isFull(last, now)
		if isNew && last != nil && last.ByKey != nil {
			last.Freeze()
			s.writeSoon()
		}
		if s.mustWait(cost, isNew) {
			s.writeSoon()
			s.disk.written.Wait() // others may add meanwhile
			continue
		}
		if !isNew {
			return last
		}
		break
	}
	return s.beginBlock(now)
}

func (s *Store) beginBlock(now time.Time) *head.Block {
	e := head.New(now)
	e.ID = s.nextID
	s.nextID++
	if n := len(s.blocks); n > 0 {
		e.After = s.blocks[n-1].ID + 1
	}
	s.evictTotals(s.known.BeginBlock(e.Dict, s.cfg.MaxBytes/movedPart))
	s.adder.Begin(e)
	if s.disk != nil && s.disk.failed == nil {
		if err := s.beginLog(e); err != nil {
			s.logFailed(err)
		}
	}
	s.mu.Lock()
	s.blocks = append(s.blocks, e)
	s.mu.Unlock()
	return e
}

// isFull reports whether the last block must not grow.
func (s *Store) isFull(last *head.Block, now time.Time) bool {
	switch {
	case last.ByKey == nil:
		return true
	case s.disk != nil:
		return last.Bytes >= s.cfg.MaxBytes/diskBlocks || !now.Truncate(time.Hour).Equal(last.Begun.Truncate(time.Hour))
	default:
		return last.Bytes >= s.cfg.MaxBytes/blockCount || now.Sub(last.Begun) >= s.cfg.Window/blockCount
	}
}

// Window returns how long profiles are kept.
func (s *Store) Window() time.Duration {
	if s.cfg.Disk.Directory != "" {
		return s.cfg.Disk.Retention
	}
	return s.cfg.Window
}

// evict drops the blocks that are too old by a clock that is trusted, and the oldest ones until the store is within its
// bytes. With a disk, what is not written yet stays: see room.
func (s *Store) evict(now time.Time) {
	s.mu.Lock()
	s.measure()
	before := s.stats.Evicted[model.EvictedBytes]
	if s.disk == nil {
		s.dropBlocks(s.clock.trusted(now))
	}
	isFull := s.stats.Evicted[model.EvictedBytes] > before
	s.mu.Unlock()
	if isFull {
		// Collect the memory before going on. Otherwise the heap would grow beyond MaxBytes while profiles arrive
		// faster than the garbage collector runs. This happens once for each eighth of the bytes.
		runtime.GC()
	}
}

func (s *Store) dropBlocks(now time.Time) {
	oldest := now.Add(-s.cfg.Window).UnixNano()
	for len(s.blocks) > 0 {
		first := s.blocks[0]
		reason := model.EvictedBytes
		if first.Until < oldest && now.Sub(first.Begun) >= s.cfg.Window/blockCount {
			reason = model.EvictedAge
		} else if s.stats.Bytes <= s.cfg.MaxBytes {
			break
		}
		// The importer may be bound to this block: the next Add makes a new one.
		s.blocks[0] = nil
		s.blocks = s.blocks[1:]
		s.stats.Evicted[reason] += first.Profiles
		s.release(first)
		s.forgetSeries(now)
		s.measure()
	}
}

// measure brings the statistics up to date. adding and mu are locked.
func (s *Store) measure() {
	s.stats.Series, s.stats.Bytes = len(s.known.Series), len(s.known.Series)*useBytes+s.known.TotalsBytes
	s.stats.Profiles, s.stats.Samples = 0, 0
	for _, e := range s.blocks {
		s.stats.Bytes += e.Bytes
		s.stats.Profiles += e.Profiles
		s.stats.Samples += e.Samples
	}
	if s.disk == nil {
		return
	}
	s.stats.DiskBlocks, s.stats.DiskBytes, s.stats.DiskFailing = len(s.disk.blocks), 0, 0
	s.stats.CoarseUntil, s.stats.CoarseStep = 0, 0
	if s.disk.failed != nil || s.disk.writeFailed != nil {
		s.stats.DiskFailing = 1
	}
	s.stats.Bytes += s.disk.files.Lists.Memory()
	for _, b := range s.disk.blocks {
		s.stats.Bytes += b.IndexBytes()
		s.stats.Profiles += b.ProfileCount
		s.stats.Samples += b.SampleCount
		s.stats.DiskBytes += b.Bytes()
		if b.Step > 0 {
			s.stats.CoarseUntil, s.stats.CoarseStep = max(s.stats.CoarseUntil, b.Until), max(s.stats.CoarseStep, b.Step)
		}
	}
}

// View implements answers.Source: what the blocks in memory have of the services of a query, and what is known of those
// on disk without reading them.
func (s *Store) View(_ context.Context, q *answers.Query) (*answers.View, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	v := &answers.View{Memory: q.Memory, Drop: s.drop, Release: func() {}}
	if s.disk != nil {
		list := slices.Clone(s.disk.blocks)
		for _, d := range list {
			d.Readers++
			v.Blocks = append(v.Blocks, d)
		}
		v.Release = func() { s.releaseBlocks(list) }
		v.OnDisk = len(list)
	}
	for _, e := range s.blocks {
		v.Blocks = append(v.Blocks, head.SnapshotOf(e, q.Memory, q.Services()...))
	}
	return v, nil
}

// releaseBlocks ends the reading of blocks.
func (s *Store) releaseBlocks(list []*blocks.Block) {
	s.adding.Lock()
	var gone []*blocks.Block
	for _, d := range list {
		if d.Readers--; d.Readers == 0 && d.IsGone {
			gone = append(gone, d)
		}
	}
	s.adding.Unlock()
	for _, d := range gone {
		s.disk.files.Delete(d)
	}
}
