// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// reader reads RowBinary. After an error it returns zeros.
type reader struct {
	in  *bufio.Reader
	err error
	// left is how many bytes the answer may still have, and rowLeft how many the row.
	left, rowLeft int
	// strings has strings of stringBytes in all: most of them repeat.
	strings     map[string]string
	stringBytes int
	buffer      []byte
	small       [16]byte
}

const (
	// maxRowBytes bounds a row with its strings, and maxListLen its lists: whoever reads it accounts for it afterwards.
	maxRowBytes = 4 << 20
	maxListLen  = 1 << 16
	// maxStringsBytes bounds the strings that are shared, stringBytes is what one takes besides its bytes.
	maxStringsBytes = 4 << 20
	stringBytes     = 64
)

// newReader returns a reader of an answer that has at most limit bytes.
func newReader(r io.Reader, limit int) *reader {
	return &reader{in: bufio.NewReaderSize(r, 64<<10), left: limit, strings: map[string]string{}}
}

func (r *reader) atEnd() bool {
	r.rowLeft = maxRowBytes
	_, err := r.in.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
		return false
	}
	return err != nil
}

func (r *reader) fail(err error) {
	if r.err == nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		r.err = err
	}
}

// isWithin reports whether n further bytes are within the limits.
func (r *reader) isWithin(n int) bool {
	switch {
	case r.err != nil:
	case n > r.left:
		r.fail(fmt.Errorf("%w: ClickHouse sends more than `max_result_bytes`", model.ErrTooLarge))
	case n > r.rowLeft:
		r.fail(fmt.Errorf("%w: a row of ClickHouse's answer has more than %d bytes", model.ErrTooLarge, maxRowBytes))
	default:
		r.left, r.rowLeft = r.left-n, r.rowLeft-n
		return true
	}
	return false
}

// fixed reads n bytes, at most 16.
func (r *reader) fixed(n int) []byte {
	b := r.small[:n]
	clear(b)
	if r.isWithin(n) {
		if _, err := io.ReadFull(r.in, b); err != nil {
			r.fail(err)
			clear(b)
		}
	}
	return b
}

func (r *reader) int64() int64     { return int64(binary.LittleEndian.Uint64(r.fixed(8))) }
func (r *reader) int32() int32     { return int32(binary.LittleEndian.Uint32(r.fixed(4))) }
func (r *reader) float64() float64 { return math.Float64frombits(uint64(r.int64())) }
func (r *reader) bool() bool       { return r.fixed(1)[0] != 0 }

func (r *reader) id() (id answers.EngineID) {
	copy(id[:], r.fixed(len(id)))
	return id
}

func (r *reader) length(limit int) int {
	if !r.isWithin(1) {
		return 0
	}
	n, err := binary.ReadUvarint(r.in)
	if err == nil && n > uint64(limit) {
		err = fmt.Errorf("%w: ClickHouse sends a length of %d, of at most %d", model.ErrTooLarge, n, limit)
	}
	if err != nil {
		r.fail(err)
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.length(maxRowBytes)
	if n == 0 || !r.isWithin(n) {
		return ""
	}
	if cap(r.buffer) < n {
		r.buffer = make([]byte, n)
	}
	b := r.buffer[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		r.fail(err)
		return ""
	}
	if known, ok := r.strings[string(b)]; ok {
		return known
	}
	s := string(b)
	if r.stringBytes += n + stringBytes; r.stringBytes > maxStringsBytes {
		clear(r.strings)
		r.stringBytes = 0
	}
	r.strings[s] = s
	return s
}

func list[T any](r *reader, to []T, read func() T) []T {
	to = to[:0]
	for range r.length(maxListLen) {
		if r.err != nil {
			break
		}
		to = append(to, read())
	}
	return to
}

func (r *reader) attributes(to []model.Attribute) []model.Attribute {
	return list(r, to, func() model.Attribute { return model.Attribute{Key: r.string(), Value: r.string()} })
}
