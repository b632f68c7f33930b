// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"strconv"
	"strings"
)

// frame is one line of a stack. A line or column of 0 and an empty file are not known.
type frame struct {
	function, file string
	line, column   int64
}

// parseFrame reads a line such as
//
//	at java.lang.Thread.run(java.base@11.0.9.1/Thread.java:834)
//
// where "at " may be missing. Any other line, such as those of jstack about locks, is not a frame.
func parseFrame(text string) (f frame, ok bool) {
	text = strings.Trim(text, " \t\r")
	marked := strings.HasPrefix(text, "at ")
	if marked {
		text = strings.TrimLeft(text[len("at "):], " \t")
	} else if strings.HasPrefix(text, "- ") {
		return frame{}, false
	}
	end := len(text) - 1
	if marked && end >= 0 && text[end] != ')' {
		// Some loggers write the archive behind the frame; some runtimes write no file and line.
		if end = strings.LastIndexByte(text, ')'); end < 0 {
			return frame{function: text}, text != ""
		}
	}
	if end < 0 || text[end] != ')' {
		return frame{}, false
	}
	open := openingOf(text[:end])
	if open < 0 {
		return frame{}, false
	}
	f.function = strings.TrimRight(text[:open], " \t")
	f.readPosition(text[open+1 : end])
	return f, f != frame{}
}

// openingOf finds the parenthesis that the end of text closes: functions and files can have pairs of their own.
// If there is none, it returns the last.
func openingOf(text string) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return strings.LastIndexByte(text, '(')
}

// readPosition reads the string in the parentheses: file, file:line, file:line:column, or file:line:line and columns
// after a space. Each number may be a range, whose start is used. A file may contain colons.
func (f *frame) readPosition(text string) {
	columns, hasColumns := int64(0), false
	if space := strings.LastIndexByte(text, ' '); space > 0 {
		_, _, hasLine := cutNumber(text[:space])
		if first, ok := rangeStart(text[space+1:]); ok && hasLine {
			text, columns, hasColumns = text[:space], first, true
		}
	}
	if file, second, ok := cutNumber(text); ok {
		text = file
		f.line = second
		if file, first, ok := cutNumber(file); ok {
			text = file
			f.line, f.column = first, second
		}
	}
	if hasColumns {
		f.column = columns
	}
	f.file = fileName(text)
}

// fileName removes the module from a file. It returns "" for the strings that runtimes write instead of an unknown
// file.
func fileName(text string) string {
	if slash := strings.IndexByte(text, '/'); slash >= 0 && strings.IndexByte(text[slash+1:], '/') < 0 &&
		strings.IndexByte(text[:slash], '@') > 0 {
		text = text[slash+1:]
	}
	if text == "unknown" || strings.HasSuffix(text, "Native Method") || strings.HasSuffix(text, "Unknown Source") {
		return ""
	}
	return text
}

// cutNumber cuts ":12", or ":12-14", off the end of text. A negative number, which runtimes write for an unknown line,
// becomes 0.
func cutNumber(text string) (before string, number int64, ok bool) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return text, 0, false
	}
	digits := text[colon+1:]
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		_, ok := digitsOf(rest)
		return text[:colon], 0, ok
	}
	number, ok = rangeStart(digits)
	return text[:colon], number, ok
}

// rangeStart reads "12", "12-14" or "12:14".
func rangeStart(text string) (int64, bool) {
	if i := strings.IndexAny(text, "-:"); i >= 0 {
		if _, ok := digitsOf(text[i+1:]); !ok {
			return 0, false
		}
		text = text[:i]
	}
	return digitsOf(text)
}

// digitsOf reads a number without a sign.
func digitsOf(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, false
	}
	return int64(n), true
}
