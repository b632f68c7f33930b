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
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
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
	// Timestamps reports that observations have times of their own, which can be shown: those of profiles that are kept under another time
	// cannot.
	Timestamps bool
	// Moved is how many profiles are kept under their time of arrival, Instances the number of resources.
	Moved, Instances int
}

// servicesOf lists the services of profiles, which are in their order.
func servicesOf(profiles []ProfileInfo) (list []ServiceInfo) {
	profile := ""
	for _, p := range profiles {
		n := len(list)
		if n == 0 || list[n-1].Service != p.Service {
			list = append(list, ServiceInfo{Service: p.Service, From: p.From, Until: p.Until})
			n, profile = n+1, ""
		}
		in := &list[n-1]
		if in.Profiles == 0 || p.Profile != profile { // the list has each of its types
			in.Profiles, profile = in.Profiles+1, p.Profile
		}
		in.Samples += p.Samples
		in.From, in.Until = min(in.From, p.From), max(in.Until, p.Until)
	}
	return list
}

// Catalog lists the profiles of a service, or of all if service is empty: by service and name, each pprof's sample
// types in their order.
func (s *Store) Catalog(ctx context.Context, service string, meter *size.Meter) ([]ProfileInfo, error) {
	memory := newMemory(ctx, meter)
	if err := memory.Take(catalogBytes * s.Stats().Series); err != nil {
		return nil, err
	}
	type key struct {
		service, profile string
		t                SampleType
	}
	type instanceKey struct {
		key
		instance uint64
	}
	v := s.view(memory)
	defer v.release()
	found, seen := map[key]*ProfileInfo{}, map[instanceKey]bool{}
	for _, e := range v.catalog() {
		strs := &e.dict.Strings
		for i := range e.series {
			sr := &e.series[i]
			if sr.profiles == 0 || service != "" && strs.At(sr.service) != service {
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
			if ik := (instanceKey{k, sr.instance}); !seen[ik] {
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
	return list, memory.Check()
}

// catalogBytes is what a list of profiles takes for each series.
const catalogBytes = 1 << 10

// Scope is what has an attribute. Its String is used in JSON.
type Scope int

// The scopes.
const (
	ResourceScope Scope = iota
	ProfileScope
	SampleScope
)

func (s Scope) String() string { return [...]string{"resource", "profile", "sample"}[s] }

// AttributeInfo is a key that samples of a selection can be filtered or grouped by.
type AttributeInfo struct {
	Key    string
	Scope  Scope
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
func (s *Querier) Attributes(ctx context.Context, sel Selection, limit int) ([]AttributeInfo, error) {
	sel.GroupBy = ""
	q := s.query(ctx, sel, Want{Series: true, Attributes: true})
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	type key struct {
		key   string
		scope Scope
	}
	counts := map[key]map[string]int{}
	// Samples are counted by set, sets by attribute, and only then by value: very many samples can share a set of many attributes,
	// and very many sets an attribute with a long list.
	type setOf struct {
		dict  *dictionary.Dictionary
		scope Scope
		set   dictionary.AttributeSetIndex
	}
	type attributeOf struct {
		dict      *dictionary.Dictionary
		scope     Scope
		attribute dictionary.AttributeIndex
	}
	sets, attributes := map[setOf]int{}, map[attributeOf]int{}
	count := func(of setOf, n int) {
		before := len(sets)
		if sets[of] += n; len(sets) > before {
			_ = q.Memory.Take(cacheBytes)
		}
	}
	err = selected.Read(func(samples *Samples) error {
		n := cmp.Or(samples.Count, samples.Len())
		count(setOf{samples.Dict, ResourceScope, samples.Resource}, n)
		count(setOf{samples.Dict, ProfileScope, samples.Profile}, n)
		if len(samples.Attributes) == 1 {
			count(setOf{samples.Dict, SampleScope, dictionary.AttributeSetIndex(samples.Attributes[0])}, n)
		} else {
			for _, set := range samples.Attributes {
				count(setOf{samples.Dict, SampleScope, dictionary.AttributeSetIndex(set)}, 1)
			}
		}
		return q.Memory.Check()
	})
	if err != nil {
		return nil, err
	}
	for of, n := range sets {
		for _, i := range of.dict.AttributeSets.At(of.set) {
			before := len(attributes)
			if attributes[attributeOf{of.dict, of.scope, dictionary.AttributeIndex(i)}] += n; len(attributes) > before {
				_ = q.Memory.Take(cacheBytes)
			}
		}
		if err := q.Memory.Take(0); err != nil {
			return nil, err
		}
	}
	filters := map[*dictionary.Dictionary]*filter{}
	for of, n := range attributes {
		dict := of.dict
		k := key{dict.Strings.At(dict.Attributes.At(of.attribute).Key), of.scope}
		if err := q.Memory.Take(2 * cacheBytes); err != nil { // its string among the counts, and in the list
			return nil, err
		}
		if counts[k] == nil {
			counts[k] = map[string]int{}
		}
		if filters[dict] == nil {
			filters[dict] = newFilter(dict, q.Memory)
		}
		counts[k][filters[dict].valueAt(of.attribute)] += n
	}
	list := make([]AttributeInfo, 0, len(counts))
	for k, values := range counts {
		list = append(list, attributeInfo(k.key, k.scope, values, limit))
	}
	// Those of resources come first, those of samples last.
	slices.SortFunc(list, func(a, b AttributeInfo) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), strings.Compare(a.Key, b.Key))
	})
	return list, q.Memory.keep(cacheBytes * len(attributes))
}

func attributeInfo(key string, scope Scope, values map[string]int, limit int) AttributeInfo {
	info := AttributeInfo{Key: key, Scope: scope, Values: make([]AttributeValue, 0, len(values))}
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
