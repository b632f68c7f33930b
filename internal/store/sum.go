// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
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
	// sets[set] is the group of samples of the current block with that set of attributes.
	sets map[dictionary.AttributeSetIndex]int
}

func newGroups() *groups {
	return &groups{byName: map[string]int{}, sets: map[dictionary.AttributeSetIndex]int{}}
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
	i := len(g.names)
	key = strings.Clone(key) // values are parts of a block
	name := key
	if len(value) > maxGroupBytes {
		name = dictionary.Shorten(value, maxGroupBytes)
	}
	g.names = append(g.names, name)
	g.byName[key] = i
	return i
}

// groupOnSamples is the name of the key of GroupBy for filter.samplesHave: a filter can have the same key, and asks for
// some values.
const groupOnSamples = "\x00group"

// ofSeries returns the group of all samples of a series, or false if it depends on the sample.
func (g *groups) ofSeries(sel *Selection, f *filter, sr *series) (int, bool) {
	if sel.GroupBy == "" {
		return g.number(""), true
	}
	if !f.hasGroupKey {
		return g.number(NoGroup), true
	}
	if value, ok := f.seriesValue(sr, f.groupKey); ok && !f.samplesHave(sr, groupOnSamples, f.groupKey, nil) {
		return g.number(value), true
	}
	return 0, false
}

// ofSample returns the group of samples with a set of attributes, of a series that does not decide it alone.
func (g *groups) ofSample(f *filter, set dictionary.AttributeSetIndex, sr *series) int {
	i, ok := g.sets[set]
	if !ok {
		i = -1
		if value, has := f.value(set, f.groupKey); has {
			i = g.number(value)
		}
		_ = f.memory.Take(cacheBytes)
		g.sets[set] = i
	}
	if i >= 0 {
		return i
	}
	return g.number(f.seriesGroup(sr))
}

// seriesGroup returns the group of samples of a series that do not have the attribute themselves.
func (f *filter) seriesGroup(sr *series) string {
	if value, has := f.seriesValue(sr, f.groupKey); has {
		return value
	}
	return NoGroup
}

// reader reads the observations of a block that belong to a selection.
type reader struct {
	sel *Selection
	// keys are those of the selection's attributes. filter and groups are those of the current block.
	keys   []filterKey
	filter *filter
	groups *groups
	memory *Memory
}

// begin prepares for a block.
func (r *reader) begin(e *block) {
	r.filter = r.filterOf(e.dict)
	clear(r.groups.sets)
}

// rowsPerCheck is the number of rows between two checks of the memory.
const rowsPerCheck = 1 << 12

// whole reports whether all observations of a chunk belong to the selection and to one group.
func (r *reader) whole(w *weightedChunk) (group int, whole bool) {
	group, same := r.groups.ofSeries(r.sel, r.filter, w.series)
	return group, same && r.filter.required(w.series) == 0 && !r.sel.cuts(w.chunk)
}

// cuts reports whether only a part of a chunk's timestamps lies in the selected time.
func (sel *Selection) cuts(c *chunk) bool {
	return c.values != kind.Gauge && c.flags&(hasTimestamps|isMoved) == hasTimestamps &&
		(sel.From > c.start || sel.Until != 0 && sel.Until < c.end)
}

// observed decides which observations of one chunk belong to the selection, and to which group.
type observed struct {
	*reader
	w        *weightedChunk
	group    int
	same     bool
	required uint64
	cuts     bool
}

func (r *reader) observed(w *weightedChunk) observed {
	group, same := r.groups.ofSeries(r.sel, r.filter, w.series)
	return observed{r, w, group, same, r.filter.required(w.series), r.sel.cuts(w.chunk)}
}

// groupOf returns the group of an observation, or false if it is not selected.
func (o *observed) groupOf(row *rows) (group int, ok bool) {
	if o.cuts {
		at := o.w.chunk.time + row.timestamp
		if at < o.sel.From || o.sel.Until != 0 && at >= o.sel.Until {
			return 0, false
		}
	}
	set := dictionary.AttributeSetIndex(row.attribute)
	if !o.filter.sample(set, o.required) {
		return 0, false
	}
	if !o.same {
		return o.groups.ofSample(o.filter, set, o.w.series), true
	}
	return o.group, true
}

// observations calls use for each observation of chunks of a block that belongs to the selection. Of those on disk, it reads the wanted
// columns and those that decide, some thousand rows at a time.
func (r *reader) observations(e *block, list []weightedChunk, want blockfile.Want, use func(w *weightedChunk, group int, row *rows)) error {
	var onDisk []*weightedChunk
	for i := range list {
		w := &list[i]
		o := r.observed(w)
		if e.disk != nil {
			want.Attributes = want.Attributes || !o.same || o.required != 0
			want.Timestamps = want.Timestamps || o.cuts
			onDisk = append(onDisk, w)
			continue
		}
		row := w.chunk.rows() // of the loop, it would be allocated for each turn
		for row.next() {
			if group, ok := o.groupOf(&row); ok {
				use(w, group, &row)
			}
			if row.left%rowsPerCheck == 0 {
				if err := r.memory.Check(); err != nil {
					return err
				}
			}
		}
	}
	if len(onDisk) == 0 {
		return r.memory.Check()
	}
	var o observed
	return e.readWeighted(onDisk, want, r.memory, func(w *weightedChunk, cols *blockfile.Columns) {
		if o.w != w {
			o = r.observed(w)
		}
		var row rows
		for i := range cols.Stacks {
			row.set(w.chunk, e.dict, cols, i)
			if group, ok := o.groupOf(&row); ok {
				use(w, group, &row)
			}
		}
	})
}

// set sets the fields to those of an observation on disk.
func (r *rows) set(c *chunk, dict *dictionary.Dictionary, cols *blockfile.Columns, i int) {
	r.stack, r.value, r.attribute, r.link, r.timestamp = cols.Stacks[i], cols.Values[i], 0, 0, 0
	if cols.Attributes != nil {
		r.attribute = cols.Attributes[i]
	}
	if cols.Links != nil && cols.Links[i] != (dictionary.Link{}) {
		r.link = int32(dict.Links.Intern(cols.Links[i]))
	}
	if c.flags&hasTimestamps != 0 && cols.Timestamps != nil {
		r.timestamp = cols.Timestamps[i] - c.time
	}
}

// readWeighted calls use with the columns of chunks on disk, in one or more parts for each.
func (e *block) readWeighted(
	list []*weightedChunk, want blockfile.Want, m *Memory, use func(*weightedChunk, *blockfile.Columns),
) error {
	chunks := make([]*chunk, len(list))
	for i, w := range list {
		chunks[i] = w.chunk
	}
	next := 0
	return e.disk.read(e.dict, chunks, want, m, func(c *chunk, cols *blockfile.Columns) error {
		for list[next].chunk != c {
			next++
		}
		use(list[next], cols)
		return nil
	})
}

// summer adds up the values of chunks of one block and type by group and stack.
type summer interface {
	add(list []weightedChunk) error
	// each calls use with the sums of each group, and forgets them.
	each(out *Samples, use func(*Samples) error) error
}

// sums is the summer of numbers of type T: integers, or floating-point numbers if chunks have weights. Sums are rounded in the end: those of
// a block can be small.
type sums[T number] struct {
	*reader
	block *block
	of    [][]T // by group and stack
	set   func(out *Samples, values []T)
	taken int
}

func newSums(r *reader, e *block, isFractional bool) summer {
	if isFractional {
		return &sums[float64]{reader: r, block: e, set: func(out *Samples, values []float64) { out.Fractions = values }}
	}
	return &sums[int64]{reader: r, block: e, set: func(out *Samples, values []int64) { out.Values = values }}
}

// ofGroup returns the sums of a group, or nil if there is no memory: each chunk checks it.
func (s *sums[T]) ofGroup(group int) []T {
	for len(s.of) <= group {
		s.of = append(s.of, nil)
	}
	if s.of[group] == nil {
		stacks := s.block.dict.Stacks.Len()
		if s.taken += sumBytes * stacks; s.memory.Take(sumBytes*stacks) != nil {
			return nil
		}
		s.of[group] = make([]T, stacks)
	}
	return s.of[group]
}

func (s *sums[T]) add(list []weightedChunk) error {
	// Of whole profiles on disk only two columns are read.
	var onDisk []*weightedChunk
	var parts []weightedChunk
	for i := range list {
		w := &list[i]
		switch group, whole := s.whole(w); {
		case !whole:
			parts = append(parts, *w)
		case s.block.disk != nil:
			onDisk = append(onDisk, w)
		default:
			if sum := s.ofGroup(group); sum != nil {
				addTo(w.chunk, sum, T(w.weight))
			}
			if err := s.memory.Check(); err != nil {
				return err
			}
		}
	}
	if len(onDisk) > 0 {
		err := s.block.readWeighted(onDisk, blockfile.Want{}, s.memory, func(w *weightedChunk, cols *blockfile.Columns) {
			group, _ := s.whole(w)
			if sum := s.ofGroup(group); sum != nil {
				for i, stack := range cols.Stacks {
					sum[stack] += T(cols.Values[i]) * T(w.weight)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if len(parts) == 0 {
		return s.memory.Check()
	}
	return s.observations(s.block, parts, blockfile.Want{}, func(w *weightedChunk, group int, row *rows) {
		if sum := s.ofGroup(group); sum != nil {
			sum[row.stack] += T(row.value) * T(w.weight)
		}
	})
}

func (s *sums[T]) each(out *Samples, use func(*Samples) error) error {
	defer func() {
		s.memory.Release(s.taken)
		s.of, s.taken = nil, 0
	}()
	*out = Samples{Type: out.Type, Weight: 1}
	var stacks []int32
	for group, sum := range s.of {
		if sum == nil {
			continue
		}
		if stacks == nil {
			s.taken += 4 * len(sum)
			if err := s.memory.Take(4 * len(sum)); err != nil {
				return err
			}
			stacks = make([]int32, 0, len(sum))
		}
		// The sums move to the front: they are not read again.
		stacks = stacks[:0]
		values := sum[:0]
		for stack, value := range sum {
			if value != 0 {
				stacks, values = append(stacks, int32(stack)), append(values, value)
			}
		}
		out.Dict, out.Group, out.Stacks = s.block.dict, s.groups.names[group], stacks
		s.set(out, values)
		if err := use(out); err != nil {
			return err
		}
		s.of[group] = nil
	}
	return nil
}
