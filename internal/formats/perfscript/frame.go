// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"strconv"
	"strings"
)

// frame is a frame of a stack: address symbol+offset (file). What is not printed is empty.
type frame struct {
	address      uint64
	symbol, file string
	// isInlined means that the frame is inlined into the next one.
	isInlined bool
	// source and line are those of the line below, with -F +srcline.
	source string
	line   int64
}

const inlinedMark = "(inlined)"

// parseFrame parses a frame. It returns false if s does not begin with an address.
func (l *layout) parseFrame(s string) (f frame, ok bool) {
	s = strings.TrimLeft(s, blanks)
	address, rest := cutFirst(s)
	ip, err := strconv.ParseUint(address, 16, 64)
	if err != nil {
		return f, false
	}
	f.address = ip
	symbol := strings.TrimSpace(rest)
	if outer, isInlined := strings.CutSuffix(symbol, inlinedMark); isInlined {
		f.isInlined, symbol = true, strings.TrimRight(outer, blanks)
	} else if l.hasFiles {
		if at := fileStart(symbol); at < len(symbol) {
			f.file, symbol = symbol[at+1:len(symbol)-1], strings.TrimRight(symbol[:at], blanks)
			f.file = cutOffset(f.file)
		}
	}
	symbol = cutOffset(symbol)
	if outer, isInlined := strings.CutSuffix(symbol, " [inlined]"); isInlined { // by Swift's profiler
		f.isInlined, symbol = true, outer
	}
	if symbol != unknownName {
		f.symbol = symbol
	}
	if f.file == unknownName {
		f.file = ""
	}
	return f, true
}

const unknownName = "[unknown]"

// fileStart returns where the parenthesis opens that ends s and stands by itself: that of the file in symbol (file). A
// file can have parentheses of its own: (/srv/shop (deleted)). Without a file, fileStart returns len(s).
func fileStart(s string) int {
	if !strings.HasSuffix(s, ")") {
		return len(s)
	}
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth > 0 {
				continue
			}
			if i == 0 || strings.IndexByte(blanks, s[i-1]) >= 0 {
				return i
			}
			return len(s)
		}
	}
	return len(s)
}

// cutOffset cuts off +0x1f, the offset in a function or in a file.
func cutOffset(s string) string {
	at := strings.LastIndex(s, "+0x")
	if at <= 0 || strings.Trim(s[at+len("+0x"):], "0123456789abcdef") != "" {
		return s
	}
	return s[:at]
}

// addressColumns is the width of an address, which perf pads with blanks.
const addressColumns = 16

// inlineFrame returns where the address begins of a sample without a call chain: a separator and sixteen columns, after
// the last of the other fields. Without one it returns len(line).
func inlineFrame(line string) int {
	last := len(line)
	if to := strings.Index(line, " => "); to >= 0 { // where a branch goes to
		last = to
	}
	for at := last - addressColumns; at > 0; at-- {
		end := at + addressColumns
		switch {
		case end < len(line) && line[end] != ' ' && line[end] != '\t', !isAddress(line[at:end]):
		case at > 1 && strings.Trim(line[:at], " ") == "": // a frame of a call chain, with blanks for its tab
			return len(line)
		case line[at-1] == ' ' && (at == 1 || line[at-2] != ':'): // after a colon it is the address that was accessed
			if next, _ := cutFirst(strings.TrimLeft(line[end:], blanks)); isEvent(next) { // a period
				return len(line)
			}
			return at
		}
	}
	return len(line)
}

// isAddress reports whether s is a hexadecimal number, padded with blanks.
func isAddress(s string) bool {
	digits := strings.TrimLeft(s, " ")
	return digits != "" && (digits[0] != '0' || digits == "0") && isHex(digits)
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

// isSqueezedFrame reports whether what follows an event is a frame whose columns were lost.
func isSqueezedFrame(s string) bool {
	const least = 3
	address, rest := cutFirst(s)
	return len(address) >= least && isHex(address) && (rest == "" || strings.HasSuffix(rest, ")"))
}

// cutOthers cuts off what perf prints after the frame of a sample without a call chain: where a branch goes to,
// registers, instructions, branches, addresses.
func (l *layout) cutOthers(s string) string {
	for _, mark := range []string{" => ", " ABI:", " insn:", " ilen:", "\t IPC:"} {
		if at := strings.Index(s, mark); at > 0 {
			s = s[:at]
		}
	}
	if at := strings.Index(s, "/-/"); at > 0 { // flags of a branch: from/to/P/-/-/1
		if at = strings.LastIndex(s[:at], " 0x"); at > 0 {
			s = s[:strings.Index(s, " 0x")]
		}
	}
	if at := strings.LastIndexByte(s, ')'); l.hasFiles && at > 0 && isPhysical(s[at+1:]) {
		return s[:at+1]
	}
	if at := strings.Index(strings.TrimLeft(s, " "), "  "); at > 0 {
		s = s[:len(s)-len(strings.TrimLeft(s, " "))+at]
	}
	return s
}

// isPhysical reports whether s is a physical address and sizes of pages, or empty.
func isPhysical(s string) bool {
	address, sizes := cutFirst(strings.TrimLeft(s, " "))
	return (address == "" || isHex(address)) && strings.Trim(sizes, " 0123456789BKMGTN/A") == ""
}

// isChainLine reports whether a line is a frame of a call chain, as perf indents it or, if its tabs were lost, as
// others do.
func (l *layout) isChainLine(line string) bool {
	trimmed := strings.TrimLeft(line, blanks)
	address, _ := cutFirst(trimmed)
	if !isHex(address) || len(address) > addressColumns {
		return false
	}
	if l.hasTabs {
		// A tab after the address is that of an instruction.
		after := strings.TrimPrefix(trimmed, address)
		return line[0] == '\t' && (line[1] != '\t' && !strings.HasPrefix(after, "\t") || len(address) < addressColumns)
	}
	const tab, least = 8, 4 // least digits of an address whose indentation was lost
	indentation := len(line) - len(trimmed)
	if l.isExpanded {
		return indentation+len(address) == tab+addressColumns
	}
	return indentation > 0 || len(address) >= least
}

// isSourceLine reports whether a line is one of source code below a frame: file.c:12, libc.so.6[1f2e] or
// libc.so.6+0x1f2e.
func isSourceLine(line string) bool {
	word, _ := cutFirst(strings.TrimLeft(line, " "))
	return strings.HasPrefix(line, "  ") && (strings.IndexAny(word, ":[") > 0 || strings.Contains(word, "+0x"))
}

// sourceLine parses the line below a frame: file.c:12. Names without a line are those of files without debug
// information.
func sourceLine(s string) (source string, line int64, isInlined bool) {
	s, isInlined = strings.CutSuffix(strings.TrimSpace(s), inlinedMark)
	s, _, _ = strings.Cut(strings.TrimSpace(s), " (discriminator")
	at := strings.LastIndexByte(s, ':')
	if at <= 0 || strings.HasPrefix(s, "??") {
		return "", 0, isInlined
	}
	if line = number(s[at+1:]); line <= 0 {
		return "", 0, isInlined
	}
	return s[:at], line, isInlined
}
