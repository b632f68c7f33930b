// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// ServiceInfo describes what the store has of a service.
type ServiceInfo struct {
	Service           string
	Profiles, Samples int
	From, Until       int64
}

// ProfileInfo describes what the store has of one sample type of a service's profile.
type ProfileInfo struct {
	Service, Profile string
	Type             SampleType
	Default          bool
	Values           kind.Values
	From, Until      int64
	Samples, Bytes   int
	// Timestamps reports that observations have times of their own.
	Timestamps bool
	// Moved is how many profiles are kept under their time of arrival, Instances the number of resources.
	Moved, Instances int
}

// Services lists all services by name.
func (s *Store) Services() []ServiceInfo {
	var list []ServiceInfo
	for _, p := range s.Profiles("") {
		n := len(list)
		if n == 0 || list[n-1].Service != p.Service {
			list = append(list, ServiceInfo{Service: p.Service, From: p.From, Until: p.Until})
			n++
		}
		in := &list[n-1]
		in.Profiles++
		in.Samples += p.Samples
		in.From, in.Until = min(in.From, p.From), max(in.Until, p.Until)
	}
	return list
}

// Profiles lists the profiles of a service, or of all if service is empty: by service and name, each pprof's sample
// types in their order.
func (s *Store) Profiles(service string) []ProfileInfo {
	type key struct {
		service, profile string
		t                SampleType
	}
	type instanceKey struct {
		key
		id seriesID
	}
	v := s.view(context.Background(), nil)
	defer v.release()
	found, seen := map[key]*ProfileInfo{}, map[instanceKey]bool{}
	for _, e := range v.epochs {
		strs := &e.dict.Strings
		for i := range e.series {
			sr := &e.series[i]
			if len(sr.chunks) == 0 || service != "" && strs.At(sr.service) != service {
				continue
			}
			k := key{strs.At(sr.service), strs.At(sr.profile), SampleType{strs.At(sr.typ), strs.At(sr.unit)}}
			p := found[k]
			if p == nil {
				p = &ProfileInfo{Service: k.service, Profile: k.profile, Type: k.t, From: sr.from, Until: sr.until}
				found[k] = p
			}
			p.Values = shownValues(sr.values)
			p.From, p.Until = min(p.From, sr.from), max(p.Until, sr.until)
			p.Samples += sr.samples
			p.Bytes += sr.bytes
			p.Timestamps = p.Timestamps || sr.timestamps
			p.Moved += sr.moved
			if ik := (instanceKey{k, sr.id}); !seen[ik] {
				seen[ik] = true
				p.Instances++
			}
		}
	}
	position := map[key]int{}
	for name, types := range v.allSampleTypes(func(name profileName) bool { return service == "" || name.service == service }) {
		first := defaultType(types)
		for i, t := range types {
			k := key{name.service, name.profile, t}
			position[k] = i
			found[k].Default = t == first
		}
	}
	list := make([]ProfileInfo, 0, len(found))
	for _, p := range found {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b ProfileInfo) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Profile, b.Profile),
			cmp.Compare(position[key{a.Service, a.Profile, a.Type}], position[key{b.Service, b.Profile, b.Type}]))
	})
	return list
}

// AttributeInfo is a key that samples of a selection can be filtered or grouped by.
type AttributeInfo struct {
	Key string
	// Sample reports that samples have it; otherwise their resources do.
	Sample bool
	Values []AttributeValue
	// More is how many values are not listed.
	More int
}

// AttributeValue is a value and how many samples have it.
type AttributeValue struct {
	Value   string
	Samples int
}

// Attributes lists the attributes of a selection's samples, each with the limit most frequent values.
func (s *Store) Attributes(ctx context.Context, sel Selection, limit int) ([]AttributeInfo, error) {
	v := s.view(ctx, sel.Meter)
	defer v.release()
	t, r, err := v.read(&sel)
	if err != nil {
		return nil, err
	}
	type key struct {
		key    string
		sample bool
	}
	counts := map[key]map[string]int{}
	// Samples are counted by set, sets by attribute, and only then by text: very many samples can share a set of many attributes,
	// and very many sets an attribute with a long list.
	type setOf struct {
		epoch  int
		sample bool
		set    dictionary.AttributeSetIndex
	}
	type attributeOf struct {
		epoch     int
		sample    bool
		attribute dictionary.AttributeIndex
	}
	sets, attributes := map[setOf]int{}, map[attributeOf]int{}
	terms, _, err := v.choose(&sel, t, r.filters, s.cfg.Resolution)
	if err != nil {
		return nil, err
	}
	count := func(of setOf, n int) {
		before := len(sets)
		if sets[of] += n; len(sets) > before {
			_ = v.memory.take(cacheBytes)
		}
	}
	for i := range terms {
		if err := v.memory.check(); err != nil {
			return nil, err
		}
		t := &terms[i]
		resource := setOf{t.epoch, false, t.series.resource}
		if t.chunk.flags&hasAttributes == 0 {
			count(resource, int(t.chunk.samples))
			continue
		}
		r.observations(t, func(_ int, row *rows) {
			count(resource, 1)
			count(setOf{t.epoch, true, dictionary.AttributeSetIndex(row.attribute)}, 1)
		})
	}
	for of, n := range sets {
		for _, i := range v.epochs[of.epoch].dict.AttributeSets.At(of.set) {
			before := len(attributes)
			if attributes[attributeOf{of.epoch, of.sample, dictionary.AttributeIndex(i)}] += n; len(attributes) > before {
				_ = v.memory.take(cacheBytes)
			}
		}
		if err := v.memory.take(0); err != nil {
			return nil, err
		}
	}
	for of, n := range attributes {
		dict := v.epochs[of.epoch].dict
		k := key{dict.Strings.At(dict.Attributes.At(of.attribute).Key), of.sample}
		if err := v.memory.take(2 * cacheBytes); err != nil { // its text among the counts, and in the list
			return nil, err
		}
		if counts[k] == nil {
			counts[k] = map[string]int{}
		}
		counts[k][r.filters[of.epoch].text(of.attribute)] += n
	}
	list := make([]AttributeInfo, 0, len(counts))
	for k, values := range counts {
		list = append(list, attributeInfo(k.key, k.sample, values, limit))
	}
	// Those of resources come first.
	slices.SortFunc(list, func(a, b AttributeInfo) int {
		if a.Sample == b.Sample {
			return strings.Compare(a.Key, b.Key)
		}
		if b.Sample {
			return -1
		}
		return 1
	})
	return list, v.memory.keep(cacheBytes * len(attributes))
}

func attributeInfo(key string, sample bool, values map[string]int, limit int) AttributeInfo {
	info := AttributeInfo{Key: key, Sample: sample, Values: make([]AttributeValue, 0, len(values))}
	for value, n := range values {
		info.Values = append(info.Values, AttributeValue{value, n})
	}
	slices.SortFunc(info.Values, func(a, b AttributeValue) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), strings.Compare(a.Value, b.Value))
	})
	if len(info.Values) > limit {
		info.More = len(info.Values) - limit
		info.Values = info.Values[:limit]
	}
	return info
}
