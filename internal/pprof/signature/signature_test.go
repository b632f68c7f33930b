// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package signature_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/signature"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Texts that are not profiles are described, and no format is recognised in them.
func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema": "1.0.1", "pid": 5, "start_ts": 6278907328, "nodes": [{}]}`: "an execution trace of PyTorch, which has no times (send what its profiler exports)",
		"\n\xb3\x01\x08\x01\x12\x0d/device:GPU:0\x1a":                          "an XPlane of XLA (JAX's device memory profile is a pprof, and read)",
		"\n\x20\x12\x09/host:CPU\x1a\x00":                                      "an XPlane of XLA (JAX's device memory profile is a pprof, and read)",
		"\x80\x04]\x94.":                                                       "a Python pickle (of these only PyTorch's memory snapshots are read)",
		"":                                                                     "",
		"\x0a\x00\x12\x03":                                                     "",
		"\x0a\x00\x0a\x04\x08\x01\x10\x02":                                     "", // a pprof with an empty sample type
		"hello\n":                                                              `text: "hello"`,
		strings.Repeat("hello ", 40):                                           "text",
		"\n0x108@perf.data [0x50]: event: 69\n.\n. ... raw event: size 80 bytes\n": "a dump of perf script -D (leave -D out)",
		"# To display the perf.data header info, please use --header/--header-only options.\n#\n# Samples: 2  of event 'cpu-clock'\n" +
			"#\n# Overhead  Command  Shared Object  Symbol\n    99.00%  dd  dd  [.] spin\n": "a report of perf (send what perf script prints)",
		"\xfb)\x03\xfa\x08<string>\xe9\x01\x00\x00\x00":                                      "a file of Python's cProfile, which has no stacks (sample with perf, or with py-spy record -f raw)",
		"{\xa9\x03\xfa\x08<string>\xe9\x01\x00\x00\x00":                                      "a file of Python's cProfile, which has no stacks (sample with perf, or with py-spy record -f raw)",
		"flat 3\ncum 4\nsum of both\n":                                                       `text: "flat 3\ncum 4\nsum of both"`,
		"replicas: 3\nimage: shop\nports: [80]":                                              signature.YAML,
		"---\na:\n  - b: 1\n":                                                                signature.YAML,
		"replicas: 3\nport: 80\n":                                                            signature.YAML,
		"# HELP up Up.\n# TYPE up gauge\nup 1\n":                                             signature.Metrics,
		"up{job=\"a;b\"} 1\nup{job=\"c;d\",x=\"\"} 2\n":                                      signature.Metrics,
		"2026-01-02T03:04:05Z worker started; pid 12\n2026-01-02T03:04:06Z loaded; took 3\n": signature.Log,
		"Jan  2 03:04:05 host sshd[1]: accepted; port 22\nJan  2 03:04:06 host sshd[1]: closed; port 22\n":           signature.Log,
		"10.0.0.1 - - [02/Jan/2026:03:04:05 +0000] \"GET / HTTP/1.1\" 200 1234\n":                                    signature.Log,
		"level=info msg=\"a; b\" took 3\n":                                                                           signature.Log,
		"INFO: started 1\nERROR: failed; code 7\n":                                                                   signature.Log,
		"File: shop\nType: cpu\nShowing nodes accounting for 1s, 100% of 1s total\n flat  flat%\n":                   signature.PprofReport,
		"PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds\n   1   10000000: 1": signature.PprofReport,
		"<!DOCTYPE html>\n<p>502 Bad Gateway":                                                                        "HTML or XML (an error page or an index page?)",
		`{"error":"not found","code":404}`:                                                                           "JSON (an error message?)",
		"{\n  \"a\": 1,\n  \"b\": 2\n}\n":                                                                            "JSON (an error message?)",
		"goroutine 1 [running]:\nmain.main()\n":                                                                      "a text dump of the stacks of goroutines (ask without debug=2)",
		"block profile: total 1\n1 @ 0x1\n":                                                                          "a text dump of a profile (ask without debug=1)",
		"\xff\xfem\x00;\x00a\x00":                                                                                    signature.UTF16,
		"\xfe\xff\x00m\x00;\x00a":                                                                                    signature.UTF16,
		"MOJ\x03":                                                                                                    "Austin's binary format (record without -b, or convert it with mojo2austin)",
		"BZh91AY&SY\xd1\x82":                                                                                         "bytes compressed by bzip2 (send it plain, or compressed by gzip, zstd or lz4)",
		"\xfd7zXZ\x00\x00":                                                                                           "bytes compressed by xz (send it plain, or compressed by gzip, zstd or lz4)",
		"\x02\x21\x4c\x18\x15":                                                                                       "bytes compressed by lz4 -l (send it plain, or compressed by gzip, zstd or lz4)",
		"x\x9cK\xb4":                                                                                                 "bytes compressed by zlib (send it plain, or compressed by gzip, zstd or lz4)",
		"\n\x0a\x40\x05\x50\x01\x32\x04\x0a\x02ab":                                                                   "a trace of Perfetto (convert it with: traceconv profile FILE)",
		`{"version":1,"recording":{"displayName":"a;b","instrumentTypes":["x"]}}`:                                    "a recording of Safari (open it in speedscope, and export it from there)",
		"{\"dhatFileVersion\":2\n,\"mode\":\"heap\"":                                                                 "a heap profile of DHAT (open it in profiler.firefox.com, and save it from there)",
		"{\n\t\"linux-perf-json-version\": 1,":                                                                       "the JSON of perf data convert (send what perf script prints)",
		"Attaching 1 probe...\n\n@[\n    schedule+3\n    main+4\n]: 12\n":                                            "a map of bpftrace (convert it with: stackcollapse-bpftrace.pl FILE > out.folded)",
		"@samples[\n    main+4\n, 1, zsh]: 12\n":                                                                     "a map of bpftrace (convert it with: stackcollapse-bpftrace.pl FILE > out.folded)",
		"--- Execution profile ---\nTotal samples : 100\n":                                                           "a report of async-profiler (record with: -o jfr)",
		"v8-version,11,3,244,8,-node.19,0\n":                                                                         "a log of V8 (record with node --cpu-prof)",
		"PK\x03\x04":                                                                                                 "a zip archive",
		"(dp0\nVsegments\np1\n(lp2\ns.":                                                                              "a Python pickle of protocol 0 or 1 (PyTorch's memory snapshots are read in 2 and later)",
		"}q\x00(X\x08\x00\x00\x00segments":                                                                           "a Python pickle of protocol 0 or 1 (PyTorch's memory snapshots are read in 2 and later)",
		"0 usleep <internal>:-1\n1 work /srv/a.php:12\n2 <main> /srv/a.php:30\n# - - -\n\n":                          "traces of phpspy (convert them with: stackcollapse-phpspy.pl FILE > out.folded)",
		"[events]\n0 1 0 0 0\n1 1 73364 73065 384\n":                                                                 "a full report of SPX (sample with Excimer, and send what getSpeedscopeData returns)",
		"Version: 3.1.5\nFile format: 4\nTRACE START [2022-01-01 00:00:00.0]\n":                                      "a trace of Xdebug (convert it with: stackcollapse-xdebug.php FILE > out.folded)",
		"rbspy02\n{\"trace\":[]}\n":                                                                                  "a raw file of rbspy (convert it with: rbspy report -f speedscope -i FILE -o out.json)",
		"NYTProf 5 0\n:basetime=1600000000\n":                                                                        "a profile of Devel::NYTProf (convert it with: nytprofcalls FILE > out.folded)",
		"Process 1234: python x.py\nPython v3.11.2 (/usr/bin/python3.11)\n":                                          "a dump of py-spy, which has one moment (record with: py-spy record -f raw)",
		"HCAT\x01\x00\x00\x00\x03\x0f":                                                                               "a binary file of Python's profiling.sampling (convert it with: python -m profiling.sampling replay --gecko -o out.json FILE)",
		"TACH\x00\x00\x00\x01\x03\x0f":                                                                               "a binary file of Python's profiling.sampling (convert it with: python -m profiling.sampling replay --gecko -o out.json FILE)",
		"SQLite format 3\x00\x10\x00":                                                                                "a database of SQLite, such as one of Nsight Systems",
		"H4sIAAAAAAAA/+LgYOBi\nAAAA//8=\n":                                                                           "base64 (decode it: base64 -d FILE)",
		"a.folded" + strings.Repeat("\x00", 249) + "ustar\x0000" + strings.Repeat("\x00", 247):                       "a tar archive",
		"memray\x00\x0b\x00":                                                                                         "a recording of memray, which memray alone reads (memray flamegraph FILE)",
		"2026-01-01 00:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17.0.1+12):\n":                              "a thread dump of Java (record with Flight Recorder)",
		"jdk.ExecutionSample {\n  startTime = 10:00:00.000\n":                                                        "events as jfr prints them (send the recording)",
		"\x14\x00\x00\x00!FastSerialization.1":                                                                       "a gcdump of .NET, which has objects and no stacks (record with: dotnet-trace collect --format Speedscope)",
		"\n              libc.so.1`__write+0x7\n              a.out`main+0x20\n                4\n":                  "stacks of DTrace (convert them with: stackcollapse.pl FILE > out.folded)",
		"v 10400 3\nx 3 foo\nX /a.out\n":                                                                             "a file of heaptrack (convert it with: heaptrack_print -F out.folded FILE)",
		"desc: --pages\ncmd: ./a.out\ntime_unit: i\n#-----------\n":                                                  "a heap profile of Massif (record with the heap profiler of gperftools or jemalloc)",
		`{"type": "attached_probes", "data": {"probes": 1}}`:                                                         "the JSON of bpftrace (print maps as text, and convert them with: stackcollapse-bpftrace.pl FILE > out.folded)",
		`{"main()==>work":{"ct":1,"wt":200},"main()":{"ct":1,"wt":300}}`:                                             "a profile of XHProf, which has pairs of functions and no stacks (sample with Excimer)",
		`{"alloc_samples":0,"args":["x.py"],"elapsed_time_sec":1.2,"files":{}}`:                                      "a profile of Scalene, which has lines and no stacks (sample with py-spy record -f raw)",
		"<0.76.0>;lists:map/2;m:f/1\n<0.76.0>;lists:map/2\n":                                                         `text: "<0.76.0>;lists:map/2;m:f/1\n<0.76.0>;lists:map/2"`,
	} {
		assert.Equal(t, want, signature.Describe([]byte(text)), "%q", text)
		if want != "" {
			assert.Equal(t, formats.Unknown, formats.Sniff([]byte(text)), "%q", text)
		}
	}
}

// Every format with a signature is one that package formats knows.
func TestFormats(t *testing.T) {
	for head, want := range map[string]formats.Format{
		"\x1f\x8b\x08": formats.Gzip, "\x28\xb5\x2f\xfd": formats.Zstd, "go 1.26 trace": formats.GoTrace,
		"FLR\x00": formats.JFR,
	} {
		s, ok := signature.Of([]byte(head))
		require.True(t, ok)
		assert.Equal(t, string(want), s.Format)
	}
	data := profiletest.FileBytes(t, "../../../testdata/pprof/cpp-gperftools-legacy.prof")
	assert.Contains(t, signature.Describe(data), "gperftools")
}
