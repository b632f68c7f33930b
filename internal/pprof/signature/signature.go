// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package signature recognises payloads by how they begin. Of finds the formats with a signature of their own, and
// Describe names what a payload is if it is no profile: people push what their tools have written, and the name of the
// mistake helps them more than the offset of the first bad byte. TextKind distinguishes texts by their lines.
package signature

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// HeadBytes is how much of a text is read.
const HeadBytes = 8 << 10

// Signature is what the first bytes of a payload identify.
type Signature struct {
	// Format is the name of the format if profiles can be read from it.
	Format string
	// Name describes it to people.
	Name string

	prefix string
	// pattern matches the head, too, if it is not nil.
	pattern *regexp.Regexp
}

const (
	withPprof      = " (convert it with: pprof -proto -output=out.pb.gz PROGRAM FILE)"
	withSpeedscope = " (open it in speedscope, and export it from there)"
	toGzip         = " (send it plain, or compressed by gzip, zstd or lz4)"
	once           = " (compress it once)"
	toOTLP         = " (profiles go to /v1development/profiles of the receiver otlp_profiles, by default on port 4318, or " +
		"over gRPC to 4317)"
)

var stackprof = Signature{Name: "a dump of stackprof (convert it with: stackprof --stackcollapse FILE > out.folded)"}

var signatures = []Signature{
	{prefix: "\x1f\x8b", Format: "gzip", Name: "compressed twice, by gzip within" + once},
	{prefix: "\x28\xb5\x2f\xfd", Format: "zstd", Name: "compressed twice, by zstd within" + once},
	{prefix: "\x04\x22\x4d\x18", Format: "lz4", Name: "compressed twice, by lz4 within" + once},
	{prefix: "BZh", pattern: regexp.MustCompile(`^BZh[1-9]1AY&SY`), Name: "bytes compressed by bzip2" + toGzip},
	{prefix: "\xfd7zXZ\x00", Name: "bytes compressed by xz" + toGzip},
	{prefix: "\x02\x21\x4c\x18", Name: "bytes compressed by lz4 -l" + toGzip},
	{prefix: "\xff\x06\x00\x00sNaPpY", Name: "bytes compressed by snappy" + toGzip},
	{prefix: "FLR\x00", Format: "jfr", Name: "a Java Flight Recorder file"},
	{prefix: "go 1.", Format: "go_trace",
		Name: "a Go execution trace (fetch a pprof from /debug/pprof/profile, not /debug/pprof/trace)"},

	// gperftools and those that write as it does.
	{prefix: "heap_v2/",
		Name: "a heap profile of jemalloc (convert it with: jeprof --collapsed PROGRAM FILE > out.folded)"},
	{prefix: "heap profile:", pattern: regexp.MustCompile(`^heap profile:.*@ heap_v2/`),
		Name: "a heap profile of jemalloc or tcmalloc" + withPprof},
	{prefix: "heap profile:", pattern: regexp.MustCompile(`^heap profile:.*@ (heapprofile|growthz)`),
		Name: "a heap profile of gperftools" + withPprof},
	{prefix: "heap profile:", Name: "a text dump of a heap profile (ask without debug=1)"},
	{prefix: "heapz ", Name: "a legacy gperftools heap profile" + withPprof},
	{prefix: "--- symbol\n",
		Name: "a profile of jeprof or gperftools with symbols (convert it with: jeprof --collapsed FILE > out.folded)"},
	{prefix: "goroutine profile:", Name: "a text dump of goroutines (ask without debug=1)"},
	{prefix: "goroutine ", pattern: regexp.MustCompile(`^goroutine \d+ [^;\n]*\[`),
		Name: "a text dump of the stacks of goroutines (ask without debug=2)"},
	{prefix: "threadcreate profile:", Name: "a text dump of a thread creation profile (ask without debug=1)"},
	{pattern: regexp.MustCompile(`^\w+ profile: `), Name: "a text dump of a profile (ask without debug=1)"},
	{prefix: "--- contention", Name: "a text dump of a contention profile (ask without debug=1)"},
	{prefix: "--- mutex:", Name: "a text dump of a mutex profile (ask without debug=1)"},
	{prefix: "--- threadz", Name: "a text dump of threads"},
	{prefix: "--- Execution profile", Name: "a report of async-profiler (record with: -o jfr)"},
	{prefix: "--- ", pattern: regexp.MustCompile(`^--- [A-Za-z]`), Name: "a legacy text profile"},

	// The kernel's perf.
	{prefix: "#", pattern: regexp.MustCompile(`(?m)^# (Samples: \S+ +of events? '|Total Lost Samples: \d)`),
		Name: "a report of perf (send what perf script prints)"},
	{prefix: "0x", pattern: regexp.MustCompile(`^0x[0-9a-f]+(@\S+)? \[0x[0-9a-f]+\]: `),
		Name: "a dump of perf script -D (leave -D out)"},
	{prefix: "PERFILE2", Name: perfData},
	{prefix: "2ELIFREP", Name: perfData},
	{prefix: "SIMPLEPERF", Name: "the protobuf of simpleperf (send what report_sample.py prints)"},

	// PHP, Ruby, Perl and Python.
	{prefix: "0 ", pattern: regexp.MustCompile(`^0 .* \S+:-?\d+\n(1 .* \S+:-?\d+\n|#)`),
		Name: "traces of phpspy (convert them with: stackcollapse-phpspy.pl FILE > out.folded)"},
	{prefix: "[events]\n", Name: "a full report of SPX (sample with Excimer, and send what getSpeedscopeData returns)"},
	{prefix: "Version: ", pattern: regexp.MustCompile(`^Version: \S+\r?\nFile format: \d`),
		Name: "a trace of Xdebug (convert it with: stackcollapse-xdebug.php FILE > out.folded)"},
	{prefix: "rbspy0", Name: "a raw file of rbspy (convert it with: rbspy report -f speedscope -i FILE -o out.json)"},
	{prefix: "NYTProf ", Name: "a profile of Devel::NYTProf (convert it with: nytprofcalls FILE > out.folded)"},
	{prefix: "Process ", pattern: regexp.MustCompile(`^Process \d+: .*\r?\nPython v`),
		Name: "a dump of py-spy, which has one moment (record with: py-spy record -f raw)"},
	{prefix: "HCAT", pattern: tachyonVersion, Name: tachyon},
	{prefix: "TACH", pattern: tachyonVersion, Name: tachyon},
	{prefix: "memray\x00", Name: "a recording of memray, which memray alone reads (memray flamegraph FILE)"},

	// Other runtimes and tools.
	{pattern: regexp.MustCompile(`(?m)^Full thread dump `), Name: "a thread dump of Java (record with Flight Recorder)"},
	{prefix: "jdk.", pattern: regexp.MustCompile(`^jdk\.\w+ \{`), Name: "events as jfr prints them (send the recording)"},
	{prefix: "\x14\x00\x00\x00!FastSerialization", Name: "a gcdump of .NET, which has objects and no stacks " +
		"(record with: dotnet-trace collect --format Speedscope)"},
	{pattern: regexp.MustCompile("^[^\\s`;]+`\\S+\\r?\\n\\s+([^\\s`;]+`\\S+|\\d+)\\r?\\n"),
		Name: "stacks of DTrace (convert them with: stackcollapse.pl FILE > out.folded)"},
	{prefix: "v ", pattern: regexp.MustCompile(`^v [0-9a-f]+ [0-9a-f]+\n[xXI] `),
		Name: "a file of heaptrack (convert it with: heaptrack_print -F out.folded FILE)"},
	{prefix: "desc: ", pattern: regexp.MustCompile(`^desc: .*\ncmd: .*\ntime_unit: `),
		Name: "a heap profile of Massif (record with the heap profiler of gperftools or jemalloc)"},
	{prefix: "\x04\x08{", pattern: regexp.MustCompile(`(?s)^\x04\x08\{..?:.(version|mode)`), Name: stackprof.Name},
	{pattern: regexp.MustCompile(
		`^(# callgrind format|version: \d+\r?\ncreator: |(?s:(desc|cmd|pid|part|positions|events|creator): .*\n(fl|fn|ob)=))`), Name: "a file of callgrind" + withSpeedscope},
	{prefix: "<?xml", pattern: regexp.MustCompile(`<trace-(query-result|toc)`),
		Name: "an export of Instruments (copy the call tree by Deep Copy, " +
			"open it in speedscope, and export it from there)"},
	{pattern: regexp.MustCompile(`^Weight\tSelf Weight\t`), Name: "a call tree of Instruments" + withSpeedscope},
	{prefix: "Nettrace", Name: "a trace of .NET (convert it with: dotnet-trace convert --format Speedscope FILE)"},
	{prefix: "JAVA PROFILE 1.0",
		Name: "a heap dump of Java, which has objects and no stacks (record with Flight Recorder)"},
	{prefix: "gmon", pattern: regexp.MustCompile(`^gmon[\x00-\x09]`),
		Name: "a gmon.out of gprof, which has no stacks (sample with perf)"},
	{pattern: regexp.MustCompile(`(?m)^@\S*\[\n +\S`),
		Name: "a map of bpftrace (convert it with: stackcollapse-bpftrace.pl FILE > out.folded)"},
	{prefix: "v8-version,", Name: "a log of V8 (record with node --cpu-prof)"},
	{prefix: "Analysis of sampling ",
		Name: "a report of macOS's sample (convert it with: stackcollapse-sample.awk FILE > out.folded)"},
	{prefix: utf16LittleEndian, Name: UTF16},
	{prefix: utf16BigEndian, Name: UTF16},
	{prefix: "MOJ", pattern: regexp.MustCompile(`^MOJ[\x00-\x1f]`),
		Name: "Austin's binary format (record without -b, or convert it with mojo2austin)"},
	{prefix: "\x7fELF", Name: "an ELF binary"},
	{prefix: "PK\x03\x04", Name: "a zip archive"},
	{prefix: "SQLite format 3\x00", Name: "a database of SQLite, such as one of Nsight Systems"},
	{prefix: "H4sI", pattern: regexp.MustCompile(`^H4sI[A-Za-z0-9+/\r\n]+=*\s*$`), Name: "base64 (decode it: base64 -d FILE)"},
}

// tachyon is a file of Python 3.15, whose times Firefox Profiler's format has, too. It begins with a magic number in
// the byte order of the machine, and a version below 256.
const tachyon = "a binary file of Python's profiling.sampling " +
	"(convert it with: python -m profiling.sampling replay --gecko -o out.json FILE)"

var tachyonVersion = regexp.MustCompile(`^(HCAT(?s:.)\x00\x00\x00|TACH\x00\x00\x00)`)

const perfData = "a perf.data file (send what perf script prints)"

// Zlib describes what is recognised by two bytes alone, once it could not be read as pprof.
const Zlib = "bytes compressed by zlib" + toGzip

// UTF16 describes a text that begins with a byte order mark of UTF-16, as PowerShell writes it.
const (
	UTF16 = "text in UTF-16 (send it in UTF-8: iconv -f UTF-16 -t UTF-8)"

	utf16LittleEndian = "\xff\xfe"
	utf16BigEndian    = "\xfe\xff"
)

// IsUTF16 reports whether a payload is such a text.
func IsUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte(utf16LittleEndian)) || bytes.HasPrefix(data, []byte(utf16BigEndian))
}

// Of returns the signature of a payload, if it has one.
func Of(data []byte) (Signature, bool) {
	head := Head(data)
	isBinary := len(head) == 0 || slices.ContainsFunc(head[:min(len(head), 32)], isControl) // as a pprof's is
	for i := range signatures {
		s := &signatures[i]
		if s.prefix == "" && isBinary || !bytes.HasPrefix(head, []byte(s.prefix)) {
			continue
		}
		if s.pattern == nil || s.pattern.Match(head) {
			return *s, true
		}
	}
	if found, ok := ofJSON(head); ok {
		return found, true
	}
	if isGperftoolsCPU(data) {
		return Signature{Name: "a legacy gperftools CPU profile" + withPprof}, true
	}
	if isPerfProto(data) {
		return Signature{
			Name: "a perf.data file as protobuf (convert the perf.data with: perf_to_profile, or send what perf script prints)"}, true
	}
	if isTar(data) {
		return Signature{Name: "a tar archive"}, true
	}
	if isPerfetto(data) {
		return Signature{Name: "a trace of Perfetto (convert it with: traceconv profile FILE)"}, true
	}
	if isPickle(data) {
		if snapshot.Match(head) {
			return Signature{Format: "torch_memory", Name: "a memory snapshot of PyTorch"}, true
		}
		return Signature{Name: "a Python pickle (of these only PyTorch's memory snapshots are read)"}, true
	}
	if oldPickle.Match(head) {
		return Signature{Name: "a Python pickle of protocol 0 or 1 (PyTorch's memory snapshots are read in 2 and later)"}, true
	}
	const xplaneHead = 32
	if start := data[:min(len(data), xplaneHead)]; bytes.IndexByte(start, '/') >= 0 && xplane.Match(start) {
		return Signature{Name: "an XPlane of XLA (JAX's device memory profile is a pprof, and read)"}, true
	}
	if isPythonProfile(data) {
		return Signature{
			Name: "a file of Python's cProfile, which has no stacks (sample with perf, or with py-spy record -f raw)"}, true
	}
	return Signature{}, false
}

// snapshot matches keys of PyTorch's memory snapshot, or of the first segment in one that is only a list of them.
var snapshot = regexp.MustCompile(`segments|device_traces|allocated_size`)

// oldPickle is a dictionary or a list: (dp0 and }q in Python 3, (dp1 and }q in Python 2.
var oldPickle = regexp.MustCompile(`^(\([dl]p\d\n|[]}]q[\x00\x01]\()`)

// xplane is the beginning of an XSpace: a plane (field 1) with a number (1) and a name (2), or a name alone. Names are
// paths.
var xplane = regexp.MustCompile(`^\n(?s:.{1,5}?)(\x08(?s:.{1,2}?))?\x12(?s:.)/(host|device):`)

// isControl reports whether a text does not have a byte: no blank, and no colour of a terminal.
func isControl(c byte) bool { return c < '\t' || c > '\r' && c < ' ' && c != '\x1b' }

// isTar reports whether data is an archive of tar, whose header of 512 bytes has a magic at its end.
func isTar(data []byte) bool {
	const at = 257
	return len(data) >= at+255 && bytes.HasPrefix(data[at:], []byte("ustar"))
}

// isPickle reports whether data is a pickle of protocol 2 to 5 that begins with a frame, a dictionary or a list.
func isPickle(data []byte) bool {
	return len(data) > 3 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 &&
		bytes.IndexByte([]byte("\x95}](c"), data[2]) >= 0
}

// isOTLP reports whether data is an OTLP message of any signal, in any order of its fields: all of these are messages,
// and those of field 1 have a resource (1), data of scopes (2) and a URL (3) alone.
func isOTLP(data []byte) bool {
	const maxField, maxOfResource = 8, 3
	hasResource := false
	r := wire.New(data)
	for r.Next() {
		if r.Wire != protowire.BytesType || r.Number > maxField {
			return false
		}
		if r.Number != 1 {
			continue
		}
		of := wire.New(r.Content)
		for of.Next() {
			if of.Wire != protowire.BytesType || of.Number > maxOfResource {
				return false
			}
			hasResource = true
		}
		if of.IsMalformed() {
			return false
		}
	}
	return hasResource && !r.IsMalformed()
}

// Describe returns what a payload that is not pprof seems to be, or "" if that is unknown.
func Describe(data []byte) string {
	if s, ok := Of(data); ok {
		return s.Name
	}
	head := Head(data)
	switch {
	case len(data) > 1 && data[0] == 'x' && slices.Contains([]byte("\x01\x9c\xda"), data[1]): // or doc_url of a pprof
		return Zlib
	case isOTLP(data):
		return "an OTLP message" + toOTLP
	case len(head) == 0 || !IsText(head):
		return ""
	case head[0] == '<' && len(head) > 1 && (head[1] < '0' || head[1] > '9'): // <0.76.0> is a process of Erlang
		return "HTML or XML (an error page or an index page?)"
	case isJSON(head):
		return "JSON (an error message?)"
	}
	if kind := TextKind(head); kind != "" {
		return kind
	}
	if len(head) <= maxQuoted {
		return "text: " + strconv.Quote(string(bytes.TrimSpace(head)))
	}
	return "text"
}

// maxQuoted is the size of texts that are quoted: error messages, such as those of net/http/pprof.
const maxQuoted = 120

// Head returns the beginning of a payload, without a byte order mark and blanks in front of a text.
func Head(data []byte) []byte {
	return bytes.TrimLeft(data[:min(len(data), HeadBytes)], "\xef\xbb\xbf \t\r\n")
}

// The texts that TextKind knows.
const (
	PprofReport = "a text report of pprof (send the profile itself)"
	Metrics     = "metrics in the text format of Prometheus"
	Log         = "a log"
	YAML        = "YAML"
)

var (
	reportStart = regexp.MustCompile(`^(File|Type|Time|Build ID|Main binary filename|PeriodType|Doc|Active filters|Total): `)
	reportTable = regexp.MustCompile(`(?m)^(Showing nodes accounting for |Samples:$|Period: \d+$|ROUTINE =|-{11,}\+)`)
	metricsLine = regexp.MustCompile(`^(# (HELP|TYPE|UNIT) [\w:]+ |# EOF$|[a-zA-Z_:][\w:]*\{(\w+="[^"]*",?)+\} )`)
	// logLine begins with a time or a level, or is one of an HTTP server.
	logLine = regexp.MustCompile(`^(\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |[IWEF]\d{4} \d\d:\d\d:` +
		`|(\S+ ){3}\[\d\d/[A-Z][a-z]{2}/\d{4}:|\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]: ]|(time|ts|level)=\S)`)
	yamlLine = regexp.MustCompile(`^(---$|(- )?["']?[\w./-]+["']?:( |$))`)
)

// TextKind returns one of the kinds above if at least half of the lines of a text look like it, and otherwise "".
func TextKind(head []byte) string {
	if reportStart.Match(head) && reportTable.Match(head) {
		return PprofReport
	}
	var lines, metrics, logs, yaml int
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		switch {
		case metricsLine.Match(line):
			metrics++
		case len(line) == 0 || line[0] == '#':
			continue
		case logLine.Match(line):
			logs++
		case yamlLine.Match(line):
			yaml++
		}
		lines++
	}
	switch {
	case lines == 0:
		return ""
	case 2*metrics >= lines:
		return Metrics
	case 2*logs >= lines:
		return Log
	case 2*yaml >= lines:
		return YAML
	default:
		return ""
	}
}

var markup = regexp.MustCompile(`(?i)^<(!doctype|html|\?xml|svg)\b`)

// IsDocument reports whether a text is certainly JSON, HTML or XML.
func IsDocument(head []byte) bool { return len(head) > 0 && (isJSON(head) || markup.Match(head)) }

// isJSON reports whether a text begins with an object or an array.
func isJSON(head []byte) bool {
	if head[0] != '{' && head[0] != '[' {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(head))
	for range 3 {
		if _, err := decoder.Token(); err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
	return true
}

// IsText reports whether head, the first bytes of a payload, is printable text, nearly all of it in UTF-8: the kernel
// cuts names of threads within a character. Protobuf is not: the lengths and indices of a pprof are control characters
// within a few bytes.
func IsText(head []byte) bool {
	const toOneInvalid = 8
	invalid := 0
	for i := 0; i < len(head); {
		r, size := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && size == 1 && len(head)-i >= utf8.UTFMax {
			invalid++
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		i += size
	}
	return toOneInvalid*invalid <= len(head)
}

// isGperftoolsCPU recognizes the header of gperftools' binary CPU profiles on little-endian machines:
// words of the machine's size, 0, 3 (the header's length), 0 (the version), the period, 0.
func isGperftoolsCPU(data []byte) bool {
	order := binary.LittleEndian
	if len(data) >= 40 && order.Uint64(data) == 0 && order.Uint64(data[8:]) == 3 && order.Uint64(data[16:]) == 0 {
		return true
	}
	return len(data) >= 20 && order.Uint32(data) == 0 && order.Uint32(data[4:]) == 3 && order.Uint32(data[8:]) == 0
}

// isPerfProto recognizes a perf.data file as quipper and the tools of ChromeOS write it: its first field is a message,
// whose first field is a perf_event_attr. That begins with two numbers, its type and its size, where OTLP has
// attributes.
func isPerfProto(data []byte) bool {
	const message, isType, isSize = 1<<3 | 2, 1 << 3, 2 << 3
	for range 2 {
		if len(data) == 0 || data[0] != message {
			return false
		}
		length, n := binary.Uvarint(data[1:])
		if n <= 0 {
			return false
		}
		data = data[1+n:]
		data = data[:min(uint64(len(data)), length)] // else a pprof whose first sample type is empty looks like it
	}
	return len(data) > 3 && data[0] == isType && data[1] < 0x80 && data[2] == isSize
}

// isPerfetto recognizes a trace of Perfetto: its first field is a packet, which has the number of its writer in field
// 10. The messages in the first field of other formats have three fields.
func isPerfetto(data []byte) bool {
	const packet, sequence = 1, 10
	trace := wire.New(data)
	if !trace.Next() || trace.Number != packet || trace.Wire != protowire.BytesType {
		return false
	}
	for r := wire.New(trace.Content); r.Next(); {
		if r.Number == sequence && r.Wire == protowire.VarintType {
			return true
		}
	}
	return false
}

// isPythonProfile recognizes a dictionary of Python's marshal, perhaps with the flag of references, whose first key is
// a tuple of three: file, line and function.
func isPythonProfile(data []byte) bool {
	const isReferred = 0x80
	if len(data) < 7 || data[0]&^isReferred != '{' {
		return false
	}
	isPython2 := data[1] == '(' && binary.LittleEndian.Uint32(data[2:]) == 3
	return isPython2 || data[1]&^isReferred == ')' && data[2] == 3
}
