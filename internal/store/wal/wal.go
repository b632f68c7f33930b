// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package wal is a log of records in files with numbers: a file for each block in memory. Records are appended, made
// durable by Sync, and read again by Read. They leave the log when whoever wrote them says that they are elsewhere: Cut
// deletes the files before a number. Nothing else is deleted.
//
// A record has a header of HeaderBytes: the number of its bytes, the same inverted, and their CRC-32C, each of four
// bytes, little-endian. A process or a disk can stop within a record. Read cuts such an end in place, which needs no
// room. Wrong bytes cost what follows in their file, not the other files.
package wal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// HeaderBytes is the size of the header of a record.
const HeaderBytes = 12

// Log is the log in a folder. Its methods are called one at a time, except Sync.
type Log struct {
	Dir string
	// file is the one that is written, or nil.
	file atomic.Pointer[os.File]
}

// Path returns the path of a file.
func (l *Log) Path(number uint64) string { return filepath.Join(l.Dir, fmt.Sprintf("%08x", number)) }

// Begin begins a file, which must not be there, after the one before is durable. It makes the folder if it is missing.
func (l *Log) Begin(number uint64) error { return l.open(number, os.O_CREATE|os.O_EXCL) }

// Continue goes on with a file that was read to its end.
func (l *Log) Continue(number uint64) error { return l.open(number, os.O_APPEND) }

func (l *Log) open(number uint64, flag int) error {
	if err := cmp.Or(l.Close(), blockfile.Fault("create", l.Dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(l.Dir, 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(l.Path(number), flag|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.file.Store(file)
	return blockfile.SyncDir(filepath.Dir(l.Dir))
}

// Append writes a record, whose first HeaderBytes are overwritten. A process that is killed then does not lose it.
func (l *Log) Append(record []byte) error {
	if err := blockfile.Fault("write", l.Dir); err != nil {
		return err
	}
	size := uint32(len(record) - HeaderBytes)
	binary.LittleEndian.PutUint32(record, size)
	binary.LittleEndian.PutUint32(record[4:], ^size)
	binary.LittleEndian.PutUint32(record[8:], crc32.Checksum(record[HeaderBytes:], castagnoli))
	_, err := l.file.Load().Write(record)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sync makes what was written durable, and the names of the files.
func (l *Log) Sync() error {
	if err := blockfile.Fault("sync", l.Dir); err != nil {
		return err
	}
	file := l.file.Load()
	if file == nil {
		return nil
	}
	err := file.Sync()
	if errors.Is(err, os.ErrClosed) { // by Begin, which has synced it
		err = nil
	}
	return errors.Join(err, blockfile.SyncDir(l.Dir))
}

// Close makes the file that is written durable, and ends it.
func (l *Log) Close() error {
	file := l.file.Swap(nil)
	if file == nil {
		return nil
	}
	err := blockfile.Fault("sync", file.Name())
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Cut deletes the files before a number.
func (l *Log) Cut(number uint64) error {
	if err := blockfile.Fault("remove", l.Dir); err != nil {
		return err
	}
	files, err := l.Files()
	for _, n := range files {
		if n < number {
			err = errors.Join(err, os.Remove(l.Path(n)))
		}
	}
	return err
}

// Files returns the numbers of the files, in their order.
func (l *Log) Files() (numbers []uint64, err error) {
	entries, err := blockfile.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if n, err := strconv.ParseUint(entry.Name(), 16, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// Fault is why a file could not be read beyond a byte. ErrTorn is that of one that ends within a record.
type Fault struct {
	Path string
	At   int
	Err  error
}

// ErrTorn is wrapped by nothing else.
var ErrTorn = errors.New("the file ends within a record")

// Read calls use with the records of a file. Those that use refuses are wrong bytes. Read returns an error if the file
// cannot be read at the moment.
func (l *Log) Read(number uint64, use func(record []byte) error) (*Fault, error) {
	path := l.Path(number)
	if err := cmp.Or(blockfile.Fault("open", path), blockfile.Fault("read", path)); err != nil {
		return nil, err
	}
	all, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for left := all; len(left) > 0; {
		record, rest, err := next(left)
		if err == nil {
			err = use(record)
		}
		if err == nil {
			left = rest
			continue
		}
		at := len(all) - len(left)
		if at > 0 && len(bytes.Trim(left, "\x00")) == 0 { // a file grows before it has its bytes
			err = ErrTorn
		}
		if errors.Is(err, ErrTorn) {
			_ = os.Truncate(path, int64(at)) // or else the next start reports it again
		}
		return &Fault{Path: path, At: at, Err: err}, nil
	}
	return nil, nil
}

// next returns the first record, and what follows it.
func next(b []byte) (record, rest []byte, err error) {
	if len(b) < HeaderBytes {
		return nil, nil, ErrTorn
	}
	size, inverted := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	checksum := binary.LittleEndian.Uint32(b[8:])
	b = b[HeaderBytes:]
	switch {
	case size != ^inverted:
		return nil, nil, errors.New("no record begins here")
	case len(b) < int(size):
		return nil, nil, ErrTorn
	case crc32.Checksum(b[:size], castagnoli) != checksum:
		return nil, nil, errors.New("checksum mismatch")
	}
	return b[:size], b[size:], nil
}
