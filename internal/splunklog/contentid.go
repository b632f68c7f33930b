// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// contentID grows into a profile id from all that a profile was made of, so that a request which is sent again
// carries the same ids.
type contentID [2]uint64

// number makes n part of the content.
func (id *contentID) number(n uint64) {
	for i := range id {
		var words [16]byte
		binary.LittleEndian.PutUint64(words[:], id[i]+uint64(i))
		binary.LittleEndian.PutUint64(words[8:], n)
		id[i] = xxhash.Sum64(words[:])
	}
}

// text makes s part of the content.
func (id *contentID) text(s string) {
	id.number(uint64(len(s)))
	id.number(xxhash.Sum64String(s))
}

func (id *contentID) profileID() (out pprofile.ProfileID) {
	binary.BigEndian.PutUint64(out[:8], id[0])
	binary.BigEndian.PutUint64(out[8:], id[1])
	return out
}
