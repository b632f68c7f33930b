// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"encoding/binary"
	"fmt"
)

// The header of a chunk: magic, version, size, …, when it began and how long it lasted in nanoseconds.
const (
	chunkMagic     = "FLR\x00"
	chunkHeader    = 68
	sizeAt         = 8
	startNanosAt   = 32
	durationAt     = 40
	maxChunkTime   = 1 << 62
	minChunkLength = chunkHeader
)

// newChunks returns the part of a recording that begins at or after a time, and when its last chunk ended. The JVM
// writes all that it keeps, and begins another chunk each time.
func newChunks(recording []byte, since uint64) (chunks []byte, until uint64, err error) {
	until = since
	for at := 0; at < len(recording); {
		rest := recording[at:]
		if len(rest) < chunkHeader || string(rest[:4]) != chunkMagic {
			return nil, since, fmt.Errorf("no chunk at %d of %d bytes: %w", at, len(recording), ErrMalformed)
		}
		size := binary.BigEndian.Uint64(rest[sizeAt:])
		start, duration := binary.BigEndian.Uint64(rest[startNanosAt:]), binary.BigEndian.Uint64(rest[durationAt:])
		if size < minChunkLength || size > uint64(len(rest)) || start > maxChunkTime || duration > maxChunkTime {
			return nil, since, fmt.Errorf("a chunk of %d bytes at %d of %d: %w", size, at, len(recording), ErrMalformed)
		}
		if start >= since {
			chunks = append(chunks, rest[:size]...)
			until = max(until, start+duration)
		}
		at += int(size)
	}
	return chunks, until, nil
}
