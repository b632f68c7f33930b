// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
)

// goTable reads Go's pclntab in the file: a lookup reads a few hundred bytes, and nothing is kept in memory. It is in
// every Go program, stripped or not. The layout: $GOROOT/src/runtime/symtab.go, symtabinl.go, and
// golang.org/s/go12symtab.
type goTable struct {
	table   extent
	order   binary.ByteOrder
	version goVersion
	quantum uint64
	ptrSize int64

	functions     int64
	textStart     uint64
	nameTable     int64 // offsets in table
	unitTable     int64
	fileTable     int64
	pcTable       int64
	functionTable int64

	// inlineTrees is the start of funcdata offsets; empty if it was not found.
	inlineTrees extent
}

// goVersion names a layout of the pclntab: the oldest version of Go that writes it.
type goVersion int

const (
	go12 goVersion = iota
	go116
	go118
	go120
)

var goMagics = map[uint32]goVersion{0xfffffffb: go12, 0xfffffffa: go116, 0xfffffff0: go118, 0xfffffff1: go120}

// readGoTable returns nil if there is no pclntab.
func (m *Image) readGoTable() (*goTable, error) {
	at, addr, ok := m.findGoTable()
	if !ok {
		return nil, nil
	}
	t := &goTable{table: at, order: m.order}
	if err := t.readHeader(); err != nil {
		return nil, fmt.Errorf("pclntab: %w", err)
	}
	if t.version < go118 {
		return t, nil
	}
	data := m.readModuleData(t, addr)
	switch {
	case data.text != 0:
		t.textStart = data.text
	case t.textStart == 0:
		// Go 1.26 leaves the field in the header empty. Without the module data, which may have been lost, the
		// section's start is right unless C was linked in.
		if s := m.section(".text"); s != nil {
			t.textStart = s.addr
		}
	}
	t.inlineTrees = m.extentAt(data.goFunc)
	return t, nil
}

func (m *Image) findGoTable() (extent, uint64, bool) {
	if s := m.section(".gopclntab", ".data.rel.ro.gopclntab"); s != nil {
		return m.extentOf(s), s.addr, true
	}
	if m.section(".go.buildinfo", ".note.go.buildid") == nil {
		return extent{}, 0, false
	}
	// The external linker merges it into another section: search for its header there.
	for i := range m.sections {
		s := &m.sections[i]
		if s.kind != elf.SHT_PROGBITS || s.name != ".data.rel.ro" && s.name != ".rodata" {
			continue
		}
		e := m.extentOf(s)
		if table, ok := m.searchGoHeader(e); ok {
			return table, s.addr + uint64(table.off-e.off), true
		}
	}
	return extent{}, 0, false
}

// searchGoHeader returns the part of an extent that begins with the header of a pclntab.
func (m *Image) searchGoHeader(e extent) (table extent, ok bool) {
	const alignment = 8
	_ = m.eachBlock(e, 0, alignment, func(off int64, block []byte) bool {
		for ; len(block) > 0 && !ok; block, off = block[alignment:], off+alignment {
			if _, isMagic := goMagics[m.order.Uint32(block)]; !isMagic || block[4] != 0 || block[5] != 0 {
				continue
			}
			const workOfCandidate = 1 << 10
			if !m.work.spend(workOfCandidate) {
				return false
			}
			t := goTable{table: extent{r: e.r, off: e.off + off, size: e.size - off}, order: m.order}
			if t.readHeader() == nil {
				table, ok = t.table, true
			}
		}
		return !ok
	})
	return table, ok
}

// readHeader checks that all tables lie inside, so that the other functions only check their content.
func (t *goTable) readHeader() error {
	b, err := t.table.bytes(0, min(t.table.size, 8+8*8))
	if err != nil || len(b) < 24 {
		return errors.Join(ErrMalformed, err)
	}
	version, ok := goMagics[t.order.Uint32(b)]
	t.version, t.quantum, t.ptrSize = version, uint64(b[6]), int64(b[7])
	if !ok || b[4] != 0 || b[5] != 0 || t.quantum != 1 && t.quantum != 2 && t.quantum != 4 || t.ptrSize != 4 &&
		t.ptrSize != 8 {
		return fmt.Errorf("header % x: %w", b[:8], ErrMalformed)
	}
	c := cursor{data: b, off: 8, order: t.order}
	word := func() int64 {
		v := c.sized(int(t.ptrSize))
		return int64(min(v, 1<<62))
	}
	t.functions = word()
	switch version {
	case go12:
		t.functionTable = 8 + t.ptrSize
	default:
		word() // files
		if version >= go118 {
			t.textStart = uint64(word())
		}
		t.nameTable, t.unitTable, t.fileTable, t.pcTable, t.functionTable = word(), word(), word(), word(), word()
	}
	if c.bad {
		return ErrMalformed
	}
	if t.functions == 0 || t.functions > 1<<26 {
		return fmt.Errorf("%d functions: %w", t.functions, ErrMalformed)
	}
	end := t.functionTable + (2*t.functions+1)*t.fieldSize()
	for _, off := range []int64{t.nameTable, t.unitTable, t.fileTable, t.pcTable, t.functionTable, end} {
		if off > t.table.size {
			return fmt.Errorf("table at %d of %d: %w", off, t.table.size, ErrMalformed)
		}
	}
	if version == go12 {
		// A word after the functions has the offset of the table of files. Names and the rest are relative to the
		// start.
		off, err := t.number(end, 4)
		if err != nil {
			return err
		}
		t.fileTable = int64(off)
	}
	return nil
}

// fieldSize is the size of each half of an entry of the function table.
func (t *goTable) fieldSize() int64 {
	if t.version >= go118 {
		return 4
	}
	return t.ptrSize
}

func (t *goTable) number(off, size int64) (uint64, error) {
	var b [8]byte
	err := t.table.read(b[:size], off)
	return wordAt(t.order, b[:], size), err
}

// field reads number i of the function table: addresses and offsets in turn.
func (t *goTable) field(i int64) (uint64, error) {
	size := t.fieldSize()
	return t.number(t.functionTable+i*size, size)
}

func (t *goTable) entry(i int64) uint64 {
	v, _ := t.field(2 * i)
	if t.version >= go118 {
		v += t.textStart
	}
	return v
}

// goFunction is a _func with the fields after it.
type goFunction struct {
	t          *goTable
	start, end uint64
	name       int64
	files, pcs int64 // offsets of pcfile and pcln in pcTable
	unit       int64
	startLine  int64
	inlineTree int64 // offset from inlineTrees, −1 if there is none
	inlineAt   int64 // offset in pcTable of the index into the tree, by address
}

func (t *goTable) find(addr uint64) (goFunction, bool) {
	if addr < t.entry(0) || addr >= t.entry(t.functions) {
		return goFunction{}, false
	}
	i := int64(sort.Search(int(t.functions), func(i int) bool { return t.entry(int64(i)) > addr })) - 1
	if i < 0 {
		return goFunction{}, false
	}
	off, err := t.field(2*i + 1)
	if err != nil || off > uint64(t.table.size) {
		return goFunction{}, false
	}
	base := int64(off)
	if t.version >= go116 {
		base += t.functionTable
	}
	f := goFunction{t: t, start: t.entry(i), end: t.entry(i + 1), inlineTree: -1}
	return f, f.read(base) == nil
}

func (f *goFunction) read(at int64) error {
	t := f.t
	if at > t.table.size {
		return ErrMalformed
	}
	b, err := t.table.bytes(at, min(t.table.size-at, 256))
	if err != nil {
		return err
	}
	c := cursor{data: b, order: t.order}
	if t.version >= go118 {
		c.u32()
	} else {
		c.skip(uint64(t.ptrSize))
	}
	f.name = int64(c.u32())
	c.skip(8 + 4) // args, deferreturn, pcsp
	f.files, f.pcs = int64(c.u32()), int64(c.u32())
	pcData := int64(c.u32())
	if t.version >= go116 {
		f.unit = int64(c.u32())
	}
	if t.version >= go120 {
		f.startLine = int64(int32(c.u32()))
	}
	c.skip(3)
	funcData := int64(c.u8())
	if t.version >= go118 {
		const inlineTreeIndex, inlineTreeData = 2, 3 // internal/abi: PCDATA_InlTreeIndex, FUNCDATA_InlTree
		arrays := int64(c.off)
		if pcData > inlineTreeIndex && funcData > inlineTreeData && arrays+4*(pcData+inlineTreeData+1) <= int64(len(b)) {
			f.inlineAt = int64(t.order.Uint32(b[arrays+4*inlineTreeIndex:]))
			if off := t.order.Uint32(b[arrays+4*(pcData+inlineTreeData):]); off != math.MaxUint32 {
				f.inlineTree = int64(off)
			}
		}
	}
	if c.bad {
		return ErrMalformed
	}
	return nil
}

// maxPCBytes bounds how much of one table of values by address is read: the largest function of the Kubernetes API
// server has 300 kB.
const maxPCBytes = 4 << 20

// value returns the entry for addr in a table of values by address, or −1 if there is none.
func (f *goFunction) value(table int64, addr uint64, m *meter) int64 {
	t := f.t
	if table == 0 {
		return -1
	}
	at := t.pcTable + table
	pc, value := f.start, int64(-1)
	c := cursor{order: t.order}
	for read, size := int64(0), int64(512); read < maxPCBytes && at+read < t.table.size; size *= 2 {
		// This part begins with the rest of the last one, since an entry may cross the border.
		rest := int64(len(c.data) - c.off)
		n := min(size, t.table.size-at-read)
		b := make([]byte, rest+n)
		copy(b, c.data[c.off:])
		if !m.spend(n) || t.table.read(b[rest:], at+read) != nil {
			return -1
		}
		read += n
		isLast := at+read >= t.table.size
		c = cursor{data: b, order: t.order}
		const longestEntry = 20
		for isLast && !c.isAtEnd() || len(c.data)-c.off > longestEntry {
			change := c.uleb()
			if change == 0 && pc != f.start || c.bad {
				return -1
			}
			value += int64(int32(uint32(change)>>1) ^ -int32(uint32(change)&1))
			pc += c.uleb() * t.quantum
			if addr < pc {
				return value
			}
		}
	}
	return -1
}

// frames returns the frames at an address, innermost first.
func (t *goTable) frames(addr uint64, m *meter) []Frame {
	f, ok := t.find(addr)
	if !ok {
		return nil
	}
	var frames []Frame
	for at := addr; len(frames) < maxInlineDepth; {
		frame := Frame{StartLine: f.startLine, File: f.file(at, m), Line: max(0, f.value(f.pcs, at, m))}
		call, isInlined := f.inlined(at, m)
		name := f.name
		if isInlined {
			name, frame.StartLine = call.name, call.startLine
		}
		s, err := t.table.cString(t.nameTable + name)
		if err != nil || s == "" {
			break
		}
		frame.Name = s
		frame.StartLine = max(0, frame.StartLine)
		frames = append(frames, frame)
		if !isInlined || call.parent >= f.end || call.parent == at {
			break
		}
		at = call.parent
	}
	return frames
}

// file returns the path of the source at an address.
func (f *goFunction) file(addr uint64, m *meter) string {
	t := f.t
	i := f.value(f.files, addr, m)
	if i < 0 {
		return ""
	}
	at, base := t.fileTable+4*i, int64(0)
	if t.version >= go116 {
		at, base = t.unitTable+4*(f.unit+i), t.fileTable
	}
	off, err := t.number(at, 4)
	if err != nil || off == math.MaxUint32 {
		return ""
	}
	s, _ := t.table.cString(base + int64(off))
	return s
}

type inlinedCall struct {
	name, startLine int64
	parent          uint64
}

// inlined returns the call that was inlined at an address; false in the function itself.
func (f *goFunction) inlined(addr uint64, m *meter) (inlinedCall, bool) {
	if f.inlineTree < 0 || f.t.inlineTrees.size == 0 {
		return inlinedCall{}, false
	}
	i := f.value(f.inlineAt, addr, m)
	if i < 0 {
		return inlinedCall{}, false
	}
	var b [20]byte
	size := int64(16)
	if f.t.version < go120 {
		size = 20
	}
	if f.t.inlineTrees.read(b[:size], f.inlineTree+i*size) != nil {
		return inlinedCall{}, false
	}
	var call inlinedCall
	order := f.t.order
	if f.t.version < go120 { // parent int16, funcID, pad, file, line, name, parentPc int32
		call.name, call.parent = int64(order.Uint32(b[12:])), f.start+uint64(order.Uint32(b[16:]))
	} else { // funcID, 3 × pad, name, parentPc, startLine int32
		if b[1] != 0 || b[2] != 0 || b[3] != 0 {
			return inlinedCall{}, false
		}
		call.name, call.parent = int64(order.Uint32(b[4:])), f.start+uint64(order.Uint32(b[8:]))
		call.startLine = int64(int32(order.Uint32(b[12:])))
	}
	return call, call.parent >= f.start && call.parent < f.end
}
