// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// profileGenerator generates profiles that pass CheckValid and do not change in profile.Write and profile.Parse. They
// are full of things that a translator can confuse: entries that differ in one field only or not at all, names whose
// concatenations are equal, ids in any order, entries that nothing refers to, sample types that repeat, a default
// sample type that does not exist, samples without locations and with the identity of others, labels with several
// values, with text and numbers under one key, with numbers 0 and a unit, and trace_id and span_id labels of every
// form.
func profileGenerator() *rapid.Generator[*profile.Profile] {
	return rapid.Custom(func(t *rapid.T) *profile.Profile {
		g := pprofDraw{t}
		p := &profile.Profile{
			Function: g.functions(),
			Mapping:  g.mappings(),
		}
		p.Location = g.locations(p.Function, p.Mapping)
		p.SampleType = g.sampleTypes()
		p.DefaultSampleType = g.defaultSampleType(p.SampleType)
		if len(p.SampleType) > 0 {
			p.Sample = g.samples(len(p.SampleType), p.Location)
		}
		g.fields(p)
		return p
	})
}

// pprofDraw draws the parts of one profile.
type pprofDraw struct{ *rapid.T }

// fewTexts have equal concatenations, so that keys without lengths or separators are confused.
var fewTexts = []string{"", "a", "b", "ab", "ba", "aab", "\x00", "a\x00", "0", "Größe 🙂"}

func (g pprofDraw) text(label string) string {
	return rapid.OneOf(rapid.SampledFrom(fewTexts), rapid.SampledFrom(fewTexts), rapid.StringN(0, 8, -1)).Draw(g.T, label)
}

// oneIn returns true once in n times, and false in the simplest case.
func (g pprofDraw) oneIn(n int) bool {
	return rapid.IntRange(0, n-1).Draw(g.T, "chance") == n-1
}

func (g pprofDraw) count(most int, label string) int { return rapid.IntRange(0, most).Draw(g.T, label) }

func (g pprofDraw) number(label string) int64 {
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, -1, 2, math.MinInt64, math.MaxInt64}),
		rapid.Int64(),
	).Draw(g.T, label)
}

func (g pprofDraw) notNegative(label string) int64 { return g.number(label) & math.MaxInt64 }

func (g pprofDraw) line(label string) int64 {
	if g.oneIn(4) {
		return g.notNegative(label)
	}
	return int64(g.count(3, label))
}

// ids returns n distinct ids, dense or not, in any order.
func (g pprofDraw) ids(n int) []uint64 {
	step := rapid.SampledFrom([]uint64{1, 1, 3, math.MaxUint64 / 16}).Draw(g.T, "id step")
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = uint64(i+1) * step
	}
	if n < 2 {
		return ids
	}
	return rapid.Permutation(ids).Draw(g.T, "ids")
}

func (g pprofDraw) sampleTypes() []*profile.ValueType {
	types := make([]*profile.ValueType, g.count(6, "sample types"))
	for i := range types {
		types[i] = g.valueType("sample type")
	}
	return types
}

func (g pprofDraw) valueType(label string) *profile.ValueType {
	return &profile.ValueType{
		Type: rapid.SampledFrom([]string{"cpu", "samples", "alloc_space", "", "a"}).Draw(g.T, label),
		Unit: rapid.SampledFrom([]string{"nanoseconds", "count", "bytes", "", "a"}).Draw(g.T, label+" unit"),
	}
}

func (g pprofDraw) defaultSampleType(types []*profile.ValueType) string {
	names := []string{"", "", "unknown"}
	for _, t := range types {
		names = append(names, t.Type)
	}
	return rapid.SampledFrom(names).Draw(g.T, "default sample type")
}

// fields draws the profile's own fields. If there is no period type, profile.Parse reads one without a name.
func (g pprofDraw) fields(p *profile.Profile) {
	p.PeriodType = &profile.ValueType{}
	if g.oneIn(2) {
		p.PeriodType = g.valueType("period type")
	}
	p.Period = g.number("period")
	p.TimeNanos = g.notNegative("time")
	p.DurationNanos = g.notNegative("duration")
	for range g.count(3, "comments") {
		p.Comments = append(p.Comments, g.text("comment"))
	}
	p.DropFrames = g.text("drop frames")
	p.KeepFrames = g.text("keep frames")
	p.DocURL = g.text("doc url")
}

func (g pprofDraw) samples(types int, locations []*profile.Location) []*profile.Sample {
	samples := make([]*profile.Sample, g.count(12, "samples"))
	for i := range samples {
		s := &profile.Sample{}
		if i > 0 && g.oneIn(4) {
			// The identity of an earlier sample, and sometimes its labels only.
			copied := samples[g.count(i-1, "sample to copy")]
			s.Label, s.NumLabel, s.NumUnit = copied.Label, copied.NumLabel, copied.NumUnit
			s.Location = copied.Location
		} else {
			g.labels(s)
		}
		if s.Location == nil && len(locations) > 0 {
			for range g.count(5, "stack depth") {
				s.Location = append(s.Location, locations[g.count(len(locations)-1, "frame")])
			}
		}
		for range types {
			s.Value = append(s.Value, g.value())
		}
		samples[i] = s
	}
	return samples
}

// value returns 0 half of the time: samples that are 0 for some types are common in heap profiles.
func (g pprofDraw) value() int64 {
	if g.oneIn(2) {
		return 0
	}
	return g.number("value")
}

func (g pprofDraw) labels(s *profile.Sample) {
	for range g.count(3, "labels") {
		name := rapid.SampledFrom([]string{"key", "k", "bytes", "", "ke", "timestamps_unix_nano"}).Draw(g.T, "key")
		kind := g.count(4, "kind of label")
		if kind != 0 {
			g.textLabel(s, name)
		}
		if kind == 0 || kind == 4 {
			g.numLabel(s, name)
		}
	}
	if g.oneIn(3) {
		g.linkLabels(s)
	}
}

// textLabel adds one to three texts. None is empty: profile.Write would leave out the label.
func (g pprofDraw) textLabel(s *profile.Sample, name string) {
	for range 1 + g.few() {
		if text := g.text("label"); text != "" {
			putText(s, name, text)
		}
	}
}

func putText(s *profile.Sample, name, text string) {
	if s.Label == nil {
		s.Label = make(map[string][]string)
	}
	s.Label[name] = append(s.Label[name], text)
}

// numLabel adds one to three numbers, with one unit or with several. A 0 always has a unit: otherwise profile.Write
// would leave out the label.
func (g pprofDraw) numLabel(s *profile.Sample, name string) {
	units := rapid.SampledFrom([]string{"", "bytes", "ns"})
	unit, oneUnit := units.Draw(g.T, "unit"), !g.oneIn(3)
	for range 1 + g.few() {
		if !oneUnit {
			unit = units.Draw(g.T, "unit")
		}
		if number := g.number("number"); number != 0 || unit != "" {
			putNumber(s, name, number, unit)
		}
	}
}

// putNumber adds a number. If no number of a key has a unit, there are no units, as in profile.Parse.
func putNumber(s *profile.Sample, name string, number int64, unit string) {
	if s.NumLabel == nil {
		s.NumLabel, s.NumUnit = make(map[string][]int64), make(map[string][]string)
	}
	s.NumLabel[name] = append(s.NumLabel[name], number)
	units := append(s.NumUnit[name], unit)
	if len(units) < len(s.NumLabel[name]) {
		units = slices.Insert(units, 0, make([]string, len(s.NumLabel[name])-len(units))...)
	}
	if slices.ContainsFunc(units, func(u string) bool { return u != "" }) {
		s.NumUnit[name] = units
	}
}

// few returns usually 0, otherwise 1 or 2.
func (g pprofDraw) few() int {
	if g.oneIn(3) {
		return 1 + g.count(1, "more values")
	}
	return 0
}

// The ids are valid, with more or less padding, or invalid: zero, too long, not hex.
var (
	traceIDs = []string{
		"0102030405060708090a0b0c0d0e0f10", "0102030405060708090A0B0C0D0E0F10", "102030405060708090a0b0c0d0e0f10",
		"00000000000102030405060708090a0b0c0d0e0f10", "f", "ffffffffffffffffffffffffffffffff",
		"0", "00000000000000000000000000000000", "1ffffffffffffffffffffffffffffffff", "not hex", "0x1", " 1",
	}
	spanIDs = []string{
		"0102030405060708", "ABCDEF0102030405", "1", "0000000000000000000000000000001", "ffffffffffffffff",
		"0", "0000000000000000", "1ffffffffffffffff", "not hex", "-1",
	}
)

func (g pprofDraw) linkLabels(s *profile.Sample) {
	half := g.count(6, "half of a link")
	if half != 1 {
		putText(s, scan.KeyTraceID, rapid.SampledFrom(traceIDs).Draw(g.T, "trace id"))
	}
	if half != 2 {
		putText(s, scan.KeySpanID, rapid.SampledFrom(spanIDs).Draw(g.T, "span id"))
	}
	switch half {
	case 3:
		putText(s, scan.KeyTraceID, "1")
	case 4:
		putNumber(s, scan.KeySpanID, 1, "")
	}
}

// About half the entries of each table are copies of an earlier one; most of these differ in one field.

func (g pprofDraw) functions() []*profile.Function {
	functions := make([]*profile.Function, g.count(6, "functions"))
	for i, id := range g.ids(len(functions)) {
		f := &profile.Function{}
		if i > 0 && g.oneIn(2) {
			*f = *functions[g.count(i-1, "function to copy")]
			g.changeFunction(f)
		} else {
			f.Name, f.SystemName, f.Filename = g.text("name"), g.text("system name"), g.text("file")
			f.StartLine = g.line("start line")
		}
		f.ID = id
		functions[i] = f
	}
	return functions
}

func (g pprofDraw) changeFunction(f *profile.Function) {
	switch g.count(5, "field to change") {
	case 1:
		f.Name = g.text("name")
	case 2:
		f.SystemName = g.text("system name")
	case 3:
		f.Filename = g.text("file")
	case 4:
		f.StartLine = g.line("start line")
	case 5:
		// Another function whose concatenated texts are the same.
		_, size := utf8.DecodeLastRuneInString(f.Name)
		border := len(f.Name) - size
		f.Name, f.SystemName = f.Name[:border], f.Name[border:]+f.SystemName
	}
}

func (g pprofDraw) mappings() []*profile.Mapping {
	mappings := make([]*profile.Mapping, g.count(5, "mappings"))
	for i, id := range g.ids(len(mappings)) {
		m := &profile.Mapping{}
		if i > 0 && g.oneIn(2) {
			*m = *mappings[g.count(i-1, "mapping to copy")]
			g.changeMapping(m)
		} else {
			for field := range 9 {
				g.setMapping(m, field)
			}
		}
		m.ID = id
		mappings[i] = m
	}
	return mappings
}

func (g pprofDraw) changeMapping(m *profile.Mapping) {
	if field := g.count(9, "field to change"); field > 0 {
		g.setMapping(m, field-1)
	}
}

// There are few addresses, so that a mapping often ends where it starts, or before.
func (g pprofDraw) address(label string) uint64 {
	return rapid.SampledFrom([]uint64{0, 0x1000, 0x2000, 0x2fff, 1 << 63, math.MaxUint64}).Draw(g.T, label)
}

func (g pprofDraw) setMapping(m *profile.Mapping, field int) {
	switch field {
	case 0:
		m.Start = g.address("start")
	case 1:
		m.Limit = g.address("limit")
	case 2:
		m.Offset = g.address("offset")
	case 3:
		m.File = rapid.SampledFrom([]string{"", "/bin/a", "/bin/b", "[kernel.kallsyms]_text", "a"}).Draw(g.T, "mapped file")
	case 4:
		m.BuildID = rapid.SampledFrom([]string{"", "abcd", "abce", "go/build/id", "/", "a"}).Draw(g.T, "build id")
	case 5:
		m.HasFunctions = g.oneIn(2)
	case 6:
		m.HasFilenames = g.oneIn(2)
	case 7:
		m.HasLineNumbers = g.oneIn(2)
	case 8:
		m.HasInlineFrames = g.oneIn(2)
	}
}

func (g pprofDraw) locations(functions []*profile.Function, mappings []*profile.Mapping) []*profile.Location {
	locations := make([]*profile.Location, g.count(8, "locations"))
	for i, id := range g.ids(len(locations)) {
		l := &profile.Location{}
		if i > 0 && g.oneIn(2) {
			copied := locations[g.count(i-1, "location to copy")]
			*l = *copied
			l.Line = append([]profile.Line(nil), copied.Line...)
			g.changeLocation(l, functions, mappings)
		} else {
			l.Address = g.address("address")
			l.Mapping = oneOrNil(g, mappings, "mapping")
			l.IsFolded = g.oneIn(3)
			for range g.count(4, "lines") {
				l.Line = g.addLine(l.Line, functions)
			}
		}
		l.ID = id
		locations[i] = l
	}
	return locations
}

func (g pprofDraw) changeLocation(l *profile.Location, functions []*profile.Function, mappings []*profile.Mapping) {
	switch change := g.count(7, "field to change"); {
	case change == 1:
		l.IsFolded = !l.IsFolded
	case change == 2:
		l.Address = g.address("address")
	case change == 3:
		l.Mapping = oneOrNil(g, mappings, "mapping")
	case change == 4:
		l.Line = g.addLine(l.Line, functions)
	case change > 4 && len(l.Line) > 0:
		line := &l.Line[g.count(len(l.Line)-1, "line to change")]
		switch change {
		case 5:
			line.Column = g.line("column")
		case 6:
			line.Line = g.line("line")
		case 7:
			line.Function = functions[g.count(len(functions)-1, "function")]
		}
	}
}

// addLine adds nothing if there are no functions: CheckValid refuses a line without one.
func (g pprofDraw) addLine(lines []profile.Line, functions []*profile.Function) []profile.Line {
	if len(functions) == 0 {
		return lines
	}
	return append(lines, profile.Line{
		Function: functions[g.count(len(functions)-1, "function")],
		Line:     g.line("line"),
		Column:   g.line("column"),
	})
}

// oneOrNil returns one of the entries, or sometimes nil.
func oneOrNil[T any](g pprofDraw, entries []*T, label string) *T {
	if len(entries) == 0 || g.oneIn(5) {
		return nil
	}
	return entries[g.count(len(entries)-1, label)]
}

// unitOf returns the unit of a number, or "" if it has none.
func unitOf(s *profile.Sample, name string, i int) string {
	if units := s.NumUnit[name]; i < len(units) {
		return units[i]
	}
	return ""
}
