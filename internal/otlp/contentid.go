// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// ContentID makes a profile id from the content of a profile, so that a profile that is sent again has the same id.
type ContentID [2]uint64

// AddNumber makes n part of the content.
func (id *ContentID) AddNumber(n uint64) { id.add(n, n) }

// add folds each half with constants of its own (from the digits of π).
func (id *ContentID) add(first, second uint64) {
	id[0] = fold(id[0], first, 0x243f6a8885a308d3, 0x13198a2e03707345)
	id[1] = fold(id[1], second, 0xa4093822299f31d1, 0x082efa98ec4e6c89)
}

func fold(id, n, offset, multiplier uint64) uint64 {
	hi, lo := bits.Mul64(bits.RotateLeft64(id, 29)+offset^n, multiplier)
	return hi ^ lo
}

// AddString makes s part of the content.
func (id *ContentID) AddString(s string) {
	id.AddNumber(uint64(len(s)))
	hash := xxh3.HashString128(s)
	id.add(hash.Hi, hash.Lo)
}

// AddBytes makes b part of the content.
func (id *ContentID) AddBytes(b []byte) {
	id.AddNumber(uint64(len(b)))
	hash := xxh3.Hash128(b)
	id.add(hash.Hi, hash.Lo)
}

// ProfileID returns the id of the content so far.
func (id *ContentID) ProfileID() (out pprofile.ProfileID) {
	binary.BigEndian.PutUint64(out[:8], id[0])
	binary.BigEndian.PutUint64(out[8:], id[1])
	return out
}
