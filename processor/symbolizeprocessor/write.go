// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// attributeSource is the attribute of resolved locations that names the source of the symbols.
const attributeSource = "symbolize.source"

// additions are the entries that a table needs, each once. They are collected first, and then looked up by reading the
// table once, so that it does not need an index of the whole table.
type additions[K comparable] struct {
	// index has the entries by their value, unknown until resolve has returned.
	index map[K]int32
	// order has the entries as they were first needed.
	order []K
}

// unknown is the index of an entry that the table may not have yet.
const unknown = -1

func newAdditions[K comparable]() additions[K] { return additions[K]{index: map[K]int32{*new(K): 0}} }

func (a *additions[K]) need(entry K) {
	if _, ok := a.index[entry]; !ok {
		a.index[entry] = unknown
		a.order = append(a.order, entry)
	}
}

// resolve finds the entries in a table of n, and appends those that it lacks. The first entry of a table is its zero
// value.
func (a *additions[K]) resolve(n int, at func(i int) K, add func(K)) {
	if n == 0 {
		add(*new(K))
		n = 1
	}
	for i := range n {
		entry := at(i)
		if index, ok := a.index[entry]; ok && index == unknown {
			a.index[entry] = int32(i)
		}
	}
	for _, entry := range a.order {
		if a.index[entry] == unknown {
			a.index[entry] = int32(n)
			n++
			add(entry)
		}
	}
}

type function struct {
	name, systemName, file int32
	startLine              int64
}

// write adds the lines of all resolved locations, and the flag of mappings whose functions are named.
func (m *message) write() {
	unflagged := m.unflagged()
	if len(m.resolved) == 0 && len(unflagged) == 0 {
		return
	}
	m.limitFrames()
	repeats := m.hasRepeats()
	strings := m.addStrings(len(unflagged) > 0)
	functionOf := func(f *symbols.Frame) function {
		return function{strings.index[f.Name], strings.index[f.SystemName], strings.index[f.File], f.StartLine}
	}
	functions := m.addFunctions(functionOf)
	var ofSource [sources.NumKinds]int32 // attributes, 0 for one that is not added yet
	locations := m.dictionary.LocationTable()
	for _, r := range m.resolved {
		location := locations.At(int(r.location))
		lines := location.Lines()
		lines.EnsureCapacity(len(r.frames))
		for i := range r.frames {
			f := &r.frames[i]
			line := lines.AppendEmpty()
			line.SetFunctionIndex(functions.index[functionOf(f)])
			line.SetLine(f.Line)
			line.SetColumn(f.Column)
		}
		if indices := location.AttributeIndices(); !m.hasKey(indices, attributeSource) {
			attribute := &ofSource[r.answer.Source]
			if *attribute == 0 {
				*attribute = m.addAttribute(strings.index[attributeSource], pcommon.NewValueStr(r.answer.Source.String()))
			}
			indices.Append(*attribute)
		}
	}
	if len(unflagged) > 0 {
		flag := m.addAttribute(strings.index[attributeHasFunctions], pcommon.NewValueBool(true))
		for _, i := range unflagged {
			m.dictionary.MappingTable().At(int(i)).AttributeIndices().Append(flag)
		}
	}
	if repeats {
		m.combine()
	}
}

// attributeHasFunctions is the attribute for pprof's has_functions. Without it, readers such as google/pprof look for
// the names of a mapping again, in a file that may have none.
const attributeHasFunctions = "pprof.mapping.has_functions"

// unflagged returns the mappings of resolved locations and of those in named that do not have attributeHasFunctions.
func (m *message) unflagged() (list []int32) {
	locations, mappings := m.dictionary.LocationTable(), m.dictionary.MappingTable()
	seen := map[int32]bool{}
	add := func(i int32) {
		if i <= 0 || int(i) >= mappings.Len() || seen[i] {
			return
		}
		seen[i] = true
		if !m.hasKey(mappings.At(int(i)).AttributeIndices(), attributeHasFunctions) {
			list = append(list, i)
		}
	}
	for _, r := range m.resolved {
		add(locations.At(int(r.location)).MappingIndex())
	}
	for _, i := range m.named {
		add(i)
	}
	return list
}

// A message gets at most linesConstant lines, and linesForLocation more for each location. Programs with inlined calls
// have two or three for a location.
const (
	linesConstant    = 1 << 16
	linesForLocation = 8
)

// limitFrames leaves inlined calls out once there are too many: thousands of locations could be at an address with
// hundreds.
func (m *message) limitFrames() {
	left := linesConstant + linesForLocation*len(m.resolved)
	for i := range m.resolved {
		r := &m.resolved[i]
		r.frames = r.answer.Frames
		if left -= len(r.frames); left < 0 {
			r.frames = r.frames[len(r.frames)-1:]
		}
	}
}

// frames returns the frames of all resolved locations. Locations share answers, but not often.
func (m *message) frames(yield func(*symbols.Frame) bool) {
	for _, r := range m.resolved {
		for i := range r.frames {
			if !yield(&r.frames[i]) {
				return
			}
		}
	}
}

func (m *message) addStrings(needsFlag bool) additions[string] {
	a := newAdditions[string]()
	for f := range m.frames {
		a.need(f.Name)
		a.need(f.SystemName)
		a.need(f.File)
	}
	if needsFlag {
		a.need(attributeHasFunctions)
	}
	if len(m.resolved) > 0 {
		a.need(attributeSource)
	}
	table := m.dictionary.StringTable()
	a.resolve(table.Len(), table.At, func(s string) { table.Append(s) })
	return a
}

func (m *message) addFunctions(of func(*symbols.Frame) function) additions[function] {
	a := newAdditions[function]()
	for f := range m.frames {
		a.need(of(f))
	}
	table := m.dictionary.FunctionTable()
	a.resolve(table.Len(), func(i int) function {
		f := table.At(i)
		return function{f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine()}
	}, func(k function) {
		f := table.AppendEmpty()
		f.SetNameStrindex(k.name)
		f.SetSystemNameStrindex(k.systemName)
		f.SetFilenameStrindex(k.file)
		f.SetStartLine(k.startLine)
	})
	return a
}

// addAttribute returns the index of an attribute, which it adds if the table does not have it. There are few to add.
func (m *message) addAttribute(key int32, value pcommon.Value) int32 {
	table := m.dictionary.AttributeTable()
	if table.Len() == 0 {
		table.AppendEmpty()
	}
	attribute := pprofile.NewKeyValueAndUnit()
	attribute.SetKeyStrindex(key)
	value.MoveTo(attribute.Value())
	index, _ := pprofile.SetAttribute(table, attribute) // tables have less than 2^31 entries
	return index
}

// hasKey reports whether one of some attributes has a key.
func (m *message) hasKey(indices pcommon.Int32Slice, key string) bool {
	for found := range otlp.Attributes(m.dictionary, indices) {
		if found == key {
			return true
		}
	}
	return false
}

// hasRepeats reports whether a location that was resolved may now equal one that already had lines. That happens if two
// messages are merged of which an agent had resolved the address only in one.
func (m *message) hasRepeats() bool {
	type place struct {
		mapping int32
		address uint64
	}
	locations := m.dictionary.LocationTable()
	changed := make(map[place]struct{}, len(m.resolved))
	for _, r := range m.resolved {
		l := locations.At(int(r.location))
		changed[place{l.MappingIndex(), l.Address()}] = struct{}{}
	}
	for _, l := range locations.All() {
		if l.Lines().Len() == 0 || l.Address() == 0 {
			continue
		}
		if _, ok := changed[place{l.MappingIndex(), l.Address()}]; ok {
			return true
		}
	}
	return false
}

// combine merges entries that are equal now, and samples with one identity.
func (m *message) combine() {
	pref.RefProfiles(m.profiles) // the batch refers to its memory
	var batch compact.Batch
	batch.Reset(compact.Options{CombineSamples: true})
	batch.Consume(m.profiles)
	m.profiles = batch.Whole()
	m.dictionary = m.profiles.Dictionary()
}
