// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// errOverlongTag is the error for a field number below 16 that is written in more than one byte: no encoder does.
var errOverlongTag = errors.New("a field's tag is longer than it must be")

// errMalformed is the error for bytes that are not a protobuf message.
var errMalformed = errors.New("not a protobuf message")

// skipped is a field number that current messages do not have, so readers skip it.
const skipped = 15

// The numbers of the older messages' fields 0 to 15 in current messages.
var (
	movedSample  = [16]byte{0, 1, 4, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} // 1.8 and 1.9
	movedProfile = [16]byte{0, 1, 2, 3, 4, 5, 6, skipped, 7, 8, 9, 10, 11, 13, 14, 15}
)

// leftOver is what a profile of 1.8 has but the current message has no field for.
type leftOver struct {
	comments   []byte // string indices, packed
	cumulative bool
}

// renumberFields changes the field numbers of profiles and samples in data to the current ones. It returns what is left over, by
// the position of the profile in the message.
func renumberFields(data []byte, from Layout) (map[int]leftOver, error) {
	m := tagMover{from: from, left: map[int]leftOver{}}
	err := m.each(data, nil, func(r *wire.Reader) error {
		if r.Number != 1 || r.Wire != protowire.BytesType {
			return nil
		}
		return m.each(r.Content, nil, m.scopes)
	})
	return m.left, err
}

type tagMover struct {
	from    Layout
	profile int
	left    map[int]leftOver
}

// each calls visit for each field of a message, after it has moved the field's number.
func (m *tagMover) each(data []byte, moved *[16]byte, visit func(*wire.Reader) error) error {
	r := wire.New(data)
	for len(r.Rest()) > 0 {
		tag := &r.Rest()[0]
		if !r.Next() {
			return errMalformed
		}
		if moved != nil && r.Number < 16 {
			if *tag&0x80 != 0 {
				return errOverlongTag
			}
			*tag = moved[r.Number]<<3 | *tag&7
		}
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

func (m *tagMover) scopes(r *wire.Reader) error {
	if r.Number != 2 || r.Wire != protowire.BytesType {
		return nil
	}
	return m.each(r.Content, nil, func(r *wire.Reader) error {
		if r.Number != 2 || r.Wire != protowire.BytesType {
			return nil
		}
		moved := &movedProfile
		if m.from == V1_9 {
			moved = nil
		}
		err := m.each(r.Content, moved, m.profileField)
		m.profile++
		return err
	})
}

func (m *tagMover) profileField(r *wire.Reader) error {
	switch {
	case r.Number == 2 && r.Wire == protowire.BytesType:
		return m.each(r.Content, &movedSample, func(*wire.Reader) error { return nil })
	case m.from == V1_8 && r.Number == 7:
		left := m.left[m.profile]
		if r.Wire == protowire.VarintType {
			left.comments = protowire.AppendVarint(left.comments, r.Value)
		}
		left.comments = append(left.comments, r.Content...)
		m.left[m.profile] = left
	case m.from == V1_8 && r.Number == 1 && r.Wire == protowire.BytesType:
		for f := wire.New(r.Content); f.Next(); {
			if f.Number == 3 && f.Value == temporalityCumulative {
				left := m.left[m.profile]
				left.cumulative = true
				m.left[m.profile] = left
			}
		}
	}
	return nil
}

// temporalityCumulative is AGGREGATION_TEMPORALITY_CUMULATIVE of 1.3 to 1.8.
const temporalityCumulative = 2
