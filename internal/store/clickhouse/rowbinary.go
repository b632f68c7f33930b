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

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// reader reads RowBinary. After an error it returns zeros.
type reader struct {
	in  *bufio.Reader
	err error
	// texts has the strings so far: most of them repeat.
	texts  map[string]string
	buffer []byte
}

const (
	// maxTextBytes and maxListLen bound a string and a list: a function's name can be long, but not this long.
	maxTextBytes = 1 << 20
	maxListLen   = 1 << 16
	// maxTexts bounds the strings that are shared.
	maxTexts = 1 << 16
)

func newReader(r io.Reader) *reader {
	return &reader{in: bufio.NewReaderSize(r, 64<<10), texts: map[string]string{}}
}

// atEnd reports whether there is no further row.
func (r *reader) atEnd() bool {
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

func (r *reader) fixed(n int) []byte {
	if cap(r.buffer) < n {
		r.buffer = make([]byte, n)
	}
	b := r.buffer[:n]
	if r.err != nil {
		clear(b)
	} else if _, err := io.ReadFull(r.in, b); err != nil {
		r.fail(err)
		clear(b)
	}
	return b
}

func (r *reader) int64() int64     { return int64(binary.LittleEndian.Uint64(r.fixed(8))) }
func (r *reader) int32() int32     { return int32(binary.LittleEndian.Uint32(r.fixed(4))) }
func (r *reader) float64() float64 { return math.Float64frombits(uint64(r.int64())) }
func (r *reader) bool() bool       { return r.fixed(1)[0] != 0 }

func (r *reader) id() (id store.EngineID) {
	copy(id[:], r.fixed(len(id)))
	return id
}

// length reads a length of at most limit.
func (r *reader) length(limit int) int {
	if r.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(r.in)
	if err == nil && n > uint64(limit) {
		err = fmt.Errorf("a length of %d, of at most %d", n, limit)
	}
	if err != nil {
		r.fail(err)
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.length(maxTextBytes)
	if n == 0 {
		return ""
	}
	b := r.fixed(n)
	if known, ok := r.texts[string(b)]; ok {
		return known
	}
	text := string(b)
	if len(r.texts) < maxTexts {
		r.texts[text] = text
	}
	return text
}

// list reads the elements of an array.
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

func (r *reader) attributes(to []store.Attribute) []store.Attribute {
	return list(r, to, func() store.Attribute { return store.Attribute{Key: r.text(), Value: r.text()} })
}
