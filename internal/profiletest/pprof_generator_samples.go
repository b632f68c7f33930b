// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"slices"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"
)

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

// value is 0 half of the time: samples that lack some of their types' values are common in heap profiles.
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

// textLabel adds one to three texts. The empty text is none of them: profile.Write writes it as no label at all.
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

// numLabel adds one to three numbers, with one unit or with several. A 0 always has a unit: profile.Write writes it as
// no label at all otherwise.
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

// putNumber leaves the units of a key out where there is none, as profile.Parse does.
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

// few is 0 mostly, else 1 or 2.
func (g pprofDraw) few() int {
	if g.oneIn(3) {
		return 1 + g.count(1, "more values")
	}
	return 0
}

// The ids are good ones, more or less padded, and such that are no ids: zero, too long, not hex.
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
		putText(s, traceIDLabel, rapid.SampledFrom(traceIDs).Draw(g.T, "trace id"))
	}
	if half != 2 {
		putText(s, spanIDLabel, rapid.SampledFrom(spanIDs).Draw(g.T, "span id"))
	}
	switch half {
	case 3:
		putText(s, traceIDLabel, "1")
	case 4:
		putNumber(s, spanIDLabel, 1, "")
	}
}
