// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// attributeSource is the attribute of resolved locations that names the source of the symbols.
const attributeSource = "symbolize.source"

// writer adds entries to the tables of a dictionary, each value once. It first collects what is needed and then reads each
// table once, so that it does not need an index of the whole table.
type writer struct {
	message   *message
	strings   map[string]int32
	functions map[function]int32
	// newStrings and newFunctions are what the tables lack, in the order of the locations.
	newStrings   []string
	newFunctions []function
	attributes   [sources.NumKinds]int32
}

type function struct {
	name, systemName, file int32
	startLine              int64
}

// unknown is the index of an entry that the table does not have yet.
const unknown = -1

// write adds the lines of all resolved locations.
func (m *message) write() {
	w := &writer{message: m, strings: map[string]int32{"": 0}, functions: map[function]int32{{}: 0}}
	m.limitFrames()
	repeats := m.hasRepeats()
	w.addStrings()
	w.addFunctions()
	w.addAttributes()
	locations := m.dictionary.LocationTable()
	for _, r := range m.resolved {
		location := locations.At(int(r.location))
		lines := location.Lines()
		lines.EnsureCapacity(len(r.frames))
		for i := range r.frames {
			f := &r.frames[i]
			line := lines.AppendEmpty()
			line.SetFunctionIndex(w.functions[w.function(f)])
			line.SetLine(f.Line)
			line.SetColumn(f.Column)
		}
		w.mark(location.AttributeIndices(), r.answer.Source)
	}
	if repeats {
		m.combine()
	}
}

// A message gets at most linesConstant lines, and linesForLocation more for each location. Programs with inlined calls have two or three for a location.
const (
	linesConstant    = 1 << 16
	linesForLocation = 8
)

// limitFrames leaves inlined calls out once there are too many: thousands of locations could be at an address with hundreds.
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

func (w *writer) function(f *symbols.Frame) function {
	return function{
		name: w.strings[f.Name], systemName: w.strings[f.SystemName], file: w.strings[f.File], startLine: f.StartLine,
	}
}

// eachFrame calls visit with the frames of all resolved locations. Locations share answers, but not often.
func (w *writer) eachFrame(visit func(*symbols.Frame)) {
	for _, r := range w.message.resolved {
		for i := range r.frames {
			visit(&r.frames[i])
		}
	}
}

func (w *writer) needString(s string) {
	if _, ok := w.strings[s]; !ok {
		w.strings[s] = unknown
		w.newStrings = append(w.newStrings, s)
	}
}

func (w *writer) addStrings() {
	w.eachFrame(func(f *symbols.Frame) {
		w.needString(f.Name)
		w.needString(f.SystemName)
		w.needString(f.File)
	})
	w.needString(attributeSource)
	table := w.message.dictionary.StringTable()
	if table.Len() == 0 {
		table.Append("")
	}
	for i, s := range table.All() {
		if index, ok := w.strings[s]; ok && index == unknown {
			w.strings[s] = int32(i)
		}
	}
	for _, s := range w.newStrings {
		if w.strings[s] == unknown {
			w.strings[s] = int32(table.Len())
			table.Append(s)
		}
	}
}

func (w *writer) addFunctions() {
	w.eachFrame(func(f *symbols.Frame) {
		key := w.function(f)
		if _, ok := w.functions[key]; !ok {
			w.functions[key] = unknown
			w.newFunctions = append(w.newFunctions, key)
		}
	})
	table := w.message.dictionary.FunctionTable()
	if table.Len() == 0 {
		table.AppendEmpty()
	}
	for i, f := range table.All() {
		key := function{
			name: f.NameStrindex(), systemName: f.SystemNameStrindex(), file: f.FilenameStrindex(), startLine: f.StartLine(),
		}
		if index, ok := w.functions[key]; ok && index == unknown {
			w.functions[key] = int32(i)
		}
	}
	for _, key := range w.newFunctions {
		if w.functions[key] != unknown {
			continue
		}
		w.functions[key] = int32(table.Len())
		f := table.AppendEmpty()
		f.SetNameStrindex(key.name)
		f.SetSystemNameStrindex(key.systemName)
		f.SetFilenameStrindex(key.file)
		f.SetStartLine(key.startLine)
	}
}

// addAttributes adds the marks of the sources that were used.
func (w *writer) addAttributes() {
	var isUsed [sources.NumKinds]bool
	for _, r := range w.message.resolved {
		isUsed[r.answer.Source] = true
	}
	for kind := range w.attributes {
		w.attributes[kind] = unknown
	}
	key := w.strings[attributeSource]
	table := w.message.dictionary.AttributeTable()
	if table.Len() == 0 {
		table.AppendEmpty()
	}
	for i, a := range table.All() {
		if a.KeyStrindex() != key || a.UnitStrindex() != 0 || a.Value().Type() != pcommon.ValueTypeStr {
			continue
		}
		for kind := range w.attributes {
			if w.attributes[kind] == unknown && a.Value().Str() == sources.Kind(kind).String() {
				w.attributes[kind] = int32(i)
			}
		}
	}
	for kind := range w.attributes {
		if isUsed[kind] && w.attributes[kind] == unknown {
			w.attributes[kind] = int32(table.Len())
			a := table.AppendEmpty()
			a.SetKeyStrindex(key)
			a.Value().SetStr(sources.Kind(kind).String())
		}
	}
}

// mark adds the source to a location's attributes, unless the key is there.
func (w *writer) mark(indices pcommon.Int32Slice, kind sources.Kind) {
	table := w.message.dictionary.AttributeTable()
	for _, i := range indices.All() {
		if i >= 0 && int(i) < table.Len() && table.At(int(i)).KeyStrindex() == w.strings[attributeSource] {
			return
		}
	}
	indices.Append(w.attributes[kind])
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
	all := pprofile.NewProfiles()
	for part := range batch.Parts() {
		all = part.Profiles
	}
	m.profiles, m.dictionary = all, all.Dictionary()
}
