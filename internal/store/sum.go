// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

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
	// sets[block][set] is the group of samples with that set of attributes, plus one.
	sets []map[dictionary.AttributeSetIndex]int
}

func newGroups(blocks int) *groups {
	g := &groups{byName: map[string]int{}, sets: make([]map[dictionary.AttributeSetIndex]int, blocks)}
	for i := range g.sets {
		g.sets[i] = map[dictionary.AttributeSetIndex]int{}
	}
	return g
}

// maxGroupBytes bounds the name of a group. Very many series and samples can share a long value.
const maxGroupBytes = 1 << 10

// number returns the number of the group of a value. Beyond maxGroups, all values share OtherGroup.
func (g *groups) number(value string) int {
	// A part of a long value that is longer than a name is not equal to a short one.
	key := value[:min(len(value), maxGroupBytes+1)]
	if i, ok := g.byName[key]; ok {
		return i
	}
	if len(g.names) == maxGroups {
		if value != OtherGroup {
			return g.number(OtherGroup)
		}
	} else if len(g.names) > maxGroups {
		return g.byName[OtherGroup]
	}
	i, name := len(g.names), value
	if len(value) > maxGroupBytes {
		key, name = strings.Clone(key), dictionary.Shorten(value, maxGroupBytes)
	}
	g.names = append(g.names, name)
	g.byName[key] = i
	return i
}

// ofSeries returns the group of all samples of a series, or false if it depends on the sample.
func (g *groups) ofSeries(sel *Selection, f *filter, sr *series) (int, bool) {
	if sel.GroupBy == "" {
		return g.number(""), true
	}
	if !f.hasGroupKey {
		return g.number(NoGroup), true
	}
	if value, ok := f.seriesValue(sr, f.groupKey); ok {
		return g.number(value), true
	}
	return 0, false
}

// ofSample returns the group of samples with a set of attributes, of a series that does not decide it.
func (g *groups) ofSample(block int, f *filter, set dictionary.AttributeSetIndex) int {
	i, ok := g.sets[block][set]
	if !ok {
		value, has := f.value(set, f.groupKey)
		if !has {
			value = NoGroup
		}
		_ = f.memory.Take(cacheBytes)
		i = g.number(value)
		g.sets[block][set] = i
	}
	return i
}

// reader reads the observations of chunks that belong to a selection.
type reader struct {
	sel     *Selection
	filters []*filter
	groups  *groups
	memory  *Memory
}

// rowsPerCheck is the number of rows between two checks of the memory.
const rowsPerCheck = 1 << 12

// whole reports whether all observations of a chunk belong to the selection and to one group.
func (r *reader) whole(w *weightedChunk) (group int, whole bool) {
	f := r.filters[w.block]
	group, same := r.groups.ofSeries(r.sel, f, w.series)
	return group, same && f.required(w.series) == 0 && !r.sel.cuts(w.chunk)
}

// cuts reports whether only a part of a chunk's timestamps lies in the selected time.
func (sel *Selection) cuts(c *chunk) bool {
	return c.values != kind.Gauge && c.flags&(hasTimestamps|isMoved) == hasTimestamps &&
		(sel.From > c.start || sel.Until != 0 && sel.Until < c.end)
}

// observations calls use for each observation of a chunk that belongs to the selection. It stops if the query has ended: the caller
// checks the memory.
func (r *reader) observations(w *weightedChunk, use func(group int, row *rows)) {
	f := r.filters[w.block]
	group, same := r.groups.ofSeries(r.sel, f, w.series)
	required, cuts := f.required(w.series), r.sel.cuts(w.chunk)
	row := w.chunk.rows() // of the loop, it would be allocated for each turn
	for row.next() {
		if row.left%rowsPerCheck == 0 && r.memory.Check() != nil {
			return
		}
		if cuts {
			at := w.chunk.time + row.timestamp
			if at < r.sel.From || r.sel.Until != 0 && at >= r.sel.Until {
				continue
			}
		}
		set := dictionary.AttributeSetIndex(row.attribute)
		if !f.sample(set, required) {
			continue
		}
		if !same {
			group = r.groups.ofSample(w.block, f, set)
		}
		use(group, &row)
	}
}

// isFractional reports whether a weight is not a whole number. Sums are rounded in the end: those of a block can be small.
func isFractional(chunks []weightedChunk) bool {
	return slices.ContainsFunc(chunks, func(w weightedChunk) bool { return w.weight != math.Trunc(w.weight) })
}

// eachSum adds up the values of chunks by stack, one block after the other, and calls use with the sums of each group that a block has:
// sums[stack] is valid until use returns.
func eachSum[T number](v *view, r *reader, chunks []weightedChunk, use func(block, group int, sums []T) error) error {
	for block, e := range v.blocks {
		var sums [][]T
		stacks, taken := e.dict.Stacks.Len(), 0
		// sumsOf returns nil if there is no memory: each chunk checks it.
		sumsOf := func(group int) []T {
			for len(sums) <= group {
				sums = append(sums, nil)
			}
			if sums[group] == nil {
				if taken += sumBytes * stacks; v.memory.Take(sumBytes*stacks) != nil {
					return nil
				}
				sums[group] = make([]T, stacks)
			}
			return sums[group]
		}
		// Of whole profiles on disk only two columns are read. The others are loaded.
		var onDisk, parts []weightedChunk
		for i := range chunks {
			w := &chunks[i]
			if w.block != block {
				continue
			}
			switch group, whole := r.whole(w); {
			case !whole:
				parts = append(parts, *w)
			case e.disk != nil && w.chunk.data == nil:
				onDisk = append(onDisk, *w)
			default:
				if sum := sumsOf(group); sum != nil {
					addTo(w.chunk, sum, T(w.weight))
				}
				if err := v.memory.Check(); err != nil {
					return err
				}
			}
		}
		err := v.readWhole(e, onDisk, func(w *weightedChunk, cols *blockfile.Columns) {
			group, _ := r.whole(w)
			if sum := sumsOf(group); sum != nil {
				for i, stack := range cols.Stacks {
					sum[stack] += T(cols.Values[i]) * T(w.weight)
				}
			}
		})
		if err != nil {
			return err
		}
		unload, err := v.loadFor(block, parts)
		if err != nil {
			return err
		}
		for i := range parts {
			w := &parts[i]
			r.observations(w, func(group int, row *rows) {
				if sum := sumsOf(group); sum != nil {
					sum[row.stack] += T(row.value) * T(w.weight)
				}
			})
			if err := v.memory.Check(); err != nil {
				return err
			}
		}
		for group, sum := range sums {
			if sum == nil {
				continue
			}
			if err := use(block, group, sum); err != nil {
				return err
			}
			sums[group] = nil
		}
		unload()
		v.memory.Release(taken)
	}
	return nil
}

// readWhole calls use with the stacks and values of chunks of one block on disk.
func (v *view) readWhole(e *block, weighted []weightedChunk, use func(*weightedChunk, *blockfile.Columns)) error {
	if len(weighted) == 0 {
		return nil
	}
	slices.SortFunc(weighted, func(a, b weightedChunk) int { return cmp.Compare(a.chunk.row, b.chunk.row) })
	chunks := make([]*chunk, len(weighted))
	for i := range weighted {
		chunks[i] = weighted[i].chunk
	}
	next := 0
	return v.withoutDamaged(chunks, e.disk.read(e.dict, chunks, false, v.memory, func(c *chunk, cols *blockfile.Columns) error {
		for weighted[next].chunk != c {
			next++
		}
		use(&weighted[next], cols)
		return nil
	}))
}

// loadFor reads the samples of the chunks of a block. unload forgets those that it read.
func (v *view) loadFor(block int, chunks []weightedChunk) (unload func(), err error) {
	var loaded []weightedChunk
	if v.blocks[block].disk != nil {
		for _, w := range chunks {
			if w.block == block && w.chunk.data == nil {
				loaded = append(loaded, w)
			}
		}
	}
	return func() {
		if v.blocks[block].disk != nil {
			v.memory.progress.read(1)
		}
		for _, w := range loaded {
			v.memory.Release(cap(w.chunk.data))
			w.chunk.data = nil
		}
	}, v.load(loaded)
}
