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
	// maxReadBytes bounds what is read of a process in one pass, some hundred milliseconds. 100,000 buckets have 40 MB.
	maxReadBytes = 256 << 20
)

// memory reads the memory of a process.
type memory struct {
	from    io.ReaderAt
	windows map[uint64][]byte
	left    int
}

func newMemory(from io.ReaderAt) *memory {
	return &memory{from: from, windows: map[uint64][]byte{}, left: maxReadBytes}
}

// bytes returns n bytes, which are valid until the next call.
func (m *memory) bytes(address uint64, n int) ([]byte, error) {
	start := address &^ (windowBytes - 1)
	if end := address + uint64(n); end < address || end > start+windowBytes {
		return m.read(address, n)
	}
	window, ok := m.windows[start]
	if !ok {
		if len(m.windows) >= maxWindows {
			clear(m.windows)
		}
		var err error
		if window, err = m.read(start, windowBytes); err != nil {
			return m.read(address, n) // the window is not mapped, all of it
		}
		m.windows[start] = window
	}
	return window[address-start:][:n], nil
}

// read reads n bytes as they are now.
func (m *memory) read(address uint64, n int) ([]byte, error) {
	if address > math.MaxInt64-uint64(n) || n > m.left {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, address, ErrUnreadable)
	}
	m.left -= n
	b := make([]byte, n)
	if got, err := m.from.ReadAt(b, int64(address)); got < n {
		return nil, fmt.Errorf("%d bytes at %#x: %w: %w", n, address, ErrUnreadable, err)
	}
	return b, nil
}

func (m *memory) word(address uint64) (uint64, error) {
	b, err := m.bytes(address, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}
