// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
)

// elfSection is a section of a file that a test writes.
type elfSection struct {
	name    string
	kind    elf.SectionType
	flags   elf.SectionFlag
	addr    uint64
	data    []byte
	link    uint32
	claimed uint64 // the size that the header states, if not 0
}

const textAddr = 0x1000

// buildELF writes a 64-bit little-endian file with the sections and one executable segment at textAddr, which is all of
// the file.
func buildELF(sections ...elfSection) []byte {
	sections = append([]elfSection{{}}, sections...)
	sections = append(sections, elfSection{name: ".shstrtab", kind: elf.SHT_STRTAB})
	names := []byte{0}
	nameAt := make([]uint32, len(sections))
	for i, s := range sections {
		nameAt[i] = uint32(len(names))
		names = append(append(names, s.name...), 0)
	}
	sections[len(sections)-1].data = names
	var body bytes.Buffer
	const headers = 64 + 56
	body.Write(make([]byte, headers))
	offsets := make([]uint64, len(sections))
	for i, s := range sections {
		offsets[i] = uint64(body.Len())
		body.Write(s.data)
		for body.Len()%8 != 0 {
			body.WriteByte(0)
		}
	}
	table := uint64(body.Len())
	for i, s := range sections {
		size := uint64(len(s.data))
		if s.claimed != 0 {
			size = s.claimed
		}
		_ = binary.Write(&body, binary.LittleEndian, elf.Section64{
			Name: nameAt[i], Type: uint32(s.kind), Flags: uint64(s.flags), Addr: s.addr, Off: offsets[i], Size: size,
			Link: s.link,
		})
	}
	file := body.Bytes()
	header := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Phoff: 64, Shoff: table, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections)),
		Shstrndx: uint16(len(sections) - 1),
	}
	segment := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: textAddr, Filesz: uint64(len(file)),
		Memsz: 1 << 40,
	}
	var front bytes.Buffer
	_ = binary.Write(&front, binary.LittleEndian, header)
	_ = binary.Write(&front, binary.LittleEndian, segment)
	copy(file, front.Bytes())
	return file
}

// le encodes numbers in little-endian order by their size, texts with a NUL, and bytes unchanged.
func le(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b = append(append(b, v...), 0)
		case []byte:
			b = append(b, v...)
		case int: // a byte
			b = append(b, byte(v))
		default:
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

// unit4 is a unit of DWARF 4 with entries, whose abbreviations are at an offset.
func unit4(abbrevOff uint32, entries []byte) []byte {
	return le(uint32(7+len(entries)), uint16(4), abbrevOff, 8, entries)
}

// Tags and attributes as the bytes of abbreviations.
const (
	tagCompileUnit       = byte(dwarf.TagCompileUnit)
	tagSubprogram        = byte(dwarf.TagSubprogram)
	tagInlinedSubroutine = byte(dwarf.TagInlinedSubroutine)
	attrName             = byte(dwarf.AttrName)
	attrLowPC            = byte(dwarf.AttrLowpc)
	attrHighPC           = byte(dwarf.AttrHighpc)
	attrStmtList         = byte(dwarf.AttrStmtList)
	attrRanges           = byte(dwarf.AttrRanges)
	attrAbstractOrigin   = byte(dwarf.AttrAbstractOrigin)
	attrSpecification    = byte(dwarf.AttrSpecification)
	attrLinkageName      = byte(dwarf.AttrLinkageName)
)

// Abbreviations: 1 a compile unit with addresses and a line table, 2 a function with addresses, 3 one with ranges, 4 a
// compile unit with addresses and nothing else.
var testAbbrevs = []byte{
	1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData8, attrStmtList, formSecOffset, 0, 0,
	2, tagSubprogram, 0, attrName, formStrp, attrLowPC, formAddr, attrHighPC, formData8, 0, 0,
	3, tagSubprogram, 0, attrName, formStrp, attrRanges, formSecOffset, 0, 0,
	4, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData8, 0, 0,
	0,
}

func debugSection(name string, data []byte) elfSection {
	return elfSection{name: name, kind: elf.SHT_PROGBITS, data: data}
}
