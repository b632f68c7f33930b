// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// reach marks what profiles refer to, directly or through other entries. Entry 0 of each table counts as reached.
type reach struct {
	dict pprofile.ProfilesDictionary

	strings, attributes, links, functions, mappings, locations, stacks []bool

	// ofHeaders are the strings of resource and scope attributes. Marshalling keeps them in the string table, and
	// unmarshalling leaves them there without a visible reference.
	ofHeaders map[string]struct{}
}

func (c *checker) checkOrphans(pd pprofile.Profiles) {
	d := c.dict
	r := &reach{
		dict:       d,
		strings:    make([]bool, d.StringTable().Len()),
		attributes: make([]bool, d.AttributeTable().Len()),
		links:      make([]bool, d.LinkTable().Len()),
		functions:  make([]bool, d.FunctionTable().Len()),
		mappings:   make([]bool, d.MappingTable().Len()),
		locations:  make([]bool, d.LocationTable().Len()),
		stacks:     make([]bool, d.StackTable().Len()),
		ofHeaders:  make(map[string]struct{}),
	}
	r.visit(pd)
	for i := range r.strings {
		if _, isOfHeader := r.ofHeaders[d.StringTable().At(i)]; isOfHeader {
			r.strings[i] = true
		}
	}
	for _, t := range []struct {
		name    string
		reached []bool
	}{
		{"mapping_table", r.mappings},
		{"location_table", r.locations},
		{"function_table", r.functions},
		{"link_table", r.links},
		{"string_table", r.strings},
		{"attribute_table", r.attributes},
		{"stack_table", r.stacks},
	} {
		for i := 1; i < len(t.reached); i++ {
			if !t.reached[i] {
				c.fault(at(t.name, i), "is not reached from any profile")
			}
		}
	}
}

// enter marks entry i and reports whether to visit it: it exists and was not visited before.
func enter(reached []bool, i int32) bool {
	if i < 0 || int(i) >= len(reached) || reached[i] {
		return false
	}
	reached[i] = true
	return true
}

func (r *reach) visit(pd pprofile.Profiles) {
	for _, rp := range pd.ResourceProfiles().All() {
		r.addStrings(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			r.addStrings(sp.Scope().Attributes())
			for _, profile := range sp.Profiles().All() {
				r.profile(profile)
			}
		}
	}
}

func (r *reach) addStrings(m pcommon.Map) {
	for name, v := range m.All() {
		r.ofHeaders[name] = struct{}{}
		r.addStringsOf(v)
	}
}

func (r *reach) addStringsOf(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		r.ofHeaders[v.Str()] = struct{}{}
	case pcommon.ValueTypeMap:
		r.addStrings(v.Map())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			r.addStringsOf(e)
		}
	default:
	}
}

func (r *reach) profile(p pprofile.Profile) {
	for _, t := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		enter(r.strings, t.TypeStrindex())
		enter(r.strings, t.UnitStrindex())
	}
	r.attributeIndices(p.AttributeIndices())
	for _, s := range p.Samples().All() {
		r.stack(s.StackIndex())
		r.attributeIndices(s.AttributeIndices())
		enter(r.links, s.LinkIndex())
	}
}

func (r *reach) attributeIndices(indices pcommon.Int32Slice) {
	for _, i := range indices.All() {
		if enter(r.attributes, i) {
			a := r.dict.AttributeTable().At(int(i))
			enter(r.strings, a.KeyStrindex())
			enter(r.strings, a.UnitStrindex())
		}
	}
}

func (r *reach) stack(i int32) {
	if !enter(r.stacks, i) {
		return
	}
	for _, l := range r.dict.StackTable().At(int(i)).LocationIndices().All() {
		r.location(l)
	}
}

func (r *reach) location(i int32) {
	if !enter(r.locations, i) {
		return
	}
	l := r.dict.LocationTable().At(int(i))
	r.attributeIndices(l.AttributeIndices())
	if enter(r.mappings, l.MappingIndex()) {
		m := r.dict.MappingTable().At(int(l.MappingIndex()))
		enter(r.strings, m.FilenameStrindex())
		r.attributeIndices(m.AttributeIndices())
	}
	for _, line := range l.Lines().All() {
		if enter(r.functions, line.FunctionIndex()) {
			f := r.dict.FunctionTable().At(int(line.FunctionIndex()))
			enter(r.strings, f.NameStrindex())
			enter(r.strings, f.SystemNameStrindex())
			enter(r.strings, f.FilenameStrindex())
		}
	}
}
