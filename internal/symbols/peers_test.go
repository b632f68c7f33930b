// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
)

func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.Command(name, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s %q: %s", name, args, &stderr)
	return out
}

// open opens an image for as long as the test runs.
func open(t testing.TB, name string) *Image {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	require.NoError(t, err)
	m, err := Open(f, info.Size(), DefaultLimits)
	require.NoError(t, err)
	return m
}

// functionAddresses draws n random addresses inside functions of a file's symbol table.
func functionAddresses(t testing.TB, name string, n int) (addrs []uint64) {
	t.Helper()
	f, err := elf.Open(name)
	require.NoError(t, err)
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		list, err = f.DynamicSymbols()
	}
	require.NoError(t, err)
	list = slices.DeleteFunc(list, func(s elf.Symbol) bool {
		return elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || s.Section == elf.SHN_UNDEF
	})
	require.NotEmpty(t, list)
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		s := list[random.IntN(len(list))]
		addrs = append(addrs, s.Value+random.Uint64N(s.Size))
	}
	return addrs
}

// peer is what another symboliser returns: the frames of each address.
func peer(t testing.TB, tool, name string, addrs []uint64) (frames [][]Frame) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("no %s", tool)
	}
	args := []string{"-f", "-i", "-a", "-e", name}
	if tool == "llvm-symbolizer" {
		args = []string{"--functions=linkage", "--inlines", "--no-demangle", "--print-address", "--output-style=GNU",
			"--obj=" + name}
	}
	for _, a := range addrs {
		args = append(args, fmt.Sprintf("%#x", a))
	}
	lines := strings.Split(strings.TrimSpace(string(run(t, tool, args...))), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "0x") {
			frames = append(frames, nil)
			continue
		}
		f := Frame{Name: lines[i]}
		i++
		require.Less(t, i, len(lines))
		text, _, _ := strings.Cut(lines[i], " (discriminator")
		colon := strings.LastIndexByte(text, ':')
		f.File = text[:colon]
		f.Line, _ = strconv.ParseInt(text[colon+1:], 10, 64)
		last := &frames[len(frames)-1]
		*last = append(*last, f)
	}
	require.Len(t, frames, len(addrs))
	return frames
}

// aliases returns the names that the symbol tables have for the same address.
func aliases(t testing.TB, name string) func(a, b string) bool {
	f, err := elf.Open(name)
	require.NoError(t, err)
	defer f.Close()
	at := map[string]map[uint64]bool{}
	static, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(static, dynamic...) {
		n := withoutVersion(s.Name)
		if at[n] == nil {
			at[n] = map[uint64]bool{}
		}
		at[n][s.Value] = true
	}
	return func(a, b string) bool {
		a = strings.ReplaceAll(a, "·", ".")
		for addr := range at[a] {
			if at[b][addr] {
				return true
			}
		}
		return a == b
	}
}

// agreement is how many addresses have the same result as the peer's.
type agreement struct{ names, stacks, lines, known, total int }

func compareWithPeer(t testing.TB, tool, ours, program string, n int, lines bool) agreement {
	t.Helper()
	addrs := functionAddresses(t, program, n)
	theirs := peer(t, tool, program, addrs)
	resolved, err := open(t, ours).Resolve(addrs, lines)
	require.NoError(t, err)
	same := aliases(t, program)
	a := agreement{total: n}
	shown := 0
	for i := range addrs {
		expected := theirs[i]
		if expected[len(expected)-1].Name == "??" {
			continue
		}
		a.known++
		got := resolved[i].Frames
		if len(got) == 0 {
			show(t, &shown, addrs[i], expected, got)
			continue
		}
		if same(plainName(got[len(got)-1].Name), plainName(expected[len(expected)-1].Name)) {
			a.names++
		} else {
			show(t, &shown, addrs[i], expected, got)
		}
		if !lines {
			continue
		}
		stacks, numbers := len(got) == len(expected), len(got) == len(expected)
		for k := range got {
			if !stacks {
				break
			}
			stacks = stacks && same(plainName(got[k].Name), plainName(expected[k].Name))
			numbers = numbers && (got[k].Line == expected[k].Line && got[k].File == path.Clean(expected[k].File) ||
				got[k].Line == 0 && expected[k].Line == 0 ||
				expected[k].File == "??") // as for what Go's compiler generated
		}
		if stacks {
			a.stacks++
		}
		if stacks && numbers {
			a.lines++
		}
		if !stacks || !numbers {
			show(t, &shown, addrs[i], expected, got)
		}
	}
	t.Logf("%s: %+v", tool, a)
	return a
}

// plainName converts a peer's function name to our form: without the symbol's version, the suffix of Go's ABI, and the
// number of a clone.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "@")
	for _, clone := range []string{".constprop.", ".isra.", ".part.", ".cold", ".abi0", ".llvm."} {
		name, _, _ = strings.Cut(name, clone)
	}
	return name
}

func show(t testing.TB, shown *int, addr uint64, expected, got []Frame) {
	if *shown++; *shown <= 5 {
		t.Logf("%#x:\n  peer %+v\n  ours %+v", addr, expected, got)
	}
}

func TestAgreesWithPeers(t *testing.T) {
	cc := func(compiler, source string, flags ...string) func(t *testing.T) string {
		return func(t *testing.T) string { return programtest.Compile(t, compiler, source, flags...) }
	}
	// addr2line 2.40 reads no lines of Go's DWARF 5.
	llvm := []string{"llvm-symbolizer"}
	static := []string{"CGO_ENABLED=0"}
	for _, program := range []struct {
		name  string
		lines bool
		// build returns the program, which the peers read; strip returns the file made of it that is resolved.
		build func(t *testing.T) string
		strip []string
		peers []string
	}{
		{name: "C++", lines: true, build: cc("g++", "shop.cc", "-O2", "-g")},
		{name: "C++, DWARF 4", lines: true, build: cc("g++", "shop.cc", "-O2", "-g", "-gdwarf-4")},
		{name: "C++, compressed", lines: true, build: cc("g++", "shop.cc", "-O2", "-g", "-gz=zlib")},
		{name: "C++, no PIE", lines: true, build: cc("g++", "shop.cc", "-O1", "-g", "-no-pie")},
		{name: "C++, names alone", build: cc("g++", "shop.cc", "-O2")},
		{name: "C++, 100 MB", build: func(t *testing.T) string {
			name, _ := largeProgram(t)
			return name
		}, peers: llvm},
		// addr2line 2.40 misses most inlined calls in clang's DWARF 5.
		{name: "C++, clang", lines: true, build: cc("clang++", "shop.cc", "-O2", "-g"), peers: llvm},
		{name: "C++, clang, -g1", lines: true, build: cc("clang++", "shop.cc", "-O2", "-gdwarf-5", "-g1"), peers: llvm},
		{name: "Rust", lines: true, build: cc("rustc", "shop.rs", "-O", "-g"), peers: llvm},
		{name: "Rust, lines", lines: true, build: cc("rustc", "shop.rs", "-O", "-Cdebuginfo=line-tables-only"), peers: llvm},
		{name: "C", lines: true, build: cc("gcc", "shop.c", "-O2", "-g")},
		// addr2line 2.40 reads no lines of 64-bit DWARF.
		{name: "C, 64-bit DWARF", lines: true, build: cc("gcc", "shop.c", "-O2", "-g", "-gdwarf64"), peers: llvm},
		{name: "C, debug file", lines: true, build: cc("gcc", "shop.c", "-O2", "-g"),
			strip: []string{"objcopy", "--only-keep-debug"}},
		{name: "Go", lines: true, peers: llvm, build: func(t *testing.T) string { return programtest.Go(t, static) }},
		{name: "Go, stripped", lines: true, peers: llvm,
			build: func(t *testing.T) string { return programtest.Go(t, static) }, strip: []string{"strip"}},
		{name: "Go, PIE, stripped", lines: true, peers: llvm,
			build: func(t *testing.T) string { return programtest.Go(t, static, "-buildmode=pie") }, strip: []string{"strip"}},
		{name: "Go, linked by gcc, PIE, stripped", lines: true, peers: llvm, build: func(t *testing.T) string {
			if _, err := exec.LookPath("gcc"); err != nil {
				t.Skip("no gcc")
			}
			return programtest.Go(t, []string{"CGO_ENABLED=1"}, "-buildmode=pie", "-ldflags=-linkmode=external")
		}, strip: []string{"strip"}},
		{name: "Go, arm64, stripped", lines: true, peers: llvm, build: func(t *testing.T) string {
			return programtest.Go(t, append(static, "GOOS=linux", "GOARCH=arm64"))
		}, strip: []string{"llvm-strip"}},
		{name: "Go, 386", lines: true, peers: llvm, build: func(t *testing.T) string {
			return programtest.Go(t, append(static, "GOOS=linux", "GOARCH=386"))
		}, strip: []string{"llvm-strip"}},
	} {
		t.Run(program.name, func(t *testing.T) {
			name := program.build(t)
			ours := name
			if program.strip != nil {
				ours = programtest.Changed(t, name, program.strip...)
			}
			peers := program.peers
			if peers == nil {
				peers = []string{"llvm-symbolizer", "addr2line"}
			}
			for _, tool := range peers {
				a := compareWithPeer(t, tool, ours, name, 300, program.lines)
				assert.Positive(t, a.known, tool)
				least := 97
				if tool == "addr2line" {
					// where DWARF has no linkage name it prints DW_AT_name, and the inlined frames of a clone are the clone's
					least = 90
				}
				assert.GreaterOrEqual(t, a.names*100, a.known*least, tool)
				if program.lines {
					assert.GreaterOrEqual(t, a.lines*100, a.known*min(least, 95), tool)
				}
			}
		})
	}
}

func TestLibcAgreesWithPeers(t *testing.T) {
	_, debug := libcWithDebug(t)
	for _, tool := range []string{"llvm-symbolizer", "addr2line"} {
		t.Run(tool, func(t *testing.T) {
			a := compareWithPeer(t, tool, debug, debug, 300, true)
			assert.GreaterOrEqual(t, a.names*100, a.known*98)
		})
	}
}

// libcWithDebug returns the C library and its debug file.
func libcWithDebug(t testing.TB) (libc, debug string) {
	t.Helper()
	for _, libc = range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6",
		"/lib64/libc.so.6"} {
		if _, err := os.Stat(libc); err != nil {
			continue
		}
		id := open(t, libc).IDs().GNU
		debug = filepath.Join("/usr/lib/debug/.build-id", id[:2], id[2:]+".debug")
		if _, err := os.Stat(debug); err == nil {
			return libc, debug
		}
	}
	t.Skip("no C library with a debug package (libc6-dbg)")
	return "", ""
}
