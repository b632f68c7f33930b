// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"
)

// PprofGeneratorOptions adds to what PprofGenerator generates: what OTLP cannot hold as it is.
type PprofGeneratorOptions struct {
	// NegativeTimes has times and durations below 0.
	NegativeTimes bool
	// NegativeLines has lines, columns and start lines below 0.
	NegativeLines bool
	// InvalidUTF8 has texts that are not UTF-8.
	InvalidUTF8 bool
}

// PprofGenerator generates profiles that pass CheckValid and come out of profile.Write and profile.Parse as they were.
// They are full of what a translator may mix up: entries that differ in one field alone or in none, names that
// concatenate alike, ids in any order, entries that nothing refers to, sample types that repeat, a default sample type
// that is none of them, samples without locations and with the identity of others, labels of several values, of text
// and numbers under one key, of numbers 0 with a unit, and trace_id and span_id labels in every state.
func PprofGenerator(opts PprofGeneratorOptions) *rapid.Generator[*profile.Profile] {
	return rapid.Custom(func(t *rapid.T) *profile.Profile {
		g := pprofDraw{T: t, opts: opts}
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
type pprofDraw struct {
	*rapid.T
	opts PprofGeneratorOptions
}

// fewTexts concatenate alike in several ways, so that a key without lengths or separators takes one for another.
var fewTexts = []string{"", "a", "b", "ab", "ba", "aab", "\x00", "a\x00", "0", "Größe 🙂"}

func (g pprofDraw) text(label string) string {
	s := rapid.OneOf(rapid.SampledFrom(fewTexts), rapid.SampledFrom(fewTexts), rapid.StringN(0, 8, -1)).Draw(g.T, label)
	if g.opts.InvalidUTF8 && g.oneIn(8) {
		s += "\xff\xc0x"
	}
	return s
}

// oneIn is true once in n, and false in the simplest case.
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

// notNegative is a number that is below 0 only where negative ones are wanted.
func (g pprofDraw) notNegative(negative bool, label string) int64 {
	v := g.number(label)
	if v < 0 && !negative {
		v = v & math.MaxInt64
	}
	return v
}

func (g pprofDraw) line(label string) int64 {
	if g.oneIn(4) {
		return g.notNegative(g.opts.NegativeLines, label)
	}
	return int64(g.count(3, label))
}

// ids are n distinct ids, dense or not, in any order.
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

// fields draws the profile's own fields. A period type without a name is what profile.Parse reads where there is none.
func (g pprofDraw) fields(p *profile.Profile) {
	p.PeriodType = &profile.ValueType{}
	if g.oneIn(2) {
		p.PeriodType = g.valueType("period type")
	}
	p.Period = g.number("period")
	p.TimeNanos = g.notNegative(g.opts.NegativeTimes, "time")
	p.DurationNanos = g.notNegative(g.opts.NegativeTimes, "duration")
	for range g.count(3, "comments") {
		p.Comments = append(p.Comments, g.text("comment"))
	}
	p.DropFrames = g.text("drop frames")
	p.KeepFrames = g.text("keep frames")
	p.DocURL = g.text("doc url")
}
