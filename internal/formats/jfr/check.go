// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// The parser trusts the counts in a recording: it allocates a table of as many entries as a few bytes claim, follows constant pools
// to any offset, and reads past the end of an event. check walks a recording as the parser will, and refuses it if that would cost
// more than its bytes:
//
//	checkHeader     a chunk is within the recording, its metadata and constant pools are within the chunk
//	checkMetadata   the classes and their fields, which define how everything else is read
//	checkPools      the constant pools
//	checkEvents     the sizes of events; those that the parser reads end where they state
//
// A count must fit into the bytes that are left. Walking the pools is charged to a budget: pools that overlap would cost more than
// their bytes. Metadata and events are walked only once, since chunks do not overlap.

const (
	chunkHeaderBytes = 68
	chunkMagic       = "FLR\x00"
	// maxAttributeBytes bounds strings of the metadata that the parser hashes or reads as numbers, each time that something refers to
	// them.
	maxAttributeBytes = 1024
	// workPerByte is how often a byte of the recording may be walked as one of a pool. Once is usual.
	workPerByte = 4
)

var (
	errTruncated = errors.New("ends too early")
	errCount     = errors.New("a count is larger than what follows")
	errCostly    = errors.New("its parts overlap")
	errMetadata  = errors.New("not the metadata of Flight Recorder")
	errPools     = errors.New("the offset to the previous pools is invalid")
	errClass     = errors.New("an unknown class")
)

// boundEvents are the events that the parser reads. It passes over the others by their size.
var boundEvents = []string{
	"jdk.ExecutionSample", "profiler.WallClockSample", "profiler.Malloc", "profiler.Free", "jdk.ObjectAllocationInNewTLAB",
	"jdk.ObjectAllocationOutsideTLAB", "jdk.ObjectAllocationSample", "profiler.LiveObject", "jdk.JavaMonitorEnter", "jdk.ThreadPark",
	"jdk.ActiveSetting",
}

// checker walks a recording. After the first fault it reads only zeros, so that a single read needs no check; loops over counts
// end when err is set.
type checker struct {
	data []byte
	pos  int
	end  int   // of what is being read
	work int   // that is left
	err  error // the first fault

	classes map[int64]*class
	frame   *class // jdk.types.StackFrame
}

// fail keeps the first fault, and ends what is being read.
func (c *checker) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.end = c.pos
}

type class struct {
	name    string
	fields  []field
	isBound bool
}

type field struct {
	class   int64
	of      *class // nil if the class is unknown
	kind    kind   // 0 if the value has fields
	isPool  bool   // a reference into a constant pool
	isArray bool
}

// kind is how a value without fields is read.
type kind uint8

const (
	kindNumber kind = iota + 1
	kindByte
	kindString
)

// kindOf are the classes without fields that the parser knows. It reads a float as a number of variable length, which is
// wrong: check must read it in the same way.
var kindOf = map[string]kind{
	"int": kindNumber, "long": kindNumber, "short": kindNumber, "float": kindNumber, "boolean": kindByte, "java.lang.String": kindString,
}

// check returns an error if the parser must not read data.
func check(data []byte) error {
	c := &checker{data: data, work: workPerByte*len(data) + 1<<10}
	for start := 0; start < len(data); {
		size, err := c.checkChunk(start)
		if err != nil {
			return fmt.Errorf("chunk at byte %d: %w", start, err)
		}
		start += size
	}
	return nil
}

func (c *checker) checkChunk(start int) (size int, err error) {
	size, metadata, pools, err := checkHeader(c.data[start:])
	if err != nil {
		return 0, err
	}
	c.pos, c.end = start+metadata, start+size
	if c.checkMetadata(); c.err != nil {
		return 0, fmt.Errorf("metadata: %w", c.err)
	}
	if c.checkPools(start, start+pools); c.err != nil {
		return 0, fmt.Errorf("constant pools: %w", c.err)
	}
	c.pos = start + chunkHeaderBytes
	if c.checkEvents(start + size); c.err != nil {
		return 0, fmt.Errorf("events: %w", c.err)
	}
	return size, nil
}

func checkHeader(chunk []byte) (size, metadata, pools int, err error) {
	if len(chunk) < chunkHeaderBytes {
		return 0, 0, 0, errTruncated
	}
	if string(chunk[:4]) != chunkMagic {
		return 0, 0, 0, errors.New("does not begin with FLR")
	}
	read := func(at int) uint64 { return binary.BigEndian.Uint64(chunk[at:]) }
	whole, rest := read(8), uint64(len(chunk))
	if whole > rest || whole < chunkHeaderBytes {
		return 0, 0, 0, errTruncated
	}
	if read(16) < chunkHeaderBytes || read(16) >= whole || read(24) < chunkHeaderBytes || read(24) >= whole {
		return 0, 0, 0, errors.New("the metadata or constant pools are not within the chunk; is the recording still running?")
	}
	return int(whole), int(read(24)), int(read(16)), nil
}

// number reads a number of variable length: seven bits a byte, and all eight of the ninth.
func (c *checker) number() (v uint64) {
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

func (c *checker) byte() byte {
	if c.pos >= c.end {
		c.fail(errTruncated)
		return 0
	}
	c.pos++
	return c.data[c.pos-1]
}

func (c *checker) charge(n int) {
	if c.work -= n; c.work < 0 {
		c.fail(errCostly)
	}
}

// count reads a number of things, each of which has at least one byte.
func (c *checker) count() int {
	n := c.number()
	if n > uint64(c.end-c.pos) {
		c.fail(errCount)
		return 0
	}
	return int(n)
}

func (c *checker) numbers(n int) (last uint64) {
	for range n {
		last = c.number()
	}
	return last
}

// string reads a string of any encoding: null, empty, UTF-8, characters as numbers, or Latin-1.
func (c *checker) string() []byte {
	form := c.byte()
	if form < 2 {
		return nil
	}
	n := c.count()
	switch form {
	case 3, 5:
		c.pos += n
		return c.data[c.pos-n : c.pos]
	case 4:
		characters := make([]rune, n)
		for i := range characters {
			characters[i] = rune(uint32(c.number()))
		}
		return []byte(string(characters))
	}
	c.fail(fmt.Errorf("the encoding %d of a string is unknown", form))
	return nil
}

// element is an element of the metadata tree, with the attributes that check needs.
type element struct {
	name, id, class, title []byte
	field                  field
	children               int
}

func (c *checker) checkMetadata() {
	c.numbers(5) // size, type, start, duration, id
	strs := make([][]byte, c.count())
	for i := range strs {
		strs[i] = c.string()
	}
	root := c.element(strs)
	c.classes, c.frame = map[int64]*class{}, nil
	names := map[string]bool{}
	for range root.children {
		part := c.element(strs)
		if string(part.name) != "metadata" {
			continue
		}
		for range part.children {
			c.checkClass(strs, names)
		}
	}
	for _, of := range c.classes {
		for i := range of.fields {
			f := &of.fields[i]
			if f.of = c.classes[f.class]; f.isPool {
				f.kind = kindNumber
			} else if f.of != nil {
				f.kind = kindOf[f.of.name]
			}
		}
	}
}

// checkClass reads a class with its fields. It refuses two classes with one name or number: which one the parser means
// depends on where it looks.
func (c *checker) checkClass(strs [][]byte, names map[string]bool) {
	e := c.element(strs)
	id, err := strconv.ParseInt(string(e.id), 10, 64)
	name := string(e.title)
	if err != nil || id < 0 || c.classes[id] != nil || names[name] {
		c.fail(errMetadata)
		return
	}
	read := &class{name: name, isBound: slices.Contains(boundEvents, name)}
	for range e.children {
		child := c.element(strs)
		if string(child.name) == "field" {
			if child.field.class, err = strconv.ParseInt(string(child.class), 10, 64); err != nil {
				c.fail(errMetadata)
			}
			read.fields = append(read.fields, child.field)
		}
		for range child.children { // annotations, whose own children the parser mistakes for the next field
			c.element(strs)
		}
	}
	names[name] = true
	c.classes[id] = read
	if name == "jdk.types.StackFrame" {
		if c.frame = read; len(read.fields) == 0 {
			c.fail(errMetadata)
		}
	}
}

func (c *checker) element(strs [][]byte) (e element) {
	readString := func() []byte {
		i := c.number()
		if i >= uint64(len(strs)) {
			c.fail(errMetadata)
			return nil
		}
		return strs[i]
	}
	e.name = readString()
	for range c.count() {
		key, value := readString(), readString()
		used := value // by the parser, again and again
		switch string(key) {
		case "id":
			e.id = value
		case "name":
			e.title = value
		case "class":
			e.class = value
		case "constantPool":
			e.field.isPool, used = string(value) == "true", nil
		case "dimension":
			e.field.isArray, used = len(value) > 0, nil
		default:
			used = key
		}
		if len(used) > maxAttributeBytes {
			c.fail(errMetadata)
		}
	}
	e.children = c.count()
	return e
}

// checkPools reads constant pools from the last to the first: each has the offset of the previous one.
func (c *checker) checkPools(start, at int) {
	for {
		c.pos = at
		c.charge(8)
		delta := int64(c.numbers(5)) // size, type, start, duration, the distance
		c.number()                   // flags
		for range c.count() {
			id := c.number()
			of := c.classes[int64(id)]
			if of == nil || c.err != nil {
				c.fail(fmt.Errorf("%w: %d", errClass, id))
				return
			}
			if c.checkPool(of); c.err != nil {
				c.err = fmt.Errorf("of class %.100q: %w", of.name, c.err)
				return
			}
		}
		if delta == 0 || c.err != nil {
			return
		}
		if at += int(delta); delta > 0 || at < start+chunkHeaderBytes {
			c.fail(errPools)
			return
		}
	}
}

func (c *checker) checkPool(of *class) {
	c.charge(2 + len(of.fields)) // the parser looks at the fields even if there are no entries
	if of.name == "jdk.types.ChunkHeader" {
		c.pos += chunkHeaderBytes
		return
	}
	n := c.count()
	for i := 0; i < n && c.err == nil; i++ {
		start := c.pos
		c.number() // its key
		if of.name == "java.lang.String" {
			c.string()
		} else {
			c.object(of.fields, of.name == "jdk.types.StackTrace")
		}
		c.charge(c.pos - start)
	}
}

func (c *checker) checkEvents(end int) {
	for c.pos < end {
		start := c.pos
		c.end = end
		size := c.number()
		if size == 0 || size > uint64(end-start) {
			c.fail(fmt.Errorf("byte %d: a size of %d", start, size))
			return
		}
		id := c.number()
		if c.err != nil {
			return
		}
		if of := c.classes[int64(id)]; of != nil && of.isBound {
			c.end = start + int(size)
			if c.object(of.fields, false); c.err != nil {
				c.err = fmt.Errorf("byte %d: %.100s: %w", start, of.name, c.err)
				return
			}
		}
		c.pos = start + int(size)
	}
}

func (c *checker) object(fields []field, hasFrames bool) {
	for i := range fields {
		f := &fields[i]
		n := 1
		if f.isArray {
			n = c.count()
		}
		for i := 0; i < n && c.err == nil; i++ {
			c.value(f, hasFrames)
		}
	}
}

func (c *checker) value(f *field, hasFrames bool) {
	switch {
	case f.kind != 0:
		c.scalar(f)
		return
	case f.of == nil, len(f.of.fields) == 0:
		c.fail(fmt.Errorf("%w: %d", errClass, f.class))
		return
	case hasFrames && f.of == c.frame:
		c.object(f.of.fields, false)
		return
	}
	// An object within an object. For an array the parser reads the length once more for each element, and it knows nothing
	// that is nested more deeply.
	n := 1
	if f.isArray {
		n = c.count()
	}
	for i := 0; i < n && c.err == nil; i++ {
		for k := range f.of.fields {
			c.scalar(&f.of.fields[k])
		}
	}
}

// scalar reads a value without fields.
func (c *checker) scalar(f *field) {
	switch f.kind {
	case kindNumber:
		c.number()
	case kindByte:
		c.byte()
	case kindString:
		c.string()
	default:
		c.fail(fmt.Errorf("%w: %d, in an object within an object", errClass, f.class))
	}
}
