// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Namer writes a dictionary's entries as text, with names where the entries have indices. An index outside its
// table is written as such.
type Namer struct{ Dictionary pprofile.ProfilesDictionary }

func outOfRange(index int32) string { return fmt.Sprintf("<index %d>", index) }

func holds(index int32, n int) bool { return index >= 0 && int(index) < n }

func (n Namer) str(index int32) string {
	t := n.Dictionary.StringTable()
	switch {
	case holds(index, t.Len()):
		return Word(t.At(int(index)))
	case index == 0:
		return Word("")
	default:
		return outOfRange(index)
	}
}

// Word returns s if it is one word, and otherwise s in quotes.
func Word(s string) string {
	plain := s != "" && s != "-" && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar ||
			strings.ContainsRune("\"`,;={}<>", r)
	})
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// ValueType returns "type in unit".
func (n Namer) ValueType(t pprofile.ValueType) string {
	return n.str(t.TypeStrindex()) + " in " + n.str(t.UnitStrindex())
}

func (n Namer) attribute(index int32) string {
	t := n.Dictionary.AttributeTable()
	if !holds(index, t.Len()) {
		return outOfRange(index)
	}
	a := t.At(int(index))
	s := n.str(a.KeyStrindex()) + "=" + valueText(a.Value())
	if a.UnitStrindex() != 0 {
		s += " in " + n.str(a.UnitStrindex())
	}
	return s
}

// Attributes returns the set in braces, sorted by its text.
func (n Namer) Attributes(indices pcommon.Int32Slice) string {
	texts := make([]string, indices.Len())
	for i, index := range indices.All() {
		texts[i] = n.attribute(index)
	}
	slices.Sort(texts)
	return "{" + strings.Join(texts, ", ") + "}"
}

// Link returns "trace id/span id" in hexadecimal.
func (n Namer) Link(index int32) string {
	t := n.Dictionary.LinkTable()
	if !holds(index, t.Len()) {
		return outOfRange(index)
	}
	trace, span := t.At(int(index)).TraceID(), t.At(int(index)).SpanID()
	return hex.EncodeToString(trace[:]) + "/" + hex.EncodeToString(span[:])
}

// Frames returns a text for each location of the stack, leaf first.
func (n Namer) Frames(index int32) []string { return slices.Collect(n.eachFrame(index)) }

// eachFrame returns what Frames does, without keeping it.
func (n Namer) eachFrame(index int32) iter.Seq[string] {
	return func(yield func(string) bool) {
		t := n.Dictionary.StackTable()
		if !holds(index, t.Len()) {
			if index != 0 {
				yield(outOfRange(index))
			}
			return
		}
		for _, l := range t.At(int(index)).LocationIndices().All() {
			if !yield(n.location(l)) {
				return
			}
		}
	}
}

// maxLinesBytes is the text of a location after which its other lines are left out: very many can have a long name.
const maxLinesBytes = 1 << 20

// location returns the lines, innermost first, then the address and mapping and the attributes, or "-" if there are
// none.
func (n Namer) location(index int32) string {
	t := n.Dictionary.LocationTable()
	if !holds(index, t.Len()) {
		return outOfRange(index)
	}
	l := t.At(int(index))
	var parts []string
	left := maxLinesBytes
	for i, line := range l.Lines().All() {
		if left < 0 {
			parts = append(parts, fmt.Sprintf("… and %d more lines", l.Lines().Len()-i))
			break
		}
		text := n.line(line)
		left -= len(text)
		if i < l.Lines().Len()-1 {
			text += ";"
		}
		parts = append(parts, text)
	}
	if l.Address() != 0 {
		parts = append(parts, fmt.Sprintf("at 0x%x", l.Address()))
	}
	if l.MappingIndex() != 0 {
		parts = append(parts, "in "+n.mapping(l.MappingIndex()))
	}
	if l.AttributeIndices().Len() > 0 {
		parts = append(parts, n.Attributes(l.AttributeIndices()))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ")
}

// line returns "function file:line:column", without the parts that are missing.
func (n Namer) line(line pprofile.Line) string {
	function, file := n.function(line.FunctionIndex())
	where := file
	if line.Line() != 0 || line.Column() != 0 {
		where += ":" + strconv.FormatInt(line.Line(), 10)
	}
	if line.Column() != 0 {
		where += ":" + strconv.FormatInt(line.Column(), 10)
	}
	if where == "" {
		return function
	}
	return function + " " + where
}

func (n Namer) function(index int32) (name, file string) {
	t := n.Dictionary.FunctionTable()
	if !holds(index, t.Len()) {
		if index == 0 {
			return Word(""), ""
		}
		return outOfRange(index), ""
	}
	f := t.At(int(index))
	name = n.str(f.NameStrindex())
	if f.SystemNameStrindex() != 0 {
		name += " (" + n.str(f.SystemNameStrindex()) + ")"
	}
	if f.StartLine() != 0 {
		name += " from line " + strconv.FormatInt(f.StartLine(), 10)
	}
	if f.FilenameStrindex() != 0 {
		file = n.str(f.FilenameStrindex())
	}
	return name, file
}

// mapping returns "[file start-limit+offset {attributes}]", without the parts that are missing.
func (n Namer) mapping(index int32) string {
	t := n.Dictionary.MappingTable()
	if !holds(index, t.Len()) {
		return outOfRange(index)
	}
	m := t.At(int(index))
	parts := []string{n.str(m.FilenameStrindex())}
	if m.MemoryStart() != 0 || m.MemoryLimit() != 0 || m.FileOffset() != 0 {
		parts = append(parts, fmt.Sprintf("0x%x-0x%x+0x%x", m.MemoryStart(), m.MemoryLimit(), m.FileOffset()))
	}
	if m.AttributeIndices().Len() > 0 {
		parts = append(parts, n.Attributes(m.AttributeIndices()))
	}
	return "[" + strings.Join(parts, " ") + "]"
}
