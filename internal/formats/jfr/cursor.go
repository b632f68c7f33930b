// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

var (
	errTruncated = errors.New("ends too early")
	errCount     = errors.New("a count is larger than what follows")
	errClass     = errors.New("an unknown class")
)

// cursor reads a part of a recording. After the first fault it reads only zeros, so that a single read needs no check;
// loops over counts end when err is set. A count is checked against the bytes that are left before anything is
// allocated for it.
type cursor struct {
	data []byte
	pos  int
	end  int   // of what is being read
	err  error // the first fault
	// isOneText means that nothing but a string is read: text ends at its limit, wherever the string does.
	isOneText bool
}

// fail keeps the first fault, and ends what is being read.
func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.end = c.pos
}

// number reads a number of variable length: seven bits a byte, and all eight of the ninth.
func (c *cursor) number() (v uint64) {
	for shift := 0; c.pos < c.end; shift += 7 {
		b := c.data[c.pos]
		c.pos++
		if shift == 56 {
			return v | uint64(b)<<shift
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	c.fail(errTruncated)
	return 0
}

func (c *cursor) numbers(n int) (last uint64) {
	for range n {
		last = c.number()
	}
	return last
}

// bytes reads n bytes. There are none after a fault.
func (c *cursor) bytes(n int) []byte {
	if n > c.end-c.pos {
		c.fail(errTruncated)
		return nil
	}
	c.pos += n
	return c.data[c.pos-n : c.pos]
}

// count reads a number of things, each of which has at least one byte.
func (c *cursor) count() int {
	n := c.number()
	if n > uint64(c.end-c.pos) {
		c.fail(errCount)
		return 0
	}
	return int(n)
}

// The encodings of a string: null, empty, a number in the pool of strings, UTF-8, characters as numbers, or Latin-1.
const (
	textNull = iota
	textEmpty
	textConstant
	textUTF8
	textCharacters
	textLatin1
)

// text reads a string of any encoding, and returns the first bytes of it: at most limit, and what is left of the last
// character. For a string in the pool it returns its number there instead.
func (c *cursor) text(limit int) (text []byte, constant uint64) {
	form := textNull
	if b := c.bytes(1); len(b) > 0 {
		form = int(b[0])
	}
	switch form {
	case textNull, textEmpty:
	case textConstant:
		constant = c.number()
	case textUTF8:
		text = c.bytes(c.count())
		text = text[:min(len(text), limit)]
	case textLatin1:
		bytes := c.bytes(c.count())
		for _, b := range bytes[:min(len(bytes), limit)] {
			text = utf8.AppendRune(text, rune(b))
		}
	case textCharacters:
		for n := c.count(); n > 0 && (len(text) < limit || !c.isOneText); n-- {
			if r := c.number(); len(text) < limit {
				text = utf8.AppendRune(text, rune(uint32(r)))
			}
		}
	default:
		c.fail(fmt.Errorf("the encoding %d of a string is unknown", form))
	}
	return text, constant
}

// maxDepth is how deeply objects are nested in a field. Those of the JDK's events are not.
const maxDepth = 8

// skipField passes over the value of a field.
func (c *cursor) skipField(f *field, depth int) {
	n := 1
	if f.isArray {
		n = c.count()
	}
	for ; n > 0 && c.err == nil; n-- {
		switch f.kind {
		case kindNumber:
			c.number()
		case kindByte, kindFloat, kindDouble:
			c.bytes(f.kind.bytes())
		case kindString:
			c.text(0)
		default:
			c.skipObject(f.of, depth+1)
		}
	}
}

func (c *cursor) skipObject(of *class, depth int) {
	if of == nil || len(of.fields) == 0 || depth > maxDepth {
		c.fail(errClass)
		return
	}
	for i := range of.fields {
		c.skipField(&of.fields[i], depth)
	}
}

// real reads a floating point number.
func (c *cursor) real(k kind) float64 {
	b := c.bytes(k.bytes())
	switch len(b) {
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}
