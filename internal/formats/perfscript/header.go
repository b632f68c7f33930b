// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// header is a sample's first line. Each of its fields can be missing:
//
//	comm pid/tid [cpu] misc time: period event: other fields address symbol (file)
type header struct {
	comm                 string
	hasID                bool
	process, thread, cpu int64  // unknown if they are not in it
	timestamp            uint64 // of the machine's clock, in nanoseconds
	period               int64
	hasPeriod            bool
	event                string
	// frame is the address, symbol and file of a sample without a call chain.
	frame string
}

const (
	unknown = -1

	blanks = " \t"

	// longestHeader is where the search for the time and the event ends. A command has 15 bytes, and a tracepoint's fields
	// follow the event.
	longestHeader = 512
)

// parseHeader parses a sample's first line.
func (l *layout) parseHeader(line string) (h header, ok bool) {
	if line[0] == '\t' || isBelowSample(line) {
		return h, false
	}
	frameAt := inlineFrame(line)
	if l.anchor == byPlace && l.hasChains && isDecimal(line[frameAt:]) { // a period above a call chain
		frameAt = len(line)
	}
	fields, rest := line[:frameAt], ""
	if l.anchor == byPlace {
		h.parseBefore(h.cutPeriod(fields), l.hasIDs)
		ok = frameAt < len(line) || l.hasChains
	} else {
		h, rest, ok = l.parseAround(fields, l.anchor)
	}
	if h.frame = line[frameAt:]; ok && h.frame == "" && !l.hasTabs && isSqueezedFrame(rest) {
		h.frame = rest
	}
	return h, ok
}

// parseAround parses a header by its time, or by its event if it has none. Any other field may be missing, and the
// command may have blanks in it, but only the time is a number with a fraction and a colon, and the event is the first
// word with a colon.
func (l *layout) parseAround(line string, by anchor) (h header, rest string, ok bool) {
	for start, end := range words(line) {
		h = header{}
		before, word, after := line[:start], line[start:end], line[end:]
		if by == byTime {
			h.timestamp, ok = parseTime(word)
		} else if ok = isEvent(word); ok {
			before, after = h.cutPeriod(before), line[start:]
		}
		if !ok {
			continue
		}
		if h.parseBefore(before, l.hasIDs); l.hasIDs && !h.hasID {
			continue
		}
		if rest, ok = h.parseAfter(after); ok {
			return h, rest, true
		}
	}
	return h, "", false
}

// words yields where each word of the head of a line begins and ends.
func words(line string) func(yield func(start, end int) bool) {
	line = line[:min(len(line), longestHeader)]
	return func(yield func(start, end int) bool) {
		for at := 0; at < len(line); {
			start := at + len(line[at:]) - len(strings.TrimLeft(line[at:], blanks))
			end := len(line)
			if n := strings.IndexAny(line[start:], blanks); n >= 0 {
				end = start + n
			}
			if start == end || !yield(start, end) {
				return
			}
			at = end
		}
	}
}

// cutFirst cuts off the first word and the blanks after it.
func cutFirst(s string) (word, rest string) {
	if n := strings.IndexAny(s, blanks); n >= 0 {
		return s[:n], strings.TrimLeft(s[n:], blanks)
	}
	return s, ""
}

// cutLast cuts off the last word. width is the width of its field: of the word and of the blanks before it that are not
// the separator.
func cutLast(s string) (before, word string, width int) {
	before, word = events.CutLast(s)
	width = len(strings.TrimRight(s, blanks)) - len(before)
	if before != "" {
		width--
	}
	return before, word, width
}

func parseTime(word string) (uint64, bool) {
	stamp, isStamp := strings.CutSuffix(word, ":")
	nanos, ok := seconds(stamp)
	return nanos, isStamp && ok
}

// seconds returns a number of seconds with a fraction in nanoseconds.
func seconds(s string) (uint64, bool) {
	const most, digits = 1 << 33, 9
	whole, nanos, ok := events.ParseDecimal(s)
	point := strings.IndexByte(s, '.')
	ok = ok && point > 0 && point < len(s)-1 && point >= len(s)-1-digits && s[0] != '-' && whole < most
	return uint64(whole*1e9 + nanos), ok
}

// cutPeriod cuts the period off the fields in front of the event. A thread's id, which can be there instead, has a
// field of five columns, and a period one of ten.
func (h *header) cutPeriod(s string) (before string) {
	const columns = 10
	before, word, width := cutLast(s)
	n, err := strconv.ParseInt(word, 10, 64)
	if _, field, _ := cutLast(before); err != nil || width < columns && !isCPU(field) {
		return s
	}
	h.period, h.hasPeriod = n, true
	return before
}

// parseBefore reads the fields comm pid/tid [cpu] misc date, from the end.
func (h *header) parseBefore(s string, hasIDs bool) {
	h.process, h.thread, h.cpu = unknown, unknown, unknown
	left := cutDate(s)
	before, word, _ := cutLast(left)
	if _, field, _ := cutLast(before); isMisc(word) && (isCPU(field) || isID(field)) {
		left = before
	}
	before, word, _ = cutLast(left)
	if cpu, isLatency := latencyCPU(before, word); isCPU(word) || isLatency {
		h.cpu, left = number(cpu), before
	}
	before, word, _ = cutLast(left)
	if hasIDs && isID(word) {
		process, thread, both := strings.Cut(word, "/")
		if !both {
			process, thread = "", process
		}
		h.process, h.thread, left, h.hasID = number(process), number(thread), before, true
	}
	h.comm = strings.TrimSpace(cutMachine(left))
}

// latencyCPU returns the number of a CPU. With perf script -L it has no brackets: command and thread are in fields of
// eight and five columns before it.
func latencyCPU(before, word string) (cpu string, isLatency bool) {
	const commEnd, threadEnd = 8, 8 + 1 + 5
	if isCPU(word) {
		return word[1 : len(word)-1], false
	}
	comm, thread, _ := cutLast(before)
	isPair := strings.Contains(thread, "/") && !strings.Contains(word, "/")
	return word, isID(word) && isID(thread) && len(comm) == commEnd && (isPair || len(before) == threadEnd)
}

// machine is what perf prints of guests of a virtual machine.
var machine = regexp.MustCompile(`^ *VM: *\d+ (VCPU:\d+ )?`)

func cutMachine(s string) string {
	if strings.HasPrefix(strings.TrimLeft(s, " "), "VM:") {
		return machine.ReplaceAllString(s, "")
	}
	return s
}

// cutDate cuts off the wall-clock time that -F +tod prints, in the zone of the machine that prints it.
func cutDate(s string) string {
	const day, least = len("2006-01-02"), len("15:04:05.000000")
	before, clock, _ := cutLast(s)
	if len(clock) < least || clock[2] != ':' || clock[5] != ':' || clock[8] != '.' {
		return s
	}
	if before, date, _ := cutLast(before); len(date) == day && date[4] == '-' && date[7] == '-' {
		return before
	}
	return s
}

// isMisc reports whether a word can be the field misc: in which mode the processor was.
func isMisc(word string) bool { return word != "" && strings.Trim(word, "KUHGgMESp") == "" }

func isCPU(word string) bool {
	return len(word) > 2 && word[0] == '[' && word[len(word)-1] == ']' && number(word[1:len(word)-1]) != unknown
}

// isID reports whether a word is the id of a thread, or those of process and thread.
func isID(word string) bool {
	process, thread, both := strings.Cut(word, "/")
	return isNumber(process) && (!both || isNumber(thread))
}

func isDecimal(s string) bool { return strings.Trim(s, " 0123456789") == "" }

func isNumber(s string) bool { return number(strings.TrimPrefix(s, "-")) != unknown }

// number returns unknown for what is not a number of at most ten digits.
func number(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || len(s) > 10 {
		return unknown
	}
	return int64(n)
}

// isEvent reports whether a word is an event, and not the name of what perf prints after it.
func isEvent(word string) bool {
	switch word {
	case ":", "metric:", "insn:", "ilen:", "IPC:", "output:", "string:", "data:":
		return false
	}
	return strings.HasSuffix(word, ":")
}

// parseAfter reads period event: and returns what else perf prints on the line. Only if nothing else is on it, the
// event or its colon may be missing.
func (h *header) parseAfter(s string) (rest string, ok bool) {
	word, rest := cutFirst(strings.TrimLeft(s, blanks))
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		h.period, h.hasPeriod = n, true
		word, rest = cutFirst(rest)
	}
	if word == "" {
		return "", true
	}
	if number, after := cutFirst(rest); word == "raw" && strings.HasPrefix(number, "0x") { // raw 0x1a8:
		word, rest = word+" "+number, after
	}
	if !isEvent(word) {
		h.event = word // Swift's profiler writes no colon
		return "", rest == ""
	}
	h.event = cutModifiers(strings.TrimSuffix(word, ":"))
	return rest, true
}

// cutModifiers cuts off who was counted, and how: cycles:ppp, cpu_core/cycles/P.
func cutModifiers(event string) string {
	at := strings.LastIndexAny(event, ":/")
	if at <= 0 || strings.Trim(event[at+1:], "ukhHGIpPSDWebRX") != "" {
		return event
	}
	if event[at] == '/' {
		at++
	}
	return event[:at]
}
