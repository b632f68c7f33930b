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
	ids   [numTables][]ID
	// zero are the ids of the zero values, regardless of what is at index 0.
	zero [numTables]ID
}

// table is the common interface of the seven tables.
type table[T any] interface {
	Len() int
	At(i int) T
}

// NewResolver resolves the tables in the order of their dependence: an entry's id needs those it refers to.
func NewResolver(s *Space, dict pprofile.ProfilesDictionary) *Resolver {
	r := &Resolver{space: s}
	r.ids[stringTable], r.zero[stringTable] = resolveTable[string](dict.StringTable(), "", r.stringID)
	r.ids[attributeTable], r.zero[attributeTable] = resolveTable(dict.AttributeTable(), pprofile.NewKeyValueAndUnit(),
		r.attributeID)
	r.ids[linkTable], r.zero[linkTable] = resolveTable(dict.LinkTable(), pprofile.NewLink(), r.linkID)
	r.ids[functionTable], r.zero[functionTable] = resolveTable(dict.FunctionTable(), pprofile.NewFunction(), r.functionID)
	r.ids[mappingTable], r.zero[mappingTable] = resolveTable(dict.MappingTable(), pprofile.NewMapping(), r.mappingID)
	r.ids[locationTable], r.zero[locationTable] = resolveTable(dict.LocationTable(), pprofile.NewLocation(), r.locationID)
	r.ids[stackTable], r.zero[stackTable] = resolveTable(dict.StackTable(), pprofile.NewStack(), r.stackID)
	return r
}

func resolveTable[T any](t table[T], zero T, idOf func(T) ID) (ids []ID, zeroID ID) {
	zeroID = idOf(zero)
	if t.Len() == 0 {
		return []ID{zeroID}, zeroID
	}
	ids = make([]ID, t.Len())
	for i := range ids {
		ids[i] = idOf(t.At(i))
	}
	return ids, zeroID
}

// ref returns the id of an index into a table.
func (r *Resolver) ref(to tableID, index int32) ID {
	if !holds(index, len(r.ids[to])) {
		return r.space.Intern(NewKey(KindInvalid).Int(int64(index)))
	}
	return r.ids[to][index]
}

// keyOf is the key of an entry, as far as it consists of what visit visits in the entry.
func keyOf[T any](r *Resolver, kind Kind, entry T, visit func(visitor, path, T)) Key {
	v := keyVisitor{resolver: r, key: NewKey(kind)}
	visit(&v, path{}, entry)
	return v.key
}

// keyVisitor appends the ids of what it visits.
type keyVisitor struct {
	resolver *Resolver
	key      Key
}

func (v *keyVisitor) index(_ path, _ string, to tableID, i int32) {
	v.key = v.key.ID(v.resolver.ref(to, i))
}

func (v *keyVisitor) indices(_ path, _ string, to tableID, indices pcommon.Int32Slice) {
	if to == attributeTable {
		v.key = v.key.ID(v.resolver.attributeSet(indices))
		return
	}
	v.key = v.key.Num(uint64(indices.Len()))
	for _, i := range indices.All() {
		v.key = v.key.ID(v.resolver.ref(to, i))
	}
}

func (r *Resolver) stringID(s string) ID { return r.space.Intern(NewKey(KindString).Str(s)) }

func (r *Resolver) attributeID(a pprofile.KeyValueAndUnit) ID {
	return r.space.Intern(keyOf(r, KindAttribute, a, visitAttribute).Value(a.Value()))
}

func (r *Resolver) linkID(l pprofile.Link) ID {
	trace, span := l.TraceID(), l.SpanID()
	return r.space.Intern(NewKey(KindLink).Str(string(trace[:])).Str(string(span[:])))
}

func (r *Resolver) functionID(f pprofile.Function) ID {
	return r.space.Intern(keyOf(r, KindFunction, f, visitFunction).Int(f.StartLine()))
}

func (r *Resolver) mappingID(m pprofile.Mapping) ID {
	return r.space.Intern(keyOf(r, KindMapping, m, visitMapping).Num(m.MemoryStart()).Num(m.MemoryLimit()).
		Num(m.FileOffset()))
}

// locationID needs no number of lines in the key: it follows from how many numbers the key has.
func (r *Resolver) locationID(l pprofile.Location) ID {
	k := keyOf(r, KindLocation, l, visitLocation).Num(l.Address())
	for _, line := range l.Lines().All() {
		k = k.Int(line.Line()).Int(line.Column())
	}
	return r.space.Intern(k)
}

func (r *Resolver) stackID(s pprofile.Stack) ID {
	return r.space.Intern(keyOf(r, KindStack, s, visitStack))
}

// attributeSet returns the id of a set of attributes, independent of their order and repetition.
func (r *Resolver) attributeSet(indices pcommon.Int32Slice) ID {
	ids := make([]ID, indices.Len())
	for i, index := range indices.All() {
		ids[i] = r.ref(attributeTable, index)
	}
	slices.Sort(ids)
	return r.space.Intern(NewKey(KindSet).IDList(slices.Compact(ids)))
}

// Identity is what makes two samples of a profile the same.
type Identity struct{ stack, attributes, link ID }

// Identity returns the identity of a sample.
func (r *Resolver) Identity(s pprofile.Sample) Identity {
	link := r.zero[linkTable]
	if s.LinkIndex() != 0 {
		link = r.ref(linkTable, s.LinkIndex())
	}
	return Identity{
		stack:      r.ref(stackTable, s.StackIndex()),
		attributes: r.attributeSet(s.AttributeIndices()),
		link:       link,
	}
}
