// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
)

// This file writes what is in memory to disk.

// writeHeads writes the blocks in memory that do not grow to disk.
func (s *Store) writeHeads(ctx context.Context) error {
	s.disk.writing.Lock()
	defer s.disk.writing.Unlock()
	for {
		s.adding.Lock()
		var e *head.Block
		if len(s.blocks) > 0 && s.blocks[0].ByKey == nil {
			e = s.blocks[0]
		}
		s.adding.Unlock()
		if e == nil {
			return nil
		}
		written, err := s.writeHead(ctx, e)
		if err == nil {
			err = s.replace(nil, written, e)
		}
		if err != nil {
			return err
		}
		s.adding.Lock()
		first := e.ID // what is known of series is in the log of the last block
		if len(s.blocks) > 0 {
			first = s.blocks[0].ID
		}
		if s.disk.failed == nil {
			if err := s.disk.log.Cut(first); err != nil {
				s.logFailed(err)
			}
		}
		s.disk.written.Broadcast()
		s.adding.Unlock()
	}
}

// mustWait reports whether a message has to wait until blocks that are full are on disk, so that they do not fill the
// memory. A large one waits for nearly all of them. A small one waits only before it begins another block, and only if
// more wait than what a block and a large message leave behind: large messages do not delay it. A disk that fails is
// not waited for.
func (s *Store) mustWait(cost int, beginsBlock bool) bool {
	if s.disk == nil || s.disk.full == nil || s.disk.writeFailed != nil {
		return false
	}
	if s.isLarge(cost) {
		return s.waiting() > s.cfg.MaxBytes/diskBlocks
	}
	return beginsBlock && s.waiting() > s.cfg.MaxBytes/waitingPart
}

// writeSoon has the blocks that are full written.
func (s *Store) writeSoon() {
	if s.disk == nil || s.disk.full == nil {
		return
	}
	select {
	case s.disk.full <- struct{}{}:
	default: // it is known
	}
}

// waiting returns the memory of blocks that wait to be written.
func (s *Store) waiting() (bytes int) {
	for _, e := range s.blocks {
		if e.ByKey == nil {
			bytes += e.Bytes
		}
	}
	return bytes
}

// writeHead writes a block that does not grow: that of its hour, and one for each other hour that is further away.
func (s *Store) writeHead(ctx context.Context, e *head.Block) (written []*blocks.Block, err error) {
	hours := map[int64]bool{}
	for i := range e.Series {
		for k := range e.Series[i].Chunks {
			hours[e.HourOf(&e.Series[i].Chunks[k])] = true
		}
	}
	for hour := range hours {
		b, err := s.disk.files.Write(ctx, compaction.Name(compaction.HourOf(hour), e.ID),
			[]compaction.Source{&head.Source{Block: e, Hour: hour}}, 0)
		if err != nil {
			return nil, err
		}
		written = append(written, b)
	}
	return written, nil
}
