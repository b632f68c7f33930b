// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "slices"

// LocationIndex is an index of the location table. 0 is the location whose fields are all zero.
type LocationIndex int32

// Location is an entry of the location table without its lines.
type Location struct {
	Mapping    MappingIndex
	Attributes AttributeSetIndex
	Address    uint64
}

// Line is a line of a location. Line and Column are ≥ 0.
type Line struct {
	Function     FunctionIndex
	Line, Column int64
}

// Locations is the location table.
type Locations struct {
	Table[LocationIndex, Location]
	// lineEnds[i] is where the lines of entry i end in lines; they begin where those of entry i−1 end.
	lineEnds []uint32
	lines    []Line
}

// Reset forgets all entries, keeps their memory, and makes room for about that many.
func (t *Locations) Reset(entries, lines int) {
	t.Table.Reset(entries)
	t.lineEnds = append(room(t.lineEnds, entries+1), 0)
	t.lines = room(t.lines, lines)
}

// At returns an entry and its lines, innermost first. The lines are borrowed.
func (t *Locations) At(i LocationIndex) (Location, []Line) {
	if i == 0 {
		return Location{}, nil
	}
	return t.entries[i], t.lines[t.lineEnds[i-1]:t.lineEnds[i]]
}

// Intern returns the index of the location l with the given lines, innermost first, and adds it
// if it is new. The lines are copied.
func (t *Locations) Intern(l Location, lines []Line) LocationIndex {
	if l == (Location{}) && len(lines) == 0 {
		return 0
	}
	h := Mix(l.Address, uint64(uint32(l.Mapping))<<32|uint64(uint32(l.Attributes)))
	for i := range lines {
		h = Mix(h, uint64(uint32(lines[i].Function)))
		h = Mix(Mix(h, uint64(lines[i].Line)), uint64(lines[i].Column))
	}
	p := t.index.Start(h)
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == l && slices.Equal(t.lines[t.lineEnds[e-1]:t.lineEnds[e]], lines) {
			return LocationIndex(e)
		}
	}
	i := t.append(l, lines)
	t.index.Insert(p, int32(i))
	return i
}

// append adds a location without a place in the index.
func (t *Locations) append(l Location, lines []Line) LocationIndex {
	t.lines = append(t.lines, lines...)
	t.lineEnds = append(t.lineEnds, uint32(len(t.lines)))
	return t.Table.append(l)
}

// MemoryBytes is what the table occupies.
func (t *Locations) MemoryBytes() int {
	return t.Table.MemoryBytes() + BytesOf(t.lineEnds) + BytesOf(t.lines)
}

func (t *Locations) freeze() {
	t.Table.freeze()
	t.lineEnds, t.lines = clip(t.lineEnds), clip(t.lines)
}
