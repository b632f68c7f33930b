// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package flamefile writes stacks with values for tools that draw flame graphs: collapsed stacks
// (Brendan Gregg's flamegraph.pl) and speedscope (https://www.speedscope.app/file-format-schema.json).
//
//	OfGraph, OfProfiles   a tree of the store, or OTLP profiles → Stacks
//	Collapsed             a line for each stack, root first, with its value
//	Speedscope            several Stacks over one list of frames
package flamefile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
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

// OfGraph returns the stacks of the nodes that have a value of their own. name converts a frame's name to the text to
// write.
func OfGraph(g *store.Graph, name func(string) string) Stacks {
	frames := make([]Frame, len(g.Frames))
	for i, f := range g.Frames {
		frames[i] = Frame{Name: name(f.Name), File: f.File, Line: max(f.Line, 0)}
	}
	return Stacks{Unit: g.Type.Unit, Frames: frames, Each: func(yield func([]int32, int64) bool) {
		var path, stack []int32
		for i := 1; i < len(g.Frame); i++ {
			for len(path) > 0 && path[len(path)-1] != g.Parent[i] {
				path, stack = path[:len(path)-1], stack[:len(stack)-1]
			}
			path, stack = append(path, int32(i)), append(stack, g.Frame[i])
			if g.Self[i] > 0 && !yield(stack, g.Self[i]) {
				return
			}
		}
	}}
}

// collapsedName replaces the separators of frames and lines in names.
var collapsedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// Collapsed writes a line for each stack.
func Collapsed(w io.Writer, s Stacks) error {
	names := make([]string, len(s.Frames))
	for i := range names {
		names[i] = collapsedName.Replace(s.Frames[i].Name)
	}
	var line []byte
	for stack, value := range s.Each {
		line = line[:0]
		for i, frame := range stack {
			if i > 0 {
				line = append(line, ';')
			}
			line = append(line, names[frame]...)
		}
		line = append(strconv.AppendInt(append(line, ' '), value, 10), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// Speedscope writes a file of several lists of stacks, each a profile of type "sampled".
func Speedscope(w io.Writer, name string, lists ...Stacks) error {
	b := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(b, `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"otelcol-profiles","name":%s,"shared":{"frames":[`, text(name))
	// indices[i] maps the frames of lists[i] to those of the file.
	indices := make([][]int, len(lists))
	known := map[Frame]int{}
	for i := range lists {
		for _, f := range lists[i].Frames {
			k, ok := known[f]
			if !ok {
				k = len(known)
				known[f] = k
				if k > 0 {
					_ = b.WriteByte(',')
				}
				_, _ = b.Write(text(f))
			}
			indices[i] = append(indices[i], k)
		}
	}
	_, _ = b.WriteString(`]},"profiles":[`)
	for i := range lists {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		speedscopeProfile(b, &lists[i], indices[i])
	}
	_, _ = b.WriteString("]}")
	return b.Flush() // which returns the first error
}

func speedscopeProfile(b *bufio.Writer, s *Stacks, indices []int) {
	unit := "none"
	switch s.Unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		unit = s.Unit
	}
	_, _ = fmt.Fprintf(b, `{"type":"sampled","name":%s,"unit":%q,"startValue":0,"samples":[`, text(s.Name), unit)
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
			_, _ = b.WriteString(strconv.Itoa(indices[frame]))
		}
		_ = b.WriteByte(']')
		weights = strconv.AppendInt(weights, value, 10)
		total += value
	}
	_, _ = fmt.Fprintf(b, `],"weights":[%s],"endValue":%d}`, weights, total)
}

// text returns v in JSON, with the special characters of HTML escaped.
func text(v any) []byte {
	b, _ := json.Marshal(v) // strings and numbers can be marshalled
	return b
}
