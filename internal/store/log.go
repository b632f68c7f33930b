// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"path/filepath"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is the write-ahead log: what was added to blocks that are not on disk yet. Each block begins in a segment
// of its own, which is deleted when the block is on disk.

const logFolder = "wal"

// writeLog writes the log. Its methods are called one at a time.
type writeLog struct {
	*wal.Log
	buffer []byte
}

// openLog begins a segment after those that are there.
func openLog(dir string) (*writeLog, error) {
	log, err := wal.Open(filepath.Join(dir, logFolder))
	if err != nil {
		return nil, err
	}
	return &writeLog{Log: log}, nil
}

// begin begins a block in a segment of its own, with what is known of the series before.
func (w *writeLog) begin(e *head.Block, series map[model.SeriesID]*head.Use) error {
	segment, err := w.Begin()
	if err != nil {
		return err
	}
	e.Segment = segment
	return w.write(e.AppendBegin(w.buffer[:0], series))
}

func (w *writeLog) add(e *head.Block, added []head.Added) error {
	return w.write(e.AppendAdded(w.buffer[:0], added))
}

func (w *writeLog) write(b []byte) error {
	w.buffer = b
	if len(b) > largeBytes {
		w.buffer = nil
	}
	return w.Append(b)
}

// replay reads the log in a directory into blocks, of which wants tells which are not on disk. Wrong bytes cost what
// follows them up to the next block.
func (s *Store) replay(dir string, wants func(id uint64) bool) error {
	r := head.Replay{Known: s.known}
	err := wal.Replay(dir, func(segment int, record []byte) error {
		e, err := r.Record(record)
		if e == nil {
			return err
		}
		e.Segment, s.nextID = segment, max(s.nextID, e.ID+1)
		if err == nil && wants(e.ID) {
			s.blocks = append(s.blocks, e)
		}
		return err
	}, func(fault *wal.Fault) { r.IsBroken = s.found(fault) })
	if r.IsBroken && r.Last != nil {
		r.Last.Freeze() // the log could not be read beyond this place, if more of the block followed
	}
	return err
}

// found reports a segment that could not be read to its end, and returns whether something is missing.
func (s *Store) found(fault *wal.Fault) bool {
	if fault.IsTorn {
		s.stats.Torn++
		s.disk.Report(
			"the end of the write-ahead log is torn and was cut: the process had been ended, or the disk was full, while it wrote", nil)
		return fault.Err != nil
	}
	s.stats.Damaged++
	s.disk.Report("the write-ahead log is damaged; what follows in the block is lost: "+fault.Path,
		fmt.Errorf("at byte %d: %w", fault.At, fault.Err))
	return true
}
