// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Frame is a function at an address, or a call in it that the compiler inlined.
type Frame struct {
	// Name is the name in the source; SystemName is the linker's name, if it differs.
	Name, SystemName string
	File             string
	// StartLine is the line at which the function begins. Lines and columns are 0 if they are not known.
	StartLine, Line, Column int64
}

// Quality is the kind of table that the frames of an address are from, the best one last.
type Quality int

const (
	// QualityNone is no frame.
	QualityNone Quality = iota
	// QualityExported is the name of an exported function (.dynsym).
	QualityExported
	// QualityFunction is the name of a function.
	QualityFunction
	// QualityLines has inlined calls and lines.
	QualityLines
)

// Resolved is the result for one address.
type Resolved struct {
	Frames  []Frame // innermost first
	Quality Quality
}

// workOfByte is how much work a byte of a result counts as, since results stay in memory.
const workOfByte = 64

// workOf returns the work that a frame counts as.
func workOf(f *Frame) int64 {
	const rest = 16 // of a frame, besides its strings
	return workOfByte * int64(rest+len(f.Name)+len(f.SystemName)+len(f.File))
}

// tables are read when they are first needed.
type tables struct {
	goTable *goTable
	dwarf   *dwarfTable
	symtab  *symbolTable
	mini    *symbolTable
	dynamic *symbolTable

	errs []error // of all but DWARF

	hasDWARF bool // it was read
	dwarfErr error
}

// HasSymbols reports whether the file has a table with more than exported functions.
func (m *Image) HasSymbols() bool {
	return m.sectionOf(elf.SHT_SYMTAB) != nil ||
		m.section(".gopclntab", ".data.rel.ro.gopclntab", ".gnu_debugdata", ".debug_info") != nil
}

// KeptBytes returns the memory of the image without its headers.
func (m *Image) KeptBytes() int64 { return m.kept }

// Resolve finds the frames of virtual addresses. The result has one element for each. An error means that a table could
// not be used; the result has what the others contain.
func (m *Image) Resolve(addrs []uint64, lines bool) (resolved []Resolved, err error) {
	resolved = make([]Resolved, len(addrs))
	defer recovered(&err)
	m.work.left = m.limits.Work
	m.readTables()
	errs := slices.Clone(m.tables.errs)
	for i, addr := range addrs {
		resolved[i] = m.resolveOne(addr)
	}
	if lines {
		errs = append(errs, m.resolveDWARF(addrs, resolved))
	}
	if m.work.left < 0 {
		errs = append(errs, ErrTooMuchWork)
	}
	if err = errors.Join(errs...); err == nil &&
		!slices.ContainsFunc(resolved, func(r Resolved) bool { return r.Quality != QualityNone }) {
		err = m.cut // the functions may be in what is missing
	}
	return resolved, err
}

// recovered makes an error of a panic: a malformed table must not end the collector, even if no check covers it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v: %w", p, ErrMalformed)
	}
}

func (m *Image) readTables() {
	if m.tables != nil {
		return
	}
	t := &tables{errs: make([]error, 4)}
	m.tables = t
	t.goTable, t.errs[0] = m.readGoTable()
	t.symtab, t.errs[1] = m.readSymbolTable(elf.SHT_SYMTAB)
	t.dynamic, t.errs[2] = m.readSymbolTable(elf.SHT_DYNSYM)
	mini, err := m.readMiniDebugInfo()
	if mini != nil && err == nil {
		mini.work = m.work
		t.mini, err = mini.readSymbolTable(elf.SHT_SYMTAB)
		m.work = mini.work
		m.kept += mini.kept
	}
	t.errs[3] = err
}

func (m *Image) resolveOne(addr uint64) Resolved {
	t := m.tables
	if t.goTable != nil && m.work.left > 0 {
		if frames := t.goTable.frames(addr, &m.work); len(frames) > 0 {
			for i := range frames {
				m.work.spend(workOf(&frames[i]))
			}
			return Resolved{Frames: frames, Quality: QualityLines}
		}
	}
	for _, table := range []*symbolTable{t.symtab, t.mini, t.dynamic} {
		if table == nil || m.work.left <= 0 {
			continue
		}
		name, ok := table.lookup(addr, &m.work)
		if !ok {
			continue
		}
		m.work.spend(workOfByte * int64(len(name)))
		name = withoutVersion(name)
		quality := QualityFunction
		if table == t.dynamic {
			quality = QualityExported
		}
		return Resolved{Frames: []Frame{{Name: name}}, Quality: quality}
	}
	return Resolved{}
}

// withoutVersion cuts off the version that a linker may append to the name of a symbol.
func withoutVersion(name string) string {
	if i := strings.IndexByte(name, '@'); i > 0 {
		return name[:i]
	}
	return name
}

// resolveDWARF looks up the addresses without lines in DWARF. It comes last, since it can be too much work.
func (m *Image) resolveDWARF(addrs []uint64, resolved []Resolved) error {
	t := m.tables
	isEnough := !slices.ContainsFunc(resolved, func(r Resolved) bool { return r.Quality < QualityLines })
	if !isEnough && !t.hasDWARF {
		t.hasDWARF = true
		t.dwarf, t.dwarfErr = m.readDWARF()
	}
	if isEnough || t.dwarf == nil {
		return t.dwarfErr
	}
	return errors.Join(t.dwarfErr, t.dwarf.resolve(addrs, resolved))
}

// improve replaces the frames by those that DWARF has for the same address, unless one of these has no name.
func (r *Resolved) improve(frames []Frame) {
	outermost := &frames[len(frames)-1]
	// If the compiler left the mangled name out of DWARF, the symbol table has it.
	if outermost.SystemName == "" && len(r.Frames) == 1 && r.Quality == QualityFunction &&
		(isMangled(r.Frames[0].Name) || outermost.Name == "") {
		outermost.SystemName = r.Frames[0].Name
	}
	for i := range frames {
		f := &frames[i]
		f.Name, f.SystemName = cmp.Or(f.SystemName, f.Name), ""
		if f.Name == "" {
			return
		}
	}
	*r = Resolved{Frames: frames, Quality: QualityLines}
}
