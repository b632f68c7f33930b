// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// Series lists the series of a selection with their labels, which its attributes must match. Of blocks on disk, only that is read.
func (s *Store) Series(ctx context.Context, sel Selection) ([]Series, error) {
	memory := newMemory(ctx, sel.Meter)
	v := s.view(memory)
	defer v.release()
	c := &seriesCollector{sel: &sel, memory: memory, found: map[string]*Series{}}
	for _, d := range v.disk {
		if d.Until < sel.From || sel.Until != 0 && d.From >= sel.Until {
			continue
		}
		list := d.catalog.selected(&sel)
		if len(list) == 0 {
			continue
		}
		// Those of a service are beside each other.
		first, last := list[0], list[len(list)-1]
		labels, err := d.Labels(first, last+1)
		if errors.Is(err, blockfile.ErrDamaged) {
			s.drop(d, err)
			continue
		}
		if err != nil {
			return nil, d.fault(err)
		}
		for _, i := range list {
			if err := c.add(d.catalog, &d.catalog.series[i], labels[i-first]); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range v.blocks {
		for _, i := range e.selected(&sel) {
			if sr := &e.series[i]; sr.profiles > 0 {
				if err := c.add(e, sr, e.labels(sr)); err != nil {
					return nil, err
				}
			}
		}
	}
	return c.list()
}

// list returns the series, and ends the query.
func (c *seriesCollector) list() ([]Series, error) {
	list := make([]Series, 0, len(c.found))
	for _, key := range slices.Sorted(maps.Keys(c.found)) {
		list = append(list, *c.found[key])
	}
	return list, c.memory.keep(c.memory.used)
}

// selected returns the series whose names and time are selected. Labels cost more, and come after.
func (e *block) selected(sel *Selection) (list []int) {
	strs := &e.dict.Strings
	for i := range e.series {
		sr := &e.series[i]
		t := SampleType{strs.At(sr.typ), strs.At(sr.unit)}
		if (sel.Service == "" || strs.At(sr.service) == sel.Service) && (sel.Profile == "" || strs.At(sr.profile) == sel.Profile) &&
			t.is(sel.Type) &&
			sr.until >= sel.From && (sel.Until == 0 || sr.from < sel.Until) {
			list = append(list, i)
		}
	}
	return list
}

// labels returns the attributes of a series' resource and profiles as strings. Of one key, that of the profiles counts.
func (e *block) labels(sr *series) map[string]string {
	labels := map[string]string{}
	for _, set := range []dictionary.AttributeSetIndex{sr.resource, sr.attributes} {
		for _, i := range e.dict.AttributeSets.At(set) {
			a := e.dict.Attributes.At(dictionary.AttributeIndex(i))
			labels[e.dict.Strings.At(a.Key)] = a.Value.AsString()
		}
	}
	return labels
}

type seriesCollector struct {
	sel    *Selection
	memory *Memory
	// found has the series by their names and labels.
	found map[string]*Series
	key   []byte
}

// add adds what a block has of a series, if its labels are selected.
func (c *seriesCollector) add(e *block, sr *series, labels map[string]string) error {
	if !matchLabels(labels, c.sel.Attributes) {
		return nil
	}
	strs := &e.dict.Strings
	in := Series{
		Service: strs.At(sr.service), Profile: strs.At(sr.profile), Type: SampleType{strs.At(sr.typ), strs.At(sr.unit)},
		PeriodType: SampleType{strs.At(sr.periodType), strs.At(sr.periodUnit)},
		Values:     shownValues(sr.values), From: sr.from, Until: sr.until, Samples: sr.samples,
		HasAttributes: sr.flags&hasAttributes != 0, HasLinks: sr.flags&hasLinks != 0, ids: []seriesID{sr.id},
	}
	c.key = c.key[:0]
	for _, name := range []string{
		in.Service, in.Profile, in.Type.Type, in.Type.Unit, in.PeriodType.Type, in.PeriodType.Unit,
	} {
		c.key = dictionary.AppendString(c.key, name)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		c.key = dictionary.AppendString(dictionary.AppendString(c.key, key), labels[key])
		in.Labels = append(in.Labels, Attribute{key, labels[key]})
	}
	known := c.found[string(c.key)]
	if known == nil {
		c.found[string(c.key)] = &in
		return c.memory.Take(catalogBytes + 2*len(c.key))
	}
	known.HasAttributes, known.HasLinks = known.HasAttributes || in.HasAttributes, known.HasLinks || in.HasLinks
	if !slices.Contains(known.ids, sr.id) {
		known.ids = append(known.ids, sr.id)
	}
	known.From, known.Until, known.Samples = min(known.From, in.From), max(known.Until, in.Until), known.Samples+in.Samples
	return nil
}

// matchLabels reports whether, of each key of the attributes, one value is that of the label.
func matchLabels(labels map[string]string, attributes []Attribute) bool {
	for _, a := range attributes {
		value, has := labels[a.Key]
		if !has || !slices.Contains(attributes, Attribute{a.Key, value}) {
			return false
		}
	}
	return true
}
