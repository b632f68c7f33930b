// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"io"
)

// Limits bound what is read of one file, in bytes.
type Limits struct {
	// TableBytes bounds what an Image keeps in memory: symbols, unit ranges, decompressed sections.
	TableBytes int64
	// Work bounds what one call of Resolve may look at, in bytes of tables. A byte takes a few nanoseconds.
	Work int64
}

// DefaultLimits suffice for the debug files of all known programs: 256 MiB in memory, and two seconds for one call.
var DefaultLimits = Limits{TableBytes: 256 << 20, Work: 1 << 30}

// Errors of files that cannot be used.
var (
	// ErrNotELF is returned for a file of another kind.
	ErrNotELF = errors.New("not an ELF file")
	// ErrMalformed is returned for tables that contradict themselves.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is returned for tables above Limits.TableBytes, or above a limit of the format.
	ErrTooLarge = errors.New("too large")
	// ErrTooMuchWork is returned if a lookup would look at more than Limits.Work.
	ErrTooMuchWork = errors.New("too much work")
)

const (
	// maxSections and maxSegments are far above what linkers write into programs.
	maxSections = 1 << 13
	maxSegments = 1 << 10
	// maxSectionNames is the largest table of section names that is read.
	maxSectionNames = 1 << 20
	// maxNoteBytes is the largest note section that is read.
	maxNoteBytes = 1 << 16
	// maxNameBytes is the longest symbol or path: longer ones are cut.
	maxNameBytes = 1 << 12
	// maxInlineDepth bounds the frames of one address.
	maxInlineDepth = 256
)

// meter counts down the work that a call may do.
type meter struct{ left int64 }

// spend subtracts n and reports whether enough was left.
func (m *meter) spend(n int64) bool {
	m.left -= n
	return m.left >= 0
}

// extent is a part of a file.
type extent struct {
	r         io.ReaderAt
	off, size int64
}

// ReadAt makes an extent an io.ReaderAt.
func (e extent) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off >= e.size {
		return 0, io.EOF
	}
	if int64(len(b)) > e.size-off {
		n, err := e.r.ReadAt(b[:e.size-off], e.off+off)
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	return e.r.ReadAt(b, e.off+off)
}

// read fills b from offset off. A part that is missing is an error.
func (e extent) read(b []byte, off int64) error {
	if off < 0 || off > e.size || int64(len(b)) > e.size-off {
		return io.ErrUnexpectedEOF
	}
	n, err := e.r.ReadAt(b, e.off+off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// bytes reads n bytes at offset off. Memory grows with the bytes that are read, not with n.
func (e extent) bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > e.size || n > e.size-off {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	return b, e.read(b, off)
}

// text reads the text at offset off up to its NUL, or its first maxNameBytes.
func (e extent) text(off int64) (string, error) {
	var buffer [maxNameBytes]byte
	length := 0
	for step := 128; length < maxNameBytes; step *= 4 {
		n := int64(min(step, maxNameBytes-length))
		n = min(n, e.size-off-int64(length))
		if n <= 0 {
			return "", io.ErrUnexpectedEOF
		}
		part := buffer[length : length+int(n)]
		if err := e.read(part, off+int64(length)); err != nil {
			return "", err
		}
		for i, c := range part {
			if c == 0 {
				return string(buffer[:length+i]), nil
			}
		}
		length += int(n)
	}
	return string(buffer[:]), nil
}
