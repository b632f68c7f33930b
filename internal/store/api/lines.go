// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// lineCost is what passes through a line of a function, and what ends in it.
type lineCost struct {
	File        string
	Line        int64
	Self, Total int64
}

type functionLine struct {
	file int32
	line int64
}

// The default and the bound of the lines that are listed.
const defaultLines, maxLines = 50, 1000

// lines answers with the lines of a function, the hottest first, and where its source is: the repository and revision
// that all selected profiles have in common.
func (s *server) lines(r *request) (*answer, error) {
	sel := r.selected()
	name, file := shorten(r.params.Get("function")), shorten(r.params.Get("file"))
	limit := r.params.Int("limit", defaultLines, 1, maxLines)
	if name == "" {
		r.params.Fail(query.BadRequest("`function` must be given", "GET /api/table lists functions"))
	}
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	types, err := s.Store.Catalog(r.Context(), sel.Service, r.meter)
	if err != nil {
		return nil, err
	}
	for i := range types { // one type: the default one, as in a flame graph
		if in := &types[i]; sel.Type == "" && in.Service == sel.Service && in.Profile == sel.Profile && in.Default {
			sel.Type = in.Type.String()
		}
	}
	merged, err := s.Store.Merge(r.Context(), sel)
	if err != nil {
		return nil, err
	}
	list := linesOf(merged.Profiles, name, file)
	series, err := s.Store.Series(r.Context(), sel)
	if err != nil {
		return nil, err
	}
	if len(series) == 0 { // a filter can be one of samples
		sel.Attributes = nil
		if series, err = s.Store.Series(r.Context(), sel); err != nil {
			return nil, err
		}
	}
	repository, revision := common(series, "vcs.repository.url.full"), common(series, "vcs.ref.head.revision")
	a := r.json()
	a.format(`{"function":%s,"type":%s,`, quote(name), quote(sel.Type))
	a.format(`"repository":%s,"revision":%s,"more":%d,"lines":`, quote(repository), quote(revision),
		max(0, len(list)-limit))
	a.list(min(limit, len(list)), func(i int) {
		in := &list[i]
		a.format(`{"file":%s,"line":%d,"self":%d,"total":%d}`, quote(in.File), in.Line, in.Self, in.Total)
	})
	a.raw("}")
	return a, a.err
}

// common returns the value of an attribute that all series have, or an empty string.
func common(series []answers.Series, key string) (value string) {
	for i := range series {
		found, ok := series[i].Label(key)
		if !ok || i > 0 && found != value {
			return ""
		}
		value = found
	}
	return value
}

// linesOf adds up the samples of the lines of a function.
func linesOf(pd pprofile.Profiles, name, file string) []lineCost {
	c := &lineCounter{dict: pd.Dictionary(), wanted: functionsNamed(pd.Dictionary(), name, file),
		costs: map[functionLine]*lineCost{}, seen: map[*lineCost]bool{}}
	for p := range otlp.Profiles(pd) {
		for _, sample := range p.Samples().All() {
			c.add(sample)
		}
	}
	list := make([]lineCost, 0, len(c.costs))
	for _, cost := range c.costs {
		list = append(list, *cost)
	}
	slices.SortFunc(list, func(a, b lineCost) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line))
	})
	return list
}

type lineCounter struct {
	dict   pprofile.ProfilesDictionary
	wanted map[int32]bool
	costs  map[functionLine]*lineCost
	// seen are the lines of the current sample, which counts once for each.
	seen map[*lineCost]bool
}

func (c *lineCounter) add(sample pprofile.Sample) {
	clear(c.seen)
	value, isLeaf := otlp.Sum(sample), true
	for _, index := range c.dict.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
		for _, l := range c.dict.LocationTable().At(int(index)).Lines().All() {
			if c.wanted[l.FunctionIndex()] {
				c.count(l, value, isLeaf)
			}
			isLeaf = false
		}
		isLeaf = false
	}
}

func (c *lineCounter) count(l pprofile.Line, value int64, isLeaf bool) {
	at := functionLine{c.dict.FunctionTable().At(int(l.FunctionIndex())).FilenameStrindex(), l.Line()}
	cost := c.costs[at]
	if cost == nil {
		cost = &lineCost{File: c.dict.StringTable().At(int(at.file)), Line: at.line}
		c.costs[at] = cost
	}
	if isLeaf {
		cost.Self = otlp.SaturatingAdd(cost.Self, value)
	}
	if !c.seen[cost] {
		c.seen[cost] = true
		cost.Total = otlp.SaturatingAdd(cost.Total, value)
	}
}

// functionsNamed returns the functions with a name, and with a file unless it is empty, as frames in JSON have them.
func functionsNamed(dict pprofile.ProfilesDictionary, name, file string) map[int32]bool {
	found := map[int32]bool{}
	for i, f := range dict.FunctionTable().All() {
		if shorten(dict.StringTable().At(int(f.NameStrindex()))) == name &&
			(file == "" || shorten(dict.StringTable().At(int(f.FilenameStrindex()))) == file) {
			found[int32(i)] = true
		}
	}
	return found
}
