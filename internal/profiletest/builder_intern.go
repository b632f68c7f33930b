// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/resolved"
)

// interner adds entries to a dictionary that it alone writes, each value once. Its keys are made of the values and
// of indices, which are the same for the same entry.
type interner struct {
	dict    pprofile.ProfilesDictionary
	indices map[string]int32
}

// newInterner puts the zero values in place: of each kind, the first entry that is asked for gets index 0.
func newInterner(dict pprofile.ProfilesDictionary) *interner {
	in := &interner{dict: dict, indices: make(map[string]int32)}
	in.str("")
	in.attribute(Attribute{})
	in.link([16]byte{}, [8]byte{})
	in.function(Function{})
	in.mapping(&Mapping{})
	in.location(Location{})
	in.stack(nil)
	return in
}

// at returns the index of k's entry. If there is none yet, add appends it to a table of n entries.
func (in *interner) at(k resolved.Key, n int, add func()) int32 {
	if i, ok := in.indices[string(k)]; ok {
		return i
	}
	add()
	in.indices[string(k)] = int32(n)
	return int32(n)
}

func (in *interner) str(s string) int32 {
	t := in.dict.StringTable()
	return in.at(resolved.NewKey(resolved.KindString).Str(s), t.Len(), func() { t.Append(s) })
}

func (in *interner) attribute(a Attribute) int32 {
	value := pcommon.NewValueEmpty()
	setRaw(value, a.Value)
	name, unit := in.str(a.Key), in.str(a.Unit)
	t := in.dict.AttributeTable()
	k := resolved.NewKey(resolved.KindAttribute).Int(int64(name)).Int(int64(unit)).Value(value)
	return in.at(k, t.Len(), func() {
		to := t.AppendEmpty()
		to.SetKeyStrindex(name)
		to.SetUnitStrindex(unit)
		value.CopyTo(to.Value())
	})
}

// attributes are the indices of a set of attributes, ascending.
func (in *interner) attributes(attributes []Attribute) []int32 {
	indices := make([]int32, len(attributes))
	for i, a := range attributes {
		indices[i] = in.attribute(a)
	}
	slices.Sort(indices)
	return indices
}

func (in *interner) link(traceID [16]byte, spanID [8]byte) int32 {
	t := in.dict.LinkTable()
	return in.at(resolved.NewKey(resolved.KindLink).Str(string(traceID[:])).Str(string(spanID[:])), t.Len(), func() {
		to := t.AppendEmpty()
		to.SetTraceID(traceID)
		to.SetSpanID(spanID)
	})
}

func (in *interner) function(f Function) int32 {
	name, systemName, file := in.str(f.Name), in.str(f.SystemName), in.str(f.File)
	t := in.dict.FunctionTable()
	k := resolved.NewKey(resolved.KindFunction).Int(int64(name)).Int(int64(systemName)).Int(int64(file)).Int(f.StartLine)
	return in.at(k, t.Len(), func() {
		to := t.AppendEmpty()
		to.SetNameStrindex(name)
		to.SetSystemNameStrindex(systemName)
		to.SetFilenameStrindex(file)
		to.SetStartLine(f.StartLine)
	})
}

func (in *interner) mapping(m *Mapping) int32 {
	if m == nil {
		return 0
	}
	file, attributes := in.str(m.File), in.attributes(m.Attributes)
	t := in.dict.MappingTable()
	k := appendIndices(resolved.NewKey(resolved.KindMapping).Num(m.Start).Num(m.Limit).Num(m.Offset).Int(int64(file)), attributes)
	return in.at(k, t.Len(), func() {
		to := t.AppendEmpty()
		to.SetMemoryStart(m.Start)
		to.SetMemoryLimit(m.Limit)
		to.SetFileOffset(m.Offset)
		to.SetFilenameStrindex(file)
		to.AttributeIndices().FromRaw(attributes)
	})
}

func (in *interner) location(l Location) int32 {
	mapping, attributes := in.mapping(l.Mapping), in.attributes(l.Attributes)
	functions := make([]int32, len(l.Lines))
	k := appendIndices(resolved.NewKey(resolved.KindLocation).Num(l.Address).Int(int64(mapping)), attributes)
	for i, line := range l.Lines {
		functions[i] = in.function(line.Function)
		k = k.Int(int64(functions[i])).Int(line.Line).Int(line.Column)
	}
	t := in.dict.LocationTable()
	return in.at(k, t.Len(), func() {
		to := t.AppendEmpty()
		to.SetAddress(l.Address)
		to.SetMappingIndex(mapping)
		to.AttributeIndices().FromRaw(attributes)
		for i, line := range l.Lines {
			toLine := to.Lines().AppendEmpty()
			toLine.SetFunctionIndex(functions[i])
			toLine.SetLine(line.Line)
			toLine.SetColumn(line.Column)
		}
	})
}

func (in *interner) stack(stack []Location) int32 {
	locations := make([]int32, len(stack))
	for i, l := range stack {
		locations[i] = in.location(l)
	}
	t := in.dict.StackTable()
	return in.at(appendIndices(resolved.NewKey(resolved.KindStack), locations), t.Len(), func() {
		t.AppendEmpty().LocationIndices().FromRaw(locations)
	})
}

func appendIndices(k resolved.Key, indices []int32) resolved.Key {
	k = k.Num(uint64(len(indices)))
	for _, i := range indices {
		k = k.Int(int64(i))
	}
	return k
}
