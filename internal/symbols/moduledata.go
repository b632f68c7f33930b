// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
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
	size := uint64(t.ptrSize)
	for i := range m.sections {
		s := &m.sections[i]
		switch s.name {
		case ".go.module", ".noptrdata", ".data", ".data.rel.ro", ".data.rel.ro.local", ".data.rel":
		default:
			continue
		}
		e := m.extentOf(s)
		for off := m.searchWord(e, addr, 0); off >= 0; off = m.searchWord(e, addr, off+int64(size)) {
			b, err := e.bytes(off, moduleDataMinWords*int64(size))
			if err != nil {
				break
			}
			word := func(i uint64) uint64 { return m.wordAt(b[i*size:], size) }
			if d := (moduleData{text: word(moduleTextWord), goFunc: word(funcWord)}); m.isText(d.text) {
				return d
			}
		}
	}
	return m.readRelocatedModuleData(addr, funcWord)
}

func (m *Image) wordAt(b []byte, size uint64) uint64 {
	if size == 4 {
		return uint64(m.order.Uint32(b))
	}
	return m.order.Uint64(b)
}

func (m *Image) isText(addr uint64) bool {
	for _, s := range m.segments {
		if s.flags&elf.PF_X != 0 && addr >= s.addr && addr-s.addr < s.memorySz {
			return true
		}
	}
	return false
}

// searchWord returns the offset of a pointer in an extent at or after from, or −1 if there is none.
func (m *Image) searchWord(e extent, value uint64, from int64) int64 {
	size := int64(4)
	if m.is64 {
		size = 8
	}
	buffer := make([]byte, 64<<10)
	for base := from; base+size <= e.size; base += int64(len(buffer)) {
		b := buffer[:min(int64(len(buffer)), e.size-base)]
		if !m.work.spend(int64(len(b))) || e.read(b, base) != nil {
			return -1
		}
		for i := 0; i+int(size) <= len(b); i += int(size) {
			if m.wordAt(b[i:], uint64(size)) == value {
				return base + int64(i)
			}
		}
	}
	return -1
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
	buffer := make([]byte, 2048*size)
	for off := int64(0); off+size <= e.size; off += int64(len(buffer)) {
		b := buffer[:min(int64(len(buffer)), (e.size-off)/size*size)]
		if !m.work.spend(int64(len(b))) || e.read(b, off) != nil {
			return
		}
		for ; len(b) >= size; b = b[size:] {
			if info := m.order.Uint64(b[8:]); info>>32 == 0 {
				visit(m.order.Uint64(b), m.order.Uint64(b[16:]))
			}
		}
	}
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
