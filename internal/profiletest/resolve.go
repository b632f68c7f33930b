// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// resolver holds the id of every entry of one dictionary. An entry's id covers all that the entry refers to, so
// that entries of different dictionaries have one id exactly when they resolve to the same.
//
// A table without entries resolves as if it held its zero value. An index outside its table resolves to a value of
// its own, which equals only the same index outside a table.
type resolver struct {
	space *space
	dict  pprofile.ProfilesDictionary

	strings    []id
	attributes []id
	links      []id
	functions  []id
	mappings   []id
	locations  []id
	stacks     []id

	// noLink is what link index 0 means, whatever stands there.
	noLink id
}

// table is what the seven tables' slices have in common.
type table[T any] interface {
	Len() int
	At(i int) T
}

// newResolver resolves the tables in the order of their dependence: an entry's id needs those it refers to.
func newResolver(s *space, dict pprofile.ProfilesDictionary) *resolver {
	r := &resolver{space: s, dict: dict}
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

func resolveTable[T any](t table[T], zero T, idOf func(T) id) []id {
	if t.Len() == 0 {
		return []id{idOf(zero)}
	}
	ids := make([]id, t.Len())
	for i := range ids {
		ids[i] = idOf(t.At(i))
	}
	return ids
}

// ref is the id of what an index into a table means.
func (r *resolver) ref(ids []id, index int32) id {
	if index < 0 || int(index) >= len(ids) {
		return r.space.intern(newKey(kindInvalid).int(int64(index)))
	}
	return ids[index]
}

func (r *resolver) stringID(s string) id { return r.space.intern(newKey(kindString).str(s)) }

func (r *resolver) attributeID(a pprofile.KeyValueAndUnit) id {
	return r.space.intern(newKey(kindAttribute).
		id(r.ref(r.strings, a.KeyStrindex())).
		id(r.ref(r.strings, a.UnitStrindex())).
		value(a.Value()))
}

func (r *resolver) linkID(l pprofile.Link) id {
	trace, span := l.TraceID(), l.SpanID()
	return r.space.intern(newKey(kindLink).str(string(trace[:])).str(string(span[:])))
}

func (r *resolver) functionID(f pprofile.Function) id {
	return r.space.intern(newKey(kindFunction).
		id(r.ref(r.strings, f.NameStrindex())).
		id(r.ref(r.strings, f.SystemNameStrindex())).
		id(r.ref(r.strings, f.FilenameStrindex())).
		int(f.StartLine()))
}

func (r *resolver) mappingID(m pprofile.Mapping) id {
	return r.space.intern(newKey(kindMapping).
		num(m.MemoryStart()).num(m.MemoryLimit()).num(m.FileOffset()).
		id(r.ref(r.strings, m.FilenameStrindex())).
		id(r.attributeSet(m.AttributeIndices())))
}

func (r *resolver) locationID(l pprofile.Location) id {
	k := newKey(kindLocation).
		id(r.ref(r.mappings, l.MappingIndex())).
		num(l.Address()).
		id(r.attributeSet(l.AttributeIndices())).
		num(uint64(l.Lines().Len()))
	for _, line := range l.Lines().All() {
		k = k.id(r.ref(r.functions, line.FunctionIndex())).int(line.Line()).int(line.Column())
	}
	return r.space.intern(k)
}

func (r *resolver) stackID(s pprofile.Stack) id {
	indices := s.LocationIndices()
	k := newKey(kindStack).num(uint64(indices.Len()))
	for _, index := range indices.All() {
		k = k.id(r.ref(r.locations, index))
	}
	return r.space.intern(k)
}

// attributeSet is the id of the attributes without their order and repetition.
func (r *resolver) attributeSet(indices pcommon.Int32Slice) id {
	ids := make([]id, indices.Len())
	for i, index := range indices.All() {
		ids[i] = r.ref(r.attributes, index)
	}
	slices.Sort(ids)
	return r.space.intern(newKey(kindSet).idList(slices.Compact(ids)))
}

// identity is what makes two samples of a profile the same.
type identity struct{ stack, attributes, link id }

func (r *resolver) identity(s pprofile.Sample) identity {
	link := r.noLink
	if s.LinkIndex() != 0 {
		link = r.ref(r.links, s.LinkIndex())
	}
	return identity{
		stack:      r.ref(r.stacks, s.StackIndex()),
		attributes: r.attributeSet(s.AttributeIndices()),
		link:       link,
	}
}
