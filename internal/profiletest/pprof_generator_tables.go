// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"
)

// Of each table, about half the entries are copies of an earlier one, of which most differ in one field.

func (g pprofDraw) functions() []*profile.Function {
	functions := make([]*profile.Function, g.count(6, "functions"))
	for i, id := range g.ids(len(functions)) {
		f := &profile.Function{}
		if i > 0 && g.oneIn(2) {
			*f = *functions[g.count(i-1, "function to copy")]
			g.changeFunction(f)
		} else {
			f.Name, f.SystemName, f.Filename = g.text("name"), g.text("system name"), g.text("file")
			f.StartLine = g.line("start line")
		}
		f.ID = id
		functions[i] = f
	}
	return functions
}

func (g pprofDraw) changeFunction(f *profile.Function) {
	switch g.count(5, "field to change") {
	case 1:
		f.Name = g.text("name")
	case 2:
		f.SystemName = g.text("system name")
	case 3:
		f.Filename = g.text("file")
	case 4:
		f.StartLine = g.line("start line")
	case 5:
		// Another function with the same texts one after the other.
		_, size := utf8.DecodeLastRuneInString(f.Name)
		border := len(f.Name) - size
		f.Name, f.SystemName = f.Name[:border], f.Name[border:]+f.SystemName
	}
}

func (g pprofDraw) mappings() []*profile.Mapping {
	mappings := make([]*profile.Mapping, g.count(5, "mappings"))
	for i, id := range g.ids(len(mappings)) {
		m := &profile.Mapping{}
		if i > 0 && g.oneIn(2) {
			*m = *mappings[g.count(i-1, "mapping to copy")]
			g.changeMapping(m)
		} else {
			for field := range 9 {
				g.setMapping(m, field)
			}
		}
		m.ID = id
		mappings[i] = m
	}
	return mappings
}

func (g pprofDraw) changeMapping(m *profile.Mapping) {
	if field := g.count(9, "field to change"); field > 0 {
		g.setMapping(m, field-1)
	}
}

// addresses are few, so that a mapping often ends where it starts, or before.
func (g pprofDraw) address(label string) uint64 {
	return rapid.SampledFrom([]uint64{0, 0x1000, 0x2000, 0x2fff, 1 << 63, math.MaxUint64}).Draw(g.T, label)
}

func (g pprofDraw) setMapping(m *profile.Mapping, field int) {
	switch field {
	case 0:
		m.Start = g.address("start")
	case 1:
		m.Limit = g.address("limit")
	case 2:
		m.Offset = g.address("offset")
	case 3:
		m.File = rapid.SampledFrom([]string{"", "/bin/a", "/bin/b", "[kernel.kallsyms]_text", "a"}).Draw(g.T, "mapped file")
	case 4:
		m.BuildID = rapid.SampledFrom([]string{"", "abcd", "abce", "go/build/id", "/", "a"}).Draw(g.T, "build id")
	case 5:
		m.HasFunctions = g.oneIn(2)
	case 6:
		m.HasFilenames = g.oneIn(2)
	case 7:
		m.HasLineNumbers = g.oneIn(2)
	case 8:
		m.HasInlineFrames = g.oneIn(2)
	}
}

func (g pprofDraw) locations(functions []*profile.Function, mappings []*profile.Mapping) []*profile.Location {
	locations := make([]*profile.Location, g.count(8, "locations"))
	for i, id := range g.ids(len(locations)) {
		l := &profile.Location{}
		if i > 0 && g.oneIn(2) {
			copied := locations[g.count(i-1, "location to copy")]
			*l = *copied
			l.Line = append([]profile.Line(nil), copied.Line...)
			g.changeLocation(l, functions, mappings)
		} else {
			l.Address = g.address("address")
			l.Mapping = oneOrNil(g, mappings, "mapping")
			l.IsFolded = g.oneIn(3)
			for range g.count(4, "lines") {
				l.Line = g.addLine(l.Line, functions)
			}
		}
		l.ID = id
		locations[i] = l
	}
	return locations
}

func (g pprofDraw) changeLocation(l *profile.Location, functions []*profile.Function, mappings []*profile.Mapping) {
	switch change := g.count(7, "field to change"); {
	case change == 1:
		l.IsFolded = !l.IsFolded
	case change == 2:
		l.Address = g.address("address")
	case change == 3:
		l.Mapping = oneOrNil(g, mappings, "mapping")
	case change == 4:
		l.Line = g.addLine(l.Line, functions)
	case change > 4 && len(l.Line) > 0:
		line := &l.Line[g.count(len(l.Line)-1, "line to change")]
		switch change {
		case 5:
			line.Column = g.line("column")
		case 6:
			line.Line = g.line("line")
		case 7:
			line.Function = functions[g.count(len(functions)-1, "function")]
		}
	}
}

// addLine adds none where there are no functions: CheckValid refuses a line without one.
func (g pprofDraw) addLine(lines []profile.Line, functions []*profile.Function) []profile.Line {
	if len(functions) == 0 {
		return lines
	}
	return append(lines, profile.Line{
		Function: functions[g.count(len(functions)-1, "function")],
		Line:     g.line("line"),
		Column:   g.line("column"),
	})
}

// oneOrNil is mostly one of the entries.
func oneOrNil[T any](g pprofDraw, entries []*T, label string) *T {
	if len(entries) == 0 || g.oneIn(5) {
		return nil
	}
	return entries[g.count(len(entries)-1, label)]
}
