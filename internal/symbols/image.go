// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Image is an ELF file whose headers were read. Only one goroutine may use it at a time.
type Image struct {
	file   extent
	limits Limits
	order  binary.ByteOrder
	is64   bool
	elf    elf.Type
	arch   elf.Machine

	sections []section
	segments []segment
	ids      IDs
	// cut is set if a section ends beyond the file.
	cut error

	tables *tables
	// work is the remaining work of the current call.
	work meter
	// kept is the memory of the tables, in bytes.
	kept int64
}

type section struct {
	name      string
	kind      elf.SectionType
	flags     elf.SectionFlag
	addr      uint64
	off, size uint64
	link      uint32
}

// segment is a program header of type PT_LOAD.
type segment struct {
	flags                         elf.ProgFlag
	off, addr, fileSize, memorySz uint64
}

func (s *section) contains(addr uint64) bool { return addr-s.addr < s.size && addr >= s.addr }

func (s *section) isExecutable() bool { return s.flags&elf.SHF_EXECINSTR != 0 }

// Open reads the headers of a file of size bytes. r is borrowed for as long as the Image is used.
func Open(r io.ReaderAt, size int64, limits Limits) (*Image, error) {
	m := &Image{file: extent{r: r, size: size}, limits: limits}
	var ident [64]byte
	n, err := r.ReadAt(ident[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < 52 || string(ident[:4]) != elf.ELFMAG {
		return nil, ErrNotELF
	}
	m.is64 = elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS64
	if !m.is64 && elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS32 || m.is64 && n < 64 {
		return nil, fmt.Errorf("ELF class %d: %w", ident[elf.EI_CLASS], ErrMalformed)
	}
	switch elf.Data(ident[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		m.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		m.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("ELF byte order %d: %w", ident[elf.EI_DATA], ErrMalformed)
	}
	if err := m.readHeaders(ident[:]); err != nil {
		return nil, err
	}
	return m, nil
}

// word reads an address or offset of the file's class.
func (m *Image) word(c *cursor) uint64 {
	if m.is64 {
		return c.u64()
	}
	return uint64(c.u32())
}

func (m *Image) cursor(b []byte) cursor { return cursor{data: b, order: m.order} }

func (m *Image) readHeaders(ident []byte) error {
	c := m.cursor(ident)
	c.skip(16)
	m.elf, m.arch = elf.Type(c.u16()), elf.Machine(c.u16())
	c.skip(4)
	m.word(&c) // entry
	segments, sections := headers{name: "program headers", at: m.word(&c)},
		headers{name: "section headers", at: m.word(&c)}
	c.skip(6) // flags, header size
	segments.size, segments.n = int(c.u16()), int(c.u16())
	sections.size, sections.n = int(c.u16()), int(c.u16())
	names := int(c.u16())
	if c.bad {
		return fmt.Errorf("ELF header: %w", ErrMalformed)
	}
	if err := m.readSegments(segments); err != nil {
		return err
	}
	if sections.at == 0 {
		return nil
	}
	return m.readSections(sections, names)
}

// headers is a table of n headers of size bytes.
type headers struct {
	name    string
	at      uint64
	size, n int
}

// read returns the headers, at most limit of them, each of the wanted size.
func (h *headers) read(m *Image, limit, want int) ([]byte, error) {
	switch {
	case h.n > limit:
		return nil, fmt.Errorf("%d %s: %w", h.n, h.name, ErrTooLarge)
	case h.n > 0 && h.size != want:
		return nil, fmt.Errorf("%s of %d bytes: %w", h.name, h.size, ErrMalformed)
	case h.at > uint64(m.file.size):
		return nil, fmt.Errorf("%s at %d: %w", h.name, h.at, ErrMalformed)
	}
	table, err := m.file.bytes(int64(h.at), int64(h.n*h.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	return table, nil
}

// sized returns one of two sizes, by the file's class.
func (m *Image) sized(of32, of64 int) int {
	if m.is64 {
		return of64
	}
	return of32
}

func (m *Image) readSegments(h headers) error {
	table, err := h.read(m, maxSegments, m.sized(32, 56))
	if err != nil {
		return err
	}
	for i := range h.n {
		c := m.cursor(table[i*h.size:][:h.size])
		var s segment
		kind := elf.ProgType(c.u32())
		if m.is64 {
			s.flags = elf.ProgFlag(c.u32())
		}
		s.off, s.addr = m.word(&c), m.word(&c)
		m.word(&c) // physical address
		s.fileSize, s.memorySz = m.word(&c), m.word(&c)
		if !m.is64 {
			s.flags = elf.ProgFlag(c.u32())
		}
		switch kind {
		case elf.PT_LOAD:
			m.segments = append(m.segments, s)
		case elf.PT_NOTE:
			m.readNotes(s.off, s.fileSize)
		}
	}
	return nil
}

func (m *Image) readSections(h headers, names int) error {
	if h.n == 0 { // there are more than its field can hold
		return fmt.Errorf("0 %s: %w", h.name, ErrTooLarge)
	}
	table, err := h.read(m, maxSections, m.sized(40, 64))
	if err != nil {
		return err
	}
	m.sections = make([]section, h.n)
	nameOffsets := make([]uint32, h.n)
	for i := range h.n {
		c := m.cursor(table[i*h.size:][:h.size])
		s := &m.sections[i]
		nameOffsets[i] = c.u32()
		s.kind = elf.SectionType(c.u32())
		s.flags = elf.SectionFlag(m.word(&c))
		s.addr, s.off, s.size = m.word(&c), m.word(&c), m.word(&c)
		s.link = c.u32()
		m.noteEnd(s)
	}
	if names >= h.n {
		return fmt.Errorf("section names in section %d of %d: %w", names, h.n, ErrMalformed)
	}
	strs := m.extentOf(&m.sections[names])
	strs.size = min(strs.size, maxSectionNames)
	all, err := strs.bytes(0, strs.size)
	if err != nil {
		return fmt.Errorf("section names: %w", err)
	}
	for i := range m.sections {
		if o := nameOffsets[i]; uint64(o) < uint64(len(all)) {
			name, _, _ := bytes.Cut(all[o:min(int(o)+maxSectionName, len(all))], []byte{0})
			m.sections[i].name = string(name)
		}
		if m.sections[i].kind == elf.SHT_NOTE {
			m.readNotes(m.sections[i].off, m.sections[i].size)
		}
	}
	return nil
}

// noteEnd remembers the first section that the file does not have to its end.
func (m *Image) noteEnd(s *section) {
	size := uint64(m.file.size)
	isCut := s.kind != elf.SHT_NOBITS && s.kind != elf.SHT_NULL && (s.off > size || s.size > size-s.off)
	if isCut && m.cut == nil {
		m.cut = fmt.Errorf("a section of %d bytes at %d in a file of %d, which is cut off: %w", s.size, s.off, size, ErrMalformed)
	}
}

// Whole returns an error if the file has less than its sections. What it has is resolved.
func (m *Image) Whole() error { return m.cut }

// section returns the first section of one of the names that has content in this file.
func (m *Image) section(names ...string) *section {
	return m.findSection(func(s *section) bool { return slices.Contains(names, s.name) })
}

func (m *Image) sectionOf(kind elf.SectionType) *section {
	return m.findSection(func(s *section) bool { return s.kind == kind })
}

func (m *Image) findSection(is func(*section) bool) *section {
	for i := range m.sections {
		if s := &m.sections[i]; s.kind != elf.SHT_NOBITS && s.size != 0 && is(s) {
			return s
		}
	}
	return nil
}

// extentOf returns the bytes of a section, as far as the file has them.
func (m *Image) extentOf(s *section) extent {
	if s == nil || s.kind == elf.SHT_NOBITS || s.off > uint64(m.file.size) {
		return extent{r: m.file.r}
	}
	return extent{r: m.file.r, off: int64(s.off), size: int64(min(s.size, uint64(m.file.size)-s.off))}
}

// reserve counts n bytes that stay in memory, or returns an error if that is too much.
func (m *Image) reserve(n int64) error {
	if n < 0 || n > m.limits.TableBytes-m.kept {
		return fmt.Errorf("tables above %d bytes: %w", m.limits.TableBytes, ErrTooLarge)
	}
	m.kept += n
	return nil
}

// content returns a section's bytes: from the file, or decompressed into memory.
func (m *Image) content(s *section) (extent, error) {
	plain := m.extentOf(s)
	if s == nil || s.flags&elf.SHF_COMPRESSED == 0 {
		return plain, nil
	}
	b := make([]byte, m.sized(12, 24))
	if err := plain.read(b, 0); err != nil {
		return extent{}, fmt.Errorf("section %s: %w", s.name, err)
	}
	c := m.cursor(b)
	kind := elf.CompressionType(c.u32())
	if m.is64 {
		c.u32()
	}
	size := m.word(&c)
	if size > uint64(m.limits.TableBytes) {
		return extent{}, fmt.Errorf("section %s of %d bytes: %w", s.name, size, ErrTooLarge)
	}
	// Compilers compress only what becomes smaller. Of a sparse file, a decompressor could skip terabytes.
	const overhead = 1 << 16
	packed := min(plain.size-int64(len(b)), int64(size)+overhead)
	from := io.NewSectionReader(plain.r, plain.off+int64(len(b)), packed)
	reader, err := decompressor(kind, from)
	if err != nil {
		return extent{}, fmt.Errorf("section %s: %w", s.name, err)
	}
	defer reader.Close()
	if err := m.reserve(int64(size)); err != nil {
		return extent{}, err
	}
	if !m.work.spend(int64(size) + packed) {
		return extent{}, ErrTooMuchWork
	}
	data, err := inflate(reader, int64(size))
	if err != nil {
		m.kept -= int64(size)
		return extent{}, fmt.Errorf("section %s: %w", s.name, err)
	}
	return extent{r: bytes.NewReader(data), size: int64(len(data))}, nil
}

func decompressor(kind elf.CompressionType, from io.Reader) (io.ReadCloser, error) {
	switch kind {
	case elf.COMPRESS_ZLIB:
		return zlib.NewReader(from)
	case elf.COMPRESS_ZSTD:
		z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compression %d: %w", kind, ErrMalformed)
}

// inflate reads exactly size bytes. Memory grows with the data, so that a header alone cannot reserve it.
func inflate(r io.Reader, size int64) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.Grow(int(min(size, 1<<20)))
	n, err := io.Copy(&buffer, io.LimitReader(r, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return buffer.Bytes(), err
}

// Position locates an address by its mapping.
type Position struct {
	// Offset is the offset in the file: address − memory_start + file_offset. With Virtual it is the virtual address
	// itself, since the mapping does not have the address at which the file was mapped.
	Offset  uint64
	Virtual bool
	// MappingOffset is the mapping's file_offset.
	MappingOffset uint64
}

// Address returns the virtual address of a position. Debug files keep the program headers of their program, but may
// have other offsets: then the segment that the mapping began with is used, which is the executable one, or the first
// where the mapping is of the whole file.
func (m *Image) Address(p Position) (uint64, bool) {
	if p.Virtual {
		return p.Offset, true
	}
	for _, s := range m.segments {
		if p.Offset >= s.off && p.Offset-s.off < s.fileSize {
			return s.addr + p.Offset - s.off, true
		}
	}
	var only *segment
	for i := range m.segments {
		s := &m.segments[i]
		if s.flags&elf.PF_X == 0 {
			continue
		}
		if only != nil {
			return 0, false
		}
		only = s
	}
	const page = 0xfff
	if only == nil || p.Offset < p.MappingOffset {
		return 0, false
	}
	base := only
	if first := &m.segments[0]; p.MappingOffset == 0 && (only.addr&page == 0 || first.memorySz > page) {
		base = first // the executable segment is not at offset 0, so that the mapping is of the whole file
	}
	addr := base.addr&^page + p.Offset - p.MappingOffset
	return addr, addr-only.addr&^page < only.memorySz+page
}
