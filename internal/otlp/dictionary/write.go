// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Order lists the entries of a table that are written. The zero value is all of them, as they are.
type Order struct {
	// Entries[k] is the entry whose index becomes k. Index[i] is the index of entry i, if that is in Entries.
	Entries, Index []int32
}

func (o *Order) len(entries int) int {
	if o.Index == nil {
		return entries
	}
	return len(o.Entries)
}

func (o *Order) entry(k int) int {
	if o.Index == nil {
		return k
	}
	return int(o.Entries[k])
}

// Of returns the index of an entry that is written.
func (o *Order) Of(i int32) int32 {
	if o.Index == nil {
		return i
	}
	return o.Index[i]
}

// Writer writes the tables of a Dictionary, which must not change meanwhile, and lists of indices for what refers to them. Entries
// that are written may only refer to others that are.
type Writer struct {
	Strings, Functions, Mappings, Locations, Stacks, Links, Attributes Order

	indices []int32
	strings []string
}

// Write writes the tables to dst. It overwrites what dst holds and reuses its memory: most of the cost of writing a dictionary is
// memory, and that of a consumed message has about the right shape. The Dictionary keeps nothing of dst.
func (w *Writer) Write(d *Dictionary, dst pprofile.ProfilesDictionary) {
	w.writeStrings(d, dst.StringTable())
	w.writeFunctions(d, dst.FunctionTable())
	w.writeMappings(d, dst.MappingTable())
	w.writeLocations(d, dst.LocationTable())
	w.writeStacks(d, dst.StackTable())
	w.writeLinks(d, dst.LinkTable())
	w.writeAttributeTable(d, dst.AttributeTable())
}

// WriteAttributes writes the indices of a set, in ascending order, over those of dst.
func (w *Writer) WriteAttributes(d *Dictionary, i AttributeSetIndex, dst pcommon.Int32Slice) {
	if i == 0 && dst.Len() == 0 { // Fast path
		return
	}
	list := w.reordered(d.AttributeSets.At(i), &w.Attributes)
	if w.Attributes.Index != nil {
		slices.Sort(list)
	}
	dst.FromRaw(list)
}

// reordered returns the new indices of a list's entries. They are borrowed until the next call.
func (w *Writer) reordered(list []int32, o *Order) []int32 {
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
	EnsureCapacity(entries int)
	AppendEmpty() T
	RemoveIf(func(T) bool)
}

// Resize makes t n entries long. It keeps the first of what t has, as they are.
func Resize[T any, S entrySlice[T]](t S, n int) {
	if t.Len() > n {
		i := 0
		t.RemoveIf(func(T) bool {
			i++
			return i > n
		})
		return
	}
	t.EnsureCapacity(n)
	for range n - t.Len() {
		t.AppendEmpty()
	}
}

func (w *Writer) writeStrings(d *Dictionary, dst pcommon.StringSlice) {
	if w.Strings.Index == nil {
		dst.FromRaw(d.Strings.entries)
		return
	}
	w.strings = w.strings[:0]
	for _, i := range w.Strings.Entries {
		w.strings = append(w.strings, d.Strings.entries[i])
	}
	dst.FromRaw(w.strings)
	clear(w.strings)
}

func (w *Writer) writeFunctions(d *Dictionary, dst pprofile.FunctionSlice) {
	Resize(dst, w.Functions.len(d.Functions.Len()))
	for k := range dst.Len() {
		f, entry := &d.Functions.entries[w.Functions.entry(k)], dst.At(k)
		entry.SetNameStrindex(w.Strings.Of(int32(f.Name)))
		entry.SetSystemNameStrindex(w.Strings.Of(int32(f.SystemName)))
		entry.SetFilenameStrindex(w.Strings.Of(int32(f.Filename)))
		entry.SetStartLine(f.StartLine)
	}
}

func (w *Writer) writeMappings(d *Dictionary, dst pprofile.MappingSlice) {
	Resize(dst, w.Mappings.len(d.Mappings.Len()))
	for k := range dst.Len() {
		m, entry := &d.Mappings.entries[w.Mappings.entry(k)], dst.At(k)
		entry.SetMemoryStart(m.MemoryStart)
		entry.SetMemoryLimit(m.MemoryLimit)
		entry.SetFileOffset(m.FileOffset)
		entry.SetFilenameStrindex(w.Strings.Of(int32(m.Filename)))
		w.WriteAttributes(d, m.Attributes, entry.AttributeIndices())
	}
}

func (w *Writer) writeLocations(d *Dictionary, dst pprofile.LocationSlice) {
	Resize(dst, w.Locations.len(d.Locations.Len()))
	for k := range dst.Len() {
		l, lines := d.Locations.At(LocationIndex(w.Locations.entry(k)))
		entry := dst.At(k)
		entry.SetMappingIndex(w.Mappings.Of(int32(l.Mapping)))
		entry.SetAddress(l.Address)
		w.WriteAttributes(d, l.Attributes, entry.AttributeIndices())
		to := entry.Lines()
		if to.Len() > len(lines) {
			Resize(to, len(lines))
		}
		to.EnsureCapacity(len(lines))
		for k := range lines {
			if k == to.Len() {
				to.AppendEmpty()
			}
			line := to.At(k)
			line.SetFunctionIndex(w.Functions.Of(int32(lines[k].Function)))
			line.SetLine(lines[k].Line)
			line.SetColumn(lines[k].Column)
		}
	}
}

func (w *Writer) writeStacks(d *Dictionary, dst pprofile.StackSlice) {
	Resize(dst, w.Stacks.len(d.Stacks.Len()))
	for k := range dst.Len() {
		list := d.Stacks.At(StackIndex(w.Stacks.entry(k)))
		dst.At(k).LocationIndices().FromRaw(w.reordered(list, &w.Locations))
	}
}

func (w *Writer) writeLinks(d *Dictionary, dst pprofile.LinkSlice) {
	Resize(dst, w.Links.len(d.Links.Len()))
	for k := range dst.Len() {
		l, entry := &d.Links.entries[w.Links.entry(k)], dst.At(k)
		entry.SetTraceID(l.TraceID)
		entry.SetSpanID(l.SpanID)
	}
}

func (w *Writer) writeAttributeTable(d *Dictionary, dst pprofile.KeyValueAndUnitSlice) {
	Resize(dst, 0) // a value cannot be overwritten by an empty one
	Resize(dst, w.Attributes.len(d.Attributes.Len()))
	for k := range dst.Len() {
		a, entry := &d.Attributes.entries[w.Attributes.entry(k)], dst.At(k)
		entry.SetKeyStrindex(w.Strings.Of(int32(a.Key)))
		entry.SetUnitStrindex(w.Strings.Of(int32(a.Unit)))
		a.Value.CopyTo(entry.Value())
	}
}
