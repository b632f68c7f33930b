// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// pprofIdentity identifies equal samples of a pprof profile.
type pprofIdentity struct{ stack, labels resolved.ID }

// pprofResolver assigns ids in a space to what samples refer to. locations has those of known locations.
type pprofResolver struct {
	space          *resolved.Space
	canonicalLinks bool
	locations      map[*profile.Location]resolved.ID
}

func (r *pprofResolver) identity(s *profile.Sample) pprofIdentity {
	stack := resolved.NewKey(resolved.KindStack).Num(uint64(len(s.Location)))
	for _, l := range s.Location {
		stack = stack.ID(r.location(l))
	}
	return pprofIdentity{stack: r.space.Intern(stack), labels: r.labels(s)}
}

func (r *pprofResolver) location(l *profile.Location) resolved.ID {
	if known, ok := r.locations[l]; ok {
		return known
	}
	k := resolved.NewKey(resolved.KindPprofLocation).Bool(l != nil)
	if l != nil {
		k = appendMapping(k.Num(l.Address).Bool(l.IsFolded), l.Mapping).Num(uint64(len(l.Line)))
		for _, line := range l.Line {
			k = appendFunction(k, line.Function).Int(line.Line).Int(line.Column)
		}
	}
	v := r.space.Intern(k)
	r.locations[l] = v
	return v
}

func appendMapping(k resolved.Key, m *profile.Mapping) resolved.Key {
	if m == nil {
		m = &profile.Mapping{}
	}
	return k.Num(m.Start).Num(m.Limit).Num(m.Offset).Str(m.File).Str(m.BuildID).
		Bool(m.HasFunctions).Bool(m.HasFilenames).Bool(m.HasLineNumbers).Bool(m.HasInlineFrames)
}

func appendFunction(k resolved.Key, f *profile.Function) resolved.Key {
	if f == nil {
		f = &profile.Function{}
	}
	return k.Str(f.Name).Str(f.SystemName).Str(f.Filename).Int(f.StartLine)
}

// labels covers the strings and then the numbers: profile.Profile does not keep their order under one key. Keys
// without values are ignored.
func (r *pprofResolver) labels(s *profile.Sample) resolved.ID {
	link, isLink := pprofLink{}, false
	if r.canonicalLinks {
		link, isLink = linkOf(s)
	}
	k := resolved.NewKey(resolved.KindPprofLabels)
	for _, name := range slices.Sorted(maps.Keys(s.Label)) {
		values := s.Label[name]
		switch {
		case isLink && name == traceIDLabel:
			values = []string{link.traceID}
		case isLink && name == spanIDLabel:
			values = []string{link.spanID}
		}
		if len(values) == 0 {
			continue
		}
		k = k.Bool(true).Str(name).Num(uint64(len(values)))
		for _, v := range values {
			k = k.Str(v)
		}
	}
	k = k.Bool(false)
	for _, name := range slices.Sorted(maps.Keys(s.NumLabel)) {
		values := s.NumLabel[name]
		if len(values) == 0 {
			continue
		}
		k = k.Str(name).Num(uint64(len(values)))
		for i, v := range values {
			k = k.Int(v).Str(unitOf(s, name, i))
		}
	}
	return r.space.Intern(k)
}

func unitOf(s *profile.Sample, name string, i int) string {
	if units := s.NumUnit[name]; i < len(units) {
		return units[i]
	}
	return ""
}

const (
	traceIDLabel = "trace_id"
	spanIDLabel  = "span_id"
)

// pprofLink is a sample's link as hex digits in lower case and full width.
type pprofLink struct{ traceID, spanID string }

// linkOf returns the link of a sample's labels, if they have one.
func linkOf(s *profile.Sample) (pprofLink, bool) {
	if len(s.Label[traceIDLabel]) != 1 || len(s.Label[spanIDLabel]) != 1 ||
		len(s.NumLabel[traceIDLabel]) != 0 || len(s.NumLabel[spanIDLabel]) != 0 {
		return pprofLink{}, false
	}
	traceID, traceOK := hexID(s.Label[traceIDLabel][0], 32)
	spanID, spanOK := hexID(s.Label[spanIDLabel][0], 16)
	return pprofLink{traceID, spanID}, traceOK && spanOK
}

// hexID returns the id in a string, with the given number of digits. It returns false for zero, for a string that is not
// hexadecimal, and for more digits after leading zeros.
func hexID(s string, digits int) (string, bool) {
	significant := strings.ToLower(strings.TrimLeft(s, "0"))
	if significant == "" || len(significant) > digits || strings.Trim(significant, "0123456789abcdef") != "" {
		return "", false
	}
	return strings.Repeat("0", digits-len(significant)) + significant, true
}
