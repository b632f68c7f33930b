// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Series lists the series of a selection with their labels, which its attributes must match. Of blocks on disk, only that is read.
func (s *Store) Series(ctx context.Context, sel Selection) ([]Series, error) {
	memory := newMemory(ctx, sel.Meter)
	v := s.view(memory)
	defer v.release()
	c := &seriesCollector{sel: &sel, memory: memory, found: map[string]*Series{}}
	isInTime := func(d *diskBlock) bool { return d.Until >= sel.From && (sel.Until == 0 || d.From < sel.Until) }
	err := v.eachListed(sel.Service, isInTime, func(sr *listed, labels func() (map[string]string, error)) error {
		if !sr.isSelected(&sel) {
			return nil
		}
		of, err := labels()
		if err != nil {
			return err
		}
		return c.add(sr, of)
	})
	if err != nil {
		return nil, err
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

// isSelected reports whether the names and the time of a series are selected. Labels cost more, and come after.
func (sr *listed) isSelected(sel *Selection) bool {
	return (sel.Profile == "" || sr.profile == sel.Profile) && sr.typ.is(sel.Type) && sr.until >= sel.From && (sel.Until == 0 || sr.from < sel.Until)
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
func (c *seriesCollector) add(sr *listed, labels map[string]string) error {
	if !matchLabels(labels, c.sel.Attributes) {
		return nil
	}
	in := Series{
		Service: sr.service, Profile: sr.profile, Type: sr.typ, PeriodType: sr.period,
		Values: shownValues(sr.values), From: sr.from, Until: sr.until, Samples: sr.samples,
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
