// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import "google.golang.org/protobuf/encoding/protowire"

// varintTag and bytesTag return a field's tag for the two wire types that pprof uses.
func varintTag(field int) byte { return byte(field << 3) }
func bytesTag(field int) byte  { return byte(field<<3 | 2) }

// appendUint appends a varint field, or nothing for 0, the value that an absent field has.
func appendUint(b []byte, field int, x uint64) []byte {
	if x == 0 {
		return b
	}
	return protowire.AppendVarint(append(b, varintTag(field)), x)
}

func appendString(b []byte, field int, s string) []byte {
	b = protowire.AppendVarint(append(b, bytesTag(field)), uint64(len(s)))
	return append(b, s...)
}

// openMessage begins a message field whose length is not known yet; closeMessage(b, start) ends it.
func openMessage(b []byte, field int) (_ []byte, start int) {
	b = append(b, bytesTag(field), 0)
	return b, len(b)
}

// closeMessage writes the length of the message that began at start. It has room for one byte: a message of 128 bytes
// or more, such as a location with many inlined lines, has to be moved.
func closeMessage(b []byte, start int) []byte {
	size := len(b) - start
	if size < 0x80 {
		b[start-1] = byte(size)
		return b
	}
	extra := protowire.SizeVarint(uint64(size)) - 1
	for range extra {
		b = append(b, 0)
	}
	copy(b[start+extra:], b[start:start+size])
	protowire.AppendVarint(b[:start-1], uint64(size))
	return b
}
