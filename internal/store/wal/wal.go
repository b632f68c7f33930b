// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package wal is a log of records in segments: files with numbers. Records are appended, made durable by Sync, read
// again by Replay, and leave the log when whoever wrote them says that they are elsewhere: Cut deletes the segments
// before a number. Nothing else is deleted.
//
// A process or a disk can stop within a record. Replay cuts such an end in place, which needs no room, and goes on.
// Wrong bytes cost what follows in their segment, not the next ones, and a segment that is missing costs what it had.
package wal

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

const segmentBytes = 32 << 20

// Log is open for writing. Its methods are called one at a time.
type Log struct{ *wlog.WL }

// Open begins a segment after those that are there. The name of the folder is durable then.
func Open(dir string) (*Log, error) {
	if err := blockfile.Fault("create", dir); err != nil {
		return nil, fmt.Errorf("open the write-ahead log: %w", err)
	}
	w, err := wlog.NewSize(slog.New(slog.DiscardHandler), nil, dir, segmentBytes, compression.None)
	if err != nil {
		return nil, fmt.Errorf("open the write-ahead log: %w", err)
	}
	if err := blockfile.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &Log{w}, nil
}

// Begin begins a segment, and returns its number.
func (l *Log) Begin() (segment int, err error) {
	if err := blockfile.Fault("create", l.Dir()); err != nil {
		return 0, err
	}
	return l.NextSegmentSync()
}

// Append writes a record. A process that is killed then does not lose it.
func (l *Log) Append(record []byte) error {
	if err := blockfile.Fault("write", l.Dir()); err != nil {
		return err
	}
	return l.Log(record)
}

// Sync makes what was written durable, and the names of the segments.
func (l *Log) Sync() error {
	if err := blockfile.Fault("sync", l.Dir()); err != nil {
		return err
	}
	return errors.Join(l.WL.Sync(), blockfile.SyncDir(l.Dir()))
}

// Cut deletes the segments before a number.
func (l *Log) Cut(segment int) error {
	if err := blockfile.Fault("remove", l.Dir()); err != nil {
		return err
	}
	return l.Truncate(segment)
}

// Fault is a segment that could not be read to its end.
type Fault struct {
	Path string
	// At is where the last record ends that could be read.
	At int64
	// IsTorn tells that the segment ended within a record. It was cut there if Err is nil.
	IsTorn bool
	Err    error
}

// Replay calls use with the records of all segments, which use does not keep, and found with faults. Records that use
// refuses are wrong bytes. Replay returns an error if files cannot be read.
func Replay(dir string, use func(segment int, record []byte) error, found func(*Fault)) error {
	list, err := segments(dir)
	if err != nil {
		return err
	}
	missing, err := renumber(dir, list)
	if err != nil {
		return err
	}
	for i, segment := range list {
		if missing[i] {
			found(&Fault{Path: wlog.SegmentName(dir, segment), Err: errors.New("the segment before it is missing")})
		}
		fault, err := read(wlog.SegmentName(dir, segment), func(record []byte) error { return use(segment, record) })
		if err != nil {
			return err
		}
		if fault != nil {
			found(fault)
		}
	}
	return nil
}

// segments returns their numbers.
func segments(dir string) (list []int, err error) {
	entries, err := blockfile.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}

// renumber closes the gaps in the numbers of segments, since no log opens behind one. It returns before which there was
// one.
func renumber(dir string, list []int) (missing map[int]bool, err error) {
	missing = map[int]bool{}
	for i := 1; i < len(list); i++ {
		if list[i] > list[i-1]+1 {
			missing[i] = true
		}
	}
	if len(missing) == 0 {
		return missing, nil
	}
	for i := len(list) - 2; i >= 0; i-- {
		if next := list[i+1] - 1; next > list[i] {
			err = cmp.Or(err, os.Rename(wlog.SegmentName(dir, list[i]), wlog.SegmentName(dir, next)))
			list[i] = next
		}
	}
	return missing, cmp.Or(err, blockfile.SyncDir(dir))
}

// segmentFile notes why a segment could not be read further.
type segmentFile struct {
	*os.File
	err   error
	atEnd bool
}

func (f *segmentFile) Read(b []byte) (n int, err error) {
	if err = blockfile.Fault("read", f.Name()); err == nil {
		n, err = f.File.Read(b)
	}
	f.atEnd = f.atEnd || errors.Is(err, io.EOF)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// read reads a segment.
func read(path string, use func(record []byte) error) (*Fault, error) {
	if err := blockfile.Fault("open", path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	f := &segmentFile{File: file}
	reader := wlog.NewReader(bufio.NewReaderSize(f, 64<<10))
	whole := int64(0)
	for err == nil && reader.Next() {
		if err = use(reader.Record()); err == nil {
			whole = reader.Offset()
		}
	}
	isTorn := err == nil && f.atEnd
	err = cmp.Or(err, reader.Err())
	switch {
	case f.err != nil:
		return nil, f.err
	case err == nil:
		return nil, nil
	case isTorn:
		return &Fault{Path: path, At: whole, IsTorn: true, Err: os.Truncate(path, whole)}, nil
	default:
		return &Fault{Path: path, At: whole, Err: err}, nil
	}
}
