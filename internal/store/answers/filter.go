// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// filter decides, for one block, which samples have the attributes of a selection. Callers that read samples
// through it must check the memory.
type filter struct {
	dict *dictionary.Dictionary
	// memory has taken bytes for what is known of the block.
	memory *model.Memory
	taken  int
	keys   []filterKey
	// sets has the results of sample.
	sets map[filterSet]bool
	// series has the results of seriesValue, values those of valueAt: very many series and samples can share a resource of
	// many attributes, or an attribute with a long list.
	series map[seriesAttributeKey]attributeValue
	values map[dictionary.AttributeIndex]string
	// strings has the results of lookupKey: very many samples are looked at, and few keys.
	strings map[string]stringOf
	// resources returns the sets of attributes of resources, summing is a part whose samples are not in the dictionary,
	// and onSamples has the results of samplesHave.
	resources func() map[dictionary.AttributeSetIndex]bool
	summing   model.Adder
	onSamples map[string]bool
	// groupKey is the key of GroupBy, if hasGroupKey reports that the block has it.
	groupKey    dictionary.StringIndex
	hasGroupKey bool
}

type filterKey struct {
	name   string
	key    dictionary.StringIndex
	known  bool
	values []string
	// isCut reports that one of the values may have been cut.
	isCut bool
}

// exact returns the values for another engine, or nil if it must not choose by them.
func (k *filterKey) exact() []string {
	if k.isCut {
		return nil
	}
	return k.values
}

// seriesAttributeKey is a key on series of a resource and attributes.
type seriesAttributeKey struct {
	resource, attributes dictionary.AttributeSetIndex
	key                  dictionary.StringIndex
}

// stringOf is a string of a dictionary, if has reports that it is there.
type stringOf struct {
	index dictionary.StringIndex
	has   bool
}

func (f *filter) grow(n int) {
	f.taken += n
	_ = f.memory.Grow(n) // loops check
}

func (f *filter) lookupKey(key string) (dictionary.StringIndex, bool) {
	found, ok := f.strings[key]
	if !ok {
		found.index, found.has = f.dict.Strings.Lookup(key)
		f.strings[key] = found
	}
	return found.index, found.has
}

// attributeValue is the value of an attribute as a string, if has reports that there is one.
type attributeValue struct {
	value string
	has   bool
}

type filterSet struct {
	set dictionary.AttributeSetIndex
	// required has bit i set if the sample must have key i.
	required uint64
}

const maxFilterKeys = 32

// maxValueBytes bounds the values of attributes that are compared and name groups: very many series and samples can
// share a long one.
const maxValueBytes = 1 << 10

// cutValue cuts a long value. A value that was cut stays as it is, so that the name of a group finds what is in it.
func cutValue(s string) string { return dictionary.Shorten(s, maxValueBytes) }

// filterKeys returns the keys of a selection's attributes, with their values.
func filterKeys(sel *model.Selection) (keys []filterKey, err error) {
	for _, a := range sel.Attributes {
		i := slices.IndexFunc(keys, func(k filterKey) bool { return k.name == a.Key })
		if i < 0 {
			i = len(keys)
			keys = append(keys, filterKey{name: a.Key})
		}
		keys[i].values = append(keys[i].values, cutValue(a.Value))
		keys[i].isCut = keys[i].isCut || len(a.Value) >= maxValueBytes
	}
	if len(keys) > maxFilterKeys {
		return nil, fmt.Errorf("a query may have %d attributes, found %d", maxFilterKeys, len(keys))
	}
	return keys, nil
}

// filterOf returns the filter of a selection for a part.
func (s *scan) filterOf(p *part) *filter {
	f := newFilter(p.Dict(), s.memory)
	f.keys = slices.Clone(s.keys)
	for i := range f.keys {
		f.keys[i].key, f.keys[i].known = f.dict.Strings.Lookup(f.keys[i].name)
	}
	if s.sel.GroupBy != "" {
		f.groupKey, f.hasGroupKey = f.dict.Strings.Lookup(s.sel.GroupBy)
	}
	f.resources = p.allResources
	f.summing, _ = p.Part.(model.Adder)
	return f
}

func newFilter(dict *dictionary.Dictionary, m *model.Memory) *filter {
	return &filter{
		dict: dict, memory: m, sets: map[filterSet]bool{}, series: map[seriesAttributeKey]attributeValue{},
		values:  map[dictionary.AttributeIndex]string{},
		strings: map[string]stringOf{}, onSamples: map[string]bool{},
	}
}

// samplesHave reports whether samples of a series can have an attribute of a key, with one of some values; nil means
// any. A sample's attribute counts beside that of its resource with the same key, but not beside that of its profile.
func (f *filter) samplesHave(sr *model.BlockSeries, name string, key dictionary.StringIndex, values []string) bool {
	if _, decides := f.value(sr.Attributes, key); decides {
		return false
	}
	has, ok := f.onSamples[name]
	switch {
	case ok:
	case f.summing != nil:
		has = f.summing.SamplesHave(f.dict.Strings.At(key), values)
		f.onSamples[name] = has
	case f.resources != nil:
		resources := f.resources()
		for i := range f.dict.AttributeSets.Len() {
			set := dictionary.AttributeSetIndex(i)
			if resources[set] {
				continue
			}
			if value, found := f.value(set, key); found && (values == nil || slices.Contains(values, value)) {
				has = true
				break
			}
		}
		f.onSamples[name] = has
	}
	return has
}

func (f *filter) value(set dictionary.AttributeSetIndex, key dictionary.StringIndex) (string, bool) {
	for _, i := range f.dict.AttributeSets.At(set) {
		if f.dict.Attributes.At(dictionary.AttributeIndex(i)).Key == key {
			return f.valueAt(dictionary.AttributeIndex(i)), true
		}
	}
	return "", false
}

func (f *filter) valueAt(i dictionary.AttributeIndex) string {
	attribute := f.dict.Attributes.At(i)
	if s, is := attribute.Value.Str(); is && len(s) <= maxValueBytes {
		return s
	}
	value, ok := f.values[i]
	if !ok {
		value = cutValue(attribute.Value.AsString())
		f.grow(cacheBytes + len(value))
		f.values[i] = value
	}
	return value
}

// seriesValue returns the value of a key on the profiles of a series, or else on its resource. A resource without
// service.name has that of the series.
func (f *filter) seriesValue(sr *model.BlockSeries, key dictionary.StringIndex) (string, bool) {
	at := seriesAttributeKey{sr.Resource, sr.Attributes, key}
	known, ok := f.series[at]
	if !ok {
		f.grow(cacheBytes)
		if known.value, known.has = f.value(sr.Attributes, key); !known.has {
			known.value, known.has = f.value(sr.Resource, key)
		}
		f.series[at] = known
	}
	if !known.has && f.dict.Strings.At(key) == "service.name" {
		return sr.Service, true
	}
	return known.value, known.has
}

// decision is what is known of the samples of a series before they are read.
type decision struct {
	// required are the keys that samples must have because their series does not have one of the values, as bits.
	// isOverridden reports that the series has another value of one.
	required     uint64
	isOverridden bool
	// group is the group of the samples, of all of them if isGroup is set, and otherwise of those without the attribute.
	group   string
	isGroup bool
}

// decide decides about the samples of a series, and reports whether one can have the attributes.
func (f *filter) decide(sr *model.BlockSeries) (d decision, canMatch bool) {
	for i, k := range f.keys {
		value, has := "", false
		if k.known {
			value, has = f.seriesValue(sr, k.key)
		}
		if has && slices.Contains(k.values, value) {
			continue
		}
		d.required |= 1 << i
		d.isOverridden = d.isOverridden || has
		// A state counts although no sample has the key: see rule.states.
		if !k.known && !sr.HasStates() || has && !f.samplesHave(sr, k.name, k.key, k.exact()) {
			return d, false
		}
	}
	return d, true
}

// sample reports whether a sample has the attributes that its series lacks.
func (f *filter) sample(set dictionary.AttributeSetIndex, required uint64) bool {
	if required == 0 {
		return true
	}
	key := filterSet{set: set, required: required}
	match, ok := f.sets[key]
	if !ok {
		f.grow(cacheBytes)
		match = true
		for i, k := range f.keys {
			if required&(1<<i) != 0 {
				value, has := f.value(set, k.key)
				match = match && k.known && has && slices.Contains(k.values, value)
			}
		}
		f.sets[key] = match
	}
	return match
}
