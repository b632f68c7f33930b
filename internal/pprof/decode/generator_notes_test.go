// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

func noteProfile(p *profile.Profile, note func(string, bool)) {
	types := p.SampleType
	note("no sample types", len(types) == 0)
	note("six sample types", len(types) == 6)
	named := slices.IndexFunc(types, func(t *profile.ValueType) bool { return t.Type == p.DefaultSampleType })
	note("default of no sample type", p.DefaultSampleType != "" && named < 0)
	note("default first", p.DefaultSampleType != "" && named == 0 && len(types) > 1)
	note("default in the middle", p.DefaultSampleType != "" && named > 0 && named < len(types)-1)
	for i, t := range types {
		note("repeated sample type", slices.ContainsFunc(types[:i], func(o *profile.ValueType) bool { return *o == *t }))
	}
	note("comments", len(p.Comments) > 1)
	note("empty comment", slices.Contains(p.Comments, ""))
	identities := map[string]bool{}
	for _, s := range p.Sample {
		identity := fmt.Sprint(s.Location, s.Label, s.NumLabel, s.NumUnit)
		note("identity twice", identities[identity])
		identities[identity] = true
	}
}

func noteSample(s *profile.Sample, note func(string, bool)) {
	note("sample without locations", len(s.Location) == 0)
	note("all-zero sample", !slices.ContainsFunc(s.Value, func(v int64) bool { return v != 0 }))
	for name, texts := range s.Label {
		note("several texts", len(texts) > 1)
		note("text and number", len(s.NumLabel[name]) > 0)
	}
	for name, numbers := range s.NumLabel {
		note("several numbers", len(numbers) > 1)
		for i, n := range numbers {
			note("zero with unit", n == 0 && unitOf(s, name, i) != "")
			note("differing units", unitOf(s, name, i) != unitOf(s, name, 0))
			note("lowest number", n == math.MinInt64)
			note("highest number", n == math.MaxInt64)
		}
	}
	traceIDs, spanIDs := s.Label[scan.KeyTraceID], s.Label[scan.KeySpanID]
	var link dictionary.Link
	isLink := len(traceIDs) == 1 && len(spanIDs) == 1 &&
		len(s.NumLabel[scan.KeyTraceID])+len(s.NumLabel[scan.KeySpanID]) == 0
	if isLink {
		link, isLink = dictionary.ParseLink(traceIDs[0], spanIDs[0])
	}
	note("link", isLink)
	note("padded link", isLink && traceIDs[0] != link.TraceID.String())
	note("half a link", len(traceIDs)+len(spanIDs) == 1)
	note("zero link", len(traceIDs) == 1 && len(spanIDs) == 1 && strings.Trim(traceIDs[0], "0") == "")
}

func noteTables(p *profile.Profile, note func(string, bool)) {
	for i, f := range p.Function {
		for _, o := range p.Function[:i] {
			note("functions that concatenate alike", f.Name != o.Name &&
				f.Name+f.SystemName+f.Filename == o.Name+o.SystemName+o.Filename)
		}
	}
	for i, m := range p.Mapping {
		note("mapping that starts at or past its end", m.Start >= m.Limit && m.Start != 0)
		note("go build id", strings.Contains(m.BuildID, "/"))
		for _, o := range p.Mapping[:i] {
			same := *o
			same.ID, same.BuildID = m.ID, m.BuildID
			note("mappings that differ in build id", same == *m && o.BuildID != m.BuildID)
		}
	}
	for i, l := range p.Location {
		note("sparse ids", l.ID > uint64(len(p.Location)))
		note("location without mapping", l.Mapping == nil)
		note("folded", l.IsFolded)
		note("inlined lines", len(l.Line) > 1)
		note("inlined lines in falling order", len(l.Line) > 1 && l.Line[0].Line > l.Line[1].Line)
		for _, line := range l.Line {
			note("line of an empty function", *line.Function == profile.Function{ID: line.Function.ID})
		}
		for _, o := range p.Location[:i] {
			same := l.Mapping == o.Mapping && l.Address == o.Address && slices.Equal(l.Line, o.Line)
			note("locations that differ in folded", same && l.IsFolded != o.IsFolded)
			note("equal locations", same && l.IsFolded == o.IsFolded)
		}
	}
}
