// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package formats names the formats in which profiles arrive, and recognises them by content. The packages below it,
// pprof/decode and otlp/layouts read them.
package formats

import (
	"bytes"
	"regexp"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/perfscript"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/signature"
)

// Format is a format of profiles. Its value is its name in configurations, on command lines and in metrics.
type Format string

// The formats that Sniff recognises.
const (
	// Unknown means anything else.
	Unknown Format = ""
	Pprof   Format = "pprof"
	// OTLP is an export request or a ProfilesData message of any layout, in protobuf. OTLPJSON is the same in JSON, one
	// message or a sequence of them.
	OTLP     Format = "otlp"
	OTLPJSON Format = "otlp_json"
	// OTLPLogs is log records in protobuf, which may carry profiles. OTLPLogsJSON is the same in JSON.
	OTLPLogs     Format = "otlp_logs"
	OTLPLogsJSON Format = "otlp_logs_json"
	GoTrace      Format = "go_trace"
	PerfScript   Format = "perf_script"
	// CPUProfile is V8's format: a .cpuprofile or .heapprofile file.
	CPUProfile Format = "cpuprofile"
	Folded     Format = "folded"
	JFR        Format = "jfr"
	// TraceEvents are Chrome's: of PyTorch's profiler, with a CPU profile of V8, or the spans of any other tool.
	TraceEvents Format = "trace_events"
	// TorchMemory is a snapshot of PyTorch's allocator of GPU memory.
	TorchMemory Format = "torch_memory"
	// Speedscope is the format of speedscope, Firefox that of the Firefox Profiler, which samply writes, too.
	Speedscope Format = "speedscope"
	Firefox    Format = "firefox"
	// Gzip, Zstd and LZ4 are any of the others, compressed: decompress it and look again.
	Gzip Format = "gzip"
	Zstd Format = "zstd"
	LZ4  Format = "lz4"
)

// headBytes is how much of a text Sniff reads.
const headBytes = signature.HeadBytes

// Sniff returns the format of a payload. To be cheap, it reads only the head of a text or the outermost fields of a
// protobuf message; the rest may still be malformed. A text dump that only looks like one of the formats is Unknown.
func Sniff(data []byte) Format {
	if known, ok := signature.Of(data); ok {
		return Format(known.Format)
	}
	// A message is not text: a length or an index is a control character within a few bytes.
	head := data[:min(len(data), headBytes)]
	if !signature.IsText(head) {
		return sniffMessage(data)
	}
	isTruncated := len(head) < len(data)
	if perfscript.Recognize(string(head), isTruncated) { // before its blanks are trimmed
		return PerfScript
	}
	return sniffLines(signature.Head(head), isTruncated)
}

// sniffMessage distinguishes protobuf messages. A pprof has outermost numbers or fields that OTLP lacks, or sample
// types in field 1: two numbers, where OTLP has a resource.
func sniffMessage(data []byte) Format {
	otlp, pprof := Unknown, false
	r := wire.New(data)
	for r.Next() {
		switch {
		case r.Number > maxPprofField:
			return Unknown
		case r.Wire == protowire.VarintType, r.Wire == protowire.BytesType && r.Number > maxOTLPField:
			pprof = true
		case r.Wire != protowire.BytesType:
			return Unknown
		case r.Number == 1 && len(r.Content) > 0:
			_, first, n := protowire.ConsumeTag(r.Content)
			switch {
			case n < 0:
				return Unknown
			case first == protowire.VarintType:
				pprof = true
			case otlp == Unknown:
				otlp = sniffResource(r.Content)
			}
		}
	}
	if r.IsMalformed() {
		return Unknown
	}
	switch {
	case pprof || otlp == Unknown && len(data) > 0:
		return Pprof
	default:
		return otlp
	}
}

const (
	maxPprofField = 15
	// maxOTLPField is the last field of ProfilesData: layout 1.6 has the tables there.
	maxOTLPField = 8
)

// sniffResource distinguishes log records from profiles: a record has times of eight bytes in its fields 1 and 11, and
// attributes, which begin with a string, in field 6. No layout of profiles has either.
func sniffResource(data []byte) Format {
	for scope := range wire.Messages(data, 2) {
		for item := range wire.Messages(scope, 2) {
			for r := wire.New(item); r.Next(); {
				if r.Wire == protowire.Fixed64Type && (r.Number == 1 || r.Number == 11) ||
					r.Wire == protowire.BytesType && r.Number == 6 &&
						bytes.HasPrefix(r.Content, []byte{1<<3 | byte(protowire.BytesType)}) {
					return OTLPLogs
				}
			}
			return OTLP
		}
	}
	return OTLP
}

var (
	// foldedLine is a stack with a value, and what OTEP 239 adds after it.
	foldedLine = regexp.MustCompile(`^\S.*\s-?\d+(\s+\S+=\S*)?(\s+\d+)?$`)
	// otherFoldedLine ends in other values, a decimal number or Austin's metrics. So do lines of many texts: it counts
	// only among calls.
	otherFoldedLine = regexp.MustCompile(`^\S.*\s(-?\d+\.\d*|\d(\.\d+)?e\+?\d+|\d+,[01],-?\d+)$`)
)

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// sniffLines reads the lines of a text, the last of which may be cut. Half of them must be stacks, and all of them if
// no frame calls another: words with a number behind them are in many texts.
func sniffLines(head []byte, isTruncated bool) Format {
	lines, stacks, others, calls, isLong := 0, 0, 0, 0, false
	for line := range bytes.Lines(head) {
		isWhole := bytes.HasSuffix(line, []byte("\n")) || !isTruncated
		line = bytes.TrimSpace(line)
		hasCall := bytes.IndexByte(line, ';') > 0
		switch {
		case len(line) == 0 || folded.IsComment(string(line)):
			continue
		case !isWhole:
			isLong = lines == 0 && hasCall
			continue
		case foldedLine.Match(line):
			stacks++
			calls += count(hasCall)
		case otherFoldedLine.Match(line):
			others++
			calls += count(hasCall)
		}
		lines++
	}
	if calls > 0 {
		stacks += others
	}
	if lines == 0 && (!isLong || signature.IsDocument(head)) || 2*stacks < lines || calls == 0 && stacks < lines {
		return Unknown
	}
	switch signature.TextKind(head) {
	case "":
		return Folded
	case signature.YAML: // a frame can look like it
		if calls > 0 {
			return Folded
		}
	}
	return Unknown
}
