// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package flamefile writes stacks with values for tools that draw flame graphs: collapsed stacks
// (Brendan Gregg's flamegraph.pl) and speedscope (https://www.speedscope.app/file-format-schema.json).
//
//	OfGraph, OfProfiles   a tree of the store, or OTLP profiles → Stacks over a list of frames
//	Collapsed             a line for each stack, root first, with its value
//	Speedscope            several such Stacks
//
// A few bytes of input can be very many of output: a long name in each of very many frames. Both write frame by frame
// and stop at the first error of their writer.
package flamefile

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

// Frame is a function, with the fields that the formats have.
type Frame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
}

// Stacks are stacks and their values. A stack lists indices of Frames, root first; it is valid until the next one.
type Stacks struct {
	// Name is the name of the values, Unit their unit.
	Name, Unit string
	Frames     []Frame
	Each       iter.Seq2[[]int32, int64]
}

// OfGraph returns the stacks of the nodes that have a value of their own, the root's too: samples without frames. name
// converts a frame's name to the string to write. What was left out of a pruned tree below a node is a frame of its
// own.
func OfGraph(g *answers.Graph, name func(string) string) Stacks {
	frames := make([]Frame, len(g.Frames))
	for i, f := range g.Frames {
		frames[i] = Frame{Name: name(f.Name), File: f.File, Line: max(f.Line, 0)}
	}
	leftOut := make([]int64, len(g.Frame))
	if g.IsPruned {
		leftOut, _ = g.LeftOut()
		frames = append(frames, Frame{Name: answers.LeftOutName})
	}
	return Stacks{Unit: g.Type.Unit, Frames: frames, Each: func(yield func([]int32, int64) bool) {
		var path, stack []int32
		if g.Self[0] != 0 && !yield(nil, g.Self[0]) { // samples without frames
			return
		}
		if leftOut[0] != 0 && !yield([]int32{int32(len(g.Frames))}, leftOut[0]) {
			return
		}
		for i := 1; i < len(g.Frame); i++ {
			for len(path) > 0 && path[len(path)-1] != g.Parent[i] {
				path, stack = path[:len(path)-1], stack[:len(stack)-1]
			}
			path, stack = append(path, int32(i)), append(stack, g.Frame[i])
			if g.Self[i] != 0 && !yield(stack, g.Self[i]) ||
				leftOut[i] != 0 && !yield(append(stack, int32(len(g.Frames))), leftOut[i]) {
				return
			}
		}
	}}
}

// noStack is the line of samples without frames. unknownName is the name of a frame without one.
const (
	noStack     = "[no stack]"
	unknownName = "(unknown)"
)

// Collapsed writes a line for each stack. Package folded reads the same stacks and values from it: what it would read
// otherwise is replaced in names, as lineName describes.
func Collapsed(w io.Writer, s Stacks) error {
	b := bufio.NewWriter(w) // after an error, it returns the same one each time
	names := make([]lineName, len(s.Frames))
	var number []byte
	for stack, value := range s.Each {
		if len(stack) == 0 {
			_, _ = b.WriteString(noStack)
		}
		for i, frame := range stack {
			if i > 0 {
				_ = b.WriteByte(';')
			}
			name := &names[frame]
			if name.name == "" { // the first time
				*name = newLineName(s.Frames[frame].Name)
			}
			if err := name.write(b, i == 0); err != nil {
				return err
			}
		}
		number = append(strconv.AppendInt(append(number[:0], ' '), value, 10), '\n')
		if _, err := b.Write(number); err != nil {
			return err
		}
	}
	return b.Flush()
}

// lineName is the name of a frame as lines of folded stacks have it:
//   - without blanks at its ends, and unknownName if it is empty;
//   - with : in place of ; and a space in place of each control character;
//   - with _ in front of a # that would make the line a comment;
//   - with _ in place of the space in front of a number, which could be taken for the value of the stack, and what
//     follows for attributes or a timestamp: main;worker 3 1687841528.
type lineName struct {
	name string
	// isPlain reports that nothing in it is replaced.
	isPlain bool
}

func newLineName(name string) lineName {
	name = cmp.Or(strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r < ' ' }), unknownName)
	at, _ := nextReplaced(name)
	return lineName{name: name, isPlain: at < 0}
}

func (n *lineName) write(b *bufio.Writer, isRoot bool) error {
	rest := n.name
	if isRoot && rest[0] == '#' {
		_ = b.WriteByte('_')
	}
	for !n.isPlain {
		at, by := nextReplaced(rest)
		if at < 0 {
			break
		}
		_, _ = b.WriteString(rest[:at])
		if err := b.WriteByte(by); err != nil {
			return err
		}
		rest = rest[at+1:]
	}
	_, err := b.WriteString(rest)
	return err
}

// nextReplaced returns the offset of the first byte that lines do not have, or -1, and what is written in its place.
func nextReplaced(name string) (at int, by byte) {
	for i := range len(name) {
		switch c := name[i]; {
		case c == ';':
			return i, ':'
		case c > ' ':
		case startsWithNumber(name[i+1:]):
			return i, '_'
		case c < ' ':
			return i, ' '
		}
	}
	return -1, 0
}

func startsWithNumber(s string) bool {
	word := s
	if end := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' }); end >= 0 {
		word = s[:end]
	}
	const longest = len("-9223372036854775808")
	if len(word) > longest {
		return false
	}
	_, err := strconv.ParseInt(word, 10, 64)
	return err == nil
}

// Speedscope writes a file of lists of stacks, each a profile of type "sampled".
func Speedscope(w io.Writer, name string, lists ...Stacks) error {
	b := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(b,
		`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"otelcol-profiles","name":%s,"shared":{"frames":[`, marshal(name))
	n := 0
	for _, s := range lists {
		for _, f := range s.Frames {
			if n++; n > 1 {
				_ = b.WriteByte(',')
			}
			if _, err := b.Write(marshal(f)); err != nil {
				return err
			}
		}
	}
	_, _ = b.WriteString(`]},"profiles":[`)
	first := 0
	for i := range lists {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		if err := speedscopeProfile(b, &lists[i], first); err != nil {
			return err
		}
		first += len(lists[i].Frames)
	}
	_, _ = b.WriteString("]}")
	return b.Flush()
}

// speedscopeProfile writes stacks whose frames are those of the file from first on.
func speedscopeProfile(b *bufio.Writer, s *Stacks, first int) error {
	unit := cmp.Or(map[int64]string{1: "nanoseconds", 1e3: "microseconds", 1e6: "milliseconds",
		1e9: "seconds"}[kind.NanosPer(s.Unit)], "none")
	if s.Unit == "bytes" {
		unit = s.Unit
	}
	_, _ = fmt.Fprintf(b, `{"type":"sampled","name":%s,"unit":%q,"startValue":0,"samples":[`, marshal(s.Name), unit)
	var weights []byte
	total := int64(0)
	for stack, value := range s.Each {
		if len(weights) > 0 {
			_ = b.WriteByte(',')
			weights = append(weights, ',')
		}
		_ = b.WriteByte('[')
		for i, frame := range stack {
			if i > 0 {
				_ = b.WriteByte(',')
			}
			if _, err := b.WriteString(strconv.Itoa(first + int(frame))); err != nil {
				return err
			}
		}
		_ = b.WriteByte(']')
		weights = strconv.AppendInt(weights, value, 10)
		total = otlp.SaturatingAdd(total, value)
	}
	_, err := fmt.Fprintf(b, `],"weights":[%s],"endValue":%d}`, weights, total)
	return err
}

// marshal returns v in JSON, with the special characters of HTML escaped.
func marshal(v any) []byte {
	b, _ := json.Marshal(v) // strings and numbers can be marshalled
	return b
}
