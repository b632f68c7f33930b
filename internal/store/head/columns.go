// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"encoding/binary"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// rowsPerCheck is the number of rows between two checks of the memory.
const rowsPerCheck = 1 << 12

// Encoder has the observations of one profile, by column. An observation is a sample with a value, or one timestamp of
// a sample. The encoded form is
//
//	the scale of the values, then the bytes of each of the first four columns, as uvarints, then
//	stacks      difference to the row before, zigzag
//	attributes  the same for the indices of sets; only with hasAttributes
//	links       the same; only with hasLinks
//	timestamps  the same, nanoseconds since the profile's time; only with hasTimestamps
//	values      divided by the scale, zigzag
//
// all of them varints. The scale is the greatest common divisor: CPU time comes in periods.
type Encoder struct {
	model.Columns
	buffer, parts []byte
}

// Reset begins with no observations.
func (c *Encoder) Reset() {
	c.Stacks, c.Attributes, c.Links = c.Stacks[:0], c.Attributes[:0], c.Links[:0]
	c.Timestamps, c.Values = c.Timestamps[:0], c.Values[:0]
}

// hash returns a hash of the observations, whatever their order, with what they refer to.
func (c *Encoder) hash(of *dictionary.Contents) (sum uint64) {
	for i, value := range c.Values {
		key := c.Key(i)
		h := dictionary.Combine(of[dictionary.StackTable][key.Stack], of[dictionary.SetTable][key.Attributes])
		sum += dictionary.Combine(dictionary.Combine(h, of[dictionary.LinkTable][key.Link]), uint64(value))
	}
	return sum
}

// Encode returns the encoded form, in memory of its own.
func (c *Encoder) Encode(flags model.Flags) []byte {
	scale := scaleOf(c.Values)
	parts := c.parts[:0]
	var ends [4]int
	parts = appendIndices(parts, c.Stacks)
	ends[0] = len(parts)
	if flags&model.HasAttributes != 0 {
		parts = appendIndices(parts, c.Attributes)
	}
	ends[1] = len(parts)
	if flags&model.HasLinks != 0 {
		parts = appendIndices(parts, c.Links)
	}
	ends[2] = len(parts)
	if flags&model.HasTimestamps != 0 {
		before := int64(0)
		for _, t := range c.Timestamps {
			parts = binary.AppendVarint(parts, t-before)
			before = t
		}
	}
	ends[3] = len(parts)
	for _, v := range c.Values {
		if scale > 1 {
			v /= scale
		}
		parts = binary.AppendVarint(parts, v)
	}
	c.parts = parts
	head := binary.AppendUvarint(c.buffer[:0], uint64(scale))
	before := 0
	for _, end := range ends {
		head = binary.AppendUvarint(head, uint64(end-before))
		before = end
	}
	c.buffer = head
	data := make([]byte, 0, len(head)+len(parts))
	return append(append(data, head...), parts...)
}

func appendIndices(b []byte, indices []int32) []byte {
	before := int32(0)
	for _, i := range indices {
		b = binary.AppendVarint(b, int64(i)-int64(before))
		before = i
	}
	return b
}

// scaleOf returns the greatest common divisor of the values, or 1 if one of them is negative.
func scaleOf(values []int64) int64 {
	scale := int64(0)
	for _, v := range values {
		if v < 0 {
			return 1
		}
		if scale != 0 && v%scale == 0 {
			continue
		}
		for a, b := v, scale; ; a, b = b, a%b {
			if b == 0 {
				scale = a
				break
			}
		}
		if scale == 1 {
			return 1
		}
	}
	return max(scale, 1)
}

// decode decodes all rows but for some columns, in pieces that are valid until use returns.
func (c *Chunk) decode(want model.ColumnsWanted, to *model.Columns, use func(*model.Columns) error) error {
	data := c.Data
	next := func() int {
		v, n := binary.Uvarint(data)
		data = data[n:]
		return int(v)
	}
	scale := int64(next())
	var parts [5][]byte
	var sizes [4]int
	for i := range sizes {
		sizes[i] = next()
	}
	for i, size := range sizes {
		parts[i], data = data[:size], data[size:]
	}
	parts[4] = data
	var before [4]int64
	want = want.Of(c.Flags)
	for left := int(c.Samples); left > 0; {
		n := min(left, rowsPerCheck)
		left -= n
		to.Stacks = decodeIndices(to.Stacks, n, true, &parts[0], &before[0])
		to.Attributes = decodeIndices(to.Attributes, n, want.Attributes, &parts[1], &before[1])
		to.Links = decodeIndices(to.Links, n, want.Links, &parts[2], &before[2])
		to.Timestamps = to.Timestamps[:0]
		if want.Timestamps {
			for range n {
				before[3] += readVarint(&parts[3])
				to.Timestamps = append(to.Timestamps, c.Time+before[3])
			}
		}
		to.Values = to.Values[:0]
		for range n {
			to.Values = append(to.Values, readVarint(&parts[4])*scale)
		}
		if err := use(to); err != nil {
			return err
		}
	}
	return nil
}

// decodeIndices decodes a column, which has no rows if it is not wanted.
func decodeIndices(to []int32, n int, isWanted bool, b *[]byte, before *int64) []int32 {
	to = to[:0]
	if !isWanted {
		return to
	}
	for range n {
		*before += readVarint(b)
		to = append(to, int32(*before))
	}
	return to
}

func readVarint(b *[]byte) int64 {
	s := *b
	if v := s[0]; v < 0x80 {
		*b = s[1:]
		return int64(v>>1) ^ -int64(v&1)
	}
	v, n := binary.Varint(s)
	*b = s[n:]
	return v
}
