// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzImage(f *testing.F) {
	f.Add(buildELF(goSections(true)...))
	f.Add(sameAddress(4))
	f.Add(nestedReferences()[:4096])
	f.Add(nestedMini(f))
	root, _ := exec.Command("go", "env", "GOROOT").Output()
	names, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src/debug/*/testdata/*.elf*"))
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && len(b) < 32<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireBounded(t, data) })
}

// FuzzDWARF puts its inputs into the sections of a file.
func FuzzDWARF(f *testing.F) {
	header := le(1, 1, 1, int(uint8(0xfb)), 14, 1, []byte{0, 'f', 0, 0, 0, 0, 0}, []byte{0, 9, 2}, uint64(textAddr), 1,
		200, 0, 1, 1)
	line := le(uint32(2+4+len(header)), uint16(4), uint32(13), header)
	entries := append(le(1, uint64(textAddr), uint64(100), uint32(0)),
		le(2, uint32(0), uint64(textAddr), uint64(10), 0)...)
	f.Add(unit4(0, entries), testAbbrevs, line, le(uint64(textAddr), uint64(textAddr+9), uint64(0), uint64(0)),
		[]byte("name\x00"))
	entries = le(4, uint64(textAddr), uint64(100), 3, uint32(0), uint32(0), 0)
	f.Add(unit4(0, entries), testAbbrevs, []byte{}, le(uint64(textAddr), uint64(textAddr+9), uint64(0), uint64(0)),
		[]byte("name\x00"))
	unit5 := func(entries []byte) []byte { return le(uint32(8+len(entries)), uint16(5), 1, 8, uint32(0), entries) }
	f.Add(unit5(le(4, uint64(textAddr), uint64(100), 3, uint32(0), uint32(0), 0)), testAbbrevs, line,
		le(5, uint64(textAddr), 4, 1, 9, 7, uint64(textAddr), 5, 1, 2, 3, 2, 0, 1, 0), []byte("name\x00"))
	f.Fuzz(func(t *testing.T, info, abbrev, line, ranges, text []byte) {
		requireBounded(t, buildELF(
			debugSection(".debug_info", info), debugSection(".debug_abbrev", abbrev), debugSection(".debug_line", line),
			debugSection(".debug_ranges", ranges), debugSection(".debug_rnglists", ranges), debugSection(".debug_str", text),
			debugSection(".debug_line_str", text), debugSection(".debug_addr", ranges),
			debugSection(".debug_str_offsets", ranges),
		))
	})
}

// FuzzGoTable uses its inputs as a pclntab and as the data of inlined calls.
func FuzzGoTable(f *testing.F) {
	sections := goSections(true)
	for _, version := range []byte{0xf1, 0xf0, 0xfa, 0xfb} {
		table := bytes.Clone(sections[0].data)
		table[0] = version
		f.Add(table, sections[1].data, sections[2].data)
	}
	f.Fuzz(func(t *testing.T, table, module, tree []byte) {
		sections := goSections(true)
		sections[0].data, sections[1].data, sections[2].data = table, module, tree
		requireBounded(t, buildELF(sections...))
	})
}

func FuzzXZ(f *testing.F) {
	f.Add(xzPacked(f, []byte("some text")))
	f.Add(xzPacked(f, make([]byte, 100_000)))
	f.Add(largeDictionary())
	f.Fuzz(func(t *testing.T, packed []byte) {
		plain, err := decompressXZ(packed, 1<<20, &meter{left: 64 << 20})
		if err == nil && len(plain) > 1<<20 {
			t.Fatalf("%d bytes", len(plain))
		}
	})
}

func FuzzDemangle(f *testing.F) {
	for name := range demangled {
		f.Add(name)
	}
	f.Add("_ZN" + strings.Repeat("1aI", 100) + "E")
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > maxNameBytes {
			return
		}
		for _, style := range []DemangleStyle{DemangleFull, DemangleTemplates, DemangleSimple, DemangleNone} {
			if text := Demangle(name, style); len(text) > len(name)+1<<maxDemangled+64 {
				t.Fatalf("%d bytes of %d", len(text), len(name))
			}
		}
	})
}
