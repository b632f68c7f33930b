// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"math"
)

// cursor reads numbers from bytes. After a read past the end, bad is set and all reads return 0.
type cursor struct {
	data  []byte
	off   int
	order binary.ByteOrder
	bad   bool
}

func (c *cursor) next(n int) []byte {
	if c.bad || n < 0 || n > len(c.data)-c.off {
		c.bad = true
		return nil
	}
	b := c.data[c.off : c.off+n]
	c.off += n
	return b
}

func (c *cursor) skip(n uint64) { c.next(int(min(n, math.MaxInt))) }

func (c *cursor) isAtEnd() bool { return c.bad || c.off >= len(c.data) }

func (c *cursor) u8() uint8 {
	if c.bad || c.off >= len(c.data) {
		c.bad = true
		return 0
	}
	b := c.data[c.off]
	c.off++
	return b
}

func (c *cursor) u16() uint16 {
	if b := c.next(2); b != nil {
		return c.order.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.next(4); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.next(8); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// sized reads an unsigned number of n bytes.
func (c *cursor) sized(n int) uint64 {
	switch n {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 3:
		first, last := uint64(c.u16()), uint64(c.u8())
		if c.order == binary.ByteOrder(binary.BigEndian) {
			return first<<8 | last
		}
		return first | last<<16
	case 4:
		return uint64(c.u32())
	case 8:
		return c.u64()
	}
	c.bad = true
	return 0
}

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); ; {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 {
			if shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// wordAt returns the number at the beginning of b, of 4 or 8 bytes.
func wordAt(order binary.ByteOrder, b []byte, size int64) uint64 {
	if size == 4 {
		return uint64(order.Uint32(b))
	}
	return order.Uint64(b)
}

// cString reads bytes up to a NUL, which is skipped. They are borrowed.
func (c *cursor) cString() []byte {
	if c.bad {
		return nil
	}
	n := bytes.IndexByte(c.data[c.off:], 0)
	if n < 0 {
		c.bad = true
		return nil
	}
	b := c.data[c.off : c.off+n]
	c.off += n + 1
	return b
}
