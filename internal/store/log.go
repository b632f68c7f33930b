// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is the write-ahead log: what was added to blocks that are not on disk yet. Each block has a file of its
// own, which is deleted when the block is on disk and the next one has begun.

const logFolder = "wal"

// replay reads the log into blocks, of which wants tells which are not on disk. Only the last one grows, if all of it
// could be read.
func (s *Store) replay(wants func(id uint64) bool) error {
	log := &s.disk.log
	files, err := log.Files()
	if err != nil {
		return err
	}
	before := uint64(0)
	for _, id := range files {
		s.nextID = max(s.nextID, id+1)
		r := head.Replay{Known: s.known}
		fault, err := log.Read(id, r.Record)
		if err != nil {
			return err
		}
		if fault != nil {
			s.found(fault)
		}
		if e := r.Block; e != nil && wants(id) {
			if d := &s.disk.files; d.HasList && e.After > d.Head && e.After != before {
				s.found(&wal.Fault{Path: log.Path(e.After - 1), Err: fs.ErrNotExist})
			}
			e.ID = id
			if fault != nil || id != files[len(files)-1] {
				e.Freeze()
			}
			s.blocks = append(s.blocks, e)
		}
		// The block after a file without a first record, which had stopped within it, follows the one before.
		if r.Block != nil || fault != nil && !errors.Is(fault.Err, wal.ErrTorn) {
			before = id + 1
		}
	}
	return nil
}

// found reports a file of the log that could not be read to its end.
func (s *Store) found(fault *wal.Fault) {
	if errors.Is(fault.Err, wal.ErrTorn) {
		s.stats.Torn++
		s.disk.Report(
			"the end of the write-ahead log is torn and was cut: the process had been ended, or the disk was full, while it wrote", nil)
		return
	}
	s.stats.Damaged++
	s.disk.Report("the write-ahead log is damaged; what follows in the block is lost: "+fault.Path,
		fmt.Errorf("at byte %d: %w", fault.At, fault.Err))
}

// beginLog begins a block in the log, with what is known of the series before.
func (s *Store) beginLog(e *head.Block) error {
	if err := s.disk.log.Begin(e.ID); err != nil {
		return err
	}
	return s.appendLog(e.RecordBegin(s.known.Series))
}

func (s *Store) appendLog(record []byte, err error) error {
	if err != nil {
		return err
	}
	return s.disk.log.Append(record)
}

// writeAhead writes what a message adds to the log.
func (s *Store) writeAhead(e *head.Block, added []head.Added) error {
	if s.disk == nil || len(added) == 0 {
		return nil
	}
	if err := s.appendLog(e.RecordAdded(added)); err != nil {
		s.logFailed(err)
	}
	return s.logError()
}

// syncInterval is how often the log is made durable. A process that is killed loses nothing that was acknowledged; a
// machine that loses its power, the last second.
const syncInterval = time.Second

func (s *Store) syncLog(ctx context.Context) {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.LogError() != nil {
			continue
		}
		if err := s.disk.log.Sync(); err != nil {
			s.adding.Lock()
			s.logFailed(err)
			s.adding.Unlock()
		}
	}
}

// logFailed stops writing the log until Maintain has begun another file.
func (s *Store) logFailed(err error) {
	if s.disk.failed == nil {
		s.disk.failed = err
		s.disk.Report("the store cannot write its log; what is in memory is written as blocks before the log goes on", err)
	}
}

// LogError returns why nothing is added, or nil.
func (s *Store) LogError() error {
	s.adding.Lock()
	defer s.adding.Unlock()
	return s.logError()
}

func (s *Store) logError() error {
	if s.disk == nil || s.disk.failed == nil {
		return nil
	}
	return fmt.Errorf("the store cannot write its log: %w", s.disk.failed)
}

// reopenLog begins the log again if it had failed, when everything in memory is on disk. What the log had until then
// stays until its successor is durable.
func (s *Store) reopenLog(now time.Time) {
	s.adding.Lock()
	defer s.adding.Unlock()
	d := s.disk
	if d.failed == nil || slices.ContainsFunc(s.blocks, func(e *head.Block) bool { return e.Profiles > 0 }) {
		return
	}
	e := s.beginBlock(now)
	err := s.beginLog(e)
	if err == nil {
		err = d.log.Sync()
	}
	if err == nil {
		err = d.log.Cut(e.ID)
	}
	if d.failed = err; err == nil {
		d.Report("the store writes its log again", nil)
	}
}
