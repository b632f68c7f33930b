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

// The parser trusts the counts that stand in a recording: it allocates a table of as many entries as a few bytes claim,
// follows constant pools wherever they point, and reads an event past its end. check walks a recording as the parser
// will, and refuses one where that would cost more than its bytes:
//
//	checkHeader     a chunk lies within the recording, its metadata and constant pools within the chunk
//	checkMetadata   the classes and their fields, which say how everything else is read
//	checkPools      the constant pools
//	checkEvents     events have their sizes; those that the parser reads end where they say
//
// A count must fit into the bytes that are left. What is walked of the pools is charged to a budget: those that overlap would
// cost more than their bytes. Metadata and events are walked once, since chunks do not overlap.

const (
	chunkHeaderBytes = 68
	chunkMagic       = "FLR\x00"
	// maxAttributeBytes bounds texts of the metadata that the parser hashes or reads as numbers, as often as something
	// refers to them.
	maxAttributeBytes = 1024
	// workPerByte is how often a byte of the recording may be walked as one of a pool. Once is usual.
	workPerByte = 4
)

var (
	errTruncated = errors.New("it ends too early")
	errCount     = errors.New("a count is larger than what follows")
	errCostly    = errors.New("its parts overlap")
	errMetadata  = errors.New("its metadata are not those of Flight Recorder")
	errPools     = errors.New("the pools before are elsewhere")
	errClass     = errors.New("an unknown class")
)

// boundEvents are the events that the parser reads. It passes over the others by their size.
var boundEvents = []string{
	"jdk.ExecutionSample", "profiler.WallClockSample", "profiler.Malloc", "profiler.Free", "jdk.ObjectAllocationInNewTLAB",
	"jdk.ObjectAllocationOutsideTLAB", "jdk.ObjectAllocationSample", "profiler.LiveObject", "jdk.JavaMonitorEnter", "jdk.ThreadPark",
	"jdk.ActiveSetting",
}

// checker walks a recording.
type checker struct {
	data []byte
	pos  int
	end  int // of what is being read
	work int // that is left

	classes map[int64]*class
	frame   *class // jdk.types.StackFrame
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
	c.end = start + size
	c.pos = start + metadata
	if err := c.checkMetadata(); err != nil {
		return 0, fmt.Errorf("metadata: %w", err)
	}
	if err := c.checkPools(start, start+pools); err != nil {
		return 0, fmt.Errorf("constant pools: %w", err)
	}
	c.pos, c.end = start+chunkHeaderBytes, start+size
	if err := c.checkEvents(start + size); err != nil {
		return 0, fmt.Errorf("events: %w", err)
	}
	return size, nil
}

func checkHeader(chunk []byte) (size, metadata, pools int, err error) {
	if len(chunk) < chunkHeaderBytes {
		return 0, 0, 0, errTruncated
	}
	if string(chunk[:4]) != chunkMagic {
		return 0, 0, 0, errors.New("it does not begin with FLR")
	}
	read := func(at int) uint64 { return binary.BigEndian.Uint64(chunk[at:]) }
	whole, rest := read(8), uint64(len(chunk))
	if whole > rest || whole < chunkHeaderBytes {
		return 0, 0, 0, errTruncated
	}
	if read(16) < chunkHeaderBytes || read(16) >= whole || read(24) < chunkHeaderBytes || read(24) >= whole {
		return 0, 0, 0, errors.New("its metadata or constant pools are elsewhere; is the recording still running?")
	}
	return int(whole), int(read(24)), int(read(16)), nil
}

// number reads a number of variable length: seven bits a byte, and all eight of the ninth.
func (c *checker) number() (v uint64, err error) {
	for shift := 0; c.pos < c.end; shift += 7 {
		b := c.data[c.pos]
		c.pos++
		if shift == 56 {
			return v | uint64(b)<<shift, nil
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errTruncated
}

func (c *checker) byte() (byte, error) {
	if c.pos >= c.end {
		return 0, errTruncated
	}
	c.pos++
	return c.data[c.pos-1], nil
}

// charge takes work from the budget.
func (c *checker) charge(n int) error {
	if c.work -= n; c.work < 0 {
		return errCostly
	}
	return nil
}

// count reads a number of things that take a byte each at least.
func (c *checker) count() (int, error) {
	n, err := c.number()
	switch {
	case err != nil:
		return 0, err
	case n > uint64(c.end-c.pos):
		return 0, errCount
	}
	return int(n), nil
}

// numbers reads several numbers and returns the last one.
func (c *checker) numbers(n int) (last uint64, err error) {
	for range n {
		if last, err = c.number(); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// string reads a text: none, empty, UTF-8, characters as numbers, or Latin-1.
func (c *checker) string() ([]byte, error) {
	form, err := c.byte()
	if err != nil || form < 2 {
		return nil, err
	}
	n, err := c.count()
	if err != nil {
		return nil, err
	}
	switch form {
	case 3, 5:
		c.pos += n
		return c.data[c.pos-n : c.pos], nil
	case 4:
		characters := make([]rune, n)
		for i := range characters {
			v, err := c.number()
			if err != nil {
				return nil, err
			}
			characters[i] = rune(uint32(v))
		}
		return []byte(string(characters)), nil
	}
	return nil, fmt.Errorf("a text of the unknown form %d", form)
}

// element is one of the tree of metadata: its attributes are those that check needs.
type element struct {
	name, id, class, title []byte
	field                  field
	children               int
}

func (c *checker) checkMetadata() error {
	if _, err := c.numbers(5); err != nil { // size, type, start, duration, id
		return err
	}
	n, err := c.count()
	if err != nil {
		return err
	}
	texts := make([][]byte, n)
	for i := range texts {
		if texts[i], err = c.string(); err != nil {
			return err
		}
	}
	root, err := c.element(texts)
	if err != nil {
		return err
	}
	c.classes, c.frame = map[int64]*class{}, nil
	names := map[string]bool{}
	for range root.children {
		part, err := c.element(texts)
		if err != nil {
			return err
		}
		if string(part.name) != "metadata" {
			continue
		}
		for range part.children {
			if err := c.checkClass(texts, names); err != nil {
				return err
			}
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
	return nil
}

// checkClass reads a class with its fields. Two of one name or number are refused: which one the parser means depends on
// where it looks.
func (c *checker) checkClass(texts [][]byte, names map[string]bool) error {
	e, err := c.element(texts)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(string(e.id), 10, 64)
	name := string(e.title)
	if err != nil || id < 0 || c.classes[id] != nil || names[name] {
		return errMetadata
	}
	read := &class{name: name, isBound: slices.Contains(boundEvents, name)}
	for range e.children {
		child, err := c.element(texts)
		if err != nil {
			return err
		}
		if string(child.name) == "field" {
			if child.field.class, err = strconv.ParseInt(string(child.class), 10, 64); err != nil {
				return errMetadata
			}
			read.fields = append(read.fields, child.field)
		}
		for range child.children { // annotations, whose own children the parser takes for the next field
			if _, err := c.element(texts); err != nil {
				return err
			}
		}
	}
	names[name] = true
	c.classes[id] = read
	if name == "jdk.types.StackFrame" {
		if c.frame = read; len(read.fields) == 0 {
			return errMetadata
		}
	}
	return nil
}

func (c *checker) element(texts [][]byte) (e element, err error) {
	text := func() []byte {
		var i uint64
		if err == nil {
			if i, err = c.number(); err == nil && i >= uint64(len(texts)) {
				err = errMetadata
			}
		}
		if err != nil {
			return nil
		}
		return texts[i]
	}
	e.name = text()
	var attributes int
	if err == nil {
		attributes, err = c.count()
	}
	for range attributes {
		key, value := text(), text()
		if err != nil {
			return e, err
		}
		var to *[]byte
		switch string(key) {
		case "id":
			to = &e.id
		case "name":
			to = &e.title
		case "class":
			to = &e.class
		case "constantPool":
			e.field.isPool = string(value) == "true"
			continue
		case "dimension":
			e.field.isArray = string(value) != ""
			continue
		default:
			if len(key) > maxAttributeBytes {
				return e, errMetadata
			}
			continue
		}
		if *to = value; len(value) > maxAttributeBytes {
			return e, errMetadata
		}
	}
	if err == nil {
		e.children, err = c.count()
	}
	return e, err
}

// checkPools reads constant pools from the last to the first: each says how far before it the next one is.
func (c *checker) checkPools(start, at int) error {
	for {
		c.pos = at
		if err := c.charge(8); err != nil {
			return err
		}
		delta, err := c.numbers(5) // size, type, start, duration, the distance
		if err != nil {
			return err
		}
		if _, err = c.number(); err != nil { // flags
			return err
		}
		n, err := c.count()
		if err != nil {
			return err
		}
		for range n {
			id, err := c.number()
			if err != nil {
				return err
			}
			of := c.classes[int64(id)]
			if of == nil {
				return fmt.Errorf("%w: %d", errClass, id)
			}
			if err := c.checkPool(of); err != nil {
				return fmt.Errorf("of class %.100q: %w", of.name, err)
			}
		}
		if delta == 0 {
			return nil
		}
		if at += int(int64(delta)); int64(delta) > 0 || at < start+chunkHeaderBytes {
			return errPools
		}
	}
}

func (c *checker) checkPool(of *class) error {
	if err := c.charge(2 + len(of.fields)); err != nil { // the parser looks at the fields of one without entries too
		return err
	}
	if of.name == "jdk.types.ChunkHeader" {
		c.pos += chunkHeaderBytes
		return nil
	}
	n, err := c.count()
	if err != nil {
		return err
	}
	for range n {
		start := c.pos
		if _, err := c.number(); err != nil { // its key
			return err
		}
		if of.name == "java.lang.String" {
			_, err = c.string()
		} else {
			err = c.object(of.fields, of.name == "jdk.types.StackTrace")
		}
		if err != nil {
			return err
		}
		if err := c.charge(c.pos - start); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkEvents(end int) error {
	for c.pos < end {
		start := c.pos
		c.end = end
		size, err := c.number()
		if err != nil {
			return err
		}
		if size == 0 || size > uint64(end-start) {
			return fmt.Errorf("byte %d: a size of %d", start, size)
		}
		id, err := c.number()
		if err != nil {
			return err
		}
		if of := c.classes[int64(id)]; of != nil && of.isBound {
			c.end = start + int(size)
			if err := c.object(of.fields, false); err != nil {
				return fmt.Errorf("byte %d: %.100s: %w", start, of.name, err)
			}
		}
		c.pos = start + int(size)
	}
	return nil
}

// object reads the fields of an object.
func (c *checker) object(fields []field, hasFrames bool) error {
	for i := range fields {
		f := &fields[i]
		n, err := 1, error(nil)
		if f.isArray {
			n, err = c.count()
		}
		for i := 0; i < n && err == nil; i++ {
			err = c.value(f, hasFrames)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) value(f *field, hasFrames bool) error {
	switch {
	case f.kind != 0:
		return c.scalar(f)
	case f.of == nil, len(f.of.fields) == 0:
		return fmt.Errorf("%w: %d", errClass, f.class)
	case hasFrames && f.of == c.frame:
		return c.object(f.of.fields, false)
	}
	// An object within an object. For an array the parser reads the length once more for each element, and it knows nothing
	// that is nested more deeply.
	n, err := 1, error(nil)
	if f.isArray {
		n, err = c.count()
	}
	for range n {
		for k := range f.of.fields {
			if err := c.scalar(&f.of.fields[k]); err != nil {
				return err
			}
		}
	}
	return err
}

// scalar reads a value without fields.
func (c *checker) scalar(f *field) (err error) {
	switch f.kind {
	case kindNumber:
		_, err = c.number()
	case kindByte:
		_, err = c.byte()
	case kindString:
		_, err = c.string()
	default:
		err = fmt.Errorf("%w: %d, in an object within an object", errClass, f.class)
	}
	return err
}
