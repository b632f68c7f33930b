// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// errOverlongTag is the error for a field number below 16 that is written in more than one byte: no encoder does.
var errOverlongTag = errors.New("a field's tag is longer than it must be")

// errMalformed is the error for bytes that are not a protobuf message, or another one.
var errMalformed = errors.New("not a message of OTLP")

// errOtherSignal is the error for a message without profiles, or for profiles without a string table.
var errOtherSignal = errors.New("these are not profiles: logs, metrics and traces go to the receiver otlp")

// skipped is a field number that current messages do not have, so readers skip it.
const skipped = 15

// The numbers of the older messages' fields 0 to 15 in current messages.
var (
	movedSample  = [16]byte{0, 1, 4, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} // 1.8 and 1.9
	movedProfile = [16]byte{0, 1, 2, 3, 4, 5, 6, skipped, 7, 8, 9, 10, 11, 13, 14, 15}
)

// leftOver is what a profile of 1.8 has but the current message has no field for.
type leftOver struct {
	comments    []byte // string indices, packed
	temporality profilekind.Temporality
}

// renumberFields changes the field numbers of profiles and samples in data to the current ones. It returns what is left
// over, by the position of the profile in the message.
func renumberFields(data []byte, from Layout) (map[int]leftOver, error) {
	all, profiles := map[int]leftOver{}, 0
	for resource := range wire.Messages(data, 1) {
		for scope := range wire.Messages(resource, 2) {
			for profile := range wire.Messages(scope, 2) {
				left, err := renumberProfile(profile, from)
				if err != nil {
					return nil, err
				}
				if left.comments != nil || left.temporality != "" {
					all[profiles] = left
				}
				profiles++
			}
		}
	}
	return all, nil
}

func renumberProfile(data []byte, from Layout) (left leftOver, err error) {
	moved := &movedProfile
	if from == V1_9 {
		moved = nil
	}
	r := wire.New(data)
	for {
		ok, err := nextRenumbered(&r, moved)
		if !ok {
			return left, err
		}
		switch {
		case r.Number == 2 && r.Wire == protowire.BytesType:
			if err := renumberSample(r.Content); err != nil {
				return left, err
			}
		case from == V1_9:
		case r.Number == 7 && r.Wire == protowire.VarintType:
			left.comments = protowire.AppendVarint(left.comments, r.Value)
		case r.Number == 7:
			left.comments = append(left.comments, r.Content...)
		case r.Number == 1:
			for f := wire.New(r.Content); f.Next(); {
				if f.Number == 3 {
					left.temporality = temporalityOf(f.Value)
				}
			}
		}
	}
}

func renumberSample(data []byte) error {
	r := wire.New(data)
	for {
		if ok, err := nextRenumbered(&r, &movedSample); !ok {
			return err
		}
	}
}

// nextRenumbered reads the next field, and changes its number in the message. r.Number is the old one.
func nextRenumbered(r *wire.Reader, moved *[16]byte) (ok bool, err error) {
	if len(r.Rest()) == 0 {
		return false, nil
	}
	tag := &r.Rest()[0]
	if !r.Next() {
		return false, errMalformed
	}
	if moved != nil && r.Number < 16 {
		if *tag&0x80 != 0 {
			return false, errOverlongTag
		}
		*tag = moved[r.Number]<<3 | *tag&7
	}
	return true, nil
}

// The values of AggregationTemporality of 1.3 to 1.8.
const (
	temporalityDelta      = 1
	temporalityCumulative = 2
)

// temporalityOf returns what a value of AggregationTemporality states.
func temporalityOf(value uint64) profilekind.Temporality {
	switch value {
	case temporalityDelta:
		return profilekind.StatedDelta
	case temporalityCumulative:
		return profilekind.StatedCumulative
	}
	return ""
}
