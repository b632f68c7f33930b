// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"path"
	"strings"
)

// lineTable has the files of a unit's line number program.
type lineTable struct {
	*unitWalk
	encoding
	data               []byte
	directories, files lineEntries
	paths              map[uint64]string
}

// lineEntries are directories or files: their offsets in the data, from number first on. The format has content types
// in place of attributes.
type lineEntries struct {
	format  []abbrevSpec
	first   uint64
	offsets []int32
}

type lineRow struct {
	addr uint64
	sourcePosition
	isKnown bool
}

const (
	maxLineFiles = 1 << 18

	lineContentPath      = 1
	lineContentDirectory = 2
)

// readLines runs the unit's line number program for the addresses of the walk; nil if the unit has none.
func (w *unitWalk) readLines() (*lineTable, error) {
	d := w.table
	off := w.unit.lineOff
	if off < 0 || off >= d.line.size {
		return nil, nil
	}
	head, err := d.line.bytes(off, min(12, d.line.size-off))
	if err != nil {
		return nil, err
	}
	t := &lineTable{unitWalk: w, encoding: encoding{offsetSize: 4, addrSize: w.unit.addrSize}, paths: map[uint64]string{}}
	c := d.image.cursor(head)
	size := uint64(c.u32())
	if size == 0xffffffff {
		size, t.offsetSize = c.u64(), 8
	}
	if c.bad || size > uint64(d.line.size-off-int64(c.off)) || int64(size) > d.image.limits.TableBytes-d.image.kept {
		return nil, fmt.Errorf("line table at %d: %w", off, ErrMalformed)
	}
	if !d.image.work.spend(int64(size)) {
		return nil, ErrTooMuchWork
	}
	if t.data, err = d.line.bytes(off+int64(c.off), int64(size)); err != nil {
		return nil, err
	}
	p := lineProgram{lineTable: t, cursor: d.image.cursor(t.data)}
	if err := p.readHeader(); err != nil {
		return nil, fmt.Errorf("line table at %d: %w", off, err)
	}
	p.run()
	return t, nil
}

// lineProgram is the state machine of DWARF 5, section 6.2.
type lineProgram struct {
	*lineTable
	cursor

	minLength             uint64
	lineBase              int64
	lineRange, opcodeBase uint8
	opcodeLengths         [256]uint8
	row, last             lineRow
	isStarted             bool
}

func (p *lineProgram) readHeader() error {
	p.version = p.u16()
	if p.version < 2 || p.version > 5 {
		return fmt.Errorf("version %d: %w", p.version, ErrMalformed)
	}
	if p.version >= 5 {
		p.skip(2) // the sizes of an address and of a segment selector
	}
	length := p.sized(int(p.offsetSize))
	if p.bad || length > uint64(len(p.cursor.data)-p.off) {
		return ErrMalformed
	}
	program := p.off + int(length)
	p.minLength = uint64(p.u8())
	if p.version >= 4 {
		p.u8() // operations per instruction: of VLIW machines
	}
	p.u8() // default_is_stmt
	p.lineBase, p.lineRange, p.opcodeBase = int64(int8(p.u8())), p.u8(), p.u8()
	if p.lineRange == 0 || p.opcodeBase == 0 {
		return ErrMalformed
	}
	for i := 1; i < int(p.opcodeBase); i++ {
		p.opcodeLengths[i] = p.u8()
	}
	var err error
	if p.version < 5 {
		p.directories, p.files = p.readOldEntries(oldDirectoryFormat), p.readOldEntries(oldFileFormat)
	} else if p.directories, err = p.readEntries(); err == nil {
		p.files, err = p.readEntries()
	}
	if err == nil && p.bad {
		err = ErrMalformed
	}
	p.off = program
	return err
}

// Up to version 4, the formats are fixed: a file's time and length follow its directory.
var (
	oldDirectoryFormat = []abbrevSpec{{attr: lineContentPath, form: formString}}
	oldFileFormat      = append(oldDirectoryFormat[:1:1], abbrevSpec{attr: lineContentDirectory, form: formUdata},
		abbrevSpec{form: formUdata}, abbrevSpec{form: formUdata})
)

// readOldEntries records directories or files of versions 2 to 4, which end with an empty path. Number 0 is the unit's
// own directory.
func (p *lineProgram) readOldEntries(format []abbrevSpec) lineEntries {
	e := lineEntries{format: format, first: 1}
	for !p.bad && len(e.offsets) < maxLineFiles {
		at := int32(p.off)
		if len(p.cString()) == 0 {
			break
		}
		for _, f := range format[1:] {
			readForm(&p.cursor, f, p.encoding, false)
		}
		e.offsets = append(e.offsets, at)
	}
	return e
}

// readEntries does the same for version 5, where each entry has at least a byte.
func (p *lineProgram) readEntries() (e lineEntries, err error) {
	for range p.u8() {
		e.format = append(e.format, p.spec())
	}
	n := p.uleb()
	if p.bad || n > uint64(len(p.cursor.data)-p.off) || n > maxLineFiles {
		return e, fmt.Errorf("%d files: %w", n, ErrMalformed)
	}
	e.offsets = make([]int32, n)
	for i := range e.offsets {
		e.offsets[i] = int32(p.off)
		for _, f := range e.format {
			readForm(&p.cursor, f, p.encoding, false)
		}
		if p.bad || p.off == int(e.offsets[i]) || !p.table.image.work.spend(int64(len(e.format))) {
			return e, fmt.Errorf("file %d of %d: %w", i, n, ErrMalformed)
		}
	}
	return e, nil
}

// Opcodes of DWARF 5, section 7.22.
const (
	lineExtended       = 0
	lineCopy           = 1
	lineAdvancePC      = 2
	lineAdvanceLine    = 3
	lineSetFile        = 4
	lineSetColumn      = 5
	lineConstAddPC     = 8
	lineFixedAdvancePC = 9
	lineExtEndSequence = 1
	lineExtSetAddress  = 2
)

var firstRow = lineRow{sourcePosition: sourcePosition{file: 1, line: 1}}

func (p *lineProgram) run() {
	p.row = firstRow
	for !p.isAtEnd() {
		switch op := p.u8(); {
		case op >= p.opcodeBase:
			n := op - p.opcodeBase
			p.row.addr += uint64(n/p.lineRange) * p.minLength
			p.row.line += uint64(p.lineBase + int64(n%p.lineRange))
			p.emit()
		case op == lineExtended:
			p.extended()
		case op == lineCopy:
			p.emit()
		case op == lineAdvancePC:
			p.row.addr += p.uleb() * p.minLength
		case op == lineAdvanceLine:
			p.row.line += uint64(p.sleb())
		case op == lineSetFile:
			p.row.file = p.uleb()
		case op == lineSetColumn:
			p.row.column = p.uleb()
		case op == lineConstAddPC:
			p.row.addr += uint64((255-p.opcodeBase)/p.lineRange) * p.minLength
		case op == lineFixedAdvancePC:
			p.row.addr += uint64(p.u16())
		default:
			for range p.opcodeLengths[op] {
				p.uleb()
			}
		}
	}
}

func (p *lineProgram) extended() {
	n := p.uleb()
	if n == 0 || p.bad || n > uint64(len(p.cursor.data)-p.off) {
		p.bad = p.bad || n > 0
		return
	}
	end := p.off + int(n)
	switch p.u8() {
	case lineExtEndSequence:
		p.emit()
		p.row, p.isStarted = firstRow, false
	case lineExtSetAddress:
		p.row.addr = p.sized(int(n) - 1)
	}
	p.off = end
}

// emit ends the address range of the last row, and begins that of the current one.
func (p *lineProgram) emit() {
	if p.isStarted && p.row.addr > p.last.addr && p.last.addr != 0 {
		targets := p.covered(p.last.addr, p.row.addr)
		if !p.table.image.work.spend(int64(len(targets))) {
			p.bad = true
			return
		}
		for i := range targets {
			if row := &targets[i].row; !row.isKnown {
				*row = p.last
				row.isKnown = true
			}
		}
	}
	// Field by field: copying the struct stalls on store forwarding.
	p.last.addr, p.last.file, p.last.line, p.last.column = p.row.addr, p.row.file, p.row.line, p.row.column
	p.isStarted = true
}

// path returns the path of a file by its number in the line table.
func (t *lineTable) path(file uint64) string {
	if name, ok := t.paths[file]; ok {
		return name
	}
	name := t.readPath(file)
	t.paths[file] = name
	return name
}

func (t *lineTable) readPath(file uint64) string {
	name, directory := t.entry(&t.files, file)
	parent, _ := t.entry(&t.directories, directory)
	return joinPaths(t.table.string(t.unit, t.unit.directory), parent, name)
}

// entry reads an entry by its number.
func (t *lineTable) entry(in *lineEntries, number uint64) (name string, directory uint64) {
	i := number - in.first
	if i >= uint64(len(in.offsets)) {
		return "", 0
	}
	c := t.table.image.cursor(t.data)
	c.off = int(in.offsets[i])
	for _, f := range in.format {
		a := readForm(&c, f, t.encoding, true)
		switch f.attr {
		case lineContentPath:
			name = t.table.string(t.unit, a)
		case lineContentDirectory:
			directory = a.value
		}
	}
	return name, directory
}

// joinPaths joins the directory of the compilation, that of the file, and the file's name.
func joinPaths(compiled, parent, name string) string {
	if name == "" {
		return ""
	}
	for _, directory := range []string{parent, compiled} {
		if directory != "" && !isAbsolute(name) {
			name = strings.TrimSuffix(directory, "/") + "/" + name
		}
	}
	if len(name) > maxNameBytes {
		return name[:maxNameBytes]
	}
	return path.Clean(name)
}

func isAbsolute(name string) bool {
	return strings.HasPrefix(name, "/") || len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
}
