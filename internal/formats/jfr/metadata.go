// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"strconv"
)

var errMetadata = errors.New("not the metadata of Flight Recorder")

// class is a class of events or of constants, as the metadata of a chunk describes it. Two classes can have one name:
// two class loaders of an application may both have loaded it.
type class struct {
	name   string
	fields []field
	// read makes samples of an event; nil if events of the class are not read.
	read eventReader
	// hasStack reports that events of the class may have a stack.
	hasStack bool
	// constants are the entries of the class in the constant pools.
	constants constants
	isKept    bool
}

type field struct {
	name    string
	class   int64
	of      *class // nil if the class is unknown
	kind    kind   // 0 if the value is an object
	slot    slot   // where an event keeps it
	isPool  bool   // a reference into a constant pool
	isArray bool
}

// kind is how a value without fields is read.
type kind uint8

const (
	kindNumber kind = iota + 1
	kindByte
	kindFloat
	kindDouble
	kindString
)

// bytes returns the size of a value that has a fixed one.
func (k kind) bytes() int {
	return [...]int{kindByte: 1, kindFloat: 4, kindDouble: 8, kindString: 0}[k]
}

const stringClass, stackTraceClass = "java.lang.String", "jdk.types.StackTrace"

var kindOf = map[string]kind{
	"int": kindNumber, "long": kindNumber, "short": kindNumber, "char": kindNumber, "byte": kindByte, "boolean": kindByte,
	"float": kindFloat, "double": kindDouble, stringClass: kindString,
}

// keptConstants are the classes whose constants are looked up.
var keptConstants = map[string]bool{
	stringClass: true, stackTraceClass: true, "jdk.types.Method": true, "java.lang.Class": true, "jdk.types.Symbol": true,
	"java.lang.Thread": true, "jdk.types.ThreadState": true, "jdk.types.GCName": true, "jdk.types.GCCause": true,
}

const (
	// maxNameBytes bounds the strings of the metadata that are kept.
	maxNameBytes = 256
	// classBytes and fieldBytes are the memory of a class and of a field.
	classBytes, fieldBytes = 320, 96
)

// metadata reads the classes of a chunk.
type metadata struct {
	*cursor
	// strings are the offsets of the strings that elements refer to.
	strings []uint32
	classes map[int64]*class
	grow    func(bytes int) error
}

// element is an element of the metadata tree, with the attributes that matter.
type element struct {
	name, id, class, title string
	isPool, isArray        bool
	children               int
}

func (m *metadata) read() error {
	m.numbers(5) // size, type, start, duration, id
	n := m.count()
	if err := m.grow(4 * n); err != nil {
		return err
	}
	m.strings = make([]uint32, n)
	for i := range m.strings {
		m.strings[i] = uint32(m.pos)
		m.text(0)
	}
	m.classes = map[int64]*class{}
	root := m.element()
	for ; root.children > 0 && m.err == nil; root.children-- {
		part := m.element()
		for ; part.children > 0 && m.err == nil && part.name == "metadata"; part.children-- {
			if err := m.class(); err != nil {
				return err
			}
		}
	}
	for _, of := range m.classes {
		for i := range of.fields {
			m.resolve(of, &of.fields[i])
		}
	}
	return m.err
}

// class reads a class with its fields.
func (m *metadata) class() error {
	e := m.element()
	id, err := strconv.ParseInt(e.id, 10, 64)
	if err != nil {
		m.fail(errMetadata)
		return nil
	}
	of := &class{name: e.title, read: eventReaders[e.title], isKept: keptConstants[e.title]}
	for ; e.children > 0 && m.err == nil; e.children-- {
		child := m.element()
		if child.name == "field" {
			f := field{name: child.title, slot: slotOf[child.title], isPool: child.isPool, isArray: child.isArray}
			if f.class, err = strconv.ParseInt(child.class, 10, 64); err != nil {
				m.fail(errMetadata)
			}
			of.fields = append(of.fields, f)
		}
		m.skipElements(child.children, 0)
	}
	m.classes[id] = of
	return m.grow(classBytes + fieldBytes*len(of.fields))
}

// skipElements passes over annotations and what is in them.
func (m *metadata) skipElements(n, depth int) {
	if depth > maxDepth {
		m.fail(errMetadata)
	}
	for ; n > 0 && m.err == nil; n-- {
		m.skipElements(m.element().children, depth+1)
	}
}

func (m *metadata) resolve(of *class, f *field) {
	if f.of = m.classes[f.class]; f.of == nil {
		return
	}
	if f.isPool {
		f.kind = kindNumber
	} else if f.kind = kindOf[f.of.name]; f.kind == 0 && len(f.of.fields) == 0 {
		f.of = nil
	}
	of.hasStack = of.hasStack || f.slot == slotStackTrace && f.isPool && !f.isArray && f.of.name == stackTraceClass
}

func (m *metadata) string() string {
	i := m.number()
	if i >= uint64(len(m.strings)) {
		m.fail(errMetadata)
		return ""
	}
	at := cursor{data: m.data, pos: int(m.strings[i]), end: len(m.data)}
	text, _ := at.text(maxNameBytes)
	return string(text)
}

func (m *metadata) element() (e element) {
	e.name = m.string()
	for n := m.count(); n > 0 && m.err == nil; n-- {
		switch key, value := m.string(), m.string(); key {
		case "id":
			e.id = value
		case "name":
			e.title = value
		case "class":
			e.class = value
		case "constantPool":
			e.isPool = value == "true"
		case "dimension":
			e.isArray = value != "" && value != "0"
		}
	}
	e.children = m.count()
	return e
}
