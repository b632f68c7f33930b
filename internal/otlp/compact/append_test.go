// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// offsets move the indices of a message behind the tables of another.
type offsets struct{ str, attribute, link, function, mapping, location, stack int }

// pad adds the zero value, which index 0 means, to a table without entries.
func pad(d pprofile.ProfilesDictionary) {
	if d.StringTable().Len() == 0 {
		d.StringTable().Append("")
	}
	if d.AttributeTable().Len() == 0 {
		d.AttributeTable().AppendEmpty()
	}
	if d.LinkTable().Len() == 0 {
		d.LinkTable().AppendEmpty()
	}
	if d.FunctionTable().Len() == 0 {
		d.FunctionTable().AppendEmpty()
	}
	if d.MappingTable().Len() == 0 {
		d.MappingTable().AppendEmpty()
	}
	if d.LocationTable().Len() == 0 {
		d.LocationTable().AppendEmpty()
	}
	if d.StackTable().Len() == 0 {
		d.StackTable().AppendEmpty()
	}
}

// by returns an index moved by an offset. One that is out of range must stay out of range.
func by(i int32, offset int) int32 {
	if i < 0 || i > 1<<20 {
		return 0
	}
	return i + int32(offset)
}

func (o offsets) set(list pcommon.Int32Slice) {
	for k, i := range list.All() {
		list.SetAt(k, by(i, o.attribute))
	}
}

// moveStrings changes every index of a string.
func moveStrings(pd pprofile.Profiles, to func(int32) int32) {
	d := pd.Dictionary()
	for _, a := range d.AttributeTable().All() {
		a.SetKeyStrindex(to(a.KeyStrindex()))
		a.SetUnitStrindex(to(a.UnitStrindex()))
	}
	for _, f := range d.FunctionTable().All() {
		f.SetNameStrindex(to(f.NameStrindex()))
		f.SetSystemNameStrindex(to(f.SystemNameStrindex()))
		f.SetFilenameStrindex(to(f.FilenameStrindex()))
	}
	for _, m := range d.MappingTable().All() {
		m.SetFilenameStrindex(to(m.FilenameStrindex()))
	}
	eachProfile(pd, func(p pprofile.Profile) {
		for _, t := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
			t.SetTypeStrindex(to(t.TypeStrindex()))
			t.SetUnitStrindex(to(t.UnitStrindex()))
		}
	})
}

func eachProfile(pd pprofile.Profiles, visit func(pprofile.Profile)) {
	for p := range otlp.Profiles(pd) {
		visit(p)
	}
}

func (o offsets) move(pd pprofile.Profiles) {
	moveStrings(pd, func(i int32) int32 { return by(i, o.str) })
	d := pd.Dictionary()
	for _, m := range d.MappingTable().All() {
		o.set(m.AttributeIndices())
	}
	for _, l := range d.LocationTable().All() {
		l.SetMappingIndex(by(l.MappingIndex(), o.mapping))
		o.set(l.AttributeIndices())
		for _, line := range l.Lines().All() {
			line.SetFunctionIndex(by(line.FunctionIndex(), o.function))
		}
	}
	for _, s := range d.StackTable().All() {
		for k, i := range s.LocationIndices().All() {
			s.LocationIndices().SetAt(k, by(i, o.location))
		}
	}
	eachProfile(pd, o.profile)
}

func (o offsets) profile(p pprofile.Profile) {
	o.set(p.AttributeIndices())
	for _, s := range p.Samples().All() {
		s.SetStackIndex(by(s.StackIndex(), o.stack))
		o.set(s.AttributeIndices())
		if s.LinkIndex() != 0 {
			s.SetLinkIndex(by(s.LinkIndex(), o.link))
		}
	}
}
