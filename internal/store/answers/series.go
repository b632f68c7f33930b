// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// list returns the series, and ends the query.
func (c *seriesCollector) list() ([]Series, error) {
	list := make([]Series, 0, len(c.found))
	for _, key := range slices.Sorted(maps.Keys(c.found)) {
		list = append(list, *c.found[key])
	}
	return list, c.memory.Keep(c.memory.InUse())
}

// block adds what a block has of the series of a service, whose labels are read when there is one to add.
func (c *seriesCollector) block(b model.Block, list []model.BlockSeries) error {
	var labels []map[string]string
	for i := range list {
		if !list[i].IsSelected(c.sel) {
			continue
		}
		if labels == nil {
			var err error
			if labels, err = b.Labels(list[i].Service); err != nil {
				return err
			}
		}
		if err := c.add(&list[i], labels[i]); err != nil {
			return err
		}
	}
	return nil
}

type seriesCollector struct {
	sel    *model.Selection
	memory *model.Memory
	// found has the series by their names and labels.
	found map[string]*Series
	key   []byte
}

// add adds what a block has of a series, if its labels are selected.
func (c *seriesCollector) add(sr *model.BlockSeries, labels map[string]string) error {
	if !matchLabels(labels, c.sel.Attributes) {
		return nil
	}
	in := Series{
		Service: sr.Service, Profile: sr.Profile, Type: sr.Type, PeriodType: sr.Period,
		Values: model.Shown(sr.Values), From: sr.From, Until: sr.Until, Samples: sr.Samples,
		HasAttributes: sr.Flags&model.HasAttributes != 0, HasLinks: sr.Flags&model.HasLinks != 0,
		ids: []model.SeriesID{sr.ID},
	}
	c.key = c.key[:0]
	for _, name := range []string{
		in.Service, in.Profile, in.Type.Type, in.Type.Unit, in.PeriodType.Type, in.PeriodType.Unit,
	} {
		c.key = dictionary.AppendString(c.key, name)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		c.key = dictionary.AppendString(dictionary.AppendString(c.key, key), labels[key])
		in.Labels = append(in.Labels, model.Attribute{Key: key, Value: labels[key]})
	}
	known := c.found[string(c.key)]
	if known == nil {
		c.found[string(c.key)] = &in
		return c.memory.Grow(catalogBytes + 2*len(c.key))
	}
	known.HasAttributes, known.HasLinks = known.HasAttributes || in.HasAttributes, known.HasLinks || in.HasLinks
	if !slices.Contains(known.ids, sr.ID) {
		known.ids = append(known.ids, sr.ID)
	}
	known.From, known.Until, known.Samples = min(known.From, in.From), max(known.Until, in.Until), known.Samples+in.Samples
	return nil
}

// matchLabels reports whether, of each key of the attributes, one value is that of the label.
func matchLabels(labels map[string]string, attributes []model.Attribute) bool {
	for _, a := range attributes {
		value, has := labels[a.Key]
		if !has || !slices.Contains(attributes, model.Attribute{Key: a.Key, Value: value}) {
			return false
		}
	}
	return true
}
