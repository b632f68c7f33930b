// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file is about attributes that both samples and their resources have (filter.samplesHave): the samples of an
// engine are not in a block's dictionary.

// findOnSamples asks which attributes of a selection samples have, where a resource has them, too. Elsewhere the series
// decides, or each sample does, and nobody needs to know.
func (s *EngineSource) findOnSamples(ctx context.Context, e *engineBlock, v *view, sel *model.Selection,
	wanted func(*EngineType) bool,
) error {
	keys, err := filterKeys(sel)
	if err != nil {
		return err
	}
	for i := range keys {
		v.onSamples[keys[i].name] = false
	}
	if sel.GroupBy != "" {
		v.onSamples[groupOnSamples] = false
		keys = append(keys, filterKey{name: sel.GroupBy})
	}
	from, until := e.timesWithAttributes()
	types := slices.DeleteFunc(slices.Clone(e.types), func(t EngineType) bool {
		return t.Service != sel.Service || !wanted(&t)
	})
	if from > until || len(types) == 0 {
		return nil
	}
	f := newFilter(e.dict, v.memory)
	for _, k := range keys {
		k.key = e.dict.Strings.Intern(k.name)
		if !slices.ContainsFunc(e.series, func(sr series) bool { return f.resourceHides(&sr.BlockSeries, &k) }) {
			continue
		}
		has, err := s.engine.HasAttribute(ctx, types, from, until+1, k.name, k.values)
		if err != nil {
			return err
		}
		if k.values == nil {
			k.name = groupOnSamples
		}
		v.onSamples[k.name] = has
	}
	return v.memory.Check()
}

// timesWithAttributes returns the times of the first and of the last profile whose samples have attributes.
func (e *engineBlock) timesWithAttributes() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for i := range e.series {
		for k := range e.series[i].chunks {
			if c := &e.series[i].chunks[k]; c.Flags&model.HasAttributes != 0 {
				first, last = min(first, c.Time), max(last, c.Time)
			}
		}
	}
	return first, last
}

// resourceHides reports whether the resource of a series has a key, and not one of its values; the profiles do not have
// it.
func (f *filter) resourceHides(sr *model.BlockSeries, k *filterKey) bool {
	if _, decides := f.value(sr.Attributes, k.key); decides {
		return false
	}
	value, ok := f.seriesValue(sr, k.key)
	return ok && !slices.Contains(k.values, value)
}

// otherGroup returns what a query has as the group of a series that does not decide it alone.
func (r *engineReader) otherGroup(sr *model.BlockSeries) int {
	name := r.filter.seriesGroup(sr)
	i := slices.Index(r.others, name)
	if i < 0 {
		i = len(r.others)
		r.others = append(r.others, name)
	}
	return OwnGroup - 1 - i
}

// groupOf returns the number of the group of a row.
func (r *engineReader) groupOf(row *EngineRow) int {
	switch other := OwnGroup - 1 - int(row.Group); {
	case row.Group >= 0:
		return int(row.Group)
	case row.Group == OwnGroup:
		return r.groups.number(row.GroupName)
	case other < len(r.others):
		return r.groups.number(r.others[other])
	}
	return r.groups.number(NoGroup)
}
