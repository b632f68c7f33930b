// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pdataiter "github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// tool is the binary, built once.
var tool string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "profiletool")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(folder) }()
		tool = filepath.Join(folder, "profiletool")
		if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// result is the outcome of a run of the tool.
type result struct {
	out, log string
	code     int
}

// run runs the tool to its end.
func run(t *testing.T, stdin []byte, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &log
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out.String(), log.String(), cmd.ProcessState.ExitCode()}
}

// must runs the tool, requires that it succeeds, and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, nil, args...)
	require.Equal(t, exitOK, r.code, "%s\n%s", strings.Join(args, " "), r.log)
	return r.out
}

// merged returns files as one message of OTLP.
func merged(t *testing.T, paths ...string) string {
	t.Helper()
	return must(t, append([]string{"convert", "-o", outOTLP}, paths...)...)
}

// write writes a new file and returns its path.
func write(t *testing.T, name string, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func unmarshal(t *testing.T, content string) pprofile.Profiles {
	t.Helper()
	return profiletest.Unmarshal(t, []byte(content))
}

func parse(t *testing.T, content string) *profile.Profile {
	t.Helper()
	return profiletest.ParsePprof(t, []byte(content))
}

const (
	pprofData  = "../../testdata/pprof/"
	layoutData = "../../internal/otlp/layouts/testdata/"
	splunkData = "../../testdata/splunk/"
	goCPU      = pprofData + "go-cpu-labels.pb.gz"
	goHeap     = pprofData + "go-heap.pb.gz"
)

func TestExitCodes(t *testing.T) {
	good := write(t, "good.otlp", merged(t, goCPU))
	for name, c := range map[string]struct {
		args []string
		code int
		log  string
	}{
		"help":                     {[]string{"--help"}, exitOK, ""},
		"version":                  {[]string{"--version"}, exitOK, ""},
		"no such command":          {[]string{"frobnicate"}, exitFailed, `unknown command "frobnicate"`},
		"no such command of store": {[]string{"store", "frobnicate"}, exitFailed, `unknown command "frobnicate"`},
		"no directory": {[]string{"store", "check"}, exitFailed,
			"name one directory: storage.directory of the exporter profile_store, found 0"},
		"no such flag": {[]string{"stats", "--frobnicate", good}, exitFailed, "unknown flag: --frobnicate"},
		"no such file": {[]string{"stats", "/none"}, exitFailed, "profiletool: /none: no such file or directory"},
		"no format":    {[]string{"convert", good}, exitFailed, "-o must name the output format: pprof, otlp, "},
		"a wrong format": {[]string{"convert", "-o", "jpeg", good}, exitFailed,
			"must be one of pprof, otlp, otlp-json, collapsed, speedscope, text"},
		"not a profile": {[]string{"stats", "../../README.md"}, exitFailed, "profiletool: ../../README.md: "},
		"a text dump":   {[]string{"stats", pprofData + "go-goroutine-debug1.txt"}, exitFailed, "ask without debug=1"},
		"stdin twice":   {[]string{"stats", "-", "-"}, exitFailed, "standard input can be read only once"},
		"parts of text": {[]string{"convert", "-o", "text", "--max-bytes", "1000", good}, exitFailed,
			"--max-bytes must be positive, and is for otlp and otlp-json"},
		"nothing chosen": {[]string{"convert", "-o", "text", "--service", "none", good}, exitFailed,
			"nothing is selected; there is:\n  unknown_service process_cpu cpu/nanoseconds"},
		"none to send": {[]string{"send", "--service", "none", good, goHeap}, exitFailed,
			"nothing is selected; there is:\n  unknown_service process_cpu cpu/nanoseconds"},
		"a wrong time":    {[]string{"convert", "--at", "yesterday", good}, exitFailed, `"yesterday" is not a time`},
		"since of a file": {[]string{"top", "-since=1h", goCPU}, exitFailed, "-since needs -store"},
		"a future store":  {[]string{"top", "-store=/none", "-since=-1h"}, exitFailed, "-since must be positive, found -1h0m0s"},
		"store and file":  {[]string{"top", "-store=/none", goCPU}, exitFailed, "profiletool: -store and files do not go together"},
		"pprof's flag":    {[]string{"top", "-frobnicate", goCPU}, exitFailed, "-frobnicate"},
		"pprof's file":    {[]string{"top", "/none"}, exitFailed, "/none: no such file"},
		"pprof's regexp":  {[]string{"peek", "-cum"}, exitFailed, "a regular expression for the functions is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, nil, c.args...)
			assert.Equal(t, c.code, r.code, r.log)
			assert.Contains(t, r.log, c.log)
			if c.code != exitOK {
				assert.Empty(t, r.out)
			}
		})
	}
}

// TestUnreadableFiles runs every command that reads files without one, and with files that it cannot read. Each run
// writes one line that says so.
func TestUnreadableFiles(t *testing.T) {
	good, text := write(t, "good.otlp", merged(t, goCPU)), write(t, "a.txt", "# Title\n")
	for _, command := range [][]string{
		{"convert", "-o", "otlp"}, {"convert", "-o", "otlp", "--out=" + t.TempDir()}, {"check"}, {"stats"},
		{"serve", "--endpoint=localhost:0"}, {"send", "--endpoint=localhost:1"},
		{"top"}, {"tree"}, {"peek", "main"}, {"list", "main"}, {"diff", good}, {"flamegraph", "-no_browser"}, {"web"},
		{"pprof", "-top"},
	} {
		for _, c := range []struct{ file, log string }{
			{"", `profiletool: a file is missing; "-" is standard input`},
			{"--frobnicate", "-frobnicate"},
			{"/none", "/none: no such file or directory"},
			{"..", "..: is a directory"},
			{os.DevNull, os.DevNull + ": the file is empty"},
			{text, text + ": not a pprof protobuf: it seems to be text"},
		} {
			t.Run(command[0]+" "+filepath.Base(c.file), func(t *testing.T) {
				args := command
				if c.file != "" {
					args = append(slices.Clip(args), c.file)
				}
				r := run(t, nil, args...)
				assert.Equal(t, exitFailed, r.code)
				assert.Contains(t, r.log, c.log)
				assert.Equal(t, 1, strings.Count(r.log, "\n"), r.log)
				assert.Empty(t, r.out)
			})
		}
	}
	for _, command := range []string{"top", "pprof", "diff", "peek"} {
		assert.Equal(t, exitFailed, run(t, nil, command).code, "%s without anything", command)
		assert.Equal(t, exitOK, run(t, nil, command, "--help").code)
	}
	assert.Equal(t, exitFailed, run(t, nil, "top", good, "/none").code, "a report of only one of the files")
	assert.Equal(t, exitOK, run(t, nil, "top", "-cum", "-help").code)
}

// TestReads reads each format that the collector reads, plain and compressed.
func TestReads(t *testing.T) {
	var paths []string
	for _, pattern := range []string{layoutData + "*.pb", layoutData + "*.json", splunkData + "*cpu*.otlp-logs.pb"} {
		found := profiletest.Glob(t, pattern)
		paths = append(paths, found...)
	}
	paths = append(paths, write(t, "a.folded", "main;work 12\nmain;rest 3\n"), pprofData+"go-exec.trace",
		"../../internal/formats/jfr/testdata/jdk17.jfr.gz")
	for _, path := range paths {
		if strings.Contains(path, "-empty-") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			otlp := must(t, "convert", "-o", outOTLP, "--at", "1700000000", path)
			pd := unmarshal(t, otlp)
			require.Positive(t, pd.SampleCount())
			require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			data := profiletest.FileBytes(t, path)
			if !strings.HasSuffix(path, ".gz") {
				data = encode.Gzip(data)
			}
			r := run(t, data, "convert", "-o", outOTLP, "--at", "1700000000", "-")
			require.Equal(t, exitOK, r.code, r.log)
			assert.Equal(t, otlp, r.out, "from standard input, gzip")
		})
	}
}

// TestReadsTimesInLabels reads a profile of dd-trace, which has the time of each sample in a label that the receiver
// reads by default.
func TestReadsTimesInLabels(t *testing.T) {
	pd := unmarshal(t, must(t, "convert", "-o", outOTLP, pprofData+"node-datadog-timeline-wall.pb.gz"))
	timed := 0
	for p := range pdataiter.Profiles(pd) {
		for _, s := range p.Samples().All() {
			timed += min(1, s.TimestampsUnixNano().Len())
		}
	}
	assert.Equal(t, pd.SampleCount()-1, timed, "all but one have the label")
}

// TestReadsFileExporter reads files of the Collector's file exporter: lines of JSON, and messages that follow their
// length.
func TestReadsFileExporter(t *testing.T) {
	cpu, heap := must(t, "convert", "-o", outJSON, goCPU), must(t, "convert", "-o", outJSON, goHeap)
	lines := write(t, "profiles.jsonl", cpu+heap)
	want := merged(t, goCPU, goHeap)
	assert.Equal(t, want, merged(t, lines))

	frame := func(b string) string {
		n := len(b)
		return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + b
	}
	for name, encode := range map[string]func(string) string{
		"proto": func(path string) string { return must(t, "convert", "-o", outOTLP, path) },
		"compressed JSON": func(path string) string {
			return string(encode.Gzip([]byte(must(t, "convert", "-o", outJSON, path))))
		},
	} {
		framed := write(t, "profiles.bin", frame(encode(goCPU))+frame(encode(goHeap)))
		assert.Equal(t, want, merged(t, framed), name)
	}
	nested := "main 1\n"
	for range 10_000 {
		nested = frame(nested)
	}
	r := run(t, []byte(nested), "check", "-")
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, "compressed more than 3 times")
	r = run(t, nil, "check", write(t, "cut.jsonl", cpu+heap[:len(heap)/2]))
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, "message 2: ")
}

func TestConvert(t *testing.T) {
	folded := "main;idle 70\nmain;serve;parse 30\n"
	path := write(t, "a.folded", folded)
	assert.Equal(t, folded, must(t, "convert", "-o", outCollapsed, path))
	assert.Contains(t, must(t, "convert", "-o", outSpeedscope, path), `"unit":"none"`)
	assert.Equal(t, uint64(1769860800e9),
		uint64(profiletest.ProfileAt(unmarshal(t, must(t, "convert", "-o", outOTLP, "--at", "2026-01-31T12:00:00Z", path)),
			0).Time()))

	// Of several sample types, collapsed stacks have the default one, as reports have.
	byHand := must(t, "convert", "-o", outCollapsed, "--type", "cpu", goCPU)
	assert.Regexp(t, `(?m)^runtime.main;main.main;.* \d+0000000$`, byHand)
	r := run(t, nil, "convert", "-o", outCollapsed, goCPU)
	assert.Equal(t, result{byHand, "--profile and --type can choose this, too: process_cpu samples/count\n", exitOK}, r)
	r = run(t, nil, "convert", "-o", outCollapsed, goHeap, goCPU)
	assert.Equal(t, byHand, r.out)
	assert.Equal(t, 5, strings.Count(r.log, "can choose this, too"))
	assert.Equal(t, must(t, "convert", "-o", outCollapsed, "--type", "inuse_space", goHeap),
		run(t, nil, "convert", "-o", outCollapsed, goHeap).out)
	allocs := filepath.Join("..", "..", "testdata", "pprof", "go-allocs.pb.gz") // names alloc_space as its default
	assert.Equal(t, must(t, "convert", "-o", outCollapsed, "--type", "alloc_space", allocs),
		run(t, nil, "convert", "-o", outCollapsed, allocs).out)
	assert.Equal(t, byHand, must(t, "convert", "-o", outCollapsed, "--type", "cpu/nanoseconds", goCPU))
	r = run(t, nil, "convert", "-o", outPprof, goCPU, goHeap)
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, "memory alloc_objects/count")
	must(t, "convert", "-o", outPprof, "--profile", "memory", goCPU, goHeap)

	// Two profiles of one kind are merged.
	twice := parse(t, must(t, "convert", "-o", outPprof, goCPU, goCPU))
	original := profiletest.FileBytes(t, goCPU)
	once := parse(t, string(original))
	want, err := profile.Merge([]*profile.Profile{once, once})
	require.NoError(t, err)
	assert.NoError(t, profiletest.EqualPprof(want, twice))

	folder := t.TempDir()
	must(t, "convert", "-o", outCollapsed, "--out", folder, goCPU, goHeap, path)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 2+4+1)
	assert.FileExists(t, filepath.Join(folder, "a.collapsed"))
	assert.FileExists(t, filepath.Join(folder, "go-heap.memory_inuse_space_bytes.collapsed"))
}

// TestConvertStreamsStacks converts a few bytes to very many.
func TestConvertStreamsStacks(t *testing.T) {
	const functions = 1024
	pd := profiletest.New().Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, strings.Repeat("name", 16<<10))).
		Build()
	d := pd.Dictionary()
	for i := range functions {
		f := d.FunctionTable().AppendEmpty()
		d.FunctionTable().At(1).CopyTo(f)
		d.StringTable().Append(fmt.Sprint("file", i))
		f.SetFilenameStrindex(int32(d.StringTable().Len() - 1))
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(d.FunctionTable().Len() - 1))
		d.StackTable().At(1).LocationIndices().Append(int32(d.LocationTable().Len() - 1))
	}
	message := profiletest.Marshal(t, pd)
	path, folder := write(t, "a.otlp", string(message)), t.TempDir()
	for _, format := range []string{outCollapsed, outSpeedscope} {
		for _, args := range [][]string{{path}, {"--out", folder, path}} {
			var out counter
			profiletest.RequireCost(t, profiletest.Bound{HeapBytes: 24 << 20}, func() {
				out = 0
				cmd := newCommand(&terminal{in: strings.NewReader(""), out: &out, log: io.Discard})
				cmd.SetArgs(append([]string{"convert", "-o", format}, args...))
				require.NoError(t, cmd.ExecuteContext(t.Context()))
			})
			size := int64(out)
			if size == 0 {
				info, err := os.Stat(filepath.Join(folder, "a"+extensions[format]))
				require.NoError(t, err)
				size = info.Size()
			}
			assert.Greater(t, size, int64(functions*64<<10))
		}
	}
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TestConvertKeepsAllFiles writes inputs of one name to files of different names, whatever other inputs are called.
func TestConvertKeepsAllFiles(t *testing.T) {
	folder := t.TempDir()
	args := []string{"convert", "-o", outCollapsed, "--out", folder}
	for i, name := range []string{"a.1.folded", "a.2.folded", "a-2.folded", "a.3.folded"} {
		args = append(args, write(t, name, fmt.Sprintf("main %d\n", i+1)))
	}
	must(t, args...)
	for name, want := range map[string]string{"a": "main 1\n", "a-2": "main 2\n", "a-2-2": "main 3\n", "a-3": "main 4\n"} {
		got := profiletest.FileBytes(t, filepath.Join(folder, name+".collapsed"))
		assert.Equal(t, want, string(got), name)
	}
}

// TestServeIgnoresEmptyFiles checks that files without profiles do not change the time that the page shows.
func TestServeIgnoresEmptyFiles(t *testing.T) {
	empty := write(t, "empty.jsonl", `{"resourceProfiles":[],"dictionary":{"stringTable":[""]}}`)
	for _, paths := range [][]string{{goCPU, empty}, {empty, goCPU}} {
		kept, now, err := keep(newReader(&terminal{log: io.Discard}), paths, 1<<30)
		require.NoError(t, err)
		assert.Less(t, kept.Config().Window, 2*time.Hour)
		assert.Equal(t, 2026, now.Year())
	}
}

// TestGoTraceModes reads a trace in both modes: intervals with their times, and sums.
func TestGoTraceModes(t *testing.T) {
	const trace = pprofData + "go-exec.trace"
	assert.Contains(t, must(t, "stats", write(t, "events.otlp", must(t, "convert", "-o", outOTLP, trace))),
		"samples with values and timestamps")
	sums := must(t, "convert", "-o", outOTLP, "--mode", modeAggregated, "--profile", "off_cpu", trace)
	assert.NotContains(t, must(t, "stats", write(t, "sums.otlp", sums)), "timestamps")
	assert.Contains(t, must(t, "top", "-profile=off_cpu", trace), "Type: off_cpu")
	assert.Contains(t, run(t, nil, "stats", trace).log, "intervals below 100µs were left out")
	assert.NotContains(t, run(t, nil, "convert", "-o", outOTLP, "--mode", modeAggregated, trace).log, "100µs")
}

func TestCheck(t *testing.T) {
	sound := merged(t, goCPU)
	r := run(t, []byte(sound), "check", "-")
	assert.Equal(t, result{"", "standard input: conformant\n", exitOK}, r)

	r = run(t, []byte(must(t, "convert", "-o", outOTLP, pprofData+"cpp-unsymbolized.pb.gz")), "check", "-")
	assert.Equal(t, exitOK, r.code)
	assert.Regexp(t,
		`^standard input: warning: \d+ of \d+ mappings have no build id \(.*\), such as mapping_table\[1\], .*\nstandard input: conformant\n$`, r.log)

	pd := unmarshal(t, sound)
	profiletest.SampleAt(pd, 3).SetStackIndex(9999)
	pd.Dictionary().StringTable().Append("orphan")
	broken := profiletest.Marshal(t, pd)
	r = run(t, broken, "check", "-")
	assert.Equal(t, exitFound, r.code)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 2, r.out)
	assert.Regexp(t,
		`^standard input: resource_profiles\[0\]\.scope_profiles\[0\]\.profiles\[0\]\.samples\[3\]\.stack_index: index 9999 is out of range \[0\.\.\d+\)$`, lines[0])
	assert.Regexp(t, `^standard input: string_table\[\d+\]: is not reached from any profile$`, lines[1])
	assert.Equal(t, "standard input: not conformant\n", r.log)
	r = run(t, broken, "check", "--allow-orphans", "-")
	assert.Equal(t, exitFound, r.code)
	assert.NotContains(t, r.out, "string_table")
	r = run(t, broken, "convert", "-o", outOTLP, "-")
	assert.Equal(t, exitOK, r.code)
	assert.Contains(t, r.log, "1 of 478 samples were left out")
}

// Every command that reads files exits with an error if nothing is left of one: an empty result would look like a
// success.
func TestNothingLeftIsAnError(t *testing.T) {
	const message = `{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":[{}],"stringTable":[""],"locationTable":[{}],
		"sample":[{"locationsStartIndex":7,"locationsLength":1,"value":["1"]},{"locationsStartIndex":0,"locationsLength":1}]}]}]}]}`
	old := write(t, "old.json", message)
	const record = `{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"otel.profiling"},"logRecords":[{"body":{"stringValue":"garbage"}}]}]}]}`
	pd := unmarshal(t, must(t, "convert", "-o", outOTLP, "--type", "cpu", goCPU))
	for p := range pdataiter.Profiles(pd) {
		for _, sample := range p.Samples().All() {
			sample.SetStackIndex(9999)
		}
	}
	broken := profiletest.Marshal(t, pd)
	for _, command := range [][]string{
		{"check"}, {"stats"}, {"convert", "-o", outOTLP}, {"convert", "-o", outPprof}, {"convert", "-o", outText},
		{"top"}, {"diff", goCPU}, {"serve", "--endpoint", "localhost:0"}, {"send", "--endpoint", "localhost:1"},
	} {
		r := run(t, nil, append(command, old)...)
		assert.Equal(t, exitFailed, r.code, "%v", command)
		assert.Contains(t, r.log, "old.json: 2 samples could not be understood and were left out (no_observation: 1, stack_range: 1)", "%v", command)
		assert.Contains(t, r.log, "old.json: all 2 samples were left out", "%v", command)
		assert.Empty(t, r.out)
		if command[0] == "check" || command[0] == "stats" {
			continue // they read what is there
		}
		r = run(t, broken, append(command, "-")...)
		assert.Equal(t, exitFailed, r.code, "%v", command)
		assert.Regexp(t, `all \d+ samples were left out, since they are malformed`, r.log, "%v", command)
	}
	assert.Equal(t, exitFailed, run(t, []byte(record), "stats", "-").code)
}

func TestConvertToText(t *testing.T) {
	path := write(t, "a.folded", "main;work 12\n")
	written := time.Unix(1_600_000_000, 0)
	require.NoError(t, os.Chtimes(path, written, written))
	assert.Contains(t, must(t, "convert", "-o", outText, path), "time 1600000000000000000 ns\n      attributes {profile.clock.guess=\"file_modified\"}\n")
	text := must(t, "convert", "-o", outText, "--at", "1700000000", path)
	assert.Equal(t, "resource {}\n  scope \"\" \"\"\n    profile samples in count\n      profile_id ec2874d7fe43a97134931b82f7b9e529\n      time 1700000000000000000 ns\n      sample 12\n        work\n        main\n", text)
	assert.Equal(t, 1, strings.Count(must(t, "convert", "-o", outText, "--type", "cpu", goCPU), "    profile "))
}

func TestStats(t *testing.T) {
	text := must(t, "stats", layoutData+"124.pb", goCPU)
	assert.Contains(t, text, "124.pb: otlp, layout 1.4, ")
	assert.Contains(t, text, "go-cpu-labels.pb.gz: pprof, 35004 bytes\n1 resource, 1 scope, 2 profiles, 478 samples, 478 observations\n478 samples with values alone\nfrom 2026-11-20T11:29:48.297516326Z for 5.000977459s\n")
	for _, table := range []string{"mapping", "location", "function", "link", "string", "attribute", "stack", "profiles"} {
		assert.Regexp(t, `(?m)^ *`+table+`( +\d+){4}$`, text)
	}
	assert.Regexp(t, `all 2 messages: \d+ bytes; merged \d+ bytes \(-\d+\.\d %\)\n$`, text)
}

// What convert writes for speedscope can be read again, each type by itself, though several have one unit.
func TestSpeedscopeRoundTrip(t *testing.T) {
	file := write(t, "shop.json", must(t, "convert", "-o", "speedscope", "--type", "cpu", goCPU))
	want := must(t, "convert", "-o", "collapsed", "--type", "cpu", goCPU)
	got := must(t, "convert", "-o", "collapsed", file)
	assert.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(got, "\n"))
	for file, types := range map[string][]string{
		goCPU:  {"samples", "cpu"},
		goHeap: {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
	} {
		back := write(t, "shop.json", must(t, "convert", "-o", "speedscope", file))
		for _, typ := range types {
			want := must(t, "convert", "-o", "collapsed", "--type", typ, file)
			got := must(t, "convert", "-o", "collapsed", "--type", typ, back)
			assert.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(got, "\n"), "%s of %s", typ, file)
		}
	}
}

// Events with a stack that are not read are named.
func TestStatsOfUnreadEvents(t *testing.T) {
	w := worst.NewJFR("shop.Checkout stackTrace:jdk.types.StackTrace*", "shop.Cart stackTrace:jdk.types.StackTrace*")
	w.Event("shop.Checkout", 1).Event("shop.Checkout", 1).Event("shop.Cart", 1)
	got := run(t, nil, "stats", write(t, "shop.jfr", string(w.Bytes())))
	assert.Contains(t, got.out, "\nevents not read: shop.Cart 1, shop.Checkout 2\n")
	assert.Contains(t, got.log, "events of these types have stacks, and are not read: shop.Cart 1, shop.Checkout 2")
}

func TestTableBytes(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().SetSchemaUrl("not in the dictionary")
	pd.Dictionary().StringTable().FromRaw([]string{"", "abc", strings.Repeat("x", 200)})
	pd.Dictionary().StackTable().AppendEmpty()
	pd.Dictionary().MappingTable().AppendEmpty().SetMemoryStart(1)
	sizes, err := tableBytes(pd)
	require.NoError(t, err)
	assert.Equal(t, [7]int{4, 0, 0, 0, 2 + 5 + 203, 0, 2}, sizes, "a tag and a length for each entry")
}

// TestConvertToParts writes three profiles as one message, that in parts, and the parts as one message again.
func TestConvertToParts(t *testing.T) {
	whole := merged(t, goCPU, goHeap, pprofData+"go-mutex.pb.gz")
	require.NoError(t, profiletest.Check(unmarshal(t, whole)))
	path, folder := write(t, "whole.otlp", whole), t.TempDir()
	must(t, "convert", "-o", outOTLP, "--max-bytes", "20000", "--out", folder, path)
	parts := profiletest.Glob(t, filepath.Join(folder, "whole.0*.otlp"))
	require.Greater(t, len(parts), 2)
	for _, part := range parts {
		data := profiletest.FileBytes(t, part)
		assert.LessOrEqual(t, len(data), 20_000)
		require.NoError(t, profiletest.Check(unmarshal(t, string(data))))
	}
	again := unmarshal(t, merged(t, parts...))
	assert.NoError(t, profiletest.Equal(unmarshal(t, whole), again, profiletest.MergeProfiles()))

	lines := must(t, "convert", "-o", outJSON, "--max-bytes", "20000", path)
	assert.Equal(t, len(parts), strings.Count(lines, "\n"))
	r := run(t, nil, "convert", "-o", outOTLP, "--max-bytes", "20000", path)
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, "--out must name a folder")
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Contains(t, must(t, "completion", shell), "profiletool", shell)
	}
	assert.Equal(t, "otlp_grpc\notlp_http\n:4\n", must(t, "__complete", "send", "--protocol", ""))
}
