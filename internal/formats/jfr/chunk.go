// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

const (
	chunkHeaderBytes = 68
	chunkMagic       = "FLR\x00"
)

// chunk is a part of a recording with its own classes, constant pools and clock, and what has been interned of them.
type chunk struct {
	size, metadata, pools      int    // bytes, and offsets within the chunk
	start, end                 uint64 // nanoseconds since the epoch
	startTicks, ticksPerSecond uint64

	classes map[int64]*class

	stacks  map[stackKey]dictionary.StackIndex
	names   map[constantKey]dictionary.StringIndex
	origins map[origin]interned
	threads map[constantKey][]int32
	words   map[constantKey]string
	// lastText is the last string of the pool that was read.
	lastText decodedText
}

// decodedText is the string at a place in the recording, cut at a limit.
type decodedText struct {
	at, limit int
	text      string
}

// constantKey is a reference to a constant: the class can be loaded twice.
type constantKey struct {
	of  *class
	key uint64
}

// A recording is from between these times, in nanoseconds.
const year2000, year2100 = events.Year2000 * 1e9, events.Year2100 * 1e9

// readHeader reads what the first bytes of a chunk state.
func readHeader(data []byte) (c chunk, err error) {
	if len(data) < chunkHeaderBytes {
		return c, errTruncated
	}
	if string(data[:4]) != chunkMagic {
		return c, errors.New("does not begin with FLR")
	}
	switch major, minor := binary.BigEndian.Uint16(data[4:]), binary.BigEndian.Uint16(data[6:]); {
	case major < 2:
		return c, fmt.Errorf("version %d.%d of the format, that of JDK 7 to 10 and of Oracle's JDK 8, is not read; "+
			"record with JDK 11 or later, OpenJDK 8u262 or later, or async-profiler", major, minor)
	case major > 2:
		return c, fmt.Errorf("version %d.%d of the format is not known", major, minor)
	}
	read := func(at int) uint64 { return binary.BigEndian.Uint64(data[at:]) }
	whole, rest := read(8), uint64(len(data))
	if whole > rest || whole < chunkHeaderBytes {
		return c, errTruncated
	}
	if read(16) < chunkHeaderBytes || read(16) >= whole || read(24) < chunkHeaderBytes || read(24) >= whole {
		return c, errors.New("the metadata or constant pools are not within the chunk; is the recording still running?")
	}
	duration := read(40)
	c = chunk{
		size: int(whole), metadata: int(read(24)), pools: int(read(16)),
		start: read(32), end: read(32) + max(duration, 1), startTicks: read(48), ticksPerSecond: read(56),
	}
	if c.ticksPerSecond == 0 || c.start < year2000 || c.start >= year2100 || duration > year2100 || c.end >= year2100 {
		return c, errors.New("the time of a chunk is impossible")
	}
	return c, nil
}

// openChunk reads the header, classes and constant pools of the chunk that begins at start.
func (d *decoder) openChunk(start int) error {
	c, err := readHeader(d.data[start:])
	if err != nil {
		return err
	}
	c.stacks, c.names = map[stackKey]dictionary.StackIndex{}, map[constantKey]dictionary.StringIndex{}
	c.origins, c.threads, c.words = map[origin]interned{}, map[constantKey][]int32{}, map[constantKey]string{}
	d.chunk = c
	d.chunkBytes = 0
	classes := metadata{cursor: &cursor{data: d.data, pos: start + c.metadata, end: start + c.size}, grow: d.grow}
	if err := classes.read(); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	d.chunk.classes = classes.classes
	if err := d.readPools(start, start+c.pools, start+c.size); err != nil {
		return fmt.Errorf("constant pools: %w", err)
	}
	return nil
}

// grow reserves memory for tables of a chunk, which take the place of those of the chunk before.
func (d *decoder) grow(bytes int) error {
	if d.chunkBytes += bytes; d.chunkBytes <= d.largestChunk {
		return nil
	}
	more := d.chunkBytes - d.largestChunk
	d.largestChunk = d.chunkBytes
	return d.Grow(more)
}

// at returns the time of a number of ticks, or false for one that is impossible.
func (c *chunk) at(ticks uint64) (nanos uint64, ok bool) {
	since := int64(ticks - c.startTicks)
	if since < 0 { // events can be older than the chunk that they are written to
		before := c.nanos(uint64(-since))
		return c.start - before, before <= c.start-year2000
	}
	nanos = c.start + c.nanos(uint64(since))
	return nanos, nanos >= c.start && nanos < year2100
}

// nanos converts ticks to nanoseconds. It returns the largest int64 if there are more.
func (c *chunk) nanos(ticks uint64) uint64 {
	high, low := bits.Mul64(ticks, 1e9)
	if high >= c.ticksPerSecond {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, c.ticksPerSecond)
	return min(quotient, math.MaxInt64)
}
