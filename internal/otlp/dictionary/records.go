// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Mark is how many entries each table had at some time. The zero Mark is a new dictionary.
type Mark [NumTables]int

// Mark returns how many entries each table has.
func (d *Dictionary) Mark() Mark { return d.Lens() }

// AppendSince appends the entries that were added after a mark to b. Read adds them to another dictionary that has the
// entries before.
//
// The form is, for each table in this order, the number of entries as uvarint and then the entries: strings (length,
// bytes), attributes (key, unit, kind, bits, string), sets of attributes (length, attributes), functions (name, system
// name, file, start line), mappings (start, limit, offset, file, set), locations (mapping, set, address, number of
// lines, and of each line function, line, column), stacks (length, and each location as a difference to the one before)
// and links (16 and 8 bytes). Numbers are varints.
func (d *Dictionary) AppendSince(b []byte, m Mark) []byte {
	lens := d.Lens()
	added := func(t TableID) (from, to int) {
		from, to = max(m[t], 1), lens[t]
		b = binary.AppendUvarint(b, uint64(to-from))
		return from, to
	}
	u := func(values ...uint64) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
	}
	for i, end := added(StringTable); i < end; i++ {
		b = AppendString(b, d.Strings.entries[i])
	}
	for i, end := added(AttributeTable); i < end; i++ {
		a := &d.Attributes.entries[i]
		u(uint64(a.Key), uint64(a.Unit), uint64(a.Value.kind), a.Value.bits)
		b = AppendString(b, a.Value.content)
	}
	for i, end := added(SetTable); i < end; i++ {
		set := d.AttributeSets.At(AttributeSetIndex(i))
		u(uint64(len(set)))
		for _, a := range set {
			u(uint64(a))
		}
	}
	for i, end := added(FunctionTable); i < end; i++ {
		f := &d.Functions.entries[i]
		u(uint64(f.Name), uint64(f.SystemName), uint64(f.Filename), uint64(f.StartLine))
	}
	for i, end := added(MappingTable); i < end; i++ {
		e := &d.Mappings.entries[i]
		u(e.MemoryStart, e.MemoryLimit, e.FileOffset, uint64(e.Filename), uint64(e.Attributes))
	}
	for i, end := added(LocationTable); i < end; i++ {
		l, lines := d.Locations.At(LocationIndex(i))
		u(uint64(l.Mapping), uint64(l.Attributes), l.Address, uint64(len(lines)))
		for k := range lines {
			u(uint64(lines[k].Function), uint64(lines[k].Line), uint64(lines[k].Column))
		}
	}
	for i, end := added(StackTable); i < end; i++ {
		stack, before := d.Stacks.At(StackIndex(i)), int32(0)
		u(uint64(len(stack)))
		for _, l := range stack {
			b = binary.AppendVarint(b, int64(l)-int64(before))
			before = l
		}
	}
	for i, end := added(LinkTable); i < end; i++ {
		l := &d.Links.entries[i]
		b = append(append(b, l.TraceID[:]...), l.SpanID[:]...)
	}
	return b
}

// Read adds the entries that AppendSince wrote. One that refers to an entry that is not there, or that is there
// already, is an error. d interns copies of the strings if it is of NewCopying; otherwise it keeps b.
func (d *Dictionary) Read(b []byte) error { return d.read(b, false) }

// Load returns a dictionary of which AppendSince has written all entries. It is for readers: its functions, locations
// and stacks, which are most of it, are not found again by value, hence none may be interned.
func Load(b []byte) (*Dictionary, error) {
	d := New()
	entries := entryReader{left: b}
	d.Strings.Reset(entries.count())
	return d, d.read(b, true)
}

func (d *Dictionary) read(b []byte, isLoaded bool) error {
	r := entryReader{left: b, all: string(b)}
	r.table(func() (int, int) {
		return int(d.Strings.Intern(r.string())), d.Strings.Len()
	})
	r.table(func() (int, int) {
		a := Attribute{Key: StringIndex(r.index(d.Strings.Len())), Unit: StringIndex(r.index(d.Strings.Len()))}
		a.Value = Value{kind: pcommon.ValueType(r.index(int(pcommon.ValueTypeBytes) + 1)), bits: r.uvarint(),
			content: r.string()}
		if r.err == nil && !a.Value.isWellFormed() {
			r.fail(errValue)
		}
		return int(d.Attributes.Intern(a)), d.Attributes.Len()
	})
	r.table(func() (int, int) {
		list := r.list(func() int32 { return r.index(d.Attributes.Len()) })
		return int(d.AttributeSets.Lists.Intern(list)), d.AttributeSets.Len()
	})
	r.table(func() (int, int) {
		n := d.Strings.Len()
		f := Function{Name: StringIndex(r.index(n)), SystemName: StringIndex(r.index(n)), Filename: StringIndex(r.index(n)),
			StartLine: int64(r.uvarint())}
		if isLoaded {
			return int(d.Functions.append(f)), d.Functions.Len()
		}
		return int(d.Functions.Intern(f)), d.Functions.Len()
	})
	r.table(func() (int, int) {
		m := Mapping{MemoryStart: r.uvarint(), MemoryLimit: r.uvarint(), FileOffset: r.uvarint()}
		m.Filename, m.Attributes = StringIndex(r.index(d.Strings.Len())), AttributeSetIndex(r.index(d.AttributeSets.Len()))
		return int(d.Mappings.Intern(m)), d.Mappings.Len()
	})
	var lines []Line
	r.table(func() (int, int) {
		l := Location{Mapping: MappingIndex(r.index(d.Mappings.Len())),
			Attributes: AttributeSetIndex(r.index(d.AttributeSets.Len())), Address: r.uvarint()}
		lines = lines[:0]
		for range r.count() {
			lines = append(lines, Line{FunctionIndex(r.index(d.Functions.Len())), int64(r.uvarint()), int64(r.uvarint())})
		}
		if isLoaded {
			return int(d.Locations.append(l, lines)), d.Locations.Len()
		}
		return int(d.Locations.Intern(l, lines)), d.Locations.Len()
	})
	if isLoaded {
		d.Stacks.flat = slices.Grow(d.Stacks.flat, len(r.left)) // most differences have one byte
	}
	r.table(func() (int, int) {
		before := int64(0)
		r.ints = r.ints[:0]
		for range r.count() {
			before += r.varint()
			r.ints = append(r.ints, r.checked(uint64(before), d.Locations.Len()))
		}
		if isLoaded {
			return int(d.Stacks.append(r.ints)), d.Stacks.Len()
		}
		return int(d.Stacks.Intern(r.ints)), d.Stacks.Len()
	})
	r.table(func() (int, int) {
		var l Link
		r.fill(l.TraceID[:])
		r.fill(l.SpanID[:])
		return int(d.Links.Intern(l)), d.Links.Len()
	})
	if r.err == nil && len(r.left) > 0 {
		r.err = fmt.Errorf("%d bytes after the last entry", len(r.left))
	}
	return r.err
}

var errValue = errors.New("a value is damaged")

var errTruncated = errors.New("the record ends too early")

// entryReader reads what AppendSince wrote. After an error it returns zeros.
type entryReader struct {
	left []byte
	err  error
	// all has the same bytes, those that are read included: strings are parts of it.
	all  string
	ints []int32
}

func (r *entryReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.left = nil
}

func (r *entryReader) advance(n int) []byte {
	if n <= 0 || n > len(r.left) {
		r.fail(errTruncated)
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

// fill reads as many bytes as dst has.
func (r *entryReader) fill(dst []byte) { copy(dst, r.advance(len(dst))) }

// uvarint reads a number that is not negative.
func (r *entryReader) uvarint() uint64 {
	if len(r.left) > 0 && r.left[0] < 0x80 { // most numbers are small
		v := r.left[0]
		r.left = r.left[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.left)
	r.advance(n)
	return v
}

// varint reads a number.
func (r *entryReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads a number of entries, each of which has a byte at least.
func (r *entryReader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.left)) {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

// index reads an index of a table of n entries.
func (r *entryReader) index(n int) int32 { return r.checked(r.uvarint(), n) }

func (r *entryReader) checked(i uint64, n int) int32 {
	if i >= uint64(n) {
		r.fail(fmt.Errorf("index %d is out of range [0..%d)", i, n))
		return 0
	}
	return int32(i)
}

// table reads the entries of a table. read returns an entry's index, and the number of entries after it.
func (r *entryReader) table(read func() (index, entries int)) {
	for range r.count() {
		if r.err != nil {
			return
		}
		if i, n := read(); r.err == nil && i != n-1 {
			r.err = fmt.Errorf("the dictionary has entry %d twice", i)
		}
	}
}

// list reads a list, which is valid until the next one.
func (r *entryReader) list(read func() int32) []int32 {
	r.ints = r.ints[:0]
	for range r.count() {
		r.ints = append(r.ints, read())
	}
	return r.ints
}

// string reads a string, which shares its memory with all others.
func (r *entryReader) string() string {
	n := r.count()
	at := len(r.all) - len(r.left)
	if n > 0 {
		r.advance(n)
	}
	if r.err != nil {
		return ""
	}
	return r.all[at : at+n]
}
