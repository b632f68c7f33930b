// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "encoding/binary"

// columns are the observations of one profile, by column. An observation is a sample with a value, or one timestamp of
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
type columns struct {
	stacks, attributes, links []int32
	timestamps, values        []int64

	buffer, parts []byte
}

func (c *columns) reset() {
	c.stacks, c.attributes, c.links = c.stacks[:0], c.attributes[:0], c.links[:0]
	c.timestamps, c.values = c.timestamps[:0], c.values[:0]
}

// encode returns the encoded form, in memory of its own.
func (c *columns) encode(flags chunkFlags) []byte {
	scale := scaleOf(c.values)
	parts := c.parts[:0]
	var ends [4]int
	parts = appendIndices(parts, c.stacks)
	ends[0] = len(parts)
	if flags&hasAttributes != 0 {
		parts = appendIndices(parts, c.attributes)
	}
	ends[1] = len(parts)
	if flags&hasLinks != 0 {
		parts = appendIndices(parts, c.links)
	}
	ends[2] = len(parts)
	if flags&hasTimestamps != 0 {
		before := int64(0)
		for _, t := range c.timestamps {
			parts = binary.AppendVarint(parts, t-before)
			before = t
		}
	}
	ends[3] = len(parts)
	for _, v := range c.values {
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

// rows reads the columns of a chunk row by row.
type rows struct {
	left                                          int
	scale                                         int64
	stacks, attributes, links, timestamps, values []byte
	flags                                         chunkFlags

	stack, attribute, link int32
	timestamp, value       int64
}

func (c *chunk) rows() rows {
	r := rows{left: int(c.samples), flags: c.flags}
	data := c.data
	next := func() int {
		v, n := binary.Uvarint(data)
		data = data[n:]
		return int(v)
	}
	r.scale = int64(next())
	var sizes [4]int
	for i := range sizes {
		sizes[i] = next()
	}
	part := func(n int) []byte {
		p := data[:n]
		data = data[n:]
		return p
	}
	r.stacks, r.attributes, r.links, r.timestamps = part(sizes[0]), part(sizes[1]), part(sizes[2]), part(sizes[3])
	r.values = data
	return r
}

func (r *rows) next() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	r.stack += int32(readVarint(&r.stacks))
	if r.flags&hasAttributes != 0 {
		r.attribute += int32(readVarint(&r.attributes))
	}
	if r.flags&hasLinks != 0 {
		r.link += int32(readVarint(&r.links))
	}
	if r.flags&hasTimestamps != 0 {
		r.timestamp += readVarint(&r.timestamps)
	}
	r.value = readVarint(&r.values) * r.scale
	return true
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

// number is the type of sums: integers, or floating-point numbers if chunks have weights.
type number interface{ int64 | float64 }

// addTo adds weight times each value to the sum of its stack. It reads two columns only.
func addTo[T number](c *chunk, sums []T, weight T) {
	r := c.rows()
	stacks, values := r.stacks, r.values
	stack, i, j := 0, 0, 0
	weight *= T(r.scale)
	for range c.samples {
		d := uint64(stacks[i])
		i++
		if d >= 0x80 {
			d &= 0x7f
			for shift := 7; ; shift += 7 {
				b := stacks[i]
				i++
				d |= uint64(b&0x7f) << shift
				if b < 0x80 {
					break
				}
			}
		}
		stack += int(int64(d>>1) ^ -int64(d&1))
		v := uint64(values[j])
		j++
		if v >= 0x80 {
			v &= 0x7f
			for shift := 7; ; shift += 7 {
				b := values[j]
				j++
				v |= uint64(b&0x7f) << shift
				if b < 0x80 {
					break
				}
			}
		}
		sums[stack] += T(int64(v>>1)^-int64(v&1)) * weight
	}
}
