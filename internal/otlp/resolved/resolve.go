// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Resolver holds the id of every entry of one dictionary. An entry's id covers all that the entry refers to: entries of
// different dictionaries have the same id if and only if they resolve to the same.
//
// A table without entries resolves as if it held its zero value. An index outside its table equals only the same index
// outside a table.
type Resolver struct {
	space *Space
	dict  pprofile.ProfilesDictionary

	strings    []ID
	attributes []ID
	links      []ID
	functions  []ID
	mappings   []ID
	locations  []ID
	stacks     []ID

	// noLink is the id of link index 0, regardless of what the table has there.
	noLink ID
}

// table is the common interface of the seven tables.
type table[T any] interface {
	Len() int
	At(i int) T
}

// NewResolver resolves the tables in the order of their dependence: an entry's id needs those it refers to.
func NewResolver(s *Space, dict pprofile.ProfilesDictionary) *Resolver {
	r := &Resolver{space: s, dict: dict}
	r.strings = resolveTable[string](dict.StringTable(), "", r.stringID)
	r.attributes = resolveTable(dict.AttributeTable(), pprofile.NewKeyValueAndUnit(), r.attributeID)
	r.links = resolveTable(dict.LinkTable(), pprofile.NewLink(), r.linkID)
	r.functions = resolveTable(dict.FunctionTable(), pprofile.NewFunction(), r.functionID)
	r.mappings = resolveTable(dict.MappingTable(), pprofile.NewMapping(), r.mappingID)
	r.locations = resolveTable(dict.LocationTable(), pprofile.NewLocation(), r.locationID)
	r.stacks = resolveTable(dict.StackTable(), pprofile.NewStack(), r.stackID)
	r.noLink = r.linkID(pprofile.NewLink())
	return r
}

func resolveTable[T any](t table[T], zero T, idOf func(T) ID) []ID {
	if t.Len() == 0 {
		return []ID{idOf(zero)}
	}
	ids := make([]ID, t.Len())
	for i := range ids {
		ids[i] = idOf(t.At(i))
	}
	return ids
}

// ref returns the id of an index into a table.
func (r *Resolver) ref(ids []ID, index int32) ID {
	if index < 0 || int(index) >= len(ids) {
		return r.space.Intern(NewKey(KindInvalid).Int(int64(index)))
	}
	return ids[index]
}

func (r *Resolver) stringID(s string) ID { return r.space.Intern(NewKey(KindString).Str(s)) }

func (r *Resolver) attributeID(a pprofile.KeyValueAndUnit) ID {
	return r.space.Intern(NewKey(KindAttribute).
		ID(r.ref(r.strings, a.KeyStrindex())).
		ID(r.ref(r.strings, a.UnitStrindex())).
		Value(a.Value()))
}

func (r *Resolver) linkID(l pprofile.Link) ID {
	trace, span := l.TraceID(), l.SpanID()
	return r.space.Intern(NewKey(KindLink).Str(string(trace[:])).Str(string(span[:])))
}

func (r *Resolver) functionID(f pprofile.Function) ID {
	return r.space.Intern(NewKey(KindFunction).
		ID(r.ref(r.strings, f.NameStrindex())).
		ID(r.ref(r.strings, f.SystemNameStrindex())).
		ID(r.ref(r.strings, f.FilenameStrindex())).
		Int(f.StartLine()))
}

func (r *Resolver) mappingID(m pprofile.Mapping) ID {
	return r.space.Intern(NewKey(KindMapping).
		Num(m.MemoryStart()).Num(m.MemoryLimit()).Num(m.FileOffset()).
		ID(r.ref(r.strings, m.FilenameStrindex())).
		ID(r.attributeSet(m.AttributeIndices())))
}

func (r *Resolver) locationID(l pprofile.Location) ID {
	k := NewKey(KindLocation).
		ID(r.ref(r.mappings, l.MappingIndex())).
		Num(l.Address()).
		ID(r.attributeSet(l.AttributeIndices())).
		Num(uint64(l.Lines().Len()))
	for _, line := range l.Lines().All() {
		k = k.ID(r.ref(r.functions, line.FunctionIndex())).Int(line.Line()).Int(line.Column())
	}
	return r.space.Intern(k)
}

func (r *Resolver) stackID(s pprofile.Stack) ID {
	indices := s.LocationIndices()
	k := NewKey(KindStack).Num(uint64(indices.Len()))
	for _, index := range indices.All() {
		k = k.ID(r.ref(r.locations, index))
	}
	return r.space.Intern(k)
}

// attributeSet returns the id of a set of attributes, independent of their order and repetition.
func (r *Resolver) attributeSet(indices pcommon.Int32Slice) ID {
	ids := make([]ID, indices.Len())
	for i, index := range indices.All() {
		ids[i] = r.ref(r.attributes, index)
	}
	slices.Sort(ids)
	return r.space.Intern(NewKey(KindSet).IDList(slices.Compact(ids)))
}

// Identity is what makes two samples of a profile the same.
type Identity struct{ stack, attributes, link ID }

// Identity returns the identity of a sample.
func (r *Resolver) Identity(s pprofile.Sample) Identity {
	link := r.noLink
	if s.LinkIndex() != 0 {
		link = r.ref(r.links, s.LinkIndex())
	}
	return Identity{
		stack:      r.ref(r.stacks, s.StackIndex()),
		attributes: r.attributeSet(s.AttributeIndices()),
		link:       link,
	}
}
