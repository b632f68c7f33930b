// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Order lists the entries of a table that are written. The zero value is all of them, as they are.
type Order struct {
	// Entries[k] is the entry whose index becomes k. Index[i] is the index of entry i, if that is in Entries.
	Entries, Index []int32
}

// Writer writes the tables of a dictionary, which must not change meanwhile, and lists of indices for what refers to
// them. Entries that are written may only refer to others that are.
type Writer struct {
	Dict   *Dictionary
	Orders [NumTables]Order

	indices []int32
	strings []string
}

// Write writes the tables to dst. It overwrites what dst holds and reuses its memory: most of the cost of writing a
// dictionary is memory, and that of a consumed message has about the right shape. The dictionary keeps nothing of dst.
func (w *Writer) Write(dst pprofile.ProfilesDictionary) {
	w.writeStrings(dst.StringTable())
	w.writeFunctions(dst.FunctionTable())
	w.writeMappings(dst.MappingTable())
	w.writeLocations(dst.LocationTable())
	w.writeStacks(dst.StackTable())
	w.writeLinks(dst.LinkTable())
	w.writeAttributeTable(dst.AttributeTable())
}

// WriteAttributes writes the indices of a set, in ascending order, over those of dst.
func (w *Writer) WriteAttributes(i AttributeSetIndex, dst pcommon.Int32Slice) {
	if i == 0 && dst.Len() == 0 { // Fast path
		return
	}
	list := w.reordered(w.Dict.AttributeSets.At(i), AttributeTable)
	if w.Orders[AttributeTable].Index != nil {
		slices.Sort(list)
	}
	dst.FromRaw(list)
}

// Index returns the index with which an entry is written.
func (w *Writer) Index(t TableID, i int32) int32 {
	if index := w.Orders[t].Index; index != nil {
		return index[i]
	}
	return i
}

// len returns how many entries of a table are written.
func (w *Writer) len(t TableID) int {
	if o := &w.Orders[t]; o.Index != nil {
		return len(o.Entries)
	}
	return w.Dict.Lens()[t]
}

// entry returns the entry that becomes entry k.
func (w *Writer) entry(t TableID, k int) int {
	if o := &w.Orders[t]; o.Index != nil {
		return int(o.Entries[k])
	}
	return k
}

// reordered returns the new indices of a list's entries. They are borrowed until the next call.
func (w *Writer) reordered(list []int32, t TableID) []int32 {
	o := &w.Orders[t]
	if o.Index == nil {
		return list
	}
	w.indices = slices.Grow(w.indices[:0], len(list))[:len(list)]
	for k, i := range list {
		w.indices[k] = o.Index[i]
	}
	return w.indices
}

// entrySlice is what pdata's slices of entries have in common.
type entrySlice[T any] interface {
	Len() int
	At(i int) T
	EnsureCapacity(entries int)
	AppendEmpty() T
	RemoveIf(func(T) bool)
}

// Resize iterates over the first n entries of t, and makes t that long on the way: the caller fills a new entry while
// it is in the processor's cache. An entry that t had comes as it was.
func Resize[T any, S entrySlice[T]](t S, n int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		had := t.Len()
		if had > n {
			i := 0
			t.RemoveIf(func(T) bool {
				i++
				return i > n
			})
			had = n
		}
		t.EnsureCapacity(n)
		for i := range had {
			if !yield(i, t.At(i)) {
				return
			}
		}
		for i := had; i < n; i++ {
			if !yield(i, t.AppendEmpty()) {
				return
			}
		}
	}
}

func (w *Writer) writeStrings(dst pcommon.StringSlice) {
	if w.Orders[StringTable].Index == nil {
		dst.FromRaw(w.Dict.Strings.entries)
		return
	}
	w.strings = w.strings[:0]
	for _, i := range w.Orders[StringTable].Entries {
		w.strings = append(w.strings, w.Dict.Strings.entries[i])
	}
	dst.FromRaw(w.strings)
	clear(w.strings)
}

func (w *Writer) writeFunctions(dst pprofile.FunctionSlice) {
	for k, entry := range Resize(dst, w.len(FunctionTable)) {
		f := &w.Dict.Functions.entries[w.entry(FunctionTable, k)]
		entry.SetNameStrindex(w.Index(StringTable, int32(f.Name)))
		entry.SetSystemNameStrindex(w.Index(StringTable, int32(f.SystemName)))
		entry.SetFilenameStrindex(w.Index(StringTable, int32(f.Filename)))
		entry.SetStartLine(f.StartLine)
	}
}

func (w *Writer) writeMappings(dst pprofile.MappingSlice) {
	for k, entry := range Resize(dst, w.len(MappingTable)) {
		m := &w.Dict.Mappings.entries[w.entry(MappingTable, k)]
		entry.SetMemoryStart(m.MemoryStart)
		entry.SetMemoryLimit(m.MemoryLimit)
		entry.SetFileOffset(m.FileOffset)
		entry.SetFilenameStrindex(w.Index(StringTable, int32(m.Filename)))
		w.WriteAttributes(m.Attributes, entry.AttributeIndices())
	}
}

func (w *Writer) writeLocations(dst pprofile.LocationSlice) {
	for k, entry := range Resize(dst, w.len(LocationTable)) {
		l, lines := w.Dict.Locations.At(LocationIndex(w.entry(LocationTable, k)))
		entry.SetMappingIndex(w.Index(MappingTable, int32(l.Mapping)))
		entry.SetAddress(l.Address)
		w.WriteAttributes(l.Attributes, entry.AttributeIndices())
		for k, line := range Resize(entry.Lines(), len(lines)) {
			line.SetFunctionIndex(w.Index(FunctionTable, int32(lines[k].Function)))
			line.SetLine(lines[k].Line)
			line.SetColumn(lines[k].Column)
		}
	}
}

func (w *Writer) writeStacks(dst pprofile.StackSlice) {
	for k, entry := range Resize(dst, w.len(StackTable)) {
		list := w.Dict.Stacks.At(StackIndex(w.entry(StackTable, k)))
		entry.LocationIndices().FromRaw(w.reordered(list, LocationTable))
	}
}

func (w *Writer) writeLinks(dst pprofile.LinkSlice) {
	for k, entry := range Resize(dst, w.len(LinkTable)) {
		l := &w.Dict.Links.entries[w.entry(LinkTable, k)]
		entry.SetTraceID(l.TraceID)
		entry.SetSpanID(l.SpanID)
	}
}

func (w *Writer) writeAttributeTable(dst pprofile.KeyValueAndUnitSlice) {
	dst.RemoveIf(func(pprofile.KeyValueAndUnit) bool { return true }) // a value cannot be overwritten by an empty one
	for k, entry := range Resize(dst, w.len(AttributeTable)) {
		a := &w.Dict.Attributes.entries[w.entry(AttributeTable, k)]
		entry.SetKeyStrindex(w.Index(StringTable, int32(a.Key)))
		entry.SetUnitStrindex(w.Index(StringTable, int32(a.Unit)))
		a.Value.CopyTo(entry.Value())
	}
}
