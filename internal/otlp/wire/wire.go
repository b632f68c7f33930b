// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the fields of protobuf messages for which there is no generated code. It is a loop around
// protowire; pprof/scan has a faster reader for pprof. JSON does the same for documents of JSON.
package wire

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Reader iterates over the fields of a message and stops at the first malformed byte. Groups count as malformed, since
// none of the messages have them.
type Reader struct {
	rest   []byte
	Number protowire.Number
	Wire   protowire.Type
	// Content is set for a length-delimited field, Value for a varint or a fixed-size field of 64 bits.
	Content []byte
	Value   uint64
}

// New returns a reader of a message.
func New(message []byte) Reader { return Reader{rest: message} }

// Next reads the next field, and reports whether there is one.
func (r *Reader) Next() bool {
	if len(r.rest) == 0 {
		return false
	}
	// Fast path: a tag and a length, or a number, of one byte each.
	if len(r.rest) >= 2 && r.rest[0] >= 1<<3 && r.rest[0] < 0x80 && r.rest[1] < 0x80 {
		r.Number, r.Wire, r.Content, r.Value = protowire.Number(r.rest[0]>>3), protowire.Type(r.rest[0]&7), nil, 0
		end := 2 + int(r.rest[1])
		switch {
		case r.Wire == protowire.VarintType:
			r.Value, r.rest = uint64(r.rest[1]), r.rest[2:]
			return true
		case r.Wire == protowire.BytesType && end <= len(r.rest):
			r.Content, r.rest = r.rest[2:end:end], r.rest[end:]
			return true
		}
	}
	// Slow path.
	number, wire, n := protowire.ConsumeTag(r.rest)
	if n < 0 {
		return false
	}
	rest := r.rest[n:]
	r.Number, r.Wire, r.Content, r.Value = number, wire, nil, 0
	switch wire {
	case protowire.BytesType:
		r.Content, n = protowire.ConsumeBytes(rest)
		r.Content = r.Content[:len(r.Content):len(r.Content)] // appending to it must not overwrite what follows
	case protowire.VarintType:
		r.Value, n = protowire.ConsumeVarint(rest)
	case protowire.Fixed64Type:
		r.Value, n = protowire.ConsumeFixed64(rest)
	case protowire.Fixed32Type:
		_, n = protowire.ConsumeFixed32(rest)
	default:
		n = -1
	}
	if n < 0 {
		return false
	}
	r.rest = rest[n:]
	return true
}

// Rest returns the bytes of the fields that were not read yet.
func (r *Reader) Rest() []byte { return r.rest }

// IsMalformed reports, after Next returned false, that the message was not read to its end.
func (r *Reader) IsMalformed() bool { return len(r.rest) > 0 }

// Varints returns the numbers of a packed field, until its first malformed byte.
func Varints(packed []byte) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 || !yield(v) {
				return
			}
			packed = packed[n:]
		}
	}
}

// Messages returns the messages, strings or bytes in one field of a message, until its first malformed byte.
func Messages(message []byte, number protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for r := New(message); r.Next(); {
			if r.Number == number && r.Wire == protowire.BytesType && !yield(r.Content) {
				return
			}
		}
	}
}

// Pair returns the last fields 1 and 2 of a message, such as an entry of a map. It is false if the message is
// malformed.
func Pair(message []byte) (first, second Reader, ok bool) {
	r := New(message)
	for r.Next() {
		switch r.Number {
		case 1:
			first = r
		case 2:
			second = r
		}
	}
	return first, second, !r.IsMalformed()
}
