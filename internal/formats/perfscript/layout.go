// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import "strings"

// layout is what the lines of a text have in common: perf script prints the same fields for all of them. Fields that
// look alike, such as a number at the end of a command and the id of a thread, can be told apart only by all lines
// together.
type layout struct {
	anchor anchor
	// hasChains means that there are call chains, and hasTabs that their frames begin with a tab, as perf prints them: a
	// line without a tab is not a frame.
	hasChains, hasTabs bool
	// isExpanded means that each tab became eight blanks: addresses end where perf's do.
	isExpanded bool
	// hasIDs and hasFiles mean that samples have the ids of their threads, and frames the names of their files.
	hasIDs, hasFiles bool
}

// anchor is the field by which the first line of a sample is recognised.
type anchor int

const (
	byTime anchor = iota
	byEvent
	byPlace // neither is printed: it is the line above a call chain, or has an address
)

// survey counts the lines of a text by what they can be.
type survey struct {
	lines, records, below int
	// The first lines of samples: with a time, with an event only, with an address only. others follow no rule.
	timed, untimed, bare, others tally
	// events are the timed lines that have an event, too.
	events int
	// Frames of call chains: with a tab in front, with the eight blanks that it becomes on a terminal, with any other
	// indentation, and with none.
	tabs, expanded, indented, flush tally
	// afterNoFile points to where the last line was counted if it is a frame without a file: one that is inlined has none.
	afterNoFile *tally
}

// tally counts lines of one kind.
type tally struct {
	lines, withID int
	// frames are those that have an address, withoutFile those of them that have no file, and sure those whose address is
	// no word or number of another text.
	frames, withoutFile, sure int
}

// enough is how many samples and frames show which fields are printed.
const enough = 1000

func (s *survey) isEnough() bool {
	samples := s.timed.lines + s.untimed.lines + s.bare.lines
	frames := s.tabs.frames + s.expanded.frames + s.indented.frames + s.timed.frames
	return samples >= enough && (frames >= enough || samples >= 10*enough)
}

func (s *survey) add(line string) {
	if line == "" || line[0] == '#' {
		return
	}
	s.lines++
	before := s.afterNoFile
	s.afterNoFile = nil
	switch {
	case line[0] == '\t':
		if l := (layout{hasTabs: true}); l.isChainLine(line) {
			s.addChain(&s.tabs, line)
		} else {
			s.below++
		}
	case isRecord(line):
		s.records++
	case isBelowSample(line):
		s.below++
	case before != nil && strings.HasSuffix(line, inlinedMark): // with -F +srcline, the mark is on the line below
		before.withoutFile--
		s.below++
	default:
		s.addOther(line)
	}
}

// addOther counts a line that can be the first of a sample.
func (s *survey) addOther(line string) {
	frameAt := inlineFrame(line)
	fields, kind := line[:frameAt], &s.timed
	h, isHeader := parseAny(fields, byTime)
	if isHeader && h.event != "" && hasColon(fields, h.event) {
		s.events++
	}
	if !isHeader {
		kind = &s.untimed
		h, isHeader = parseAny(fields, byEvent)
	}
	switch {
	case isHeader:
	case !isDecimal(line[frameAt:]):
		kind = &s.bare
	case frameAt == len(line) && (&layout{isExpanded: true}).isChainLine(line):
		s.addChain(&s.expanded, line)
		return
	case frameAt == len(line) && line[0] == ' ' && (&layout{}).isChainLine(line):
		s.addChain(&s.indented, line)
		return
	case frameAt == len(line) && isSourceLine(line):
		s.below++
		return
	default:
		kind = &s.others
		if frameAt == len(line) && (&layout{}).isChainLine(line) { // or a command that is a hexadecimal number
			s.addChain(&s.flush, line)
		}
	}
	if !isHeader {
		h.parseBefore(h.cutPeriod(fields), true)
	}
	kind.lines++
	if h.hasID {
		kind.withID++
	}
	if frameAt < len(line) && kind != &s.others {
		address, rest := cutFirst(strings.TrimLeft(line[frameAt:], blanks))
		frame := (&layout{hasFiles: true}).cutOthers(line[frameAt:])
		s.addFrame(kind, frame, rest != "" && strings.ContainsAny(address, "abcdef"))
	}
}

// hasColon reports whether an event is in a line with its colon, after its modifiers if it has some:
// cpu_core/cycles/P:.
func hasColon(line, event string) bool {
	_, after, _ := strings.Cut(line, event)
	modifiers, _ := cutFirst(after)
	return strings.Contains(line, event+":") || strings.HasSuffix(modifiers, ":")
}

// parseAny parses a first line, with the id of a thread if there is one.
func parseAny(line string, by anchor) (h header, ok bool) {
	if h, _, ok = (&layout{hasIDs: true}).parseAround(line, by); !ok {
		h, _, ok = (&layout{}).parseAround(line, by)
	}
	return h, ok
}

// addChain counts a frame of a call chain. It is sure if its address cannot be one of the words and numbers with which
// lines of other texts begin.
func (s *survey) addChain(kind *tally, line string) {
	kind.lines++
	address, rest := cutFirst(strings.TrimLeft(line, blanks))
	least := 6
	if kind == &s.tabs || kind == &s.expanded {
		least = 4
	}
	isSure := rest != "" && len(address) >= least && strings.ContainsAny(address, "0123456789")
	switch {
	case kind != &s.tabs:
		isSure = isSure && strings.ContainsAny(address, "abcdef")
	case len(line) == 1+addressColumns && isAddress(line[1:]):
		isSure = true
	}
	s.addFrame(kind, line, isSure)
}

func (s *survey) addFrame(kind *tally, text string, isSure bool) {
	kind.frames++
	if isSure {
		kind.sure++
	}
	if text = strings.TrimRight(text, blanks); fileStart(text) == len(text) && !strings.HasSuffix(text, inlinedMark) {
		kind.withoutFile++
		s.afterNoFile = kind
	}
}

// layout returns what most of the lines have in common, and the tallies of samples and of frames that agree with it.
func (s *survey) layout() (l layout, samples, chain tally) {
	l = layout{anchor: byPlace, hasTabs: s.tabs.frames > 0, isExpanded: s.tabs.frames == 0 && s.expanded.frames > 0}
	samples = s.bare
	samples.lines, samples.withID = s.bare.lines+s.others.lines, s.bare.withID+s.others.withID
	switch {
	case s.timed.lines > 0 && 4*s.timed.lines >= s.untimed.lines:
		l.anchor, samples = byTime, s.timed
	case s.untimed.lines > 0:
		l.anchor, samples = byEvent, s.untimed
	}
	switch {
	case l.hasTabs:
		chain = s.tabs
	case l.isExpanded:
		chain = s.expanded
	case s.indented.frames > 0:
		chain = s.indented
	default:
		chain = s.flush
	}
	l.hasChains = l.hasTabs || l.isExpanded || chain.sure > 0
	const toOneWithout = 16 // a line can be damaged
	l.hasIDs = samples.withID > 0 && toOneWithout*(samples.lines-samples.withID) <= samples.lines
	l.hasFiles = toOneWithout*(samples.withoutFile+chain.withoutFile) <= samples.frames+chain.frames
	return l, samples, chain
}

// isPerf reports whether half of the lines are what perf script prints, and some of them nothing else.
func (s *survey) isPerf() bool {
	l, samples, chain := s.layout()
	known, isSure := chain.lines+s.below+samples.lines, samples.sure > 0
	hasColumns := l.hasTabs || l.isExpanded
	switch l.anchor {
	case byTime:
		isSure = isSure || chain.sure > 0 || s.events > 0 && l.hasIDs
	case byEvent:
		isSure = isSure || chain.sure > 0 && (hasColumns || l.hasIDs)
	default:
		known = chain.lines + s.below + s.bare.lines + min(s.others.lines, chain.lines)
		isSure = isSure || chain.sure > 0 && hasColumns
	}
	return s.records > 0 || isSure && 2*known >= s.lines
}

// Recognize reports whether the head of a text is what perf script prints. Its last line may be cut.
func Recognize(head string, isTruncated bool) bool {
	head = strings.TrimPrefix(head, byteOrderMark)
	if strings.HasPrefix(strings.TrimLeft(head, " \t\r\n"), headerStart) {
		return true
	}
	var s survey
	for line := range strings.Lines(head) {
		if isTruncated && !strings.HasSuffix(line, "\n") {
			break
		}
		s.add(trimLine(line))
	}
	return s.isPerf()
}

// headerStart begins what --header prints, which can be long.
const headerStart = "# ========"

// isRecord reports whether a line is one of the records that are no samples: --show-mmap-events and the like.
func isRecord(line string) bool {
	return strings.HasPrefix(line, "PERF_RECORD_") || strings.Contains(line, " PERF_RECORD_")
}

// isBelowSample reports whether a line is one that perf prints below a sample: registers, instructions, branches,
// source code.
func isBelowSample(line string) bool {
	for _, start := range []string{" ABI:", " insn:", " ilen:", " 0x", " => "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return len(line) > 1 && line[0] == '|' && line[1] >= '0' && line[1] <= '9'
}

func trimLine(line string) string { return strings.TrimRight(line, " \t\r\n") }
