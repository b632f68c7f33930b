// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// The header is "go 1.22 trace" and three zeros. From Go 1.22 on a trace is a sequence of generations, each of which
// has batches of threads; before, it had batches of processors.
const (
	headerBytes     = 16
	firstGeneration = 22
)

// The memory of the reader.
const (
	fixedBytes  = 4 << 20
	legacyBytes = 36 << 20
	perByte     = 16
	batchBytes  = 512
)

// maxThreads is the largest number of threads in a part of a trace: the reader's time grows with it.
const maxThreads = 250

// What Decode refuses by its limits. Both are events.ErrTooLarge.
var (
	ErrThreads = fmt.Errorf("%w: too many threads", events.ErrTooLarge)
	ErrLegacy  = fmt.Errorf("%w: a trace of before Go 1.22, which is read whole", events.ErrTooLarge)
)

// checkSize refuses what would make the reader slow or large: for each event it tries the heads of all threads that are
// not ready, and it keeps a trace from before Go 1.22, which isLegacy reports, in memory whole. A trace that ends
// within an event passes: the reader reports where, and keeps what is before. readerBytes is the memory of the reader.
func checkSize(data []byte, o *Options) (isLegacy bool, readerBytes int, err error) {
	version := 0
	if _, err := fmt.Sscanf(string(data[:min(len(data), headerBytes)]), "go 1.%d trace", &version); err != nil ||
		len(data) < headerBytes {
		return false, 0, errors.New("not a Go execution trace: unknown header")
	}
	s := scanner{rest: data[headerBytes:], seen: map[uint64]struct{}{}}
	switch {
	case version >= firstGeneration:
		err := s.generations()
		return false, fixedBytes + perByte*len(data) + batchBytes*s.batches, err
	case len(data) > o.MaxLegacyBytes:
		return true, 0, fmt.Errorf("%w: more than %d bytes", ErrLegacy, o.MaxLegacyBytes)
	default:
		return true, legacyBytes + perByte*len(data), s.legacy()
	}
}

// scanner passes over the events of a trace and counts threads.
type scanner struct {
	rest []byte
	// isTruncated reports that the trace ended within a number. Then rest is empty.
	isTruncated bool
	generation  uint64
	batches     int
	seen        map[uint64]struct{}
}

func (s *scanner) number() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.rest, s.isTruncated = nil, true
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) skip(n uint64) { s.rest = s.rest[min(n, uint64(len(s.rest))):] }

func (s *scanner) thread(id uint64) error {
	if s.seen[id] = struct{}{}; len(s.seen) > maxThreads {
		return fmt.Errorf("%w: more than %d", ErrThreads, maxThreads)
	}
	return nil
}

// generations reads batches: type, generation, thread, time, size, events.
func (s *scanner) generations() error {
	const eventBatch, experimentalBatch = 1, 49
	for len(s.rest) > 0 {
		kind := s.rest[0]
		s.skip(1)
		if kind == experimentalBatch {
			s.skip(1)
		}
		if kind != eventBatch && kind != experimentalBatch {
			continue // the end of a generation
		}
		generation, thread, _, size := s.number(), s.number(), s.number(), s.number()
		if s.isTruncated {
			return nil
		}
		s.batches++
		if generation != s.generation {
			s.generation = generation
			clear(s.seen)
		}
		if err := s.thread(thread); err != nil {
			return err
		}
		s.skip(size)
	}
	return nil
}

// legacy reads events: type and number of arguments, arguments. Some have a form of their own.
func (s *scanner) legacy() error {
	const batch, str, userLog = 1, 37, 48
	for len(s.rest) > 0 {
		kind, arguments := s.rest[0]&63, s.rest[0]>>6+1
		s.skip(1)
		first := s.number()
		switch {
		case s.isTruncated:
			return nil
		case kind == batch:
			if err := s.thread(first); err != nil {
				return err
			}
			s.number()
		case kind == str:
			s.skip(s.number())
		case arguments == 4: // the first number is their length
			s.skip(first)
			if kind == userLog {
				s.skip(s.number())
			}
		default:
			for range arguments - 1 {
				s.number()
			}
		}
	}
	return nil
}
