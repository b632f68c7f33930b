// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"math"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// stackText remembers the lines of the stacks of a request: threads stand in the same few places over and over.
type stackText struct {
	lines     []knownLine // the first one is unused, since HashIndex has no entry 0
	lineIndex profiledict.HashIndex
	// frames are the positions in lines of the stack under way, stack what they became.
	frames []int32
	stack  []int32
}

type knownLine struct {
	text     string
	frame    frame
	location int32 // notInterned, or an index of the location table
}

const (
	notInterned = -1
	// maxKnownLines bounds the memory of lines, maxLocations what one request can make of many short ones.
	maxKnownLines = 1 << 16
	maxLocations  = 1 << 20
)

func (s *stackText) reset() {
	clear(s.lines)
	s.lines = append(s.lines[:0], knownLine{})
	s.lineIndex.Reset(0)
}

func (s *stackText) release() {
	clear(s.lines)
	s.lines = s.lines[:0]
}

// readText reads a body that is one call stack: a line on the thread, a line with its state, and the frames.
func (t *translator) readText(body string) *Rejection {
	if len(body) > t.bytesLeft || t.samplesLeft <= 0 {
		return reject(ReasonTooLarge, "the records before it and this one are more than one request may carry")
	}
	t.bytesLeft -= len(body)
	if t.dict.Locations.Len() > maxLocations {
		return reject(ReasonTooLarge, "the records before it have more than %d distinct frames", maxLocations)
	}
	if len(t.lines) > maxKnownLines {
		t.stackText.reset()
	}
	thread, state, frames := cutHeader(profiledict.ValidUTF8(body))
	// Nothing is interned before the whole stack is known to be read.
	if err := t.findFrames(frames); err != nil {
		return err
	}
	o := observation{time: t.record.time, period: t.record.period, value: 1}
	switch {
	case t.record.typ == TypeAllocation:
		o.valued, o.value, o.period = true, t.record.allocated, 0
	case t.record.described:
		o.value = t.record.value
	}
	o.Stack = t.internFrames()
	if t.record.linked {
		o.Link = t.dict.Links.Intern(t.record.link)
	}
	o.Attributes = t.textAttributes(thread, state)
	t.add(&o)
	return nil
}

// cutHeader parts the first two lines, either of which may be empty, from the frames. A sender that leaves them out
// is known by the "at " of its first line.
func cutHeader(body string) (thread, state, frames string) {
	first, rest, _ := strings.Cut(body, "\n")
	if beginsWithAt(first) {
		return "", "", body
	}
	second, frames, _ := strings.Cut(rest, "\n")
	if beginsWithAt(second) {
		return first, "", rest
	}
	return first, strings.TrimSpace(second), frames
}

func beginsWithAt(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " \t"), "at ")
}

// findFrames notes the frames of a stack in t.frames.
func (t *translator) findFrames(text string) *Rejection {
	t.frames = t.frames[:0]
	for text != "" {
		var line string
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			line, text = text, ""
		}
		position, ok := t.findLine(line)
		if !ok {
			continue
		}
		if len(t.frames) == t.opts.MaxStackDepth {
			return reject(ReasonTooDeep, "the stack has more than %d frames", t.opts.MaxStackDepth)
		}
		t.frames = append(t.frames, position)
	}
	if len(t.frames) == 0 {
		return reject(ReasonNotAStack, "no line of the text is a stack frame")
	}
	return nil
}

// findLine returns the position in t.lines of a line that is a frame.
func (t *translator) findLine(line string) (int32, bool) {
	p := t.lineIndex.Start(profiledict.HashString(line))
	for i := t.lineIndex.Next(&p); i != 0; i = t.lineIndex.Next(&p) {
		if t.lines[i].text == line {
			return i, true
		}
	}
	f, ok := parseFrame(line)
	if !ok {
		return 0, false
	}
	i := int32(len(t.lines))
	t.lines = append(t.lines, knownLine{text: line, frame: f, location: notInterned})
	t.lineIndex.Insert(p, i)
	return i, true
}

// internFrames interns the stack of t.frames, leaf first as it stands.
func (t *translator) internFrames() profiledict.StackIndex {
	t.stack = t.stack[:0]
	for _, position := range t.frames {
		line := &t.lines[position]
		if line.location == notInterned {
			line.location = t.internFrame(&line.frame)
		}
		t.stack = append(t.stack, line.location)
	}
	return t.dict.Stacks.Intern(t.stack)
}

func (t *translator) internFrame(f *frame) int32 {
	name := f.function
	if name == "" {
		name = t.unnamed()
	}
	function := t.dict.Functions.Intern(profiledict.Function{
		Name: t.dict.Strings.Intern(name), Filename: t.dict.Strings.Intern(f.file),
	})
	line := [1]profiledict.Line{{Function: function, Line: f.line, Column: f.column}}
	return int32(t.dict.Locations.Intern(profiledict.Location{}, line[:]))
}

// thread is what the first line of a text stack says:
//
//	"pool-1-thread-30" #49 daemon prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x7fde nid=0xba03 waiting on condition
//
// A number of 0 is not known.
type thread struct {
	name                 string
	id, osID, tid        int64
	priority, osPriority int64
	cpuNanos, wallNanos  int64
	status               string
}

func parseThread(line string) (t thread) {
	line = strings.TrimSpace(line)
	t.name, line = cutName(line)
	for line != "" {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimLeft(rest, " ")
		key, value, _ := strings.Cut(word, "=")
		switch {
		case word[0] == '#':
			t.id, _ = digitsOf(word[1:])
		case key == "prio":
			t.priority = integer(value)
		case key == "os_prio":
			t.osPriority = integer(value)
		case key == "cpu":
			t.cpuNanos = nanos(value)
		case key == "elapsed":
			t.wallNanos = nanos(value)
		case key == "tid":
			t.tid = integer(value)
		case key == "nid":
			// The rest is free text.
			t.osID, t.status = integer(value), rest
			return t
		}
		line = rest
	}
	return t
}

// cutName cuts the quoted name off the line. Names can have quotes themselves: the one that ends it stands before the
// thread's number, or last in the line.
func cutName(line string) (name, rest string) {
	if line == "" || line[0] != '"' {
		return "", line
	}
	end := strings.LastIndex(line, "\" #")
	if end <= 0 {
		end = strings.LastIndexByte(line, '"')
	}
	if end <= 0 {
		return "", ""
	}
	return line[1:end], strings.TrimLeft(line[end+1:], " ")
}

// integer reads a decimal or, after 0x, hexadecimal number. Addresses take all of 64 bits.
func integer(text string) int64 {
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return 0
		}
		return int64(n)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// nanos reads a duration such as 0.12ms; a number without a unit is no duration.
func nanos(text string) int64 {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}[text[end:]]
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || !known || n < 0 || n*unit > math.MaxInt64/2 {
		return 0
	}
	return int64(math.Round(n * unit))
}

// statePrefix is what a JVM writes before the state.
const statePrefix = "java.lang.Thread.State: "

// textAttributes interns the attributes of a text stack's sample.
func (t *translator) textAttributes(line, state string) profiledict.AttributeSetIndex {
	th := parseThread(line)
	list := t.scratch[:0]
	list = t.appendText(list, keyThreadName, th.name)
	list = t.appendInt(list, keyThreadID, th.id, "")
	list = t.appendInt(list, keyThreadOSID, th.osID, "")
	list = t.appendText(list, keyThreadState, strings.TrimPrefix(state, statePrefix))
	if t.opts.FullThreadMetadata {
		list = t.appendInt(list, keyPriority, th.priority, "")
		list = t.appendInt(list, keyOSPriority, th.osPriority, "")
		list = t.appendInt(list, keyCPUTime, th.cpuNanos, unitNanoseconds)
		list = t.appendInt(list, keyElapsedTime, th.wallNanos, unitNanoseconds)
		list = t.appendInt(list, keyThreadTID, th.tid, "")
		list = t.appendText(list, keyThreadStatus, th.status)
	}
	for key, value := range t.record.log.Attributes().All() {
		if t.record.isOfSample(key) {
			list = t.appendAttribute(list, key, value)
		}
	}
	return t.internSet(list)
}

func (t *translator) appendText(list []int32, key, value string) []int32 {
	if value == "" {
		return list
	}
	entry := profiledict.Attribute{Key: t.dict.Strings.Intern(key), Value: profiledict.StringValue(value)}
	return append(list, int32(t.dict.Attributes.Intern(entry)))
}

func (t *translator) appendInt(list []int32, key string, value int64, unit string) []int32 {
	if value == 0 {
		return list
	}
	entry := profiledict.Attribute{Key: t.dict.Strings.Intern(key), Unit: t.dict.Strings.Intern(unit), Value: profiledict.IntValue(value)}
	return append(list, int32(t.dict.Attributes.Intern(entry)))
}
