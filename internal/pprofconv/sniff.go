// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// sniff returns what a payload appears to be instead of pprof, or "" if it may be pprof. People push what
// their tools have written; the name of the mistake helps them more than the offset of the first bad byte.
func sniff(data []byte) string {
	for _, known := range []struct{ prefix, name string }{
		{"go 1.", "a Go execution trace (fetch a pprof from /debug/pprof/profile, not /debug/pprof/trace)"},
		{"heap profile:", "a text dump of a heap profile (ask without debug=1, or a legacy gperftools heap file)"},
		{"heapz ", "a legacy gperftools heap profile"},
		{"goroutine profile:", "a text dump of goroutines (ask without debug=1)"},
		{"goroutine ", "a text dump of goroutines (ask without debug=2)"},
		{"threadcreate profile:", "a text dump of a thread creation profile (ask without debug=1)"},
		{"--- contention", "a text dump of a contention profile (ask without debug=1)"},
		{"--- mutex:", "a text dump of a mutex profile (ask without debug=1)"},
		{"--- threadz", "a text dump of threads"},
		{"--- ", "a legacy text profile"},
		{"FLR\x00", "a Java Flight Recorder file"},
		{"PERFILE2", "a perf.data file"},
		{"\x7fELF", "an ELF binary"},
		{"PK\x03\x04", "a zip archive"},
	} {
		if bytes.HasPrefix(data, []byte(known.prefix)) {
			return known.name
		}
	}
	if isGperftoolsCPU(data) {
		return "a legacy gperftools CPU profile (convert it with: pprof -proto)"
	}
	head := bytes.TrimLeft(data[:min(len(data), 512)], "\xef\xbb\xbf \t\r\n")
	switch {
	case len(head) == 0:
		return ""
	case head[0] == '<':
		return "HTML or XML (an error page or an index page?)"
	case head[0] == '{' && IsText(head), head[0] == '[' && IsText(head):
		return "JSON"
	}
	return ""
}

// IsText reports whether head, the first bytes of a payload, which may end within a character, is printable text in
// UTF-8. Protobuf is not: the lengths and indices of a pprof are control characters within a few bytes.
func IsText(head []byte) bool {
	for i := 0; i < len(head); {
		r, size := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && size == 1 && len(head)-i >= utf8.UTFMax {
			return false
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		i += size
	}
	return true
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
