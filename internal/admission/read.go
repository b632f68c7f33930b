// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// TooLargeError reports a body of more than Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string { return fmt.Sprintf("larger than %d bytes", e.Limit) }

const (
	// firstBytes is the size of the first buffer, before anybody knows how large the body is.
	firstBytes = 4 << 10
	// trustedBytes is the largest length that a sender states and that is allocated before its bytes arrive.
	trustedBytes = 64 << 10
)

// bodyBuffers holds buffers of at most trustedBytes.
var bodyBuffers = sync.Pool{New: func() any { return make([]byte, 0, firstBytes) }}

// ReadAll reads body to its end into memory that c holds. At most limit bytes are accepted; a larger body returns a
// *TooLargeError. stated is the length that the sender states, or negative. The result is valid until c.Release.
func (c *Claim) ReadAll(ctx context.Context, body io.Reader, stated, limit int64) ([]byte, error) {
	if stated > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	var buffer []byte
	if c.pooled == nil {
		buffer = bodyBuffers.Get().([]byte)
	} else {
		buffer = make([]byte, 0, firstBytes)
	}
	isPooled := c.pooled == nil
	size := int64(cap(buffer))
	if stated >= size && stated < trustedBytes {
		size = stated + 1 // one more, so that the end is seen without another buffer
	}
	charged := int64(0)
	for {
		// One byte more than the limit proves a body too large.
		size = max(min(size, limit+1), int64(cap(buffer)))
		if err := c.Acquire(ctx, size-charged); err != nil {
			return buffer, err
		}
		charged = size
		if size > int64(cap(buffer)) {
			larger := make([]byte, len(buffer), size)
			copy(larger, buffer)
			buffer = larger
		}
		if isPooled {
			c.pooled = nil
			if cap(buffer) <= trustedBytes {
				c.pooled = buffer
			}
		}
		for len(buffer) < cap(buffer) {
			n, err := body.Read(buffer[len(buffer):cap(buffer)])
			buffer = buffer[:len(buffer)+n]
			switch {
			case int64(len(buffer)) > limit:
				return buffer, &TooLargeError{Limit: limit}
			case errors.Is(err, io.EOF):
				return buffer, nil
			case err != nil && c.IsRefused():
				return buffer, ErrBusy
			case err != nil:
				return buffer, err
			}
		}
		size = 2 * int64(cap(buffer))
		if stated >= int64(cap(buffer)) {
			size = min(size, stated+1)
		}
	}
}
