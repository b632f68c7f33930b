// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestSniffFiles(t *testing.T) {
	for pattern, want := range map[string]formats.Format{
		"../../testdata/pprof/*.pb.gz":             formats.Gzip,
		"../../testdata/pprof/go-exec.trace":       formats.GoTrace,
		"../../testdata/pprof/*.txt":               formats.Unknown,
		"../../testdata/pprof/*.prof":              formats.Unknown,
		"../../testdata/splunk/*cpu*.otlp-logs.pb": formats.OTLPLogs,
		"../otlp/layouts/testdata/*.pb":            formats.OTLP,
		"../otlp/layouts/testdata/*.json":          formats.OTLPJSON,
		"../../README.md":                          formats.Unknown,
		"../../config/agent.yaml":                  formats.Unknown,
		"../../builder-config.yaml":                formats.Unknown,
	} {
		paths := profiletest.Glob(t, pattern)
		for _, path := range paths {
			data := profiletest.FileBytes(t, path)
			assert.Equal(t, want, formats.Sniff(data), path)
			if want == formats.Gzip {
				plain, err := decode.Uncompress(data, 1<<30, nil)
				require.NoError(t, err)
				assert.Equal(t, formats.Pprof, formats.Sniff(plain), path)
			}
		}
	}
}

// A program that is not relocated has addresses without a letter.
func TestSniffPerfWithoutCallChains(t *testing.T) {
	for _, event := range []string{"cycles:", "cycles:u:", "cycles:P:", "cpu_core/cycles/P:", "cpu/mem-loads,ldlat=30/P:",
		"raw 0x1a8:"} {
		line := "bench  1234 [001]  1000.100000:          1 " + event + "            401136 work+0x6 (/tmp/bench)\n"
		assert.Equal(t, formats.PerfScript, formats.Sniff([]byte(line+line)), event)
	}
}

func TestSniffTexts(t *testing.T) {
	deep := strings.Repeat("frame;", 10_000)
	for text, want := range map[string]formats.Format{
		"":                 formats.Unknown,
		"\n":               formats.Unknown,
		"hello\n":          formats.Unknown,
		"main;work 12\n":   formats.Folded,
		"# a;b\nmain 1":    formats.Folded,
		"a;b 12\nnonsense": formats.Folded,
		"a;b 200 region=eu,k=v 1687841528000000\n":    formats.Folded,
		deep + "leaf 1\n":                             formats.Folded,
		"a;b 12\nnonsense\nmore of it":                formats.Unknown,
		"nonsense\na;b 12\n":                          formats.Folded,
		"main 1\nnonsense\n":                          formats.Unknown,
		"main 1\nidle 2\n":                            formats.Folded,
		"shop 31.0\nmain;x 2.0\nmain 3.5\nidle 4.5\n": formats.Folded,
		"main;idle 31.0\nmain 2.5\n":                  formats.Folded,
		"main;idle 31 56\nmain;b 2 5\n":               formats.Folded,
		"P1;T1;a.py:f:3 10,0,-4\n":                    formats.Folded,
		"#<Class:Cart>;add 3\n":                       formats.Folded,
		"\xef\xbb\xbfmain;work 12\n":                  formats.Folded,
		"load 0.5\ntemperature 36.6\n":                formats.Unknown,
		"\xff\xfem\x00 \x001\x00":                     formats.Unknown,
		"<module>;main 1\n":                           formats.Folded,
		"[unknown];main 1\n":                          formats.Folded,
		"[a];b 1\n{c};d 2\n":                          formats.Folded,
		"main: 1;a 2\nmain: 3;a 2\n":                  formats.Folded,
		"main 1\n" + deep + "leaf 1\n":                formats.Folded,
		"{}":                                          formats.Unknown,
		"[]":                                          formats.Unknown,
		`{"resourceProfiles":[]}`:                     formats.OTLPJSON,
		`{"dictionary":{"stringTable":["` + deep:      formats.OTLPJSON,
		"\xef\xbb\xbf " + `{"resource_profiles":[]}` + "\n" + `{"resource_profiles":[]}`: formats.OTLPJSON,
		`{"resourceLogs":[]}`:                          formats.OTLPLogsJSON,
		`{"a":{"resourceLogs":[]},"b":"resourceLogs"}`: formats.Unknown,
		`{"nodes":[{"id":1}],"startTime":1}`:           formats.CPUProfile,
		`{"profile":{"nodes":[{"id":1}]}}`:             formats.CPUProfile,
		`[{"pid":1,"ph":"P"}]`:                         formats.TraceEvents,
		`{"traceEvents":[]}`:                           formats.TraceEvents,
		`{"schemaVersion":1,"traceEvents":[]}`:         formats.TraceEvents,
		"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94": formats.TorchMemory,
		"\x80\x04]\x94.": formats.Unknown,
		"\x80\x04]\x94}\x94(\x8c\x06device\x94K\x00\x8c\x0eallocated_size\x94K\x00u":                   formats.TorchMemory,
		`{"metadata":{"source":"DevTools","startTime":"2026-01-02T03:04:05Z","x":"` + deep:             formats.TraceEvents,
		`{"metadata":{"name":"shop"},"kind":"Pod"}`:                                                    formats.Unknown,
		`{"displayTimeUnit":"ns","traceEvents":[`:                                                      formats.TraceEvents,
		`{"head":{"callFrame":{}}}`:                                                                    formats.CPUProfile,
		`{"snapshot":{"meta":{}},"nodes":[1]}`:                                                         formats.Unknown,
		`{"version":"0.0.1","$schema":"https://www.speedscope.app/file-format-schema.json","shared":{`: formats.Speedscope,
		`{"profiles":[{"type":"sampled","unit":"none","samples":[` + deep:                              formats.Speedscope,
		`{"shared":{"frames":[{"name":"` + deep:                                                        formats.Speedscope,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","profiles":[]}`:                     formats.Unknown,
		`{"meta":{"categories":[],"interval":1,"x":"` + deep:                                           formats.Firefox,
		`{"meta":{"page":2},"threads":[{"id":1}]}`:                                                     formats.Unknown,
		`{"threads":[{"name":"worker","frameTable":{"x":"` + deep:                                      formats.Firefox,
		"go 1.26 trace\x00\x00\x00":                                                                    formats.GoTrace,
		"FLR\x00\x00\x02":                                                                              formats.JFR,
		"goroutine profile: total 7\n1 @ 0x1 0x2\n":                                                    formats.Unknown,
		"goroutine 1 [running]:\nmain.main()\n":                                                        formats.Unknown,
		"perl  123 4711.123456:     250000 cpu-clock:u: ":                                              formats.PerfScript,
		"my prog 12/14 [003] 99.000001: sched:sched_switch: prev\n\tffff sym+0x1 (/bin/x)\n":           formats.PerfScript,
		"worker 1-T14     12/14     1714979289.250000000:    swipr\n\t    7f10 out+0x3 (/bin/x)\n":     formats.PerfScript,
		"k\xe4se;b 3\nmain;c 4\n":                                                                      formats.Folded,
		"main;b 2.14748e+09\nmain;c 1e6\n":                                                             formats.Folded,
		"gr\xc3 12/14 [003] 99.000001: cycles:\n\t            7f10 sym+0x1 (/bin/x)\n":                 formats.PerfScript,
		"worker 3 2.5: done\nworker 4 2.6: done\n":                                                     formats.Unknown,
		`{"error":"` + strings.Repeat("broken; ", 2000) + `"}`:                                         formats.Unknown,
		"<!DOCTYPE html><style>" + strings.Repeat("a{color:red;}", 1000):                               formats.Unknown,
		"<module>;" + deep:    formats.Folded,
		"\x7fELF\x02\x01\x01": formats.Unknown,
		"\xff\xff\xff\xff":    formats.Unknown,
	} {
		assert.Equal(t, want, formats.Sniff([]byte(text)), "%.60q", text)
	}
}

// Lines of many texts begin with a hexadecimal number. What perf script prints is told by its columns, or by the line
// of a sample.
func TestSniffPerf(t *testing.T) {
	for text, isPerf := range map[string]bool{
		"  1254 foo\n  1300 bar\n":   false,
		"1254\n1300\n":               false,
		"                    1254\n": false,
		"b3cea6c4 perfscript: read all\nb3cea6c5 folded: too\n": false,
		"Counts:\n   b3cea6c4 foo\n   b3cea6c5 bar\n":           false,
		"all:\n\tcc -c main.c\n":                                false,
		"main:\n  401000:\t55\tpush %rbp\n":                     false,
		"0000000000001254 T main\n0000000000001294 t f\n":       false,
		"    12: 0000000000401000    24 FUNC main\n":            false,
		"00000010  7f 45 4c 46  |.ELF|\n":                       false,
		"\tadded 3 files\n\tdead beef\n":                        false,
		"java 19983 cycles:\nffffffff8103d0ca f ([kernel])\n":   true,
		"shop\n\t            1254\n\n":                          true,
		"\n\t            12a4 main\n":                           true,
		"shop 12 cpu-clock:\n                    12a4 main\n":   true,
		"              dd      55c8226af254 spin\n":             true,
		"# ========\n# captured on: now\n":                      true,
		"shop 12 0.000000: PERF_RECORD_COMM: shop:12/12\n":      true,
	} {
		assert.Equal(t, isPerf, formats.Sniff([]byte(text)) == formats.PerfScript, "%q", text)
	}
}

// A text in UTF-16 is named even if the sender states its format.
func TestUTF16(t *testing.T) {
	for _, format := range []formats.Format{formats.Folded, formats.PerfScript, formats.CPUProfile} {
		_, _, err := formats.Decode([]byte("\xff\xfem\x00 \x001\x00"), format, formats.Options{})
		require.ErrorIs(t, err, formats.ErrUTF16)
	}
}

// A payload is refused if nothing in it can be read, and not if a part of it can.
func TestNothingIsRead(t *testing.T) {
	for samples, want := range map[string]string{
		`"samples":[[0],[0]],"weights":["1","2"]`: "none of its samples can be read (2)",
		`"samples":[[0],[9]],"weights":[1,2]`:     "",
		`"samples":[],"weights":[]`:               "",
	} {
		_, _, err := formats.Decode([]byte(`{"shared":{"frames":[{"name":"a"}]},"profiles":[{`+samples+`}]}`),
			formats.Speedscope, formats.Options{})
		if want == "" {
			require.NoError(t, err, samples)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// TestSniffMessages distinguishes protobuf messages that resemble each other.
func TestSniffMessages(t *testing.T) {
	b := profiletest.New().Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "main"))
	marshaler := &pprofile.ProtoMarshaler{}
	otlp, err := marshaler.MarshalProfiles(b.Build())
	require.NoError(t, err)
	assert.Equal(t, formats.OTLP, formats.Sniff(otlp))
	assert.Equal(t, formats.Unknown, formats.Sniff(otlp[:len(otlp)-1]), "truncated")

	sample := profiletest.PprofWire(nil).Packed(profiletest.PprofSampleValue, 7)
	withoutTypes := profiletest.PprofWire(nil).Message(profiletest.PprofSample, sample).Strings("")
	assert.Equal(t, formats.Pprof, formats.Sniff(withoutTypes))
}

func FuzzSniff(f *testing.F) {
	for _, path := range []string{"../../testdata/pprof/go-mutex.pb.gz", "../otlp/layouts/testdata/124.pb",
		"../otlp/layouts/testdata/124.json"} {
		data := profiletest.FileBytes(f, path)
		f.Add(data)
	}
	f.Add([]byte("a;b 12\n"))
	f.Add([]byte("perl  123 4711.123456:     250000 cpu-clock:u: "))
	f.Fuzz(func(_ *testing.T, data []byte) { formats.Sniff(data) })
}

// TestSniffIsBounded sniffs what could cost most: many fields, one long line, deep nesting.
func TestSniffIsBounded(t *testing.T) {
	for _, data := range map[string][]byte{
		"fields":  []byte(strings.Repeat("\x12\x00", 4<<20)),
		"line":    []byte(strings.Repeat("a 1 ", 2<<20)),
		"nesting": []byte(strings.Repeat("[", 8<<20)),
		"perf":    []byte(strings.Repeat("1 1.1: ", 1<<20)),
	} {
		profiletest.RequireCost(t, profiletest.BoundOf(len(data), 1<<20, 0.1), func() { formats.Sniff(data) })
	}
}
