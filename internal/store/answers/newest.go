// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
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
	// latest is that of the current block, if it is later. sets are the sets of attributes of the block's series.
	latest *model.Profile
	sets   map[dictionary.AttributeSetIndex]bool
	// moves is from the dictionary from: blocks in memory have one for all services.
	moves      *mover.Mover
	from       *dictionary.Dictionary
	movesBytes int
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

// add adds a profile of the current block.
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
	if len(n.sets) == 0 {
		return nil
	}
	dict, taken := p.Dict(), 0
	if n.from != dict {
		n.endMoves()
		n.movesBytes = moverBytes(dict)
		if err := n.memory.Grow(n.movesBytes); err != nil {
			return err
		}
		n.moves, n.from = mover.New(dict, n.dict), dict
	}
	for set := range n.sets {
		taken += setBytes(dict, set)
	}
	if n.latest != nil {
		m := p.Meta(n.latest)
		taken += setBytes(dict, m.Attributes) + setBytes(dict, m.Scope)
	}
	defer n.memory.Release(taken)
	if err := n.memory.Grow(taken); err != nil {
		return err
	}
	before := n.bytes()
	attributesOf := func(set dictionary.AttributeSetIndex) (list []int32) {
		for _, i := range dict.AttributeSets.At(set) {
			list = append(list, int32(n.moves.Attribute(dictionary.AttributeIndex(i))))
		}
		return list
	}
	for set := range n.sets {
		for _, i := range attributesOf(set) {
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
			Attributes: attributesOf(m.Attributes), Scope: attributesOf(m.Scope),
		}
	}
	return n.memory.Grow(n.bytes() - before)
}

// endMoves frees what is known of a dictionary.
func (n *newestProfile) endMoves() {
	n.memory.Release(n.movesBytes)
	n.moves, n.from, n.movesBytes = nil, nil, 0
}

// setBytes is about what a copy of a set of attributes takes.
func setBytes(d *dictionary.Dictionary, set dictionary.AttributeSetIndex) (bytes int) {
	for _, i := range d.AttributeSets.At(set) {
		a := d.Attributes.At(dictionary.AttributeIndex(i))
		bytes += 2*cacheBytes + len(d.Strings.At(a.Key)) + a.Value.EncodedLen()
	}
	return bytes
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
