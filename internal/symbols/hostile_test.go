// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// testLimits are so small that a limit is reached soon if no other check applies.
var testLimits = Limits{TableBytes: 16 << 20, Work: 64 << 20}

// testAddresses are the addresses at which hostile tables have functions.
func testAddresses() (addrs []uint64) {
	for i := range uint64(64) {
		addrs = append(addrs, textAddr+i*7)
	}
	return append(addrs, 0, 1, ^uint64(0), 1<<63)
}

// resolveAll makes every use of a file, and returns the memory of the frames.
func resolveAll(data []byte, limits Limits) (kept int) {
	m, err := Open(bytes.NewReader(data), int64(len(data)), limits)
	if err != nil {
		return 0
	}
	m.Matches(IDs{GNU: "00", Go: "x", Htlhash: "00"})
	m.HasSymbols()
	for _, p := range []Position{{Offset: 64}, {Offset: ^uint64(0)}, {Offset: 64, MappingOffset: 128}, {Virtual: true}} {
		m.Address(p)
	}
	m.GoVersion()
	functions, _ := m.GoFunctions("runtime.main", "main.main")
	for _, f := range functions {
		kept += len(f.Code)
	}
	var word [8]byte
	addrs := testAddresses()
	for _, addr := range addrs {
		m.InitialData(addr, word[:])
	}
	for range 2 { // what was read stays
		resolved, _ := m.Resolve(addrs, true)
		for _, r := range resolved {
			for i := range r.Frames {
				r.Frames[i].Demangle(DemangleFull)
			}
			for _, f := range r.Frames {
				kept += len(f.Name) + len(f.SystemName) + len(f.File) + 96
			}
		}
	}
	return kept
}

// requireBounded resolves addresses of a file and compares the cost with its size and the limits.
func requireBounded(t testing.TB, data []byte) {
	t.Helper()
	var kept int
	profiletest.RequireCost(t, profiletest.BoundOf(len(data), 3*int(testLimits.TableBytes), 16), func() {
		kept = resolveAll(data, testLimits)
	})
	assert.LessOrEqual(t, kept, 32<<20)
}

func TestHostileFilesAreBounded(t *testing.T) {
	text := bytes.Repeat([]byte{'x'}, 4<<20) // no NUL
	for name, data := range map[string][]byte{
		"sections with one long name": manySections(text),
		"symbols with one long name":  manySymbols(text, 60_000),
		"symbols at one address":      sameAddress(100_000),
		"a symbol table that is claimed": buildELF(elfSection{name: ".symtab", kind: elf.SHT_SYMTAB, claimed: 1 << 60,
			link: 0}),
		"names of sections that are claimed": claimedNames(),
		"a section that says it is large":    compressed(1<<40, nil),
		"a bomb of zlib":                     compressed(128<<20, deflated(t, make([]byte, 128<<20))),
		"a bomb of xz":                       buildELF(debugSection(".gnu_debugdata", xzPacked(t, make([]byte, 32<<20)))),
		"a dictionary of xz":                 buildELF(debugSection(".gnu_debugdata", largeDictionary())),
		"directories of a line table":        lineTable5(),
		"overlapping abbreviations":          overlappingAbbrevs(),
		"ranges that all functions share":    sharedRanges(),
		"a line table that all units share":  sharedLines(),
		"a function within itself":           nestedReferences(),
		"pclntab: a call within itself":      buildELF(goSections(true)...),
		"MiniDebugInfo in MiniDebugInfo":     nestedMini(t),
		"many blocks of xz":                  buildELF(debugSection(".gnu_debugdata", xzBlocks(3000, 0, nil))),
		"many blocks of xz with a byte each": buildELF(debugSection(".gnu_debugdata",
			xzBlocks(100_000, 1, []byte{1, 0, 0, 'x'}))),
		"many chunks of xz":                buildELF(debugSection(".gnu_debugdata", xzBlocks(1, 100_000, lzmaByte))),
		"a declaration of many attributes": manyAttributes(t, 7<<19),
		"many declarations":                manyDeclarations(t),
		"entries of many attributes":       manyFlags(1000, 2_000_000),
		"long names of many references":    longNames(),
		"sections with one long note":      manyNotes(),
		"tiny units": buildELF(debugSection(".debug_info", make([]byte, 1<<20)),
			debugSection(".debug_abbrev", testAbbrevs)),
	} {
		t.Run(name, func(t *testing.T) { requireBounded(t, data) })
	}
}

// zeroReader is a sparse file of any size.
type zeroReader struct{ front []byte }

func (z zeroReader) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	if off < int64(len(z.front)) {
		copy(b, z.front[off:])
	}
	return len(b), nil
}

// A sparse file of a terabyte can have tables of any size at no cost.
func TestSparseFileIsBounded(t *testing.T) {
	const size = 1 << 40
	for _, name := range []string{".symtab", ".gopclntab", ".debug_info", ".debug_abbrev", ".data", ".rela.dyn",
		".gnu_debugdata", ".rodata"} {
		kind := elf.SHT_PROGBITS
		if name == ".symtab" {
			kind = elf.SHT_SYMTAB
		}
		sections := []elfSection{
			{name: name, kind: kind, claimed: size / 2},
			debugSection(".note.go.buildid", []byte{1}),
			debugSection(".debug_info", unit4(0, []byte{1})), debugSection(".debug_abbrev", testAbbrevs),
			{name: ".shstrtab2", kind: elf.SHT_STRTAB, claimed: size / 2},
		}
		file := zeroReader{buildELF(append(sections, goSections(false)...)...)}
		if name == ".data" { // the names of sections, the last one, are as long
			at := binary.LittleEndian.Uint64(file.front[0x28:]) + 64*uint64(binary.LittleEndian.Uint16(file.front[0x3e:]))
			binary.LittleEndian.PutUint64(file.front[at+32:], size/2)
		}
		var resolved []Resolved
		profiletest.RequireCost(t, profiletest.BoundOf(len(file.front), 3*int(testLimits.TableBytes), 16), func() {
			m, err := Open(file, size, testLimits)
			require.NoError(t, err)
			resolved, _ = m.Resolve(testAddresses(), true)
		})
		assert.NotEmpty(t, resolved)
	}
}

// The size of an entry of the tables of headers is up to the file as well.
func TestHeadersOfASparseFileAreBounded(t *testing.T) {
	for name, change := range map[string]func(header []byte){
		"sections": func(header []byte) { copy(header[0x3a:], le(uint16(65535), uint16(maxSections))) },
		"segments": func(header []byte) { copy(header[0x36:], le(uint16(65535), uint16(maxSegments))) },
	} {
		t.Run(name, func(t *testing.T) {
			file := zeroReader{buildELF()}
			change(file.front)
			profiletest.RequireCost(t, profiletest.BoundOf(len(file.front), 4<<20, 16), func() {
				_, err := Open(file, 1<<40, testLimits)
				require.ErrorIs(t, err, ErrMalformed)
			})
		})
	}
}

// A compressed section of a sparse file can consist of frames that decompressors skip.
func TestSkippedFramesAreBounded(t *testing.T) {
	section := elfSection{
		name: ".debug_info", kind: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, claimed: 1 << 39,
		data: le(uint32(elf.COMPRESS_ZSTD), uint32(0), uint64(1<<20), uint64(1), uint32(0x184d2a50), ^uint32(0)),
	}
	file := &countingReader{r: zeroReader{buildELF(section, debugSection(".debug_abbrev", testAbbrevs))}}
	m, err := Open(file, 1<<40, testLimits)
	require.NoError(t, err)
	_, err = m.Resolve(testAddresses(), true)
	require.Error(t, err)
	assert.Less(t, file.read, 2*testLimits.TableBytes)
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r    io.ReaderAt
	read int64
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(b, off)
	c.read += int64(n)
	return n, err
}

// xzBlocks is an xz stream of blocks that each request a dictionary of 16 MiB and have n chunks.
func xzBlocks(blocks, n int, chunk []byte) []byte {
	block := append([]byte{1, 0, 0x21, 1, 24, 0, 0, 0}, bytes.Repeat(chunk, n)...)
	block = append(block, 0)
	for len(block)%4 != 0 {
		block = append(block, 0)
	}
	return append(append([]byte(xzMagic), 0, 0, 0, 0, 0, 0), bytes.Repeat(block, blocks)...)
}

// lzmaByte is a chunk of LZMA2 that resets everything for one byte.
var lzmaByte = []byte{0xe0, 0, 0, 0, 5, 4, 0, 0, 0, 0, 0, 0}

// manyAttributes has a declaration with n attributes, in a section that is compressed.
func manyAttributes(tb testing.TB, n int) []byte {
	return withAbbrevs(tb, append(append([]byte{1, tagCompileUnit, 1}, bytes.Repeat([]byte{attrName, formString}, n)...),
		0, 0, 0))
}

// manyDeclarations has declarations whose codes are not in order.
func manyDeclarations(tb testing.TB) []byte {
	var table []byte
	for i := range uint32(800_000) {
		code := 2<<21 - i
		table = append(table, byte(code)|0x80, byte(code>>7)|0x80, byte(code>>14)|0x80, byte(code>>21), tagSubprogram, 0, 0,
			0)
	}
	return withAbbrevs(tb, append(table, testAbbrevs...))
}

func withAbbrevs(tb testing.TB, plain []byte) []byte {
	data := append(le(uint32(elf.COMPRESS_ZLIB), uint32(0), uint64(len(plain)), uint64(1)), deflated(tb, plain)...)
	return buildELF(
		debugSection(".debug_info", unit4(0, le(1, uint64(textAddr), uint64(1<<20), uint32(0)))),
		elfSection{name: ".debug_abbrev", kind: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: data},
	)
}

// manyFlags has entries of a byte with n attributes that take no room.
func manyFlags(n, entries int) []byte {
	abbrevs := []byte{4, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData8, 0, 0, 5, 0x34, 0}
	abbrevs = append(append(abbrevs, bytes.Repeat([]byte{0x3f, formFlagPresent}, n)...), 0, 0, 0)
	info := append(le(4, uint64(textAddr), uint64(1<<20)), bytes.Repeat([]byte{5}, entries)...)
	return buildELF(debugSection(".debug_info", unit4(0, info)), debugSection(".debug_abbrev", abbrevs))
}

// longNames has functions that refer to hundreds of others, all with long names.
func longNames() []byte {
	abbrevs := []byte{
		4, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData8, 0, 0,
		5, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData8, attrAbstractOrigin, formRef4, 0, 0,
		6, tagSubprogram, 0, attrName, formStrp, attrLinkageName, formStrp, attrAbstractOrigin, formRef4, attrSpecification,
		formRef4, 0, 0,
		0,
	}
	const unitHeader, rootSize, functionSize, nodeSize, nodes = 11, 17, 21, 17, 1 << maxReferences
	var entries bytes.Buffer
	entries.Write(le(4, uint64(textAddr), uint64(1<<20)))
	for i := range uint32(64) {
		at := uint32(unitHeader+rootSize) + i*(functionSize+nodes*nodeSize) + functionSize
		node := func(k uint32) uint32 { return at + k%nodes*nodeSize }
		entries.Write(le(5, uint64(textAddr)+uint64(i)*7, uint64(7), node(0)))
		for k := range uint32(nodes) {
			entries.Write(le(6, uint32(0), uint32(0), node(2*k+1), node(2*k+2)))
		}
	}
	return buildELF(debugSection(".debug_info", unit4(0, entries.Bytes())), debugSection(".debug_abbrev", abbrevs),
		debugSection(".debug_str", bytes.Repeat([]byte{'x'}, 8<<10)))
}

// manyNotes has sections of notes that are all the same bytes.
func manyNotes() []byte {
	sections := make([]elfSection, maxSections-8)
	for i := range sections {
		sections[i] = elfSection{kind: elf.SHT_NOTE, claimed: maxNoteBytes}
	}
	return append(buildELF(sections...), make([]byte, maxNoteBytes)...)
}

func manySections(text []byte) []byte {
	sections := make([]elfSection, maxSections-8)
	for i := range sections {
		sections[i] = elfSection{kind: elf.SHT_NOTE}
	}
	data := buildELF(append(sections, debugSection("text", text))...)
	// All names begin in the text.
	at := binary.LittleEndian.Uint64(data[0x28:])
	n := int(binary.LittleEndian.Uint16(data[0x3c:]))
	for i := range n {
		binary.LittleEndian.PutUint32(data[at+uint64(i)*64:], uint32(i))
	}
	binary.LittleEndian.PutUint16(data[0x3e:], uint16(n-2))
	return data
}

func manySymbols(text []byte, n int) []byte {
	var table bytes.Buffer
	for i := range n {
		_ = binary.Write(&table, binary.LittleEndian, elf.Sym64{
			Name: uint32(i + 1), Info: byte(elf.STT_FUNC), Shndx: 1, Value: textAddr + uint64(i), Size: 1 << 20,
		})
	}
	return buildELF(
		elfSection{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_EXECINSTR, addr: textAddr},
		elfSection{name: ".symtab", kind: elf.SHT_SYMTAB, data: table.Bytes(), link: 3},
		elfSection{name: ".strtab", kind: elf.SHT_STRTAB, data: text},
	)
}

func sameAddress(n int) []byte {
	var table bytes.Buffer
	for range n {
		_ = binary.Write(&table, binary.LittleEndian, elf.Sym64{Name: 1, Info: byte(elf.STT_FUNC), Shndx: 1, Value: textAddr})
	}
	return buildELF(
		elfSection{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_EXECINSTR, addr: textAddr, claimed: 1 << 40},
		elfSection{name: ".symtab", kind: elf.SHT_SYMTAB, data: table.Bytes(), link: 3},
		elfSection{name: ".strtab", kind: elf.SHT_STRTAB, data: []byte("\x00name\x00")},
	)
}

func claimedNames() []byte {
	data := buildELF(debugSection(".text", []byte{1}))
	at := binary.LittleEndian.Uint64(data[0x28:])
	binary.LittleEndian.PutUint64(data[at+2*64+32:], 1<<60)
	return data
}

// compressed is a file whose .debug_info claims to have size bytes.
func compressed(size uint64, packed []byte) []byte {
	data := append(le(uint32(elf.COMPRESS_ZLIB), uint32(0), size, uint64(1)), packed...)
	return buildELF(elfSection{name: ".debug_info", kind: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: data},
		debugSection(".debug_abbrev", testAbbrevs))
}

func deflated(tb testing.TB, plain []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(plain)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

func xzPacked(tb testing.TB, plain []byte) []byte {
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 20, CheckSum: xz.CRC32}.NewWriter(&b)
	require.NoError(tb, err)
	_, err = w.Write(plain)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// largeDictionary is the beginning of an xz stream that requests a dictionary of 3 GiB.
func largeDictionary() []byte {
	b := append([]byte(xzMagic), 0, 1, 0, 0, 0, 0)
	return append(b, 2, 0, 0x21, 1, 39, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 'x', 0)
}

func nestedMini(tb testing.TB) []byte {
	file := manySymbols([]byte("\x00name\x00"), 4)
	for range 8 {
		file = buildELF(debugSection(".gnu_debugdata", xzPacked(tb, file)))
	}
	return file
}

// lineTable5 claims to have 2^35 directories of zero bytes.
func lineTable5() []byte {
	header := le(1, 1, 1, int(uint8(0xfb)), 14, 1, 0, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 1}, 0, 0)
	program := le(uint16(5), 8, 0, uint32(len(header)), header)
	return withUnit(le(1, uint64(textAddr), uint64(1<<20), uint32(0)),
		debugSection(".debug_line", le(uint32(len(program)), program)))
}

func withUnit(entries []byte, more ...elfSection) []byte {
	return buildELF(append([]elfSection{
		debugSection(".debug_info", unit4(0, entries)), debugSection(".debug_abbrev", testAbbrevs),
		debugSection(".debug_str", []byte("name\x00")),
	}, more...)...)
}

// overlappingAbbrevs has units that refer to all offsets of one long table.
func overlappingAbbrevs() []byte {
	table := bytes.Repeat([]byte{2, tagSubprogram, 0, attrName, formStrp, 0, 0}, 100_000)
	table = append(table, 1, tagCompileUnit, 0, 0, 0, 0)
	var info bytes.Buffer
	for i := range 20_000 {
		info.Write(unit4(uint32(i*7), []byte{1}))
	}
	return buildELF(debugSection(".debug_info", info.Bytes()), debugSection(".debug_abbrev", table))
}

func sharedRanges() []byte {
	var ranges, entries bytes.Buffer
	for i := range uint64(50_000) {
		ranges.Write(le(uint64(textAddr)+i, uint64(textAddr)+i+1000))
	}
	entries.Write(le(4, uint64(textAddr), uint64(1<<20)))
	for range 100_000 {
		entries.Write(le(3, uint32(0), uint32(0)))
	}
	return withUnit(entries.Bytes(), debugSection(".debug_ranges", ranges.Bytes()))
}

func sharedLines() []byte {
	header := le(1, 1, 1, int(uint8(0xfb)), 14, 1, []byte{0, 'f', 0, 0, 0, 0, 0})
	program := append(le(uint16(4), uint32(len(header)), header), bytes.Repeat([]byte{1}, 1<<20)...)
	line := le(uint32(len(program)), program)
	var info bytes.Buffer
	for i := range uint64(64) {
		for range 100 {
			info.Write(unit4(0, le(1, uint64(textAddr)+7*i, uint64(1), uint32(0))))
		}
	}
	return buildELF(debugSection(".debug_info", info.Bytes()), debugSection(".debug_abbrev", testAbbrevs),
		debugSection(".debug_line", line))
}

// nestedReferences has functions that are their own abstract origin, and each other's.
func nestedReferences() []byte {
	abbrevs := []byte{
		4, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData8, 0, 0,
		5, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData8, attrAbstractOrigin, formRef4, attrSpecification,
		formRef4, 0, 0,
		6, tagInlinedSubroutine, 1, attrLowPC, formAddr, attrHighPC, formData8, attrAbstractOrigin, formRef4,
		attrSpecification, formRef4, 0, 0,
		0,
	}
	random := rand.New(rand.NewPCG(3, 4))
	entries := le(4, uint64(textAddr), uint64(1<<20), 5, uint64(textAddr), uint64(1<<20), uint32(28), uint32(28))
	for range 5_000 {
		entries = append(entries, le(6, uint64(textAddr), uint64(1<<20), random.Uint32N(100_000), random.Uint32N(100_000))...)
	}
	return buildELF(debugSection(".debug_info", unit4(0, entries)), debugSection(".debug_abbrev", abbrevs))
}

// goSections is a pclntab of Go 1.20 with one function at textAddr, and the module data. With a loop, all calls in it
// were inlined into each other.
func goSections(loop bool) []elfSection {
	const functionsAt, pcTableAt, tableAddr = 0x200, 0x300, 0x100000
	table := make([]byte, 0x2000)
	copy(table, le(uint32(0xfffffff1), 0, 0, 1, 8, uint64(1), uint64(1), uint64(0),
		uint64(0x100), uint64(0x180), uint64(0x1c0), uint64(pcTableAt), uint64(functionsAt)))
	copy(table[0x100:], le("main.main", "inlined"))
	copy(table[0x1c0:], "main.go\x00")
	copy(table[functionsAt:], le(uint32(0), uint32(0x20), uint32(1<<20)))
	// _func, with three tables of values by address and four of data.
	inlineTree := ^uint32(0)
	if loop {
		inlineTree = 0
	}
	copy(table[functionsAt+0x20:],
		le(uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint32(1), uint32(9), uint32(3), uint32(0),
			uint32(7), 0, 0, 0, 4, uint32(1), uint32(1), uint32(1), ^uint32(0), ^uint32(0), ^uint32(0), inlineTree))
	// The value 0 for the first 2^20 addresses, in two ways.
	copy(table[pcTableAt+1:], []byte{2, 0x80, 0x80, 0x40, 0})
	copy(table[pcTableAt+9:], []byte{20, 0x80, 0x80, 0x40, 0})
	module := make([]byte, moduleDataMinWords*8)
	binary.LittleEndian.PutUint64(module, tableAddr)
	binary.LittleEndian.PutUint64(module[8*moduleTextWord:], textAddr)
	sections := []elfSection{
		{name: ".gopclntab", kind: elf.SHT_PROGBITS, addr: tableAddr, data: table},
		{name: ".go.module", kind: elf.SHT_PROGBITS, data: module},
		{name: ".tree", kind: elf.SHT_PROGBITS, data: bytes.Repeat(le(0, 0, 0, 0, uint32(10), uint32(1), uint32(3)), 64)},
	}
	// Sections before the tree: the table, padded to 8 bytes, and the module data, after the headers.
	binary.LittleEndian.PutUint64(module[8*moduleFuncWord120:], textAddr+64+56+uint64(len(table)+len(module)))
	return sections
}

// The valid files from which the hostile ones are made resolve correctly.
func TestBuiltFilesResolve(t *testing.T) {
	open := func(data []byte) *Image {
		m, err := Open(bytes.NewReader(data), int64(len(data)), testLimits)
		require.NoError(t, err)
		return m
	}
	resolved, err := open(buildELF(goSections(false)...)).Resolve([]uint64{textAddr + 5}, false)
	require.NoError(t, err)
	require.Len(t, resolved[0].Frames, 1)
	assert.Equal(t, Frame{Name: "main.main", File: "main.go", Line: 9, StartLine: 7}, resolved[0].Frames[0])

	resolved, err = open(buildELF(goSections(true)...)).Resolve([]uint64{textAddr + 5}, false)
	require.NoError(t, err)
	require.NotEmpty(t, resolved[0].Frames)
	assert.Equal(t, "inlined", resolved[0].Frames[0].Name)
	assert.LessOrEqual(t, len(resolved[0].Frames), maxInlineDepth)

	entries := append(le(4, uint64(textAddr), uint64(100)), le(2, uint32(0), uint64(textAddr), uint64(10), 0)...)
	resolved, err = open(withUnit(entries)).Resolve([]uint64{textAddr + 5, textAddr + 50}, true)
	require.NoError(t, err)
	require.Len(t, resolved[0].Frames, 1)
	assert.Equal(t, "name", resolved[0].Frames[0].Name)
	assert.Empty(t, resolved[1].Frames)

	mini := buildELF(debugSection(".gnu_debugdata", xzPacked(t, manySymbols([]byte("\x00name\x00"), 1))))
	resolved, err = open(mini).Resolve([]uint64{textAddr + 5}, false)
	require.NoError(t, err)
	require.Len(t, resolved[0].Frames, 1)
	assert.Equal(t, "name", resolved[0].Frames[0].Name)
}

// A malformed or large unit does not keep the others from being used.
func TestOtherUnitsAreUsed(t *testing.T) {
	unit := func(low uint64, entries ...byte) []byte {
		entries = append(entries, le(2, uint32(0), low, uint64(10), 0)...)
		return unit4(0, append(le(4, low, uint64(10)), entries...))
	}
	good := unit(textAddr + 100)
	for name, bad := range map[string][]byte{
		"an unknown abbreviation":             unit(textAddr, 9),
		"an unknown abbreviation at its root": unit4(0, []byte{9}),
		"a cut entry":                         unit4(0, le(4, uint64(textAddr), uint64(10), 2, 1)),
		"another version":                     le(uint32(7), uint16(9), uint32(0), 8),
		"another size of addresses":           le(uint32(7), uint16(4), uint32(0), 2),
		"no header":                           le(uint32(0)),
		"too large":                           unit(textAddr, make([]byte, testLimits.TableBytes)...),
	} {
		for order, info := range [][]byte{slices.Concat(bad, good), slices.Concat(good, bad)} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				data := buildELF(debugSection(".debug_info", info), debugSection(".debug_abbrev", testAbbrevs),
					debugSection(".debug_str", []byte("name\x00")))
				m, err := Open(bytes.NewReader(data), int64(len(data)), testLimits)
				require.NoError(t, err)
				resolved, err := m.Resolve([]uint64{textAddr + 5, textAddr + 105}, true)
				require.Error(t, err)
				require.Len(t, resolved[1].Frames, 1)
				assert.Equal(t, "name", resolved[1].Frames[0].Name)
			})
		}
	}
}

// Reaching a limit is an error, and what was found before is returned.
func TestLimits(t *testing.T) {
	data := sameAddress(1000)
	for limits, expected := range map[Limits]error{
		{TableBytes: 1000, Work: 1 << 20}:    ErrTooLarge,
		{TableBytes: 1 << 20, Work: 1000}:    ErrTooMuchWork,
		{TableBytes: 1 << 20, Work: 1 << 20}: nil,
	} {
		m, err := Open(bytes.NewReader(data), int64(len(data)), limits)
		require.NoError(t, err)
		resolved, err := m.Resolve([]uint64{textAddr}, false)
		require.ErrorIs(t, err, expected)
		assert.Equal(t, expected == nil, len(resolved[0].Frames) == 1)
	}
}

// A function can have lines and no entry: its name is from the symbol table.
func TestFunctionWithoutAnEntry(t *testing.T) {
	header := le(1, 1, 1, 0xfb, 14, 1, 0, "f.c", 0, 0, 0, 0)
	const line7, advance16 = 12, 230
	lines := le(uint16(4), uint32(len(header)), header, 0, 9, lineExtSetAddress, uint64(textAddr), line7, advance16, 0, 1,
		lineExtEndSequence)
	symtab := le(uint32(1), int(elf.STT_FUNC), 0, uint16(1), uint64(textAddr), uint64(16))
	splitAbbrevs := append(slices.Clone(testAbbrevs[:9]), 0xb0, 0x42, formFlagPresent, 0, 0, 0) // with attrGNUDwoName
	for _, test := range []struct {
		abbrevs  []byte
		expected Resolved
	}{
		{testAbbrevs, Resolved{Frames: []Frame{{Name: "name", File: "f.c", Line: 7}}, Quality: QualityLines}},
		// The inlined calls, to which the lines belong, are in another file.
		{splitAbbrevs, Resolved{Frames: []Frame{{Name: "name"}}, Quality: QualityFunction}},
	} {
		data := buildELF(
			elfSection{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_EXECINSTR, addr: textAddr, claimed: 1 << 10},
			elfSection{name: ".symtab", kind: elf.SHT_SYMTAB, data: symtab, link: 3},
			elfSection{name: ".strtab", kind: elf.SHT_STRTAB, data: []byte("\x00name\x00")},
			debugSection(".debug_info", unit4(0, le(1, uint64(textAddr), uint64(1<<10), uint32(0)))),
			debugSection(".debug_abbrev", test.abbrevs), debugSection(".debug_line", le(uint32(len(lines)), lines)))
		m, err := Open(bytes.NewReader(data), int64(len(data)), testLimits)
		require.NoError(t, err)
		resolved, err := m.Resolve([]uint64{textAddr + 15, textAddr + 16}, true)
		require.NoError(t, err)
		assert.Equal(t, []Resolved{test.expected, {}}, resolved)
	}
}

// Go's linker writes the section headers first: a program that is cut off has them, and not what they describe.
func TestCutProgram(t *testing.T) {
	whole := buildELF(goSections(true)...)
	m, err := Open(bytes.NewReader(whole), int64(len(whole)), testLimits)
	require.NoError(t, err)
	require.NoError(t, m.Whole())
	last := &m.sections[0]
	for i := range m.sections {
		if s := &m.sections[i]; s.kind != elf.SHT_NOBITS && s.off+s.size > last.off+last.size {
			last = s
		}
	}
	last.size += 1 << 20
	m.noteEnd(last)
	require.ErrorIs(t, m.Whole(), ErrMalformed)
	_, err = m.Resolve(testAddresses(), true)
	require.NoError(t, err, "what it has is resolved")
	_, err = m.Resolve([]uint64{1}, true)
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "cut off")
}

// A file that was cut off, or shrinks while it is read, is an error.
func TestCutFiles(t *testing.T) {
	whole := buildELF(append(goSections(true), debugSection(".debug_info", unit4(0, []byte{1})),
		debugSection(".debug_abbrev", testAbbrevs))...)
	for n := 0; n < len(whole); n += 13 {
		resolveAll(whole[:n], testLimits)
		m, err := Open(bytes.NewReader(whole[:n]), int64(len(whole)), testLimits)
		if err == nil {
			_, _ = m.Resolve(testAddresses(), true)
		}
	}
}
