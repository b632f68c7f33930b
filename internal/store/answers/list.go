// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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
	Type             model.SampleType
	Default          bool
	Values           kind.Values
	From, Until      int64
	Samples, Bytes   int
	// Timestamps reports that observations have times of their own, which can be shown: those of profiles that are kept
	// under another time cannot.
	Timestamps bool
	// PeriodType comes from the latest profile.
	PeriodType model.SampleType
	// Moved is how many profiles are kept under their time of arrival, Instances the number of resources.
	Moved, Instances int
}

// servicesOf lists the services of profiles, which are in their order.
func servicesOf(profiles []ProfileInfo) (list []ServiceInfo) {
	for of := range model.Runs(profiles, func(a, b *ProfileInfo) bool { return a.Service == b.Service }) {
		in := ServiceInfo{Service: of[0].Service, From: of[0].From, Until: of[0].Until}
		for i, p := range of {
			if i == 0 || p.Profile != of[i-1].Profile { // the list has each of its types
				in.Profiles++
			}
			in.Samples += p.Samples
			in.From, in.Until = min(in.From, p.From), max(in.Until, p.Until)
		}
		list = append(list, in)
	}
	return list
}

// profiles lists the profiles of a service and a name, or of all if they are empty, in the order of Catalog. Instances
// are counted unless there is a name.
func (v *View) profiles(service, profile string) ([]ProfileInfo, error) {
	type key struct {
		service, profile string
		model.SampleType
	}
	type found struct {
		ProfileInfo
		position  int32 // of the latest profile
		number    int
		instances map[uint64]bool
	}
	byKey := map[key]*found{}
	blocks := v.Blocks
	if v.lists != nil {
		blocks = v.lists
	}
	err := v.eachSeries(blocks, service, func(_ model.Block, list []model.BlockSeries) error {
		for i := range list {
			sr := &list[i]
			if profile != "" && sr.Profile != profile {
				continue
			}
			k := key{sr.Service, sr.Profile, sr.Type}
			p := byKey[k]
			if p == nil {
				p = &found{ProfileInfo: ProfileInfo{Service: sr.Service, Profile: sr.Profile, Type: sr.Type, From: sr.From,
					Until: sr.Until}, number: len(byKey), instances: map[uint64]bool{}}
				byKey[k] = p
				_ = v.Memory.Grow(catalogBytes) // eachSeries checks
			}
			p.position, p.Values, p.PeriodType = sr.Position, model.Shown(sr.Values), sr.Period
			p.From, p.Until = min(p.From, sr.From), max(p.Until, sr.Until)
			p.Samples, p.Bytes, p.Moved = p.Samples+sr.Samples, p.Bytes+sr.Bytes, p.Moved+sr.Moved
			p.Timestamps = p.Timestamps || sr.Timestamps
			switch {
			case profile != "":
			case v.instances != nil:
				p.Instances = max(p.Instances, v.instances(sr))
			case !p.instances[sr.Instance]:
				p.instances[sr.Instance] = true
				p.Instances++
				_ = v.Memory.Grow(cacheBytes)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ordered := slices.SortedFunc(maps.Values(byKey), func(a, b *found) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Profile, b.Profile),
			cmp.Compare(a.position, b.position), cmp.Compare(a.number, b.number))
	})
	list := make([]ProfileInfo, len(ordered))
	for i, p := range ordered {
		list[i] = p.ProfileInfo
	}
	isSame := func(a, b *ProfileInfo) bool { return a.Service == b.Service && a.Profile == b.Profile }
	for of := range model.Runs(list, isSame) {
		names := make([]string, len(of))
		for i := range of {
			names[i] = of[i].Type.Type
		}
		of[kind.Default(names)].Default = true
	}
	return list, nil
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
func (s *Querier) Attributes(ctx context.Context, sel model.Selection, limit int) ([]AttributeInfo, error) {
	sel.GroupBy = ""
	q := s.query(ctx, sel, Want{Series: true, Attributes: true})
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	c := &attributeCounter{memory: q.Memory, counts: map[attributeKey]map[string]int{}}
	err = selected.Read(func(samples *Samples) error {
		if err := c.begin(samples.Dict); err != nil {
			return err
		}
		sum := 0
		for i := range samples.Len() {
			n := 1
			if len(samples.Counts) > 0 {
				n = int(samples.Counts[i])
			}
			sum += n
			c.count(SampleScope, dictionary.AttributeSetIndex(model.At(samples.Attributes, i)), n)
		}
		c.count(ResourceScope, samples.Resource, sum)
		c.count(ProfileScope, samples.Profile, sum)
		return q.Memory.Check()
	})
	if err := cmp.Or(err, c.endBlock()); err != nil {
		return nil, err
	}
	list, bytes := make([]AttributeInfo, 0, len(c.counts)), 0
	for k, values := range c.counts {
		list = append(list, attributeInfo(k.key, k.scope, values, limit))
		bytes += cacheBytes * len(values)
	}
	// Those of resources come first, those of samples last.
	slices.SortFunc(list, func(a, b AttributeInfo) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), strings.Compare(a.Key, b.Key))
	})
	return list, q.Memory.Keep(bytes)
}

// attributeCounter counts samples by their attributes. It does so by set, sets by attribute, and only then by value:
// very many samples can share a set of many attributes, and very many sets an attribute with a long list.
type attributeCounter struct {
	memory *model.Memory
	counts map[attributeKey]map[string]int
	// dict is that of the current block, sets counts the samples of its sets.
	dict *dictionary.Dictionary
	sets map[attributeSet]int
}

type attributeKey struct {
	key   string
	scope Scope
}

type attributeSet struct {
	scope Scope
	set   dictionary.AttributeSetIndex
}

func (c *attributeCounter) count(scope Scope, set dictionary.AttributeSetIndex, n int) {
	before := len(c.sets)
	if c.sets[attributeSet{scope, set}] += n; len(c.sets) > before {
		_ = c.memory.Grow(cacheBytes) // Check returns the error
	}
}

func (c *attributeCounter) begin(dict *dictionary.Dictionary) error {
	if dict == c.dict {
		return nil
	}
	err := c.endBlock()
	c.dict, c.sets = dict, map[attributeSet]int{}
	return err
}

// endBlock adds the samples of a block to the counts, which have copies of its strings.
func (c *attributeCounter) endBlock() error {
	type attributeOf struct {
		scope     Scope
		attribute dictionary.AttributeIndex
	}
	attributes, taken := map[attributeOf]int{}, cacheBytes*len(c.sets)
	for of, n := range c.sets {
		for _, i := range c.dict.AttributeSets.At(of.set) {
			before := len(attributes)
			if attributes[attributeOf{of.scope, dictionary.AttributeIndex(i)}] += n; len(attributes) > before {
				taken += cacheBytes
				_ = c.memory.Grow(cacheBytes)
			}
		}
		if err := c.memory.Grow(0); err != nil {
			return err
		}
	}
	for of, n := range attributes {
		a := c.dict.Attributes.At(of.attribute)
		k := attributeKey{c.dict.Strings.At(a.Key), of.scope}
		values := c.counts[k]
		if values == nil {
			k.key, values = strings.Clone(k.key), map[string]int{}
			c.counts[k] = values
			_ = c.memory.Grow(2*cacheBytes + len(k.key))
		}
		value := a.Value.AsString()
		if _, ok := values[value]; !ok {
			value = strings.Clone(value)
			if err := c.memory.Grow(2*cacheBytes + len(value)); err != nil { // among the counts, and in the list
				return err
			}
		}
		values[value] += n
	}
	c.memory.Release(taken)
	return nil
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
