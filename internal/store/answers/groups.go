// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file divides an answer by the values of an attribute. Those with the largest sums in the answer have a group
// each, whatever the order of blocks and profiles.

const (
	// maxGroups is the largest number of groups; further values go into one group.
	maxGroups = 32
	// OtherGroup is the name of that group.
	OtherGroup = "(other)"
	// NoGroup is the group of samples without the attribute.
	NoGroup = "(none)"
)

// groups numbers the values that an answer is divided by. Without a key there is only group 0, whose name is empty.
type groups struct {
	names  []string
	byName map[string]int
	// sets[set] is the group of samples of the current block with that set of attributes.
	sets map[dictionary.AttributeSetIndex]int
	// While values are counted, those of one of parts, by their hash, get a number, and sums has those of each side. They
	// take bytes of memory, of which there are limit. Otherwise, parts is 0.
	part, parts  uint64
	sums         [][2]float64
	memory       *model.Memory
	taken, limit int
}

func newGroups(m *model.Memory, names ...string) *groups {
	g := &groups{byName: map[string]int{}, sets: map[dictionary.AttributeSetIndex]int{}, memory: m}
	for _, name := range names {
		g.add(name)
	}
	return g
}

func (g *groups) add(name string) int {
	i := len(g.names)
	name = strings.Clone(name) // values are parts of a block
	bytes := 2*cacheBytes + len(name)
	g.taken += bytes
	_ = g.memory.Grow(bytes) // loops check
	g.names, g.sums = append(g.names, name), append(g.sums, [2]float64{})
	g.byName[name] = i
	return i
}

// number returns the number of the group of a value: that of OtherGroup unless it has one of its own.
func (g *groups) number(value string) int {
	if i, ok := g.byName[value]; ok {
		return i
	}
	if value == OtherGroup || g.parts != 0 && !g.isFull() && dictionary.HashString(value)%g.parts == g.part {
		return g.add(value)
	}
	return g.number(OtherGroup)
}

// isFull reports that further values would take too much memory.
func (g *groups) isFull() bool { return g.taken > g.limit }

// groupOnSamples is the name of the key of GroupBy for filter.samplesHave: a filter can have the same key, and asks for
// some values.
const groupOnSamples = "\x00group"

// groupOf returns the group of the samples of a series, except, if isGroup is false, those that have the attribute
// themselves.
func (f *filter) groupOf(sel *model.Selection, sr *model.BlockSeries) (group string, isGroup bool) {
	if sel.GroupBy == "" {
		return "", true
	}
	if !f.hasGroupKey {
		return NoGroup, true
	}
	value, ok := f.seriesValue(sr, f.groupKey)
	if !ok {
		return NoGroup, false
	}
	return value, !f.samplesHave(sr, groupOnSamples, f.groupKey, nil)
}

// maxSets bounds the sets of attributes whose group is remembered.
const maxSets = 64 << 10

// ofSample returns the group of samples with a set of attributes, or, if these do not decide it, that of their series.
func (g *groups) ofSample(f *filter, set dictionary.AttributeSetIndex, ofSeries string) int {
	i, ok := g.sets[set]
	if !ok {
		i = -1
		if value, has := f.value(set, f.groupKey); has {
			i = g.number(value)
		}
		if len(g.sets) == maxSets {
			clear(g.sets)
			f.grow(-maxSets * cacheBytes)
		}
		f.grow(cacheBytes)
		g.sets[set] = i
	}
	if i >= 0 {
		return i
	}
	return g.number(ofSeries)
}

// errManyValues ends the counting of more values than there is memory for at once.
var errManyValues = errors.New("there are too many values")

// divide makes the groups of an answer, whose sides are planned scans, and returns how many values share OtherGroup. It
// reads the samples as often as their values take parts of the memory.
func divide(sides ...*scan) (more int, err error) {
	memory := sides[0].memory
	if !slices.ContainsFunc(sides, func(s *scan) bool { return s.sel.GroupBy != "" }) {
		return 0, nil
	}
	var names []string
	for parts := uint64(1); ; parts *= 2 {
		if names, more, err = largestValues(sides, parts); !errors.Is(err, errManyValues) {
			break
		}
	}
	g := newGroups(memory, names...)
	for _, s := range sides {
		s.groups = g
	}
	return more, err
}

// largestValues returns the values with the largest sums on any side, and how many others there are.
func largestValues(sides []*scan, parts uint64) (names []string, more int, err error) {
	type value struct {
		name string
		size float64
	}
	var largest []value
	for part := range parts {
		g := newGroups(sides[0].memory)
		g.part, g.parts, g.limit = part, parts, max(g.memory.Free()/4, minLimit)
		for side, s := range sides {
			s.groups = g
			err = cmp.Or(err, s.count(side))
		}
		g.memory.Release(g.taken)
		if err != nil {
			return nil, 0, err
		}
		for i, sums := range g.sums {
			if name := g.names[i]; name != OtherGroup {
				largest = append(largest, value{name, math.Round(max(math.Abs(sums[0]), math.Abs(sums[1])))})
			}
		}
		slices.SortFunc(largest, func(a, b value) int {
			return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
		})
		n := min(len(largest), maxGroups)
		more += len(largest) - n
		largest = slices.Clone(largest[:n])
	}
	for _, v := range largest {
		names = append(names, v.name)
	}
	return names, more, nil
}

// minLimit is the memory of the values that are counted at once if it is not known how much there is, or if little is
// left.
const minLimit = 4 << 20

// count adds up the values that a side has of each group.
func (s *scan) count(side int) error {
	query, reads, g := s.query, s.reads, s.groups
	defer func() { s.query, s.reads = query, reads }()
	of := *query
	of.Want = Want{}
	s.query, s.reads = &of, true
	add := func(w *weightedProfile, group int, c *model.Columns) error {
		sum := w.weight * c.Sum()
		for _, fraction := range c.Fractions {
			sum += fraction
		}
		g.sums[group][side] += sum
		return nil
	}
	return s.eachPart(true, func(of []selectedSeries) error {
		return s.eachBatch(of, func(batch []weightedProfile) error {
			var rest []*weightedProfile
			for i := range batch {
				if w := &batch[i]; s.whole(w) {
					g.sums[g.number(w.series.group)][side] += w.weight * float64(w.Total)
				} else {
					rest = append(rest, w)
				}
			}
			err := s.samples(rest, model.ColumnsWanted{}, add)
			if err == nil && g.isFull() {
				err = errManyValues
			}
			return err
		})
	})
}
