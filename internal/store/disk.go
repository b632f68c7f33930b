// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is the directory: a lock, the write-ahead log, blocks, and blocks that were found to be damaged.
//
//	LOCK         is held by the process that uses the directory
//	wal          has what is in memory alone
//	blocks.json  names the blocks that are live
//	blocks       has a directory for each block
//	damaged      has those that cannot be read

// DiskConfig configures where profiles are kept for long.
type DiskConfig struct {
	// Directory is made if it is not there. Empty means that profiles are kept in memory alone.
	Directory string
	// Retention is how long profiles are kept. MaxBytes bounds the blocks: the oldest are deleted first.
	Retention time.Duration
	MaxBytes  int64
	// Downsampling makes old days coarser.
	Downsampling Downsampling
	// ReadOnly leaves the directory as it is: it may be another process's, whose blocks are read, but not what is in
	// its memory.
	ReadOnly bool
	// Report is called with what an operator should know: a block that is damaged, a disk that is full or works again.
	// err may be nil.
	Report func(message string, err error)
}

const (
	// diskBlocks is the part of the memory that the block that grows may take. It and what waits to be written are the
	// most of it.
	diskBlocks = 8
	// waitingPart is the part that blocks which wait to be written may take before small messages wait: an eighth waits
	// when a large message is added, and leaves a block of an eighth and a quarter.
	waitingPart = 2
	// joinedPart is the part of the bytes on disk that blocks may have which become one: the disk has them twice for a
	// while.
	joinedPart = 8
	// listedPart is the part of the memory that the cache of series of all blocks on disk may take.
	listedPart = 32
)

// disk is a directory. The store's adding guards its fields.
type disk struct {
	DiskConfig
	lock fileutil.Releaser
	log  wal.Log
	// blocks are the live ones, oldest first. Who changes them, or the list on disk, has locked replacing.
	blocks    []*blocks.Block
	files     blocks.Directory
	replacing sync.Mutex
	// failed is why the log is not written, or nil. writeFailed is why a block could not be written the last time,
	// joinFailed why blocks could not be made one.
	failed, writeFailed, joinFailed error
	// running are the goroutines that write blocks which are full, and make the log durable; neither waits for the other.
	// stop ends them, and is nil before they begin.
	running sync.WaitGroup
	stop    context.CancelFunc
	// joinAfter is when blocks are made one again after joinFailed, and joinPause how long that was.
	joinAfter time.Time
	joinPause time.Duration
	// freeBytes is the function of that name. Tests have less room.
	freeBytes func(dir string) int64
	// writing serialises writeHeads. full is sent to when a block is full, and written is signalled when one was
	// written, or could not be.
	writing sync.Mutex
	full    chan struct{}
	written *sync.Cond
}

// Open reads what Disk.Directory has, if it is set. Close ends its use. Nothing may have been added before.
func (s *Store) Open() error {
	if s.cfg.Disk.Directory == "" {
		return nil
	}
	d := &disk{DiskConfig: s.cfg.Disk, written: sync.NewCond(s.adding), freeBytes: freeBytes}
	s.clock.maxLeap = maxLeap
	d.log.Dir = d.path(logFolder)
	d.files = blocks.Directory{Dir: d.Directory, ReadOnly: d.ReadOnly, Report: d.Report,
		Lists: blocks.NewSeriesLists(s.cfg.MaxBytes / listedPart)}
	if d.ReadOnly {
		s.disk = d
		if err := s.loadBlocks(); err != nil {
			return fmt.Errorf("%s is not a store: %w", d.Directory, err)
		}
		s.measure()
		return nil
	}
	for _, dir := range []string{d.path(blocks.Folder), d.path(blocks.Damaged)} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make the store's directory: %w", err)
		}
	}
	lock, _, err := fileutil.Flock(d.path("LOCK"))
	if _, ok := errors.AsType[*fs.PathError](err); ok { // such as a disk that is read only
		return fmt.Errorf("lock the store's directory: %w", err)
	}
	if err != nil {
		return fmt.Errorf("another process uses the store's directory %s: give each its own (%w)", d.Directory, err)
	}
	d.lock, s.disk = lock, d
	if err := s.load(); err != nil {
		return errors.Join(err, s.Close())
	}
	d.full = make(chan struct{}, 1)
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.running.Go(func() { s.writeFull(ctx) })
	d.running.Go(func() { s.syncLog(ctx) })
	return nil
}

func (d *disk) path(names ...string) string {
	return filepath.Join(append([]string{d.Directory}, names...)...)
}

// Blocks returns the blocks on disk, oldest first. They are valid until Close.
func (s *Store) Blocks() []*blockfile.Reader {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.disk == nil {
		return nil
	}
	list := make([]*blockfile.Reader, len(s.disk.blocks))
	for i, b := range s.disk.blocks {
		list[i] = b.Reader
	}
	return list
}

// load reads the blocks and the log.
func (s *Store) load() error {
	d := s.disk
	if err := s.loadBlocks(); err != nil {
		return err
	}
	if err := s.replay(func(id uint64) bool { return id >= d.files.Head || d.files.Lost[id] }); err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	d.blocks = slices.DeleteFunc(d.blocks, func(b *blocks.Block) bool {
		// Some block of its head is lost, or it is not known whether all were written, since there is no manifest. The log
		// has all of it.
		return compaction.IsHour(b.Block) && slices.ContainsFunc(s.blocks, func(e *head.Block) bool {
			return e.ID == compaction.NumberOf(b.Block)
		})
	})
	maps.DeleteFunc(d.files.Lost, func(id uint64, _ bool) bool { // the log has not all of them
		return !slices.ContainsFunc(s.blocks, func(e *head.Block) bool { return e.ID == id })
	})
	if err := d.files.SetLive(0, d.blocks); err != nil {
		d.Report("the list of blocks cannot be written", err)
	}
	s.known.Begin(s.blocks)
	if n := len(s.blocks); n > 0 && s.blocks[n-1].ByKey != nil {
		s.adder.Begin(s.blocks[n-1])
		if err := d.log.Continue(s.blocks[n-1].ID); err != nil {
			s.logFailed(err)
		}
	}
	for _, b := range d.blocks {
		s.clock.start(b.Until)
	}
	for _, e := range s.blocks {
		s.clock.start(e.Until)
	}
	s.measure()
	return nil
}

// Close writes what is not on disk yet to the log, and frees the directory. The store must not be used afterwards.
func (s *Store) Close() error {
	d := s.disk
	if d == nil {
		return nil
	}
	if d.stop != nil {
		d.stop()
		d.running.Wait()
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	d.writeFailed = errors.New("the store is closed")
	d.written.Broadcast()
	errs := []error{d.log.Close()}
	for _, b := range d.blocks {
		b.Close()
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Release())
		d.lock = nil // whoever could not open the store closes it, too
	}
	return errors.Join(errs...)
}

// writeFull writes blocks that are full until ctx ends.
func (s *Store) writeFull(ctx context.Context) {
	for {
		select {
		case <-s.disk.full:
			s.reportWrites(s.writeHeads(ctx))
		case <-ctx.Done():
			return
		}
	}
}
