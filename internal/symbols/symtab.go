// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// symbolTable has the functions of .symtab or .dynsym, ordered by address. Names stay in the file: a table needs 16
// bytes for each function, two thirds of its size in the file.
type symbolTable struct {
	symbols []symbol
	names   extent
	// ends are the executable sections: a symbol without a size does not reach beyond its section.
	ends []section
}

type symbol struct {
	addr uint64
	name uint32
	// sizeAndRank is the size << 2 | rank.
	sizeAndRank uint32
}

const maxSymbolSize = 1<<30 - 1

func (s symbol) size() uint64 { return uint64(s.sizeAndRank >> 2) }

// rank orders the names of one address: programmers know the global one.
func (s symbol) rank() uint32 { return s.sizeAndRank & 3 }

const (
	rankGlobal uint32 = iota
	rankWeak
	rankLocal
	rankUntyped
)

// readSymbolTable reads .symtab or .dynsym. A file without one has an empty table.
func (m *Image) readSymbolTable(kind elf.SectionType) (*symbolTable, error) {
	t := &symbolTable{}
	s := m.sectionOf(kind)
	if s == nil || uint64(s.link) >= uint64(len(m.sections)) {
		return t, nil
	}
	for i := range m.sections {
		if m.sections[i].isExecutable() {
			t.ends = append(t.ends, m.sections[i])
		}
	}
	slices.SortFunc(t.ends, func(a, b section) int { return cmp.Compare(a.addr, b.addr) })
	t.names = m.extentOf(&m.sections[s.link])
	table := m.extentOf(s)

	// The first pass counts, so that the second allocates once.
	n := 0
	if err := m.eachSymbol(table, func(symbol) { n++ }); err != nil {
		return t, fmt.Errorf("section %s: %w", s.name, err)
	}
	if err := m.reserve(int64(n) * int64(unsafe.Sizeof(symbol{}))); err != nil {
		return t, fmt.Errorf("section %s: %w", s.name, err)
	}
	t.symbols = make([]symbol, 0, n)
	err := m.eachSymbol(table, func(s symbol) {
		if len(t.symbols) < n {
			t.symbols = append(t.symbols, s)
		}
	})
	slices.SortFunc(t.symbols, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.sizeAndRank, b.sizeAndRank), cmp.Compare(a.name, b.name))
	})
	return t, err
}

// eachSymbol calls add with the functions of a table, in the table's order.
func (m *Image) eachSymbol(table extent, add func(symbol)) error {
	size := int64(m.sized(16, 24))
	return m.eachBlock(table, 0, size, func(_ int64, block []byte) bool {
		for ; len(block) > 0; block = block[size:] {
			if s, ok := m.readSymbol(block[:size]); ok {
				add(s)
			}
		}
		return true
	})
}

func (m *Image) readSymbol(entry []byte) (symbol, bool) {
	var info byte
	var index uint16
	var addr, size uint64
	name := m.order.Uint32(entry)
	if m.is64 {
		info, index = entry[4], m.order.Uint16(entry[6:])
		addr, size = m.order.Uint64(entry[8:]), m.order.Uint64(entry[16:])
	} else {
		addr, size = uint64(m.order.Uint32(entry[4:])), uint64(m.order.Uint32(entry[8:]))
		info, index = entry[12], m.order.Uint16(entry[14:])
	}
	rank := rankLocal
	switch elf.ST_BIND(info) {
	case elf.STB_GLOBAL:
		rank = rankGlobal
	case elf.STB_WEAK:
		rank = rankWeak
	}
	switch elf.ST_TYPE(info) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		if m.arch == elf.EM_ARM {
			addr &^= 1 // the Thumb bit
		}
	case elf.STT_NOTYPE: // assembly
		if int(index) >= len(m.sections) || !m.sections[index].isExecutable() {
			return symbol{}, false
		}
		// ARM, AArch64 and RISC-V mark code and data by such symbols.
		if rank == rankLocal && (m.arch == elf.EM_ARM || m.arch == elf.EM_AARCH64 || m.arch == elf.EM_RISCV) {
			return symbol{}, false
		}
		rank = rankUntyped
	default:
		return symbol{}, false
	}
	if elf.SectionIndex(index) == elf.SHN_UNDEF || name == 0 || addr == 0 {
		return symbol{}, false
	}
	return symbol{addr: addr, name: name, sizeAndRank: uint32(min(size, maxSymbolSize))<<2 | rank}, true
}

// maxAliases bounds how many symbols are compared for one address.
const maxAliases = 64

// lookup returns the name of the function that holds addr. Of several names for one function it prefers the typed and
// global one, then the one with fewer leading underscores, then the first in alphabetical order.
func (t *symbolTable) lookup(addr uint64, work *meter) (name string, ok bool) {
	after := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].addr > addr })
	best := -1
	for i := after - 1; i >= max(0, after-maxAliases); i-- {
		s := t.symbols[i]
		if best >= 0 && s.addr != t.symbols[best].addr {
			break
		}
		if addr-s.addr >= t.sizeOf(i) {
			continue
		}
		if best >= 0 && s.rank() > t.symbols[best].rank() {
			continue
		}
		candidate, err := t.names.cString(int64(s.name))
		if !work.spend(workOfRead + int64(len(candidate))) {
			break
		}
		if err != nil || candidate == "" {
			continue
		}
		if best < 0 || s.rank() < t.symbols[best].rank() || compareNames(candidate, name) < 0 {
			best, name = i, candidate
		}
	}
	return name, best >= 0
}

// sizeOf returns the size of symbol i. A symbol without a size reaches up to the next symbol or the end of its section.
func (t *symbolTable) sizeOf(i int) uint64 {
	s := t.symbols[i]
	if size := s.size(); size != 0 {
		return size
	}
	k := sort.Search(len(t.ends), func(i int) bool { return t.ends[i].addr > s.addr }) - 1
	if k < 0 || !t.ends[k].contains(s.addr) {
		return 0
	}
	end := t.ends[k].addr + t.ends[k].size
	for j := i + 1; j < len(t.symbols) && j < i+maxAliases; j++ {
		if t.symbols[j].addr > s.addr {
			end = min(end, t.symbols[j].addr)
			break
		}
	}
	return end - s.addr
}

func compareNames(a, b string) int {
	underscores := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	return cmp.Or(cmp.Compare(underscores(a), underscores(b)), strings.Compare(a, b))
}
