// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
)

func cpp(tb testing.TB) program {
	return read(tb, programtest.Compile(tb, "g++", "shop.cc", "-O1", "-g"))
}

// shop is a C program, which compiles faster.
func shop(tb testing.TB) program {
	return read(tb, programtest.Compile(tb, "gcc", "shop.c", "-O1", "-g"))
}

const cppTotal = "_ZNK4shop6BasketIlE5totalEv"

func TestMappedFile(t *testing.T) {
	p := cpp(t)
	h := start(t, nil)
	m := p.mapping(0x7f0000000000, p.ids)
	before := sampled(p.at(m, cppTotal), p.at(m, "main"))
	out := h.pass(before)
	assert.Equal(t, []string{"shop::Basket<long>::total() const", "main"}, functions(out))
	text := profiletest.Render(out)
	assert.Contains(t, text, cppTotal, "the linker's name stays")
	assert.Contains(t, text, `symbolize.source`)
	assert.Contains(t, text, "0x7f00000", "the address stays")
}

// Each build id alone finds the file, and no other.
func TestBuildIDs(t *testing.T) {
	p := shop(t)
	goProgram := read(t, programtest.Go(t, []string{"CGO_ENABLED=0"}))
	require.NotEmpty(t, goProgram.ids.Go)
	for _, test := range []struct {
		name     string
		program  program
		ids      symbols.IDs
		function string
		expected string
	}{
		{"gnu", p, symbols.IDs{GNU: p.ids.GNU}, "main", "main"},
		{"gnu in capitals", p, symbols.IDs{GNU: strings.ToUpper(p.ids.GNU)}, "main", "main"},
		{"htlhash", p, symbols.IDs{Htlhash: p.ids.Htlhash}, "main", "main"},
		{"go", goProgram, symbols.IDs{Go: goProgram.ids.Go}, "main.main", "main.main"},
		{"gnu and htlhash", p, symbols.IDs{GNU: p.ids.GNU, Htlhash: p.ids.Htlhash}, "main", "main"},
		{"another gnu", p, symbols.IDs{GNU: strings.Repeat("ab", 20)}, "main", ""},
		{"another gnu, the file's htlhash", p, symbols.IDs{GNU: strings.Repeat("ab", 20), Htlhash: p.ids.Htlhash}, "main",
			""},
		{"another htlhash", p, symbols.IDs{Htlhash: strings.Repeat("ab", 16)}, "main", ""},
		{"another go", goProgram, symbols.IDs{Go: "other"}, "main.main", ""},
		{"none", p, symbols.IDs{}, "main", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, nil)
			out := h.pass(sampled(test.program.at(test.program.mapping(0x10000000, test.ids), test.function)))
			names := functions(out)
			assert.Equal(t, test.expected, names[len(names)-1])
		})
	}
}

func TestWithoutBuildID(t *testing.T) {
	p := shop(t)
	h := start(t, func(c *Config) { c.Sources.Files.WithoutBuildID = true })
	assert.Equal(t, []string{"main"}, functions(h.pass(sampled(p.at(p.mapping(0x10000000, symbols.IDs{}), "main")))))
}

// With `max_wait: 0` the first message passes unchanged; later ones have names.
func TestAsynchronous(t *testing.T) {
	p := shop(t)
	h := start(t, func(c *Config) { c.MaxWait = 0 })
	m := p.mapping(0x10000000, p.ids)
	assert.Equal(t, []string{""}, functions(h.pass(sampled(p.at(m, "main")))))
	assert.Eventually(t, func() bool { return functions(h.pass(sampled(p.at(m, "main"))))[0] == "main" },
		30*time.Second, 10*time.Millisecond)
}

func TestLines(t *testing.T) {
	p := cpp(t)
	h := start(t, func(c *Config) { c.Lookup.Lines = true; c.Lookup.Demangle = symbols.DemangleSimple })
	out := h.pass(sampled(p.at(p.mapping(0x10000000, p.ids), cppTotal)))
	assert.Equal(t, "shop::Basket::total", functions(out)[len(functions(out))-1])
	assert.Contains(t, profiletest.Render(out), "shop.cc")
	// So that readers of pprof do not look for names again.
	assert.Contains(t, profiletest.Render(out), attributeHasFunctions+"=true")
}

// Frames of interpreters and of the kernel, and locations with lines, do not change.
func TestOtherFramesStay(t *testing.T) {
	p := shop(t)
	h := start(t, nil)
	m := p.mapping(0x10000000, p.ids)
	python, kernel, named := p.at(m, "main"), p.at(m, "main"), p.at(m, "main")
	python.Attributes = []profiletest.Attribute{profiletest.Attr(attributeFrameType, "cpython")}
	kernel.Attributes = []profiletest.Attribute{profiletest.Attr(attributeFrameType, "kernel")}
	native := p.at(m, "exported")
	native.Attributes = []profiletest.Attribute{profiletest.Attr(attributeFrameType, "native")}
	named.Address++
	named.Lines = []profiletest.Line{{Function: profiletest.Function{Name: "as it came"}}}
	out := h.pass(sampled(python, kernel, named, native))
	assert.Equal(t, []string{"", "", "as it came", "exported"}, functions(out))
}

// What the eBPF profiler has named is not looked for again either: its mapping gets the flag once, and nothing else
// changes. A pprof has no types of frames, and stays as it is.
func TestNamedMappingsGetTheFlag(t *testing.T) {
	h := start(t, nil)
	named := func(attributes ...profiletest.Attribute) pprofile.Profiles {
		l := profiletest.Location{Address: 0x1000,
			Lines: []profiletest.Line{{Function: profiletest.Function{Name: "main.main"}}}, Attributes: attributes}
		l.Mapping = shop(t).mapping(0x10000000, symbols.IDs{Go: "another"})
		return sampled(l)
	}
	for _, frameType := range []string{"go", "kernel"} {
		out := h.pass(named(profiletest.Attr(attributeFrameType, frameType)))
		require.NoError(t, profiletest.Check(out))
		text := profiletest.Render(out)
		assert.Equal(t, 1, strings.Count(text, attributeHasFunctions+"=true"), "%s: %s", frameType, text)
		assert.NotContains(t, text, attributeSource)
		assert.Equal(t, text, profiletest.Render(h.pass(out)))
	}
	assert.NotContains(t, profiletest.Render(h.pass(named())), attributeHasFunctions)
}

// Functions and strings in the dictionary are reused; two locations of one function share it.
func TestDictionaryEntriesAreShared(t *testing.T) {
	p := shop(t)
	h := start(t, nil)
	m := p.mapping(0x10000000, p.ids)
	second := p.at(m, "main")
	second.Address++
	named := profiletest.Location{Lines: []profiletest.Line{{Function: profiletest.Function{Name: "main"}}}}
	out := h.pass(sampled(p.at(m, "main"), second, named))
	assert.Equal(t, []string{"main", "main", "main"}, functions(out))
	assert.Equal(t, 2, out.Dictionary().FunctionTable().Len())
}

// The same message yields the same bytes.
func TestDeterministic(t *testing.T) {
	p := shop(t)
	m := p.mapping(0x10000000, p.ids)
	var stack []profiletest.Location
	for _, name := range []string{"main", "exported", "quarter", "_start", "by_value"} {
		stack = append(stack, p.at(m, name))
	}
	var first []byte
	for range 3 {
		h := start(t, func(c *Config) { c.Lookup.Lines = true })
		var marshaler pprofile.ProtoMarshaler
		b, err := marshaler.MarshalProfiles(h.pass(sampled(stack...)))
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		assert.Equal(t, first, b)
	}
}

// A message can have a location twice: as it was before its lookup was ready, and after it.
func TestLocationsThatBecomeEqualAreCombined(t *testing.T) {
	p := shop(t)
	h := start(t, nil)
	m := p.mapping(0x10000000, p.ids)
	resolved := p.at(m, "main")
	resolved.Lines = []profiletest.Line{{Function: profiletest.Function{Name: "main"}}}
	resolved.Attributes = []profiletest.Attribute{profiletest.Attr(attributeSource, "file")}
	pd := profiletest.New().Profile("samples", "count").Sample(
		profiletest.Sample{Stack: []profiletest.Location{p.at(m, "main")}, Values: []int64{2}},
		profiletest.Sample{Stack: []profiletest.Location{resolved}, Values: []int64{3}},
	).Build()
	out := h.pass(pd)
	assert.Equal(t, 1, out.SampleCount())
	assert.Equal(t, []int64{5}, profiletest.SampleAt(out, 0).Values().AsRaw())
	assert.Equal(t, []string{"main"}, functions(out))
}

func TestReport(t *testing.T) {
	p := shop(t)
	stripped := read(t, programtest.Changed(t, p.path, "strip"))
	stripped.functions = p.functions
	h := start(t, nil)
	missing := strings.Repeat("ab", 20)
	h.pass(sampled(stripped.at(stripped.mapping(0x10000000, stripped.ids), "exported")))
	h.pass(sampled(p.at(p.mapping(0x10000000, symbols.IDs{GNU: missing}), "exported")))
	h.pass(sampled(p.at(p.mapping(0x10000000, symbols.IDs{GNU: missing}), "exported")))
	h.logUnresolved()
	entries := h.logs.FilterMessageSnippet("locations without function names").All()
	require.Len(t, entries, 1)
	fields := entries[0].ContextMap()
	assert.EqualValues(t, 3, fields["locations"])
	top := fields["top"].([]any)
	require.Len(t, top, 2)
	assert.Contains(t, top[0], "(mismatch, build id "+missing+"): 2")
	assert.Contains(t, top[1], "(no_symbol, build id "+p.ids.GNU+"): 1")
	h.logUnresolved()
	assert.Len(t, h.logs.All(), 1, "it counts anew after each report")
}

// A stripped program's own file has less than its debug file: each address is searched in all sources.
func TestDebugDirectory(t *testing.T) {
	p := shop(t)
	stripped := read(t, programtest.Changed(t, p.path, "strip"))
	debug := programtest.Changed(t, p.path, "objcopy", "--only-keep-debug")
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".build-id", p.ids.GNU[:2]), 0o755))
	require.NoError(t, os.Rename(debug, filepath.Join(dir, ".build-id", p.ids.GNU[:2], p.ids.GNU[2:]+".debug")))
	h := start(t, func(c *Config) { c.Sources.DebugDirectories = []string{"/nowhere", dir} })
	for _, ids := range []symbols.IDs{{GNU: p.ids.GNU}, stripped.ids} {
		m := stripped.mapping(0x10000000, ids)
		out := h.pass(sampled(profiletest.Location{Address: m.Start + p.functions["exported"] - p.text.Vaddr, Mapping: m}))
		assert.Equal(t, []string{"exported"}, functions(out))
		assert.Contains(t, profiletest.Render(out), "debug_directory")
	}
	// Without the program, only the debug file's own headers are left.
	m := p.mapping(0x10000000, symbols.IDs{GNU: p.ids.GNU})
	m.File = "/nowhere/program"
	assert.Equal(t, []string{"main"},
		functions(start(t, func(c *Config) { c.Sources.DebugDirectories = []string{dir} }).pass(sampled(p.at(m, "main")))))
}

func TestUploads(t *testing.T) {
	p := shop(t)
	goProgram := read(t, programtest.Go(t, []string{"CGO_ENABLED=0"}))
	dir := t.TempDir()
	h := start(t, func(c *Config) {
		c.Sources.Files.Enabled = false
		c.Sources.Uploads.Directory = dir
		c.Lookup.RetryInterval = time.Second
		c.Sources.Uploads.RefreshInterval = time.Second
	})
	message := func() pprofile.Profiles {
		return sampled(p.at(p.mapping(0x10000000, symbols.IDs{GNU: p.ids.GNU}), "main"),
			goProgram.at(goProgram.mapping(0x20000000, symbols.IDs{Go: goProgram.ids.Go}), "main.main"),
			p.at(p.mapping(0x30000000, symbols.IDs{Htlhash: p.ids.Htlhash}), "main"))
	}
	assert.Equal(t, []string{"", "", ""}, functions(h.pass(message())))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "shop", "1.2"), 0o755))
	copyFile(t, p.path, filepath.Join(dir, "shop", "1.2", "any name"))
	copyFile(t, goProgram.path, filepath.Join(dir, "go-program"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), []byte("no program"), 0o600))
	assert.Eventually(t, func() bool {
		return strings.Join(functions(h.pass(message())), " ") == "main main.main main"
	}, 30*time.Second, 50*time.Millisecond)
}

func copyFile(t *testing.T, from, to string) {
	b := profiletest.FileBytes(t, from)
	require.NoError(t, os.WriteFile(to, b, 0o600))
}

// A captured pprof of a C++ program without build ids passes unchanged: paths are only used if the configuration allows
// it.
func TestCapturedWithoutBuildIDs(t *testing.T) {
	payload := profiletest.FileBytes(t, filepath.Join("..", "..", "testdata", "pprof", "cpp-unsymbolized.pb.gz"))
	for _, byPath := range []bool{false, true} {
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(t, err)
		before := profiletest.Render(pd)
		h := start(t, func(c *Config) { c.Sources.Files.WithoutBuildID = byPath })
		require.NoError(t, h.ConsumeProfiles(t.Context(), pd))
		out := h.sink.AllProfiles()[0]
		require.NoError(t, profiletest.Check(out, profiletest.AllowRepeatedSamples()))
		if !byPath {
			assert.Equal(t, before, profiletest.Render(out))
		}
		assert.Equal(t, pd.SampleCount(), out.SampleCount())
	}
}
