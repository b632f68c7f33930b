// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// stackText remembers the lines of the stacks of a request, since threads are often in the same few functions.
type stackText struct {
	lines     []knownLine // the first one is unused, since HashIndex has no entry 0
	lineIndex dictionary.HashIndex
	// frames are the positions in lines of the current stack.
	frames []int32
}

type knownLine struct {
	text     string
	frame    frame
	location int32 // 0 until it is interned
}

const (
	// maxKnownLines bounds the memory of lines, maxLocations the locations that one request can make of many short
	// ones.
	maxKnownLines = 1 << 16
	maxLocations  = 1 << 20
)

func (s *stackText) reset() {
	clear(s.lines)
	s.lines = append(s.lines[:0], knownLine{})
	s.lineIndex.Reset(0)
}

// readText reads a body that is one call stack: a line about the thread, a line with its state, and the frames.
func (t *translator) readText(body string) *Rejection {
	if len(body) > t.bytesLeft || t.samplesLeft <= 0 {
		return reject(ReasonTooLarge, "this record and earlier ones are more than one request may carry")
	}
	t.bytesLeft -= len(body)
	if t.dict.Locations.Len() > maxLocations {
		return reject(ReasonTooLarge, "earlier records have more than %d distinct frames", maxLocations)
	}
	if len(t.lines) > maxKnownLines {
		t.stackText.reset()
	}
	thread, state, frames := cutHeader(dictionary.ValidUTF8(body))
	// Nothing is interned before the whole stack is known to be read.
	if err := t.findFrames(frames); err != nil {
		return err
	}
	o := observation{period: t.record.period, value: 1}
	if t.record.typ == TypeAllocation {
		o.value = t.record.allocated
	}
	o.Stack = t.internFrames()
	o.Attributes = t.textAttributes(thread, state)
	t.add(&o)
	return nil
}

// cutHeader cuts the first two lines, each of which may be empty, from the frames. If the first line begins with "at ",
// the sender has left them out.
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

func (t *translator) findFrames(text string) *Rejection {
	t.frames = t.frames[:0]
	for line := range strings.SplitSeq(text, "\n") {
		position, ok := t.findLine(line)
		if !ok {
			continue
		}
		if len(t.frames) == t.opts.Limits.MaxStackDepth {
			return reject(ReasonTooDeep, "the stack has more than %d frames", t.opts.Limits.MaxStackDepth)
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
	p := t.lineIndex.Start(dictionary.HashString(line))
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
	t.lines = append(t.lines, knownLine{text: line, frame: f})
	t.lineIndex.Insert(p, i)
	return i, true
}

// internFrames interns the stack of t.frames, which is leaf first. The frames become the indices of their locations.
func (t *translator) internFrames() dictionary.StackIndex {
	for i, position := range t.frames {
		line := &t.lines[position]
		if line.location == 0 {
			line.location = t.internFrame(&line.frame)
		}
		t.frames[i] = line.location
	}
	return t.dict.Stacks.Intern(t.frames)
}

func (t *translator) internFrame(f *frame) int32 {
	function := t.dict.Functions.Intern(dictionary.Function{
		Name: t.dict.Strings.Intern(cmp.Or(f.function, t.unnamed())), Filename: t.dict.Strings.Intern(f.file),
	})
	line := [1]dictionary.Line{{Function: function, Line: f.line, Column: f.column}}
	return int32(t.dict.Locations.Intern(dictionary.Location{}, line[:]))
}

// thread is what the first line of a text stack has of its thread. An empty name and an id of 0 mean not known.
type thread struct {
	name     string
	id, osID int64
}

// parseThread reads a line such as
//
//	"pool-1-thread-30" #49 daemon prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x7fde nid=0xba03 waiting on condition
func parseThread(line string) (t thread) {
	t.name, line = cutName(strings.TrimSpace(line))
	for word := range strings.FieldsSeq(line) {
		if digits, isID := strings.CutPrefix(word, "#"); isID {
			t.id, _ = digitsOf(digits)
		}
		if digits, isOSID := strings.CutPrefix(word, "nid="); isOSID {
			if id, err := strconv.ParseInt(digits, 0, 64); err == nil {
				t.osID = id
			}
			break // the rest is free text
		}
	}
	return t
}

// cutName cuts the quoted name off the line. Names can contain quotes: the closing one is before the thread's number,
// or the last in the line.
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

// statePrefix is what a JVM writes before the state.
const statePrefix = "java.lang.Thread.State: "

// textAttributes interns the attributes of a text stack's sample.
func (t *translator) textAttributes(line, state string) dictionary.AttributeSetIndex {
	list := t.list[:0]
	add := func(key string, value dictionary.Value) {
		if value != dictionary.IntValue(0) && value != dictionary.StringValue("") {
			entry := dictionary.Attribute{Key: t.dict.Strings.Intern(key), Value: value}
			list = append(list, int32(t.dict.Attributes.Intern(entry)))
		}
	}
	thread := parseThread(line)
	add(keyThreadName, dictionary.StringValue(thread.name))
	add(keyThreadID, dictionary.IntValue(thread.id))
	add(keyThreadOSID, dictionary.IntValue(thread.osID))
	add(keyThreadState, dictionary.StringValue(strings.TrimPrefix(state, statePrefix)))
	for key, value := range t.record.log.Attributes().All() {
		if t.record.isOfSample(key) {
			list = t.appendAttribute(list, key, value)
		}
	}
	return t.internSet(list)
}
