// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// The header is "go 1.22 trace" and three zeros. From Go 1.22 on a trace is a sequence of generations, each of which has
// batches of threads; before, it had batches of processors.
const (
	headerBytes     = 16
	firstGeneration = 22
)

// What Decode refuses by its limits. Both are events.ErrTooLarge.
var (
	ErrThreads = fmt.Errorf("%w: too many threads", events.ErrTooLarge)
	ErrLegacy  = fmt.Errorf("%w: a trace of before Go 1.22, which is read whole", events.ErrTooLarge)
)

var errTruncated = errors.New("the trace ends within an event")

// checkSize reports what would make the reader slow or large: it tries, for each event, the heads of all threads that are
// not ready, and keeps traces before Go 1.22, which it returns true for, in memory whole.
func checkSize(data []byte, o *Options) (isLegacy bool, err error) {
	version := 0
	if _, err := fmt.Sscanf(string(data[:min(len(data), headerBytes)]), "go 1.%d trace", &version); err != nil || len(data) < headerBytes {
		return false, errors.New("not a Go execution trace: the header is not that of one")
	}
	s := scanner{rest: data[headerBytes:], maxThreads: o.MaxThreads, seen: map[uint64]struct{}{}}
	if version >= firstGeneration {
		err = s.generations()
	} else {
		isLegacy = true
		if len(data) > o.MaxLegacyBytes {
			return isLegacy, fmt.Errorf("%w: it has more than %d bytes", ErrLegacy, o.MaxLegacyBytes)
		}
		err = s.legacy()
	}
	if errors.Is(err, errTruncated) {
		return isLegacy, nil // the reader says where, and keeps what is before
	}
	return isLegacy, err
}

// scanner passes over the events of a trace and counts threads.
type scanner struct {
	rest       []byte
	maxThreads int
	generation uint64
	seen       map[uint64]struct{}
}

func (s *scanner) number() (uint64, error) {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		return 0, errTruncated
	}
	s.rest = s.rest[n:]
	return v, nil
}

func (s *scanner) skip(n uint64) error {
	if n > uint64(len(s.rest)) {
		return errTruncated
	}
	s.rest = s.rest[n:]
	return nil
}

func (s *scanner) thread(id uint64) error {
	if s.seen[id] = struct{}{}; len(s.seen) > s.maxThreads {
		return fmt.Errorf("%w: more than %d", ErrThreads, s.maxThreads)
	}
	return nil
}

// generations reads batches: type, generation, thread, time, size, events.
func (s *scanner) generations() error {
	const eventBatch, experimentalBatch = 1, 49
	for len(s.rest) > 0 {
		kind := s.rest[0]
		s.rest = s.rest[1:]
		if kind == experimentalBatch {
			if err := s.skip(1); err != nil {
				return err
			}
		}
		if kind != eventBatch && kind != experimentalBatch {
			continue // the end of a generation
		}
		var fields [4]uint64
		for i := range fields {
			var err error
			if fields[i], err = s.number(); err != nil {
				return err
			}
		}
		if fields[0] != s.generation {
			s.generation = fields[0]
			clear(s.seen)
		}
		if err := s.thread(fields[1]); err != nil {
			return err
		}
		if err := s.skip(fields[3]); err != nil {
			return err
		}
	}
	return nil
}

// legacy reads events: type and number of arguments, arguments. Some have a form of their own.
func (s *scanner) legacy() error {
	const batch, text, userLog = 1, 37, 48
	for len(s.rest) > 0 {
		kind, arguments := s.rest[0]&63, s.rest[0]>>6+1
		s.rest = s.rest[1:]
		first, err := s.number()
		switch {
		case err != nil:
			return err
		case kind == batch:
			if err = s.thread(first); err == nil {
				_, err = s.number()
			}
		case kind == text:
			err = s.text()
		case arguments == 4: // the first number is their length
			if err = s.skip(first); err == nil && kind == userLog {
				err = s.text()
			}
		default:
			for ; arguments > 1 && err == nil; arguments-- {
				_, err = s.number()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) text() error {
	size, err := s.number()
	if err != nil {
		return err
	}
	return s.skip(size)
}
