// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// lowering lists attributes that move the other way: from the resource of a process to its samples.
type lowering struct {
	// added are attributes to be appended to the dictionary.
	added []content
	// lowered are, by resource, the attributes that its samples get.
	lowered map[int32][]loweredAttribute
}

// loweredAttribute is an attribute that samples get unless they have one with the same role.
type loweredAttribute struct {
	content
	// attribute is its index, none while the dictionary does not have it.
	attribute int32
}

func (l *lowering) forget() {
	clear(l.added)
	l.added = l.added[:0]
	clear(l.lowered)
}

// lowerFrom finds the attributes that leave a resource.
func (r *Regrouper) lowerFrom(base *base) {
	attributes := base.rp.Resource().Attributes()
	for _, role := range r.lowers {
		value, ok := attributes.Get(r.keys[role])
		if !ok || !isUsable(role, value) {
			continue
		}
		l := loweredAttribute{content: content{role: int8(role), value: dictionary.ValueOf(value)}, attribute: none}
		if a, ok := r.canonical[l.content]; ok {
			l.attribute = a
		}
		if r.lowered == nil {
			r.lowered = map[int32][]loweredAttribute{}
		}
		r.lowered[base.resource] = append(r.lowered[base.resource], l)
		base.lowered = append(base.lowered, r.keys[role])
	}
}

// gained are the attributes that the samples of a tuple get.
func (r *Regrouper) gained(t int32) []loweredAttribute {
	if len(r.lowered) == 0 || r.groupOf[t] == 0 {
		return nil
	}
	return r.lowered[r.resourceOfTuple[t]]
}

// newIndex returns the index of an attribute that a sample gets. The first call adds it to the dictionary.
func (r *Regrouper) newIndex(l *loweredAttribute) int32 {
	if l.attribute == none {
		a, ok := r.canonical[l.content]
		if !ok {
			a = int32(len(r.roleOf) + len(r.added))
			r.canonical[l.content] = a
			r.added = append(r.added, l.content)
		}
		l.attribute = a
	}
	return l.attribute
}

// outOfRange is not an index of any table, however large.
const outOfRange = math.MaxInt32

// inRange returns an index of a table that is about to grow. One that is out of range stays so.
func inRange(i int32, entries int) int32 {
	if int(i) >= entries {
		return outOfRange
	}
	return i
}

// addAttributes appends the attributes that move from resources to samples to the dictionary.
func (r *Regrouper) addAttributes(pd pprofile.Profiles) {
	if len(r.added) == 0 {
		return
	}
	eachOtherList(pd, func(list pcommon.Int32Slice) {
		for k := range list.Len() {
			list.SetAt(k, inRange(list.At(k), len(r.roleOf)))
		}
	})
	var keys [numRoles]int32
	for _, added := range r.added {
		if keys[added.role] == 0 {
			keys[added.role] = indexOf(pd, r.keys[added.role])
		}
		a := pd.Dictionary().AttributeTable().AppendEmpty()
		a.SetKeyStrindex(keys[added.role])
		added.value.CopyTo(a.Value())
	}
}

// eachOtherList calls a function with the attributes of everything except samples.
func eachOtherList(pd pprofile.Profiles, do func(pcommon.Int32Slice)) {
	for _, m := range pd.Dictionary().MappingTable().All() {
		do(m.AttributeIndices())
	}
	for _, l := range pd.Dictionary().LocationTable().All() {
		do(l.AttributeIndices())
	}
	for p := range otlp.Profiles(pd) {
		do(p.AttributeIndices())
	}
}

// indexOf returns the index of a string, above 0. It appends the string if the table does not have it.
func indexOf(pd pprofile.Profiles, s string) int32 {
	table := pd.Dictionary().StringTable()
	if at := slices.Index(table.AsRaw(), s); at > 0 {
		return int32(at)
	}
	if table.Len() == 0 {
		table.Append("")
	}
	eachString(pd, func(i int32) int32 { return inRange(i, table.Len()) })
	table.Append(s)
	return int32(table.Len()) - 1
}

// eachString replaces every reference to a string by what a function returns for it.
func eachString(pd pprofile.Profiles, moved func(int32) int32) {
	d := pd.Dictionary()
	for _, a := range d.AttributeTable().All() {
		a.SetKeyStrindex(moved(a.KeyStrindex()))
		a.SetUnitStrindex(moved(a.UnitStrindex()))
	}
	for _, f := range d.FunctionTable().All() {
		f.SetNameStrindex(moved(f.NameStrindex()))
		f.SetSystemNameStrindex(moved(f.SystemNameStrindex()))
		f.SetFilenameStrindex(moved(f.FilenameStrindex()))
	}
	for _, m := range d.MappingTable().All() {
		m.SetFilenameStrindex(moved(m.FilenameStrindex()))
	}
	for p := range otlp.Profiles(pd) {
		for _, t := range [...]pprofile.ValueType{p.SampleType(), p.PeriodType()} {
			t.SetTypeStrindex(moved(t.TypeStrindex()))
			t.SetUnitStrindex(moved(t.UnitStrindex()))
		}
	}
}
