// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

// lineTable is the result of a unit's line number program for some addresses.
type lineTable struct {
	table   *dwarfTable
	unit    *dwarfUnit
	version uint16

	data        []byte
	offsetSize  uint8
	directories []int32 // offsets in data
	files       []int32
	// directoryFormat and fileFormat are of version 5: a content type in place of an attribute, and its form.
	directoryFormat, fileFormat []abbrevSpec
	paths                       map[uint64]string

	// rows[i] is the row of address i.
	rows []lineRow
}

type lineRow struct {
	addr, file, line, column uint64
	isKnown                  bool
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
	t := &lineTable{table: d, unit: w.unit, offsetSize: 4, paths: map[uint64]string{}, rows: make([]lineRow, len(w.addrs))}
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
	p := lineProgram{table: t, addrs: w.addrs, cursor: d.image.cursor(t.data)}
	if err := p.readHeader(); err != nil {
		return nil, fmt.Errorf("line table at %d: %w", off, err)
	}
	p.run()
	return t, nil
}

// lineProgram is the state machine of DWARF 5, section 6.2.
type lineProgram struct {
	table *lineTable
	addrs []uint64
	cursor

	addrSize              int
	minLength             uint64
	lineBase              int64
	lineRange, opcodeBase uint8
	opcodeLengths         [256]uint8
	row, last             lineRow
	isStarted             bool
}

func (p *lineProgram) readHeader() error {
	t := p.table
	t.version = p.u16()
	if t.version < 2 || t.version > 5 {
		return fmt.Errorf("version %d: %w", t.version, ErrMalformed)
	}
	p.addrSize = int(t.unit.addrSize)
	if t.version >= 5 {
		p.addrSize = int(p.u8())
		p.u8() // segment selector size
	}
	length := p.sized(int(t.offsetSize))
	if p.bad || length > uint64(len(p.data)-p.off) {
		return ErrMalformed
	}
	program := p.off + int(length)
	p.minLength = uint64(p.u8())
	if t.version >= 4 {
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
	if t.version < 5 {
		p.readOldFiles()
	} else if err := p.readFiles(); err != nil {
		return err
	}
	if p.bad {
		return ErrMalformed
	}
	p.off = program
	return nil
}

// readOldFiles records the offsets of the directories and files of versions 2 to 4.
func (p *lineProgram) readOldFiles() {
	t := p.table
	for !p.bad && len(t.directories) < maxLineFiles {
		at := p.off
		if len(p.cString()) == 0 {
			break
		}
		t.directories = append(t.directories, int32(at))
	}
	for !p.bad && len(t.files) < maxLineFiles {
		at := p.off
		if len(p.cString()) == 0 {
			break
		}
		p.uleb()
		p.uleb()
		p.uleb()
		t.files = append(t.files, int32(at))
	}
}

// readFiles does the same for version 5, where each entry has at least a byte.
func (p *lineProgram) readFiles() error {
	t := p.table
	var err error
	t.directoryFormat, t.directories, err = p.readEntries()
	if err == nil {
		t.fileFormat, t.files, err = p.readEntries()
	}
	return err
}

func (p *lineProgram) readEntries() (format []abbrevSpec, entries []int32, err error) {
	for range p.u8() {
		format = append(format, abbrevSpec{attr: clip16(p.uleb()), form: clip16(p.uleb())})
	}
	n := p.uleb()
	if p.bad || n > uint64(len(p.data)-p.off) || n > maxLineFiles {
		return nil, nil, fmt.Errorf("%d files: %w", n, ErrMalformed)
	}
	entries = make([]int32, n)
	u := p.table.lineUnit()
	for i := range entries {
		entries[i] = int32(p.off)
		for _, f := range format {
			readForm(&p.cursor, f, u, false)
		}
		if p.bad || p.off == int(entries[i]) || !p.table.table.image.work.spend(int64(len(format))) {
			return nil, nil, fmt.Errorf("file %d of %d: %w", i, n, ErrMalformed)
		}
	}
	return format, entries, nil
}

// lineUnit returns the unit with the offset size of the line table.
func (t *lineTable) lineUnit() *dwarfUnit {
	if t.offsetSize == t.unit.offsetSize {
		return t.unit
	}
	u := *t.unit
	u.offsetSize = t.offsetSize
	return &u
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

func (p *lineProgram) run() {
	p.row = lineRow{file: 1, line: 1}
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
	if n == 0 || p.bad || n > uint64(len(p.data)-p.off) {
		p.bad = p.bad || n > 0
		return
	}
	end := p.off + int(n)
	switch p.u8() {
	case lineExtEndSequence:
		p.emit()
		p.row, p.isStarted = lineRow{file: 1, line: 1}, false
	case lineExtSetAddress:
		p.row.addr = p.sized(int(n) - 1)
	}
	p.off = end
}

// emit ends the address range of the last row, and begins that of the current one.
func (p *lineProgram) emit() {
	if p.isStarted && p.row.addr > p.last.addr && p.last.addr != 0 {
		first := sort.Search(len(p.addrs), func(i int) bool { return p.addrs[i] >= p.last.addr })
		for i := first; i < len(p.addrs) && p.addrs[i] < p.row.addr; i++ {
			if !p.table.table.image.work.spend(1) {
				p.bad = true
				return
			}
			if row := &p.table.rows[i]; !row.isKnown {
				*row = p.last
				row.isKnown = true
			}
		}
	}
	// By fields: a copy of the whole row waits for the field that was written last, which takes longer than everything else here.
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
	compiled := t.table.string(t.unit, t.unit.directory)
	if t.version >= 5 {
		name, directory := t.readFile(t.files, t.fileFormat, file)
		parent, _ := t.readFile(t.directories, t.directoryFormat, directory)
		return joinPaths(compiled, parent, name)
	}
	if file == 0 || file > uint64(len(t.files)) {
		return ""
	}
	c := t.table.image.cursor(t.data)
	c.off = int(t.files[file-1])
	name := string(clipped(c.cString()))
	parent := ""
	if i := c.uleb(); i > 0 && i <= uint64(len(t.directories)) {
		c.off = int(t.directories[i-1])
		parent = string(clipped(c.cString()))
	}
	return joinPaths(compiled, parent, name)
}

func clipped(b []byte) []byte { return b[:min(len(b), maxNameBytes)] }

// readFile reads an entry of a table of version 5.
func (t *lineTable) readFile(entries []int32, format []abbrevSpec, i uint64) (name string, directory uint64) {
	if i >= uint64(len(entries)) {
		return "", 0
	}
	c := t.table.image.cursor(t.data)
	c.off = int(entries[i])
	u := t.lineUnit()
	for _, f := range format {
		a := readForm(&c, f, u, true)
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
		if isAbsolute(name) || directory == "" {
			break
		}
		name = strings.TrimSuffix(directory, "/") + "/" + name
	}
	if len(name) > maxNameBytes {
		return name[:maxNameBytes]
	}
	return path.Clean(name)
}

func isAbsolute(name string) bool {
	return strings.HasPrefix(name, "/") || len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
}
