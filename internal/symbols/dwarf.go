// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"unsafe"
)

// dwarfTable finds functions, inlined calls and lines in DWARF 2 to 5. It keeps the address ranges of the units in
// memory; a lookup reads the units that it needs, once for all of its addresses.
type dwarfTable struct {
	image  *Image
	abbrev []byte

	info, str, lineStr, line              extent
	ranges, rangeLists, addrs, strOffsets extent

	units      []dwarfUnit
	unitRanges []unitRange
	parsed     abbrevTable // of abbrevOf
	// abbrevOf is the offset of the table in parsed, −1 at first. parsedBytes is the most memory that parsed has had.
	abbrevOf, parsedBytes int64

	// windows is nil between calls.
	windows *[maxWindows]window
}

// dwarfUnit is a unit of .debug_info, by offsets in it.
type dwarfUnit struct {
	encoding
	off, entries, end int64
	abbrevOff         int64

	low                                 uint64
	strOffsetsBase, addrBase, rangeBase uint64
	lineOff                             int64 // −1 if it has none
	directory                           attribute
	isSplit                             bool // its entries are in another file
}

// encoding has the parameters of a value's size.
type encoding struct {
	version              uint16
	offsetSize, addrSize uint8
}

// unitRange is a range of addresses, [low, high), of a unit.
type unitRange struct {
	low, high uint64
	unit      int32
}

// readDWARF returns nil if there are no debug sections.
func (m *Image) readDWARF() (*dwarfTable, error) {
	info, abbrev := m.section(".debug_info"), m.section(".debug_abbrev")
	if info == nil || abbrev == nil {
		return nil, nil
	}
	d := &dwarfTable{image: m, abbrevOf: -1}
	for name, to := range map[string]*extent{
		".debug_info": &d.info, ".debug_str": &d.str, ".debug_line_str": &d.lineStr, ".debug_line": &d.line,
		".debug_ranges": &d.ranges, ".debug_rnglists": &d.rangeLists, ".debug_addr": &d.addrs,
		".debug_str_offsets": &d.strOffsets,
	} {
		var err error
		if *to, err = m.content(m.section(name)); err != nil {
			return nil, err
		}
	}
	e, err := m.content(abbrev)
	if err != nil {
		return nil, err
	}
	if err := m.reserve(e.size); err != nil {
		return nil, err
	}
	if d.abbrev, err = e.bytes(0, e.size); err != nil {
		return nil, err
	}
	err = d.readUnits()
	slices.SortFunc(d.unitRanges, func(a, b unitRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.unit, b.unit))
	})
	return d, err
}

const unitTypeCompile = 1

// readUnits reads the header and the first entry of each unit. It skips those that it cannot read, and returns the
// first of their errors.
func (d *dwarfTable) readUnits() (first error) {
	for off := int64(0); off < d.info.size; {
		unit, kind, err := d.readUnitHeader(off)
		if err == nil {
			if err = d.image.reserve(int64(unsafe.Sizeof(unit))); err == nil && kind == unitTypeCompile {
				err = d.readRoot(&unit)
			}
			d.units = append(d.units, unit)
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("unit at %d: %w", off, err))
			const workOfError = 1 << 10
			isLimit := errors.Is(err, ErrTooMuchWork) || errors.Is(err, ErrTooLarge)
			if isLimit || unit.end <= off || !d.image.work.spend(workOfError) {
				break
			}
		}
		off = unit.end
	}
	return first
}

// readUnitHeader sets the unit's end even if it returns an error for the rest, so that the next unit can be read.
func (d *dwarfTable) readUnitHeader(off int64) (u dwarfUnit, kind uint8, err error) {
	b, err := d.info.bytes(off, min(d.info.size-off, 40))
	if err != nil {
		return u, 0, err
	}
	if !d.image.work.spend(int64(len(b))) {
		return u, 0, ErrTooMuchWork
	}
	c := d.image.cursor(b)
	u.off, u.offsetSize, u.lineOff = off, 4, -1
	length := uint64(c.u32())
	if length == 0xffffffff {
		length, u.offsetSize = c.u64(), 8
	}
	if c.bad || length > uint64(d.info.size-off-int64(c.off)) {
		return u, 0, ErrMalformed
	}
	u.end = off + int64(c.off) + int64(length)
	u.version = c.u16()
	kind = unitTypeCompile
	switch {
	case u.version >= 2 && u.version <= 4:
		u.abbrevOff = int64(c.sized(int(u.offsetSize)))
		u.addrSize = c.u8()
	case u.version == 5:
		kind = c.u8()
		u.addrSize = c.u8()
		u.abbrevOff = int64(c.sized(int(u.offsetSize)))
		// If a unit does not state them, its tables begin after the header of their section.
		// The headers have a length and two to eight bytes more (DWARF 5, 7.26 to 7.28): a length of DWARF64 has 12 bytes.
		header := 2 * uint64(u.offsetSize)
		u.strOffsetsBase, u.addrBase, u.rangeBase = header, header, header+4
	default:
		return u, 0, fmt.Errorf("DWARF version %d: %w", u.version, ErrMalformed)
	}
	u.entries = off + int64(c.off)
	if c.bad || u.entries > u.end || u.addrSize != 4 && u.addrSize != 8 {
		return u, 0, ErrMalformed
	}
	if u.abbrevOff < 0 || u.abbrevOff > int64(len(d.abbrev)) {
		return u, 0, ErrMalformed
	}
	return u, kind, nil
}

// readRoot reads the unit's own entry: where its other tables are, and its addresses.
func (d *dwarfTable) readRoot(u *dwarfUnit) error {
	e, err := d.entryAt(u, u.entries)
	if err != nil || e.decl == nil {
		return err
	}
	if e.decl.tag != dwarf.TagCompileUnit {
		return nil
	}
	if a := e.get(dwarf.AttrStmtList); a.form != 0 {
		u.lineOff = int64(min(a.value, 1<<62))
	}
	u.directory = e.get(dwarf.AttrCompDir)
	u.isSplit = e.get(attrGNUDwoName).form != 0
	u.strOffsetsBase = e.number(dwarf.AttrStrOffsetsBase, u.strOffsetsBase)
	u.rangeBase = e.number(dwarf.AttrRnglistsBase, u.rangeBase)
	u.addrBase = e.number(dwarf.AttrAddrBase, e.number(attrGNUAddrBase, u.addrBase))
	u.low, _ = d.address(u, e.get(dwarf.AttrLowpc))
	index := int32(len(d.units))
	return d.eachRange(u, &e, func(low, high uint64) error {
		if low >= high || low == 0 {
			return nil // the linker left the code out
		}
		if err := d.image.reserve(int64(unsafe.Sizeof(unitRange{}))); err != nil {
			return err
		}
		d.unitRanges = append(d.unitRanges, unitRange{low: low, high: high, unit: index})
		return nil
	})
}

// unitAt returns the unit that holds an offset of .debug_info.
func (d *dwarfTable) unitAt(off int64) *dwarfUnit {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].end > off })
	if i == len(d.units) || off < d.units[i].entries {
		return nil
	}
	return &d.units[i]
}

// maxOverlap bounds how many ranges are compared for one address.
const maxOverlap = 16

// unitOf returns the unit that has an address; −1 if there is none.
func (d *dwarfTable) unitOf(addr uint64) int32 {
	after := sort.Search(len(d.unitRanges), func(i int) bool { return d.unitRanges[i].low > addr })
	for i := after - 1; i >= max(0, after-maxOverlap); i-- {
		if addr < d.unitRanges[i].high {
			return d.unitRanges[i].unit
		}
	}
	return -1
}

// target is an address to look up, with its result.
type target struct {
	addr     uint64
	unit     int32
	resolved *Resolved
	// chain has the function around the address, then the inlined calls, outermost first.
	chain []call
	row   lineRow
}

// resolve improves the results without lines whose addresses it knows. It returns the first error of a unit that it
// could not read.
func (d *dwarfTable) resolve(addrs []uint64, resolved []Resolved) (first error) {
	defer func() { d.windows = nil }()
	var targets []target
	for i, addr := range addrs {
		if unit := d.unitOf(addr); unit >= 0 && resolved[i].Quality < QualityLines {
			targets = append(targets, target{addr: addr, unit: unit, resolved: &resolved[i]})
		}
	}
	slices.SortFunc(targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.addr, b.addr))
	})
	for len(targets) > 0 {
		n := sort.Search(len(targets), func(i int) bool { return targets[i].unit > targets[0].unit })
		w := &unitWalk{table: d, unit: &d.units[targets[0].unit], targets: targets[:n]}
		targets = targets[n:]
		if err := w.run(); errors.Is(err, ErrTooMuchWork) {
			return err
		} else if err != nil {
			first = cmp.Or(first, fmt.Errorf("unit at %d: %w", w.unit.off, err))
			continue
		}
		lines, err := w.readLines()
		if errors.Is(err, ErrTooMuchWork) {
			return err
		}
		for i := range w.targets {
			t := &w.targets[i]
			if frames := w.frames(t, lines); len(frames) > 0 {
				t.resolved.improve(frames)
			}
		}
	}
	return first
}

// unitWalk finds the functions and inlined calls around some addresses in one unit.
type unitWalk struct {
	table *dwarfTable
	unit  *dwarfUnit
	// targets are ascending.
	targets []target
	names   map[int64]functionName
}

// covered returns the targets from an address on, up to another.
func (w *unitWalk) covered(low, high uint64) []target {
	from := sort.Search(len(w.targets), func(i int) bool { return w.targets[i].addr >= low })
	n := 0
	for n < len(w.targets)-from && w.targets[from+n].addr < high {
		n++
	}
	return w.targets[from:][:n]
}

// call is a function, or a call that was inlined: its entry and where it was called.
type call struct {
	entry int64
	sourcePosition
}

type sourcePosition struct{ file, line, column uint64 }

// run reads all entries of the unit. It does not skip entries by DW_AT_sibling: a local function, such as a lambda's,
// is a child of a function with other addresses.
func (w *unitWalk) run() error {
	d, u := w.table, w.unit
	size := u.end - u.entries
	if size > d.image.limits.TableBytes-d.image.kept {
		return fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	if !d.image.work.spend(size) {
		return ErrTooMuchWork
	}
	data, err := d.info.bytes(u.entries, size)
	if err != nil {
		return err
	}
	table, err := d.abbrevs(u.abbrevOff)
	if err != nil {
		return err
	}
	c := d.image.cursor(data)
	var e entry
	for !c.isAtEnd() {
		e.off = u.entries + int64(c.off)
		code := c.uleb()
		if code == 0 {
			continue // the end of a list of children
		}
		e.decl = table.find(code)
		if e.decl == nil {
			return fmt.Errorf("entry at %d: abbreviation %d: %w", e.off, code, ErrMalformed)
		}
		isFunction := e.decl.tag == dwarf.TagSubprogram || e.decl.tag == dwarf.TagInlinedSubroutine
		if err := e.read(&c, u, table, isFunction); err != nil {
			return err
		}
		if isFunction {
			if err := w.match(&e); err != nil {
				return err
			}
		}
		// The unit's bytes are counted above, but attributes can be without a byte.
		if n := int64(e.decl.n) - (u.entries + int64(c.off) - e.off); n > 0 && !d.image.work.spend(n) {
			return ErrTooMuchWork
		}
	}
	if c.bad {
		return ErrMalformed
	}
	return nil
}

// match adds an entry to the chains of the addresses that it covers.
func (w *unitWalk) match(e *entry) error {
	return w.table.eachRange(w.unit, e, func(low, high uint64) error {
		targets := w.covered(low, high)
		if !w.table.image.work.spend(int64(len(targets))) {
			return ErrTooMuchWork
		}
		for i := range targets {
			chain := &targets[i].chain
			if e.decl.tag == dwarf.TagSubprogram {
				*chain = (*chain)[:0]
			} else if len(*chain) == 0 || len(*chain) >= maxInlineDepth {
				continue
			}
			*chain = append(*chain, call{entry: e.off, sourcePosition: sourcePosition{
				file: e.number(dwarf.AttrCallFile, 0), line: e.number(dwarf.AttrCallLine, 0),
				column: e.number(dwarf.AttrCallColumn, 0),
			}})
		}
		return nil
	})
}

// frames makes the frames of a target, innermost first. lines is nil if the line table could not be read.
func (w *unitWalk) frames(t *target, lines *lineTable) []Frame {
	chain := t.chain
	if len(chain) == 0 && t.row.isKnown && !w.unit.isSplit {
		// With -g1 (line-tables-only), clang and rustc write no entry for a function in which nothing is inlined. The symbol
		// table has its name.
		chain = []call{{}}
	}
	var frames []Frame
	at := t.row.sourcePosition
	for k := len(chain) - 1; k >= 0; k-- {
		name := w.name(chain[k].entry, 0)
		frame := Frame{
			Name: name.name, SystemName: name.linkage, Line: bounded(at.line), Column: bounded(at.column),
			StartLine: bounded(name.line),
		}
		if lines != nil {
			frame.File = lines.path(at.file)
		}
		if !w.table.image.work.spend(workOf(&frame)) {
			return nil
		}
		frames = append(frames, frame)
		at = chain[k].sourcePosition
	}
	return frames
}

func bounded(n uint64) int64 { return int64(min(n, 1<<31-1)) }

// functionName has the names and the line that an entry, or the entry that it refers to, has for a function.
type functionName struct {
	name, linkage string
	line          uint64
}

const maxReferences = 8

// name reads the name of the function at an entry, or of its declaration or abstract instance.
func (w *unitWalk) name(off int64, depth int) functionName {
	if n, ok := w.names[off]; ok {
		return n
	}
	var n functionName
	d := w.table
	u := d.unitAt(off)
	if u == nil {
		return n
	}
	e, err := d.entryAt(u, off)
	if err != nil || e.decl == nil {
		return n
	}
	n.name = d.string(u, e.get(dwarf.AttrName))
	n.linkage = d.string(u, e.get(dwarf.AttrLinkageName))
	if n.linkage == "" {
		n.linkage = d.string(u, e.get(attrMIPSLinkageName))
	}
	n.line = e.number(dwarf.AttrDeclLine, 0)
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		a := e.get(attr)
		if a.form == 0 || depth >= maxReferences {
			continue
		}
		referred := w.name(d.reference(u, a), depth+1)
		n.name = cmp.Or(n.name, referred.name)
		n.linkage = cmp.Or(n.linkage, referred.linkage)
		n.line = cmp.Or(n.line, referred.line)
	}
	if w.names == nil {
		w.names = map[int64]functionName{}
	}
	w.names[off] = n
	return n
}
