// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// pprofIdentity is what makes two samples of a pprof profile the same.
type pprofIdentity struct{ stack, labels id }

// pprofResolver gives what samples refer to its id in a space; locations keeps those of locations seen before.
type pprofResolver struct {
	space          *space
	canonicalLinks bool
	locations      map[*profile.Location]id
}

func (r *pprofResolver) identity(s *profile.Sample) pprofIdentity {
	stack := newKey(kindStack).num(uint64(len(s.Location)))
	for _, l := range s.Location {
		stack = stack.id(r.location(l))
	}
	return pprofIdentity{stack: r.space.intern(stack), labels: r.labels(s)}
}

func (r *pprofResolver) location(l *profile.Location) id {
	if known, ok := r.locations[l]; ok {
		return known
	}
	k := newKey(kindPprofLocation).bool(l != nil)
	if l != nil {
		k = k.num(l.Address).bool(l.IsFolded).pprofMapping(l.Mapping).num(uint64(len(l.Line)))
		for _, line := range l.Line {
			k = k.pprofFunction(line.Function).int(line.Line).int(line.Column)
		}
	}
	v := r.space.intern(k)
	r.locations[l] = v
	return v
}

func (k key) pprofMapping(m *profile.Mapping) key {
	if m == nil {
		m = &profile.Mapping{}
	}
	return k.num(m.Start).num(m.Limit).num(m.Offset).str(m.File).str(m.BuildID).
		bool(m.HasFunctions).bool(m.HasFilenames).bool(m.HasLineNumbers).bool(m.HasInlineFrames)
}

func (k key) pprofFunction(f *profile.Function) key {
	if f == nil {
		f = &profile.Function{}
	}
	return k.str(f.Name).str(f.SystemName).str(f.Filename).int(f.StartLine)
}

// labels covers the texts and then the numbers: profile.Profile does not say how they were mixed under one key. A key
// without values is none.
func (r *pprofResolver) labels(s *profile.Sample) id {
	link, isLink := pprofLink{}, false
	if r.canonicalLinks {
		link, isLink = linkOf(s)
	}
	k := newKey(kindPprofLabels)
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
		k = k.bool(true).str(name).num(uint64(len(values)))
		for _, v := range values {
			k = k.str(v)
		}
	}
	k = k.bool(false)
	for _, name := range slices.Sorted(maps.Keys(s.NumLabel)) {
		values := s.NumLabel[name]
		if len(values) == 0 {
			continue
		}
		k = k.str(name).num(uint64(len(values)))
		for i, v := range values {
			k = k.int(v).str(unitOf(s, name, i))
		}
	}
	return r.space.intern(k)
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

// linkOf is the link that a sample's labels write, if they write one.
func linkOf(s *profile.Sample) (pprofLink, bool) {
	if len(s.Label[traceIDLabel]) != 1 || len(s.Label[spanIDLabel]) != 1 ||
		len(s.NumLabel[traceIDLabel]) != 0 || len(s.NumLabel[spanIDLabel]) != 0 {
		return pprofLink{}, false
	}
	traceID, traceOK := hexID(s.Label[traceIDLabel][0], 32)
	spanID, spanOK := hexID(s.Label[spanIDLabel][0], 16)
	return pprofLink{traceID, spanID}, traceOK && spanOK
}

// hexID is the id that text writes, in the given number of digits; there is none in zero, in what is not hex, or in
// what has more digits than that after its leading zeros.
func hexID(text string, digits int) (string, bool) {
	significant := strings.ToLower(strings.TrimLeft(text, "0"))
	if significant == "" || len(significant) > digits || strings.Trim(significant, "0123456789abcdef") != "" {
		return "", false
	}
	return strings.Repeat("0", digits-len(significant)) + significant, true
}
