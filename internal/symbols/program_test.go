// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// largeProgram is a program of about 100 MB with a symbol table: SYMBOLS_PROGRAM, or Node.js.
func largeProgram(tb testing.TB) (name string, tableBytes int64) {
	tb.Helper()
	name = os.Getenv("SYMBOLS_PROGRAM")
	if name == "" {
		var err error
		if name, err = exec.LookPath("node"); err != nil {
			tb.Skip("no program of 100 MB with a symbol table (SYMBOLS_PROGRAM, or node)")
		}
	}
	f, err := elf.Open(name)
	if err != nil {
		tb.Skipf("%s: %v", name, err)
	}
	defer f.Close()
	table := f.Section(".symtab")
	if table == nil {
		tb.Skipf("%s has no symbol table", name)
	}
	for _, s := range []string{".symtab", ".strtab", ".dynsym", ".dynstr"} {
		if section := f.Section(s); section != nil {
			tableBytes += int64(section.Size)
		}
	}
	return name, tableBytes
}

func firstLookup(tb testing.TB, name string, addr uint64) *Image {
	f, err := os.Open(name)
	require.NoError(tb, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(tb, err)
	m, err := Open(f, info.Size(), DefaultLimits)
	require.NoError(tb, err)
	resolved, err := m.Resolve([]uint64{addr}, false)
	require.NoError(tb, err)
	require.NotEmpty(tb, resolved[0].Frames)
	return m
}

// The first lookup in a large program needs less memory than twice its symbol tables.
func TestMemoryOfALargeProgram(t *testing.T) {
	name, tableBytes := largeProgram(t)
	addr := functionAddresses(t, name, 1)[0]
	var m *Image
	profiletest.RequireCost(t, profiletest.BoundOf(int(tableBytes), 1<<20, 2), func() { m = firstLookup(t, name, addr) })
	assert.Less(t, m.KeptBytes(), tableBytes)
}
