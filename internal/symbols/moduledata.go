// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"slices"
)

// moduleData has the needed fields of runtime.moduledata: where the text begins, and what funcdata is relative to.
type moduleData struct{ text, goFunc uint64 }

// Words of runtime.moduledata, counted in pointers. Go 1.20 added two in between.
const (
	moduleTextWord     = 22
	moduleFuncWord118  = 38
	moduleFuncWord120  = 40
	moduleDataMinWords = 41
)

// readModuleData finds the module data by its first word, which points to the pclntab at addr. In a program that is
// relocated when it starts, the relocations have that word.
func (m *Image) readModuleData(t *goTable, addr uint64) moduleData {
	funcWord := uint64(moduleFuncWord120)
	if t.version < go120 {
		funcWord = moduleFuncWord118
	}
	size := t.ptrSize
	for i := range m.sections {
		s := &m.sections[i]
		switch s.name {
		case ".go.module", ".noptrdata", ".data", ".data.rel.ro", ".data.rel.ro.local", ".data.rel":
		default:
			continue
		}
		e := m.extentOf(s)
		for off := m.searchWord(e, addr, 0); off >= 0; off = m.searchWord(e, addr, off+size) {
			b, err := e.bytes(off, moduleDataMinWords*size)
			if err != nil {
				break
			}
			word := func(i uint64) uint64 { return wordAt(m.order, b[int64(i)*size:], size) }
			if d := (moduleData{text: word(moduleTextWord), goFunc: word(funcWord)}); m.isText(d.text) {
				return d
			}
		}
	}
	return m.readRelocatedModuleData(addr, funcWord)
}

func (m *Image) isText(addr uint64) bool {
	return slices.ContainsFunc(m.segments, func(s segment) bool {
		return s.flags&elf.PF_X != 0 && addr >= s.addr && addr-s.addr < s.memorySz
	})
}

// searchWord returns the offset of a pointer in an extent, at or after from, or −1 if there is none that can be read.
func (m *Image) searchWord(e extent, value uint64, from int64) int64 {
	size := int64(m.sized(4, 8))
	found := int64(-1)
	_ = m.eachBlock(e, from, size, func(off int64, block []byte) bool {
		for i := int64(0); i < int64(len(block)); i += size {
			if wordAt(m.order, block[i:], size) == value {
				found = off + i
				return false
			}
		}
		return true
	})
	return found
}

// readRelocatedModuleData reads the relocations without a symbol: each writes its addend at its offset.
func (m *Image) readRelocatedModuleData(addr, funcWord uint64) moduleData {
	s := m.section(".rela.dyn")
	if s == nil || !m.is64 {
		return moduleData{}
	}
	e := m.extentOf(s)
	var starts []uint64
	m.eachRelocation(e, func(at, addend uint64) {
		if addend == addr && len(starts) < 16 {
			starts = append(starts, at)
		}
	})
	found := make([]moduleData, len(starts))
	m.eachRelocation(e, func(at, addend uint64) {
		for i, start := range starts {
			switch at {
			case start + 8*moduleTextWord:
				found[i].text = addend
			case start + 8*funcWord:
				found[i].goFunc = addend
			}
		}
	})
	for _, d := range found {
		if m.isText(d.text) {
			return d
		}
	}
	return moduleData{}
}

func (m *Image) eachRelocation(e extent, visit func(at, addend uint64)) {
	const size = 24
	_ = m.eachBlock(e, 0, size, func(_ int64, block []byte) bool {
		for ; len(block) > 0; block = block[size:] {
			if info := m.order.Uint64(block[8:]); info>>32 == 0 {
				visit(m.order.Uint64(block), m.order.Uint64(block[16:]))
			}
		}
		return true
	})
}

// extentAt returns the bytes of the file from a virtual address up to the end of its segment.
func (m *Image) extentAt(addr uint64) extent {
	for _, s := range m.segments {
		if addr != 0 && addr >= s.addr && addr-s.addr < s.fileSize && s.off <= uint64(m.file.size) {
			skip := addr - s.addr
			size := min(s.fileSize, uint64(m.file.size)-s.off)
			if skip < size {
				return extent{r: m.file.r, off: int64(s.off + skip), size: int64(size - skip)}
			}
		}
	}
	return extent{}
}
