// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var errPools = errors.New("the offset to the previous pools is invalid")

// constants are where the constants of a class are in the recording.
type constants struct {
	entries  []constant
	isSorted bool
}

type constant struct {
	key uint64
	at  uint32
}

const constantBytes = 16

// find returns where a constant is. If several have the key, such as a thread that was renamed, it is the last.
func (c *constants) find(key uint64) (at int, ok bool) {
	if !c.isSorted {
		c.isSorted = true
		slices.SortFunc(c.entries, func(a, b constant) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.at, a.at))
		})
	}
	i, ok := slices.BinarySearchFunc(c.entries, key, func(e constant, key uint64) int { return cmp.Compare(e.key, key) })
	if !ok {
		return 0, false
	}
	return int(c.entries[i].at), true
}

// readPools reads constant pools from the last to the first: each has the offset of the previous one. They must not
// overlap, so that no byte is read twice.
func (d *decoder) readPools(start, at, end int) error {
	c := &cursor{data: d.data}
	for {
		c.pos, c.end = at, end
		size := c.number()
		if size > uint64(end-at) {
			return errTruncated
		}
		c.end = at + int(size)
		delta := int64(c.numbers(4)) // type, start, duration, the distance
		c.number()                   // flags
		for n := c.count(); n > 0 && c.err == nil; n-- {
			id := c.number()
			of := d.chunk.classes[int64(id)]
			if of == nil {
				c.fail(fmt.Errorf("%w: %d", errClass, id))
			} else if err := d.readPool(c, of); err != nil {
				return fmt.Errorf("of class %.100q: %w", of.name, err)
			}
		}
		if delta == 0 || c.err != nil {
			return c.err
		}
		if delta > 0 || int64(at-start)+delta < chunkHeaderBytes {
			return errPools
		}
		at, end = at+int(delta), at
	}
}

func (d *decoder) readPool(c *cursor, of *class) error {
	if of.name == "jdk.types.ChunkHeader" { // it has no number of entries
		c.bytes(chunkHeaderBytes)
		return c.err
	}
	n := c.count()
	if of.isKept {
		if err := d.grow(constantBytes * n); err != nil {
			return err
		}
		of.constants.entries = slices.Grow(of.constants.entries, n)
	}
	for ; n > 0 && c.err == nil; n-- {
		key := c.number()
		if of.isKept {
			of.constants.entries = append(of.constants.entries, constant{key, uint32(c.pos)})
		}
		if kindOf[of.name] == kindString {
			c.text(0)
		} else {
			c.skipObject(of, 0)
		}
	}
	return c.err
}

// constant returns a cursor at a constant that a field refers to, and its class. It is false if the chunk does not have
// it.
func (d *decoder) constant(f *field, key uint64) (c cursor, of *class, ok bool) {
	if f == nil || f.of == nil || !f.isPool {
		return c, nil, false
	}
	at, ok := f.of.constants.find(key)
	return cursor{data: d.data, pos: at, end: len(d.data)}, f.of, ok
}

// visit reads the fields of an object: read reads a field, or returns false to pass over it.
func (c *cursor) visit(of *class, read func(f *field) bool) {
	for i := range of.fields {
		if f := &of.fields[i]; !read(f) {
			c.skipField(f, 0)
		}
	}
}

// member returns a field of a constant that refers to another constant, and the key of that one. The field is nil if
// the constant has no such field.
func (d *decoder) member(f *field, key uint64, name string) (member *field, value uint64) {
	if c, of, ok := d.constant(f, key); ok {
		c.visit(of, func(f *field) bool {
			if f.name != name || f.kind != kindNumber || !f.isPool || f.isArray {
				return false
			}
			member, value = f, c.number()
			return true
		})
	}
	return member, value
}

// string reads a string, which may be in the constant pool. It is cut at about limit bytes.
func (d *decoder) string(c *cursor, f *field, limit int) string {
	text, key := c.text(limit)
	if key == 0 || f.of == nil {
		return string(text)
	}
	at, ok := f.of.constants.find(key)
	if !ok {
		return ""
	}
	if last := &d.chunk.lastText; last.at != at || last.limit != limit { // others can refer to a long one, too
		constant := cursor{data: d.data, pos: at, end: len(d.data), isOneText: true}
		text, _ = constant.text(limit)
		*last = decodedText{at, limit, string(text)}
	}
	return d.chunk.lastText.text
}

// symbol returns the string in the first field of a constant, such as that of a Symbol or a ThreadState; "" if the
// chunk does not have it.
func (d *decoder) symbol(f *field, key uint64, limit int) (text string) {
	c, of, ok := d.constant(f, key)
	if !ok {
		return ""
	}
	if kindOf[of.name] == kindString {
		return d.string(&c, &field{of: of}, limit)
	}
	c.visit(of, func(f *field) bool {
		if text != "" || f.kind != kindString || f.isArray {
			return false
		}
		text = d.string(&c, f, limit)
		return true
	})
	return text
}
