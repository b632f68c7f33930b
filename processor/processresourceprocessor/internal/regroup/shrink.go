// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// shrink lists what leaves the dictionary: attributes that moved to resources, and texts that resources no longer have. The rest
// keeps its order.
type shrink struct {
	attributes, strings removal
	// lost are the texts that a resource no longer has. If the message came over the wire, they are in the string table.
	lost map[string]struct{}
	// lostLengths has a bit for each of their lengths, the last for all that are longer.
	lostLengths uint64
}

// maxLost bounds a lost text: many resources may refer to one long text.
const maxLost = 4 << 10

func (s *shrink) lose(text string) {
	if text == "" || len(text) > maxLost {
		return
	}
	if s.lost == nil {
		s.lost = map[string]struct{}{}
	}
	s.lost[text] = struct{}{}
	s.lostLengths |= lengthBit(text)
}

func lengthBit(text string) uint64 { return 1 << min(len(text), 63) }

func (s *shrink) loseValue(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		s.lose(v.Str())
	case pcommon.ValueTypeSlice:
		for _, value := range v.Slice().All() {
			s.loseValue(value)
		}
	case pcommon.ValueTypeMap:
		for key, value := range v.Map().All() {
			s.lose(key)
			s.loseValue(value)
		}
	default:
	}
}

// removal lists the entries of a table that are removed, and the new indices of the others.
type removal struct {
	// at[i] is the new index of entry i after number, or gone if entry i is removed.
	at    []int32
	count int
}

// gone marks an entry that is removed.
const gone = -1

func (m *removal) reset(entries int) {
	m.at = resized(m.at, entries)
	m.count = 0
}

// remove marks an entry, except for the zero value.
func (m *removal) remove(i int32) {
	if i != 0 && uint(i) < uint(len(m.at)) && m.at[i] != gone {
		m.at[i] = gone
		m.count++
	}
}

// keep unmarks an entry that something refers to.
func (m *removal) keep(i int32) int32 {
	if uint(i) < uint(len(m.at)) && m.at[i] == gone {
		m.at[i] = 0
		m.count--
	}
	return i
}

func (m *removal) number() {
	next := int32(0)
	for i, at := range m.at {
		if at != gone {
			m.at[i] = next
			next++
		}
	}
}

// moved returns the new index of an entry. An index out of range stays out of range.
func (m *removal) moved(i int32) int32 {
	if uint(i) < uint(len(m.at)) {
		return m.at[i]
	}
	return outOfRange
}

// outOfRange is not an index of any table, however large.
const outOfRange = math.MaxInt32

// findUnused finds the attributes that nothing refers to once samples have lost those that move.
func (r *Regrouper) findUnused(pd pprofile.Profiles) {
	r.attributes.reset(len(r.roleOf))
	r.eachStripped(func(t, a int32) { r.references[a] -= r.samplesOfTuple[t] })
	r.eachStripped(func(_, a int32) {
		if r.references[a] <= 0 {
			r.attributes.remove(a)
		}
	})
	if r.attributes.count > 0 {
		eachOtherList(pd, func(list pcommon.Int32Slice) {
			for k := range list.Len() {
				r.attributes.keep(list.At(k))
			}
		})
	}
	r.attributes.number()
}

// eachStripped calls a function with each tuple and each attribute that its samples lose.
func (r *Regrouper) eachStripped(do func(t, a int32)) {
	for t, strip := range r.strips {
		if strip == 0 {
			continue
		}
		for role, a := range r.tupleAt(int32(t)) {
			if strip&(1<<role) != 0 {
				do(int32(t), a)
			}
		}
	}
}

// changesAttributes reports whether the table of attributes may change.
func (r *Regrouper) changesAttributes() bool { return r.attributes.count > 0 || len(r.lowered) > 0 }

// shrinkDictionary removes what findUnused found, and texts that resources have lost. It is the last step.
func (r *Regrouper) shrinkDictionary(pd pprofile.Profiles) {
	if r.changesAttributes() {
		r.shrinkAttributes(pd)
	}
	if len(r.lost) == 0 {
		return
	}
	r.strings.reset(pd.Dictionary().StringTable().Len())
	for i, text := range pd.Dictionary().StringTable().All() {
		if r.lostLengths&lengthBit(text) == 0 {
			continue
		}
		if _, ok := r.lost[text]; ok {
			r.strings.remove(int32(i))
		}
	}
	if r.strings.count == 0 || mayHideReferences(pd) {
		return
	}
	eachString(pd, r.strings.keep)
	if r.strings.count == 0 {
		return
	}
	r.strings.number()
	eachString(pd, r.strings.moved)
	i := -1
	pd.Dictionary().StringTable().RemoveIf(func(string) bool {
		i++
		return r.strings.at[i] == gone
	})
}

func (r *Regrouper) shrinkAttributes(pd pprofile.Profiles) {
	eachOtherList(pd, func(list pcommon.Int32Slice) {
		for k := range list.Len() {
			if a := list.At(k); r.attributes.moved(a) != a {
				list.SetAt(k, r.attributes.moved(a))
			}
		}
	})
	i, strings := -1, pd.Dictionary().StringTable()
	pd.Dictionary().AttributeTable().RemoveIf(func(a pprofile.KeyValueAndUnit) bool {
		i++
		if r.attributes.at[i] != gone {
			return false
		}
		// The resource has its key now, but no unit.
		if unit := a.UnitStrindex(); uint(unit) < uint(strings.Len()) {
			r.lose(strings.At(int(unit)))
		}
		return true
	})
}

// mayHideReferences reports whether values may refer to strings in a way that pdata does not show. Then all strings keep
// their indices.
func mayHideReferences(pd pprofile.Profiles) bool {
	for i, a := range pd.Dictionary().AttributeTable().All() {
		switch a.Value().Type() {
		case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
			return true
		case pcommon.ValueTypeEmpty:
			if i != 0 {
				return true
			}
		default:
		}
	}
	return compact.HasReferences(pd)
}

// eachOtherList calls a function with the attributes of everything except samples.
func eachOtherList(pd pprofile.Profiles, do func(pcommon.Int32Slice)) {
	mappings, locations := pd.Dictionary().MappingTable(), pd.Dictionary().LocationTable()
	for i := range mappings.Len() {
		do(mappings.At(i).AttributeIndices())
	}
	for i := range locations.Len() {
		do(locations.At(i).AttributeIndices())
	}
	for p := range otlp.Profiles(pd) {
		do(p.AttributeIndices())
	}
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
