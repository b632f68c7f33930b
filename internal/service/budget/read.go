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

const (
	// firstBytes is the size of the first buffer, while the size of the body is unknown.
	firstBytes = 4 << 10
	// trustedBytes is the largest stated length that is allocated before the bytes arrive.
	trustedBytes = 64 << 10
)

// buffers are reused until the garbage collector frees them. Those in buffers[i] have more than 2^(i-1) and at most 2^i bytes.
var buffers [48]sync.Pool

func newBuffer(size int64) []byte {
	if kept, found := buffers[bits.Len64(uint64(size-1))].Get().([]byte); found && int64(cap(kept)) >= size {
		return kept[:0]
	}
	return make([]byte, 0, size)
}

// maxKeptBytes is the largest buffer that is reused: the budget does not count the buffers that are kept until the garbage
// collector has run twice.
const maxKeptBytes = 4 << 20

func keepBuffer(buffer []byte) {
	if cap(buffer) > maxKeptBytes {
		return
	}
	buffers[bits.Len64(uint64(cap(buffer)-1))].Put(buffer[:0]) //nolint:staticcheck // SA6002: the header costs 24 bytes, the buffer thousands
}

// ReadAll reads body to its end into memory that the claim holds. It accepts at most limit bytes; for a larger body it returns a
// *TooLargeError. stated is the length that the sender states; negative means unknown. The result is valid until c.Release.
func (c *Claim) ReadAll(ctx context.Context, body io.Reader, stated, limit int64) ([]byte, error) {
	limit = min(limit, c.body.lane.largeBytes-c.body.held())
	if stated > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	size := int64(firstBytes)
	if stated >= size && stated < trustedBytes {
		size = stated
	}
	size = min(size, max(limit, 1))
	// Acquire the whole stated length before the first byte, so that a claim that waits for it holds nothing. Memory is
	// allocated as bytes arrive.
	held := max(size, stated)
	if err := c.AcquireBody(ctx, held); err != nil {
		return nil, err
	}
	buffer := newBuffer(size + 1) // with the byte after size, a body of that size needs no larger buffer
	for {
		n, err := body.Read(buffer[len(buffer) : size+1])
		buffer = buffer[:len(buffer)+n]
		if int64(len(buffer)) > size {
			next := min(2*size, limit)
			if stated > size {
				next = min(next, stated)
			}
			if next <= size {
				buffer, err = buffer[:size], &TooLargeError{Limit: limit}
			} else if err = c.AcquireBody(ctx, next-held); err == nil {
				held = max(held, next)
				larger := append(newBuffer(next+1), buffer...)
				keepBuffer(buffer)
				buffer, size = larger, next
			}
		}
		if err != nil {
			c.buffers = append(c.buffers, buffer)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return buffer, err
		}
	}
}
