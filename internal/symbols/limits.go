// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"errors"
	"io"
)

// Limits bound the reading of one file, in bytes.
type Limits struct {
	// TableBytes bounds an Image's memory: symbols, unit ranges, decompressed sections.
	TableBytes int64
	// Work bounds how many bytes of tables one call of Resolve may read. A byte costs a few nanoseconds.
	Work int64
}

// DefaultLimits suffice for the debug files of all known programs: 256 MiB in memory, and two seconds for one call.
var DefaultLimits = Limits{TableBytes: 256 << 20, Work: 1 << 30}

// Errors of files that cannot be used.
var (
	// ErrNotELF is returned for a file of another kind.
	ErrNotELF = errors.New("not an ELF file")
	// ErrMalformed is returned for inconsistent tables.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is returned for tables above Limits.TableBytes, or above a limit of the format.
	ErrTooLarge = errors.New("too large")
	// ErrTooMuchWork is returned if a lookup would read more than Limits.Work.
	ErrTooMuchWork = errors.New("too much work")
)

const (
	// maxSections and maxSegments are far above what linkers write into programs.
	maxSections = 1 << 13
	maxSegments = 1 << 10
	// maxSectionNames is the largest table of section names that is read, maxSectionName the longest name: those that
	// matter are shorter.
	maxSectionNames = 1 << 20
	maxSectionName  = 64
	// maxNoteBytes is the largest note section that is read.
	maxNoteBytes = 1 << 16
	// maxNameBytes is the longest symbol or path: longer ones are cut.
	maxNameBytes = 1 << 12
	// maxInlineDepth bounds the frames of one address.
	maxInlineDepth = 256
)

const (
	// workOfRead is how much work it is to read a few bytes of a file.
	workOfRead = 128
	// workOfName is how much work a byte of a name counts as, since names stay in memory while a unit is searched.
	workOfName = 8
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

// bytes reads n bytes at offset off, which must all be in the extent.
func (e extent) bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > e.size || n > e.size-off {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	return b, e.read(b, off)
}

// cString reads the string at offset off up to its NUL, or its first maxNameBytes.
func (e extent) cString(off int64) (string, error) {
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
		if i := bytes.IndexByte(part, 0); i >= 0 {
			return string(buffer[:length+i]), nil
		}
		length += int(n)
	}
	return string(buffer[:]), nil
}

// eachBlock calls visit with an extent's bytes from an offset on, in blocks of whole entries of size bytes, until visit
// returns false. A block is valid until the next one.
func (m *Image) eachBlock(e extent, from, size int64, visit func(off int64, block []byte) bool) error {
	buffer := make([]byte, min(max(0, e.size-from), 64<<10)/size*size)
	for off := from; off+size <= e.size; off += int64(len(buffer)) {
		block := buffer[:min(int64(len(buffer)), (e.size-off)/size*size)]
		if !m.work.spend(int64(len(block))) {
			return ErrTooMuchWork
		}
		if err := e.read(block, off); err != nil {
			return err
		}
		if !visit(off, block) {
			return nil
		}
	}
	return nil
}
