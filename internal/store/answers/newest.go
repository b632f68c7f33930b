// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// newestProfile finds the latest profile of a query, and what its series have in common. Of each block, it keeps
// copies.
type newestProfile struct {
	memory *model.Memory
	// time is the earliest start of the profiles.
	time int64
	// fields are those of the latest profile so far, which ended at last.
	fields *ProfileFields
	last   int64
	// latest is that of the current part, if it is later. sets are the sets of attributes of the part's series.
	latest *model.Profile
	sets   map[dictionary.AttributeSetIndex]bool
	// dict has the copies. known is how many sets there were, and counts how many of them have an attribute.
	dict   *dictionary.Dictionary
	known  int
	counts map[dictionary.AttributeIndex]int
}

func newNewest(m *model.Memory) newestProfile {
	return newestProfile{
		memory: m, sets: map[dictionary.AttributeSetIndex]bool{}, dict: dictionary.NewCopying(),
		counts: map[dictionary.AttributeIndex]int{},
	}
}

// add adds a profile of the current part.
func (n *newestProfile) add(w *weightedProfile, at int64) {
	if n.time == 0 || at < n.time {
		n.time = at
	}
	n.sets[w.series.Attributes] = true
	if last := w.Last(); n.fields == nil && n.latest == nil || last > n.last {
		n.latest, n.last = new(w.Profile), last
	}
}

// endPart copies what is needed of a part, which is released then.
func (n *newestProfile) endPart(p model.Part) error {
	c := attributeCopier{newestProfile: n, from: p.Dict(), copies: map[int32]int32{}}
	defer func() { n.memory.Release(c.taken) }()
	before := n.bytes()
	for set := range n.sets {
		for _, i := range c.set(set) {
			n.counts[dictionary.AttributeIndex(i)]++
		}
	}
	n.known += len(n.sets)
	clear(n.sets)
	if n.latest != nil {
		m := p.Meta(n.latest)
		n.latest = nil
		n.fields = &ProfileFields{
			Dict: n.dict, PeriodType: strings.Clone(m.PeriodType), PeriodUnit: strings.Clone(m.PeriodUnit), Period: m.Period,
			Attributes: c.set(m.Attributes), Scope: c.set(m.Scope),
		}
	}
	return n.memory.Grow(n.bytes() - before)
}

func (n *newestProfile) bytes() int { return n.dict.MemoryBytes() + cacheBytes*len(n.counts) }

// newest returns the fields of the latest profile, without the attributes of its series that other series do not have.
func (n *newestProfile) newest() *ProfileFields {
	if n.fields == nil {
		return nil
	}
	n.fields.Attributes = slices.DeleteFunc(n.fields.Attributes, func(i int32) bool {
		key := n.dict.Strings.At(n.dict.Attributes.At(dictionary.AttributeIndex(i)).Key)
		return kind.IsSeriesAttribute(key) && n.counts[dictionary.AttributeIndex(i)] != n.known
	})
	return n.fields
}

// attributeCopier copies attributes of a part, each once: very many sets can share one with a long list.
type attributeCopier struct {
	*newestProfile
	from   *dictionary.Dictionary
	copies map[int32]int32
	taken  int
}

// set returns the copies of the attributes of a set. Those that would need too much memory are missing: endPart returns
// the error.
func (c *attributeCopier) set(set dictionary.AttributeSetIndex) (list []int32) {
	for _, i := range c.from.AttributeSets.At(set) {
		at, ok := c.copies[i]
		if !ok {
			a := c.from.Attributes.At(dictionary.AttributeIndex(i))
			key, unit := c.from.Strings.At(a.Key), c.from.Strings.At(a.Unit)
			bytes := 3*cacheBytes + len(key) + len(unit) + a.Value.Len()
			if c.taken += bytes; c.memory.Grow(bytes) != nil {
				return nil
			}
			a.Key, a.Unit = c.dict.Strings.Intern(key), c.dict.Strings.Intern(unit)
			at = int32(c.dict.Attributes.Intern(a))
			c.copies[i] = at
		}
		list = append(list, at)
	}
	return list
}
