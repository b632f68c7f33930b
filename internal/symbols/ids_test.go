// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/ebpf-profiler/libpf"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
)

// The hash equals that of the eBPF profiler, for file sizes around its block size.
func TestHtlhashIsTheProfilers(t *testing.T) {
	for _, size := range []int{64, 4095, 4096, 4097, 8191, 8192, 100_000} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		copy(data, "\x7fELF\x02\x01\x01")
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, data, 0o600))
		expected, err := libpf.FileIDFromExecutableFile(name)
		require.NoError(t, err)
		m := &Image{file: extent{r: bytes.NewReader(data), size: int64(size)}}
		hash, err := m.Htlhash()
		require.NoError(t, err)
		assert.Equal(t, expected.StringNoQuotes(), hash, "%d bytes", size)
	}
}

func TestMatches(t *testing.T) {
	m := &Image{ids: IDs{GNU: "ab12", Go: "x/y", Htlhash: "cd34"}}
	debug := &Image{ids: IDs{GNU: "ab12", Htlhash: "ff00"}}
	for _, test := range []struct {
		image    *Image
		want     IDs
		expected bool
	}{
		{m, IDs{}, false},
		{m, IDs{GNU: "ab12"}, true},
		{m, IDs{GNU: "AB12"}, true},
		{m, IDs{GNU: "ab13"}, false},
		{m, IDs{Go: "x/y"}, true},
		{m, IDs{Htlhash: "cd34"}, true},
		{m, IDs{Htlhash: "cd35"}, false},
		{m, IDs{GNU: "ab12", Htlhash: "cd34"}, true},
		{m, IDs{GNU: "ab13", Htlhash: "cd34"}, false},
		{m, IDs{GNU: "ab12", Go: "x/z", Htlhash: "cd34"}, false},
		{debug, IDs{GNU: "ab12", Htlhash: "cd34"}, true},
		{debug, IDs{Go: "x/y"}, false},
	} {
		assert.Equal(t, test.expected, test.image.Matches(test.want), "%+v", test.want)
	}
}

// A position has the same address in the program and in its debug file, although their offsets differ.
func TestAddress(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O1", "-g")
	debug := open(t, programtest.Changed(t, program, "objcopy", "--only-keep-debug"))
	m := open(t, program)
	addr := functionAddresses(t, program, 1)[0]
	var offset, segment uint64
	for _, s := range m.segments {
		if addr >= s.addr && addr-s.addr < s.fileSize {
			offset, segment = addr-s.addr+s.off, s.off
		}
	}
	for _, image := range []*Image{m, debug} {
		got, ok := image.Address(Position{Offset: offset, MappingOffset: segment &^ 0xfff})
		assert.True(t, ok)
		assert.Equal(t, addr, got)
		got, ok = image.Address(Position{Offset: addr, Virtual: true})
		assert.True(t, ok)
		assert.Equal(t, addr, got)
	}
	_, ok := debug.Address(Position{Offset: 1 << 40})
	assert.False(t, ok)
}

// Some producers have one mapping for the whole file, in which the executable segment comes after the first page.
func TestAddressInAMappingOfTheWholeFile(t *testing.T) {
	for _, flag := range []string{"-Wl,-z,separate-code", "-Wl,-z,noseparate-code"} {
		program := programtest.Compile(t, "gcc", "shop.c", "-O1", "-g", flag)
		addr := functionAddresses(t, program, 1)[0]
		m := open(t, program)
		for _, image := range []*Image{m, open(t, programtest.Changed(t, program, "objcopy", "--only-keep-debug"))} {
			got, ok := image.Address(Position{Offset: addr - m.segments[0].addr})
			assert.True(t, ok, flag)
			assert.Equal(t, addr, got, flag)
		}
	}
}
