// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// messy draws a message that breaks about every rule there is: tables that are missing or do not begin with
// the zero value, duplicates, orphans, indices out of range, attribute keys twice, samples of any shape.
type messy struct {
	t    *rapid.T
	pd   pprofile.Profiles
	dict pprofile.ProfilesDictionary
	// faults is how many of a hundred indices are out of range.
	faults int
}

func drawMessy(t *rapid.T, faults int) pprofile.Profiles {
	m := &messy{t: t, pd: pprofile.NewProfiles(), faults: faults}
	m.dict = m.pd.Dictionary()
	m.tables()
	for range 1 + m.upTo(2) {
		rp := m.pd.ResourceProfiles().AppendEmpty()
		rp.SetSchemaUrl(m.oneOf("", "https://schema/1"))
		m.attributes(rp.Resource().Attributes())
		rp.Resource().SetDroppedAttributesCount(uint32(m.upTo(1)))
		if m.chance(20) {
			ref := entity.ResourceEntityRefs(rp.Resource()).AppendEmpty()
			ref.SetSchemaUrl(m.oneOf("", "https://schema/3"))
			ref.SetType(m.oneOf("service", "host"))
			ref.IdKeys().Append(m.oneOf("a", "b"))
			ref.DescriptionKeys().Append(m.oneOf("a", "b"))
		}
		for range 1 + m.upTo(1) {
			sp := rp.ScopeProfiles().AppendEmpty()
			sp.SetSchemaUrl(m.oneOf("", "https://schema/2"))
			sp.Scope().SetName(m.oneOf("", "scope"))
			sp.Scope().SetVersion(m.oneOf("", "1"))
			sp.Scope().SetDroppedAttributesCount(uint32(m.upTo(1)))
			m.attributes(sp.Scope().Attributes())
			for range m.upTo(3) {
				m.profile(sp.Profiles().AppendEmpty())
			}
		}
	}
	return m.pd
}

func (m *messy) upTo(n int) int { return rapid.IntRange(0, n).Draw(m.t, "n") }

func (m *messy) chance(percent int) bool { return m.upTo(99) < percent }

func (m *messy) oneOf(texts ...string) string { return texts[m.upTo(len(texts)-1)] }

// index draws an index into a table of n entries.
func (m *messy) index(n int) int32 {
	if m.chance(m.faults) {
		return int32([]int{-1, -1 << 31, n, n + 7, 1<<31 - 1}[m.upTo(4)])
	}
	if n == 0 {
		return 0
	}
	return int32(m.upTo(n - 1))
}

func (m *messy) tables() {
	d := m.dict
	for range m.upTo(8) {
		d.StringTable().Append(m.oneOf("", "", "main", "run", "a", "b", "/lib/c.so"))
	}
	text := func() int32 { return m.index(d.StringTable().Len()) }
	for range m.upTo(6) {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(text())
		a.SetUnitStrindex(text())
		m.value(a.Value(), 2)
	}
	for range m.upTo(4) {
		f := d.FunctionTable().AppendEmpty()
		f.SetNameStrindex(text())
		f.SetSystemNameStrindex(text())
		f.SetFilenameStrindex(text())
		f.SetStartLine(int64(m.upTo(2)))
	}
	for range m.upTo(3) {
		mapping := d.MappingTable().AppendEmpty()
		mapping.SetMemoryStart(uint64(m.upTo(1)))
		mapping.SetMemoryLimit(mapping.MemoryStart() * 2)
		mapping.SetFilenameStrindex(text())
		m.set(mapping.AttributeIndices())
	}
	for range m.upTo(5) {
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(m.index(d.MappingTable().Len()))
		l.SetAddress(uint64(m.upTo(2)))
		m.set(l.AttributeIndices())
		for range m.upTo(2) {
			line := l.Lines().AppendEmpty()
			line.SetFunctionIndex(m.index(d.FunctionTable().Len()))
			line.SetLine(int64(m.upTo(2)))
			line.SetColumn(int64(m.upTo(1)))
		}
	}
	for range m.upTo(5) {
		list := d.StackTable().AppendEmpty().LocationIndices()
		for range m.upTo(3) {
			list.Append(m.index(d.LocationTable().Len()))
		}
	}
	for range m.upTo(3) {
		link := d.LinkTable().AppendEmpty()
		id := byte(1 + m.upTo(1))
		link.SetTraceID([16]byte{id})
		link.SetSpanID([8]byte{id})
	}
}

func (m *messy) set(dst pcommon.Int32Slice) {
	for range m.upTo(3) {
		dst.Append(m.index(m.dict.AttributeTable().Len()))
	}
}

func (m *messy) attributes(dst pcommon.Map) {
	for range m.upTo(2) {
		m.value(dst.PutEmpty(m.oneOf("a", "b", "service.name")), 2)
	}
}

func (m *messy) value(v pcommon.Value, depth int) {
	switch m.upTo(7) {
	case 0:
		v.SetStr(m.oneOf("", "x", "y"))
	case 1:
		v.SetInt(int64(m.upTo(3) - 1))
	case 2:
		v.SetBool(m.chance(50))
	case 3:
		v.SetDouble(float64(m.upTo(1)) / 2)
	case 4:
		v.SetEmptyBytes().FromRaw([]byte(m.oneOf("", "raw")))
	case 5:
		values := v.SetEmptySlice()
		for range m.upTo(depth) {
			m.value(values.AppendEmpty(), depth-1)
		}
	case 6:
		entries := v.SetEmptyMap()
		for range m.upTo(depth) {
			m.value(entries.PutEmpty(m.oneOf("k", "l")), depth-1)
		}
	}
}

func (m *messy) profile(p pprofile.Profile) {
	d := m.dict
	p.SetProfileID([16]byte{byte(m.upTo(1))})
	p.SetTime(pcommon.Timestamp(m.upTo(1)))
	p.SetDurationNano(1000)
	p.SetPeriod(int64(m.upTo(2)))
	p.SetDroppedAttributesCount(uint32(m.upTo(1)))
	p.SampleType().SetTypeStrindex(m.index(d.StringTable().Len()))
	p.PeriodType().SetUnitStrindex(m.index(d.StringTable().Len()))
	m.set(p.AttributeIndices())
	if m.chance(30) {
		p.SetOriginalPayloadFormat("pprof")
		p.OriginalPayload().FromRaw([]byte("payload"))
	}
	pure := m.chance(60) // one shape
	values, timestamps := 1, 0
	if pure && m.chance(50) {
		values, timestamps = m.upTo(1)*3, 3
	}
	for range m.upTo(8) {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(m.index(d.StackTable().Len()))
		s.SetLinkIndex(m.index(d.LinkTable().Len()))
		m.set(s.AttributeIndices())
		if !pure {
			values, timestamps = m.upTo(3), m.upTo(3)
		}
		for range values {
			s.Values().Append([]int64{1, -5, 1 << 62, -1 << 63}[m.upTo(3)])
		}
		for range timestamps {
			s.TimestampsUnixNano().Append(uint64(10 + m.upTo(900)))
		}
	}
}

// naive reduces a message to the expected output, in the slow and simple way: it removes everything that cannot be
// understood from the message itself, and leaves the dictionary as large as it is.
type naive struct {
	dict    pprofile.ProfilesDictionary
	strings int // in the message; more may be added
}

func expected(pd pprofile.Profiles) pprofile.Profiles {
	pd = profiletest.Clone(pd)
	pad(pd.Dictionary())
	n := naive{pd.Dictionary(), pd.Dictionary().StringTable().Len()}
	for _, l := range n.dict.LocationTable().All() {
		n.clean(l.AttributeIndices())
	}
	for _, m := range n.dict.MappingTable().All() {
		n.clean(m.AttributeIndices())
	}
	eachProfile(pd, n.profile)
	emptyFirst(pd)
	return pd
}

// emptyFirst puts the empty string at 0 and changes all indices of empty strings to 0, since profiletest names some
// things by whether their index is 0.
func emptyFirst(pd pprofile.Profiles) {
	pad(pd.Dictionary())
	table := pd.Dictionary().StringTable()
	old := table.AsRaw()
	table.FromRaw(append([]string{""}, old...))
	moveStrings(pd, func(i int32) int32 {
		if i < 0 || int(i) >= len(old) || old[i] == "" {
			return 0
		}
		return i + 1
	})
}

func (n naive) profile(p pprofile.Profile) {
	for _, t := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		if !n.str(t.TypeStrindex()) {
			t.SetTypeStrindex(n.empty())
		}
		if !n.str(t.UnitStrindex()) {
			t.SetUnitStrindex(n.empty())
		}
	}
	n.clean(p.AttributeIndices())
	p.Samples().RemoveIf(func(s pprofile.Sample) bool {
		n.clean(s.AttributeIndices())
		if !within(s.LinkIndex(), n.dict.LinkTable().Len()) {
			s.SetLinkIndex(0)
		}
		_, why := shapeOf(s.Values().Len(), s.TimestampsUnixNano().Len())
		return why != Understood || !n.stack(s.StackIndex())
	})
}

// empty adds an empty string and returns its index.
func (n naive) empty() int32 {
	n.dict.StringTable().Append("")
	return int32(n.dict.StringTable().Len() - 1)
}

func within(i int32, n int) bool { return i >= 0 && int(i) < n }

func (n naive) str(i int32) bool { return within(i, n.strings) }

func (n naive) clean(set pcommon.Int32Slice) {
	var kept []int32
	keys := map[string]bool{}
	for _, i := range set.All() {
		if !within(i, n.dict.AttributeTable().Len()) {
			continue
		}
		a := n.dict.AttributeTable().At(int(i))
		if !n.str(a.KeyStrindex()) || !n.str(a.UnitStrindex()) {
			continue
		}
		key := n.dict.StringTable().At(int(a.KeyStrindex()))
		if !keys[key] {
			kept = append(kept, i)
		}
		keys[key] = true
	}
	set.FromRaw(kept)
}

func (n naive) stack(i int32) bool {
	t := n.dict.StackTable()
	if !within(i, t.Len()) {
		return false
	}
	for _, l := range t.At(int(i)).LocationIndices().All() {
		if !n.location(l) {
			return false
		}
	}
	return true
}

func (n naive) location(i int32) bool {
	if !within(i, n.dict.LocationTable().Len()) {
		return false
	}
	l := n.dict.LocationTable().At(int(i))
	if !within(l.MappingIndex(), n.dict.MappingTable().Len()) ||
		!n.str(n.dict.MappingTable().At(int(l.MappingIndex())).FilenameStrindex()) {
		return false
	}
	for _, line := range l.Lines().All() {
		if !within(line.FunctionIndex(), n.dict.FunctionTable().Len()) {
			return false
		}
		f := n.dict.FunctionTable().At(int(line.FunctionIndex()))
		if !n.str(f.NameStrindex()) || !n.str(f.SystemNameStrindex()) || !n.str(f.FilenameStrindex()) {
			return false
		}
	}
	return true
}

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
