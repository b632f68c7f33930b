// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// ErrUnreadable is returned for memory that cannot be read, or too much of it.
var ErrUnreadable = errors.New("cannot read the memory")

const (
	// windowBytes is how much is read at once: buckets that were made one after another are side by side.
	windowBytes = 16 << 10
	// maxWindows is how many are kept: the runtime makes buckets in several places at a time, one for each processor.
	maxWindows = 64
	// maxReadBytes bounds the memory of a process that one pass reads, some hundred milliseconds. 100,000 buckets have 40
	// MB.
	maxReadBytes = 256 << 20
)

// memory reads the memory of a process.
type memory struct {
	from io.ReaderAt
	// windows have places by their addresses: each takes that of another one.
	windows [maxWindows]window
	left    int
}

// window is a part of the memory that begins at a multiple of its size.
type window struct {
	start  uint64
	isRead bool
	data   []byte
}

func newMemory(from io.ReaderAt) *memory { return &memory{from: from, left: maxReadBytes} }

// bytes returns n bytes, which are valid until the next call.
func (m *memory) bytes(address uint64, n int) ([]byte, error) {
	start := address &^ (windowBytes - 1)
	if end := address + uint64(n); end < address || end > start+windowBytes {
		return m.read(address, n)
	}
	w := &m.windows[start/windowBytes%maxWindows]
	if !w.isRead || w.start != start {
		if w.data == nil {
			w.data = make([]byte, windowBytes)
		}
		w.start = start
		if w.isRead = m.fill(w.data, start) == nil; !w.isRead {
			return m.read(address, n) // the window is not mapped, all of it
		}
	}
	return w.data[address-start:][:n], nil
}

// read reads n bytes as they are now.
func (m *memory) read(address uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, m.fill(b, address)
}

func (m *memory) fill(b []byte, address uint64) error {
	if address > math.MaxInt64-uint64(len(b)) || len(b) > m.left {
		return fmt.Errorf("%d bytes at %#x: %w", len(b), address, ErrUnreadable)
	}
	m.left -= len(b)
	if got, err := m.from.ReadAt(b, int64(address)); got < len(b) {
		return fmt.Errorf("%d bytes at %#x: %w: %w", len(b), address, ErrUnreadable, err)
	}
	return nil
}

func (m *memory) word(address uint64) (uint64, error) {
	b, err := m.bytes(address, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}
