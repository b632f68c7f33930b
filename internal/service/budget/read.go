// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"
)

// firstBytes is the size of the first buffer. Until a byte has arrived, a body holds nothing.
const firstBytes = 512

// buffers are reused until the garbage collector frees them. Those in buffers[i] have more than 2^(i-1) and at most 2^i
// bytes.
var buffers [48]sync.Pool

func newBuffer(size int64) []byte {
	if kept, found := buffers[bits.Len64(uint64(size-1))].Get().([]byte); found && int64(cap(kept)) >= size {
		return kept[:0]
	}
	return make([]byte, 0, size)
}

// maxKeptBytes is the largest buffer that is reused: the budget does not count the buffers that are kept until the
// garbage collector has run twice.
const maxKeptBytes = 4 << 20

func keepBuffer(buffer []byte) {
	if cap(buffer) > maxKeptBytes {
		return
	}
	buffers[bits.Len64(uint64(cap(buffer)-1))].Put(
		buffer[:0]) //nolint:staticcheck // SA6002: the header costs 24 bytes, the buffer thousands
}

// ReadAll reads body to its end into memory that the reservation holds: at most twice the bytes that have arrived. It
// accepts at most limit bytes; for a larger body it returns a *TooLargeError. stated is the length that the sender
// states; negative means unknown. The result is valid until r.Release.
func (r *Reservation) ReadAll(ctx context.Context, body io.Reader, stated, limit int64) ([]byte, error) {
	before := r.body.held() // by other bodies
	room := r.body.lane.largeBytes - before
	if stated > min(limit, room) {
		return nil, r.tooLarge(before, stated, limit)
	}
	r.body.isLarge = !r.body.lane.isSmall(before + stated)
	most := min(limit, room)
	size, held := min(firstBytes, most), int64(0)
	buffer := newBuffer(firstBytes)
	defer func() { r.buffers = append(r.buffers, buffer) }()
	var probe [1]byte // it tells a body that fills the buffer from a larger one
	for {
		free := buffer[len(buffer):size]
		isFull := len(free) == 0
		if isFull {
			free = probe[:]
		}
		n, err := body.Read(free)
		if n > 0 && isFull {
			larger := min(2*size, most)
			if stated > size {
				larger = min(larger, stated)
			}
			if larger <= size {
				return buffer, r.tooLarge(before, max(stated, size+1), limit)
			}
			size = larger
		}
		if n > 0 && held < size {
			if err := r.ReserveBody(ctx, size-held); err != nil {
				return buffer, err
			}
			held = size
		}
		switch {
		case n > 0 && isFull:
			larger := append(append(newBuffer(size), buffer...), probe[0])
			keepBuffer(buffer)
			buffer = larger
		case n > 0:
			buffer = buffer[:len(buffer)+n]
		}
		if errors.Is(err, io.EOF) {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
}

// tooLarge returns the error for a body of at least size bytes beside others: that of the configured limit, unless the
// reservation has less room.
func (r *Reservation) tooLarge(others, size, limit int64) error {
	if limit <= r.body.lane.largeBytes-others {
		return &TooLargeError{Limit: limit}
	}
	return &TooLargeError{Need: others + size, Limit: r.body.lane.largeBytes}
}
