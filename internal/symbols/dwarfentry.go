// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/dwarf"
	"fmt"
	"io"
	"math"
	"unsafe"
)

// Attributes by GNU and MIPS, which debug/dwarf does not name.
const (
	attrMIPSLinkageName dwarf.Attr = 0x2007
	attrGNUDwoName      dwarf.Attr = 0x2130
	attrGNUAddrBase     dwarf.Attr = 0x2133
)

// The forms of attributes: DWARF 5, section 7.5.6, and extensions by GNU.
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// abbrevTable is the declarations of entries that a unit uses.
type abbrevTable struct {
	decls []abbrevDecl
	specs []abbrevSpec
	// byCode is nil if declaration i has the code i + 1, as compilers write them.
	byCode map[uint64]int32
}

type abbrevDecl struct {
	tag      dwarf.Tag
	first, n int32 // in specs
}

type abbrevSpec struct {
	attr     dwarf.Attr
	form     uint16
	implicit int64
}

func (t *abbrevTable) find(code uint64) *abbrevDecl {
	if t.byCode != nil {
		if i, ok := t.byCode[code]; ok {
			return &t.decls[i]
		}
		return nil
	}
	if code-1 < uint64(len(t.decls)) {
		return &t.decls[code-1]
	}
	return nil
}

// abbrevs parses the table at an offset of .debug_abbrev. The last one is kept, since units follow each other.
func (d *dwarfTable) abbrevs(off int64) (*abbrevTable, error) {
	if d.abbrevOf == off {
		return &d.parsed, nil
	}
	d.abbrevOf = -1
	t := &d.parsed
	t.decls, t.specs, t.byCode = t.decls[:0], t.specs[:0], nil
	if err := d.parseAbbrevs(off, 0, t); err != nil {
		return nil, err
	}
	d.abbrevOf = off
	return t, nil
}

const (
	// maxAttributes bounds the attributes of a declaration: compilers write a few dozen at most.
	maxAttributes = 1 << 10
	// codeBytes is the memory of an element of abbrevTable.byCode.
	codeBytes = 40
)

// keepParsed counts the memory of d.parsed, which is used again for each table.
func (d *dwarfTable) keepParsed() error {
	t := &d.parsed
	size := int64(len(t.decls))*int64(unsafe.Sizeof(abbrevDecl{})) +
		int64(len(t.specs))*int64(unsafe.Sizeof(abbrevSpec{})) +
		int64(len(t.byCode))*codeBytes
	if size <= d.parsedBytes {
		return nil
	}
	err := d.image.reserve(size - d.parsedBytes)
	if err == nil {
		d.parsedBytes = size
	}
	return err
}

// parseAbbrevs adds the declarations at an offset to a table: all of them, or only the one with a code.
func (d *dwarfTable) parseAbbrevs(off int64, only uint64, t *abbrevTable) error {
	c := cursor{data: d.abbrev, off: int(off), order: d.image.order}
	for {
		start := c.off
		code := c.uleb()
		if code == 0 || c.bad {
			break
		}
		decl := abbrevDecl{tag: dwarf.Tag(clip16(c.uleb())), first: int32(len(t.specs))}
		c.u8() // whether it has children
		for {
			spec := c.spec()
			if spec.form == formImplicitConst {
				spec.implicit = c.sleb()
			}
			if spec.attr == 0 && spec.form == 0 || c.bad {
				break
			}
			if len(t.specs)-int(decl.first) >= maxAttributes {
				return fmt.Errorf("abbreviations at %d: more than %d attributes: %w", off, maxAttributes, ErrMalformed)
			}
			t.specs = append(t.specs, spec)
		}
		decl.n = int32(len(t.specs)) - decl.first
		if !d.image.work.spend(int64(c.off - start)) {
			return ErrTooMuchWork
		}
		if only != 0 && code != only {
			t.specs = t.specs[:decl.first]
			continue
		}
		if only == 0 && t.byCode == nil && code != uint64(len(t.decls))+1 {
			t.byCode = make(map[uint64]int32, len(t.decls))
			for i := range t.decls {
				t.byCode[uint64(i)+1] = int32(i)
			}
		}
		if t.byCode != nil {
			t.byCode[code] = int32(len(t.decls))
		}
		t.decls = append(t.decls, decl)
		if only != 0 {
			break
		}
		if err := d.keepParsed(); err != nil {
			return err
		}
	}
	if c.bad {
		return fmt.Errorf("abbreviations at %d: %w", off, ErrMalformed)
	}
	return nil
}

func clip16(n uint64) uint16 { return uint16(min(n, math.MaxUint16)) }

func (c *cursor) spec() abbrevSpec {
	return abbrevSpec{attr: dwarf.Attr(clip16(c.uleb())), form: clip16(c.uleb())}
}

// attribute is an attribute and its value; form is 0 if the entry does not have it.
type attribute struct {
	attr  dwarf.Attr
	form  uint16
	value uint64
	str   string // of formString
}

// entry is an entry of .debug_info, with those of its attributes that isWanted accepts.
type entry struct {
	off   int64
	decl  *abbrevDecl
	attrs []attribute
}

func (e *entry) get(attr dwarf.Attr) attribute {
	for i := range e.attrs {
		if e.attrs[i].attr == attr {
			return e.attrs[i]
		}
	}
	return attribute{}
}

// number returns the value of an attribute, or another one if the entry does not have it.
func (e *entry) number(attr dwarf.Attr, without uint64) uint64 {
	if a := e.get(attr); a.form != 0 {
		return a.value
	}
	return without
}

func isWanted(attr dwarf.Attr) bool {
	switch attr {
	case dwarf.AttrName, dwarf.AttrStmtList, dwarf.AttrLowpc, dwarf.AttrHighpc, dwarf.AttrCompDir,
		dwarf.AttrAbstractOrigin, dwarf.AttrDeclLine,
		dwarf.AttrSpecification, dwarf.AttrRanges, dwarf.AttrCallColumn, dwarf.AttrCallFile, dwarf.AttrCallLine,
		dwarf.AttrLinkageName, dwarf.AttrStrOffsetsBase,
		dwarf.AttrAddrBase, dwarf.AttrRnglistsBase, attrMIPSLinkageName, attrGNUDwoName, attrGNUAddrBase:
		return true
	}
	return false
}

// maxWanted bounds an entry's attributes: each should occur at most once.
const maxWanted = 32

// read reads the attributes that follow an entry's code, or skips them if keep is false.
func (e *entry) read(c *cursor, u *dwarfUnit, t *abbrevTable, keep bool) error {
	e.attrs = e.attrs[:0]
	for _, spec := range t.specs[e.decl.first:][:e.decl.n] {
		isKept := keep && isWanted(spec.attr) && len(e.attrs) < maxWanted
		if a := readForm(c, spec, u.encoding, isKept); isKept {
			e.attrs = append(e.attrs, a)
		}
	}
	if c.bad {
		return fmt.Errorf("entry at %d: %w", e.off, ErrMalformed)
	}
	return nil
}

// entryAt reads one entry of a unit. decl is nil for the end of a list.
func (d *dwarfTable) entryAt(u *dwarfUnit, off int64) (entry, error) {
	if off < u.entries || off >= u.end {
		return entry{}, ErrMalformed
	}
	for size := int64(512); ; size = 1 << 16 {
		n := min(size, u.end-off)
		if !d.image.work.spend(n) {
			return entry{}, ErrTooMuchWork
		}
		b, err := d.info.bytes(off, n)
		if err != nil {
			return entry{}, err
		}
		c := d.image.cursor(b)
		e := entry{off: off}
		code := c.uleb()
		if code == 0 {
			return e, nil
		}
		var one abbrevTable
		t := &one
		if d.abbrevOf == u.abbrevOff {
			t = &d.parsed
			e.decl = t.find(code)
		} else if err := d.parseAbbrevs(u.abbrevOff, code, t); err != nil {
			return entry{}, err
		} else if len(t.decls) > 0 {
			e.decl = &t.decls[0]
		}
		if e.decl == nil {
			return e, fmt.Errorf("entry at %d: abbreviation %d: %w", off, code, ErrMalformed)
		}
		d.image.work.spend(int64(e.decl.n))
		err = e.read(&c, u, t, true)
		if err == nil || n == u.end-off || size > 512 {
			return e, err
		}
	}
}

// readForm reads a value, or skips it if keep is false.
func readForm(c *cursor, spec abbrevSpec, u encoding, keep bool) attribute {
	a := attribute{attr: spec.attr, form: spec.form}
	for i := 0; i < 4 && a.form == formIndirect; i++ {
		a.form = clip16(c.uleb())
	}
	switch a.form {
	case formAddr:
		a.value = c.sized(int(u.addrSize))
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		a.value = uint64(c.u8())
	case formData2, formRef2, formStrx2, formAddrx2:
		a.value = uint64(c.u16())
	case formStrx3, formAddrx3:
		a.value = c.sized(3)
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		a.value = uint64(c.u32())
	case formData8, formRef8, formRefSig8, formRefSup8:
		a.value = c.u64()
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		a.value = c.uleb()
	case formSdata:
		a.value = uint64(max(0, c.sleb()))
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		a.value = c.sized(int(u.offsetSize))
	case formRefAddr:
		if u.version == 2 {
			a.value = c.sized(int(u.addrSize))
		} else {
			a.value = c.sized(int(u.offsetSize))
		}
	case formString:
		b := c.cString()
		if keep {
			a.str = string(b[:min(len(b), maxNameBytes)])
		}
	case formFlagPresent:
		a.value = 1
	case formImplicitConst:
		a.value = uint64(max(0, spec.implicit))
	case formData16:
		c.skip(16)
	case formBlock, formExprloc:
		c.skip(c.uleb())
	case formBlock1:
		c.skip(uint64(c.u8()))
	case formBlock2:
		c.skip(uint64(c.u16()))
	case formBlock4:
		c.skip(uint64(c.u32()))
	default:
		c.bad = true
	}
	return a
}

// string returns an attribute as a string; "" if it is in another file.
func (d *dwarfTable) string(u *dwarfUnit, a attribute) string {
	at := func(e extent, off uint64) string {
		s, err := e.cString(int64(min(off, 1<<62)))
		if err != nil || !d.image.work.spend(workOfRead+workOfName*int64(len(s))) {
			return ""
		}
		return s
	}
	switch a.form {
	case formString:
		return a.str
	case formStrp:
		return at(d.str, a.value)
	case formLineStrp:
		return at(d.lineStr, a.value)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		if off, ok := d.indexed(&d.strOffsets, u.strOffsetsBase, a.value, u.offsetSize); ok {
			return at(d.str, off)
		}
	}
	return ""
}

// indexed reads entry i of a table of numbers at base.
func (d *dwarfTable) indexed(e *extent, base, i uint64, size uint8) (uint64, bool) {
	if i > uint64(e.size) || base > uint64(e.size) {
		return 0, false
	}
	b := d.window(e, int64(base+i*uint64(size)), int64(size))
	if b == nil {
		return 0, false
	}
	return wordAt(d.image.order, b, int64(size)), true
}

// windowBytes is how much of a table is read at once, since entries refer to it mostly in its order. maxWindows is the
// number of parts of tables that stay in memory during a call.
const (
	windowBytes = 1 << 10
	maxWindows  = 64
)

// window is a part of a table. It begins at a multiple of windowBytes.
type window struct {
	of   *extent
	off  int64
	data []byte
}

// window returns at least n bytes of a table at an offset; nil if it has fewer, or if there was too much work.
func (d *dwarfTable) window(e *extent, off, n int64) []byte {
	if off < 0 || off > e.size || n > e.size-off {
		return nil
	}
	start := off / windowBytes * windowBytes
	if d.windows == nil {
		d.windows = new([maxWindows]window)
	}
	w := &d.windows[uint64(e.off+start)/windowBytes%maxWindows]
	if w.data == nil || w.off != start || w.of != e {
		// A window overlaps the next one, so that what begins in it also ends in it.
		size := min(windowBytes+longestEntry, e.size-start)
		if !d.image.work.spend(workOfRead + size) {
			return nil
		}
		data, err := e.bytes(start, size) // not over the last one, which the caller can still be reading
		if err != nil {
			return nil
		}
		*w = window{of: e, off: start, data: data}
	}
	return w.data[off-start:]
}

func (d *dwarfTable) address(u *dwarfUnit, a attribute) (uint64, bool) {
	switch a.form {
	case formAddr:
		return a.value, true
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return d.indexedAddress(u, a.value)
	}
	return 0, false
}

func (d *dwarfTable) indexedAddress(u *dwarfUnit, i uint64) (uint64, bool) {
	return d.indexed(&d.addrs, u.addrBase, i, u.addrSize)
}

// reference returns the offset in .debug_info that an attribute refers to; −1 if it is in another file.
func (d *dwarfTable) reference(u *dwarfUnit, a attribute) int64 {
	switch a.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		if a.value < uint64(u.end-u.off) {
			return u.off + int64(a.value)
		}
	case formRefAddr:
		if a.value < uint64(d.info.size) {
			return int64(a.value)
		}
	}
	return -1
}

// rangeEntry is what an entry of a list of ranges is.
type rangeEntry int

const (
	rangeEnd  rangeEntry = iota // of the list
	rangeBase                   // it has changed the base of the entries after it
	rangeItem                   // it is a range
)

// eachRange calls visit with the ranges of addresses of an entry.
func (d *dwarfTable) eachRange(u *dwarfUnit, e *entry, visit func(low, high uint64) error) error {
	switch a := e.get(dwarf.AttrRanges); {
	case a.form != 0 && u.version < 5:
		return d.eachListed(u, &d.ranges, a.value, d.oldRange, visit)
	case a.form == formRnglistx:
		off, ok := d.indexed(&d.rangeLists, u.rangeBase, a.value, u.offsetSize)
		if !ok {
			return nil
		}
		return d.eachListed(u, &d.rangeLists, u.rangeBase+off, d.newRange, visit)
	case a.form != 0:
		return d.eachListed(u, &d.rangeLists, a.value, d.newRange, visit)
	}
	low, ok := d.address(u, e.get(dwarf.AttrLowpc))
	high := e.get(dwarf.AttrHighpc)
	if !ok || high.form == 0 {
		return nil
	}
	end, isAddress := d.address(u, high)
	if !isAddress {
		end = low + high.value
	}
	return visit(low, end)
}

// longestEntry is the most bytes of an entry of .debug_rnglists, workOfRange the work for one.
const (
	longestEntry = 32
	workOfRange  = 16
)

// eachListed calls visit with the ranges of a list, whose entries read reads.
func (d *dwarfTable) eachListed(u *dwarfUnit, list *extent, at uint64,
	read func(u *dwarfUnit, c *cursor, base *uint64) (low, high uint64, is rangeEntry),
	visit func(low, high uint64) error) error {
	base := u.low
	for off := int64(min(at, 1<<62)); off < list.size; {
		b := d.window(list, off, min(longestEntry, list.size-off))
		if !d.image.work.spend(workOfRange) {
			return ErrTooMuchWork
		}
		if b == nil {
			return io.ErrUnexpectedEOF
		}
		c := d.image.cursor(b)
		low, high, is := read(u, &c, &base)
		if is == rangeEnd || c.bad {
			return nil
		}
		if is == rangeItem {
			if err := visit(low, high); err != nil {
				return err
			}
		}
		off += int64(c.off)
	}
	return nil
}

// oldRange reads an entry of .debug_ranges: two addresses. The largest is a mark of a base.
func (d *dwarfTable) oldRange(u *dwarfUnit, c *cursor, base *uint64) (low, high uint64, is rangeEntry) {
	low, high = c.sized(int(u.addrSize)), c.sized(int(u.addrSize))
	switch {
	case low == 0 && high == 0:
		return 0, 0, rangeEnd
	case low == ^uint64(0)>>(64-8*u.addrSize):
		*base = high
		return 0, 0, rangeBase
	}
	return *base + low, *base + high, rangeItem
}

// newRange reads an entry of .debug_rnglists.
func (d *dwarfTable) newRange(u *dwarfUnit, c *cursor, base *uint64) (low, high uint64, is rangeEntry) {
	address := func() uint64 { return c.sized(int(u.addrSize)) }
	indexed := func() (address uint64) {
		address, _ = d.indexedAddress(u, c.uleb())
		return address
	}
	switch c.u8() {
	case 0x01: // base_addressx
		*base = indexed()
		return 0, 0, rangeBase
	case 0x02: // startx_endx
		return indexed(), indexed(), rangeItem
	case 0x03: // startx_length
		low = indexed()
		return low, low + c.uleb(), rangeItem
	case 0x04: // offset_pair
		return *base + c.uleb(), *base + c.uleb(), rangeItem
	case 0x05: // base_address
		*base = address()
		return 0, 0, rangeBase
	case 0x06: // start_end
		return address(), address(), rangeItem
	case 0x07: // start_length
		low = address()
		return low, low + c.uleb(), rangeItem
	}
	return 0, 0, rangeEnd // or an unknown kind
}
