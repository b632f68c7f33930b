// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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

// number returns the number of the group of a value. Beyond maxGroups, all values share OtherGroup.
func (g *groups) number(value string) int {
	if i, ok := g.byName[value]; ok {
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
	value = strings.Clone(value) // values are parts of a block
	g.names = append(g.names, value)
	g.byName[value] = i
	return i
}

// groupOnSamples is the name of the key of GroupBy for filter.samplesHave: a filter can have the same key, and asks for
// some values.
const groupOnSamples = "\x00group"

// ofSeries returns the group of all samples of a series, or false if it depends on the sample.
func (g *groups) ofSeries(sel *model.Selection, f *filter, sr *model.BlockSeries) (int, bool) {
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
func (g *groups) ofSample(f *filter, set dictionary.AttributeSetIndex, sr *model.BlockSeries) int {
	i, ok := g.sets[set]
	if !ok {
		i = -1
		if value, has := f.value(set, f.groupKey); has {
			i = g.number(value)
		}
		_ = f.memory.Grow(cacheBytes)
		g.sets[set] = i
	}
	if i >= 0 {
		return i
	}
	return g.number(f.seriesGroup(sr))
}

// seriesGroup returns the group of samples of a series that do not have the attribute themselves.
func (f *filter) seriesGroup(sr *model.BlockSeries) string {
	if value, has := f.seriesValue(sr, f.groupKey); has {
		return value
	}
	return NoGroup
}

// reader reads the observations of a block that belong to a selection.
type reader struct {
	sel *model.Selection
	// keys are those of the selection's attributes. filter and groups are those of the current block.
	keys   []filterKey
	filter *filter
	groups *groups
	memory *model.Memory
	// apart is what a part must not add up.
	apart apart
}

// begin prepares for a part.
func (r *reader) begin(p model.Part) {
	r.filter = r.filterOf(p.Dict())
	clear(r.groups.sets)
}

// whole reports whether all observations of a profile belong to the selection and to one group.
func (r *reader) whole(w *weightedProfile) (group int, whole bool) {
	group, same := r.groups.ofSeries(r.sel, r.filter, w.series)
	return group, same && r.filter.required(w.series) == 0 && !r.sel.Cuts(&w.Profile)
}

// observed decides which observations of one profile belong to the selection, and to which group.
type observed struct {
	*reader
	w        *weightedProfile
	group    int
	same     bool
	required uint64
	cuts     bool
}

func (r *reader) observed(w *weightedProfile) observed {
	group, same := r.groups.ofSeries(r.sel, r.filter, w.series)
	return observed{r, w, group, same, r.filter.required(w.series), r.sel.Cuts(&w.Profile)}
}

// groupOf returns the group of an observation, or false if it is not selected.
func (o *observed) groupOf(c *model.Columns, i int) (group int, ok bool) {
	if o.cuts && (c.Timestamps[i] < o.sel.From || o.sel.Until != 0 && c.Timestamps[i] >= o.sel.Until) {
		return 0, false
	}
	set := dictionary.AttributeSetIndex(model.At(c.Attributes, i))
	if !o.filter.sample(set, o.required) {
		return 0, false
	}
	if !o.same {
		return o.groups.ofSample(o.filter, set, o.w.series), true
	}
	return o.group, true
}

// observations calls use for each observation of profiles that belongs to the selection. It reads the wanted columns
// and those that decide, some thousand rows at a time.
func (r *reader) observations(
	p model.Part, list []*weightedProfile, want model.ColumnsWanted,
	use func(w *weightedProfile, group int, c *model.Columns, i int) error,
) error {
	for _, w := range list {
		o := r.observed(w)
		want.Attributes = want.Attributes || !o.same || o.required != 0
		want.Timestamps = want.Timestamps || o.cuts
	}
	var o observed
	return r.eachColumns(p, list, want, func(w *weightedProfile, c *model.Columns) error {
		if o.w != w {
			o = r.observed(w)
		}
		for i := range c.Stacks {
			if group, ok := o.groupOf(c, i); ok {
				if err := use(w, group, c, i); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// eachColumns calls use with the samples of profiles, or with sums of them.
func (r *reader) eachColumns(p model.Part, list []*weightedProfile, want model.ColumnsWanted,
	use func(*weightedProfile, *model.Columns) error) error {
	if sums := r.filter.summing; sums != nil {
		return r.added(sums, list, use)
	}
	at := func(i int) (*model.BlockSeries, *model.Profile) { return list[i].series, &list[i].Profile }
	return p.Rows(len(list), at, want, func(i int, c *model.Columns) error { return use(list[i], c) })
}

// number is the type of sums: integers, or floating-point numbers if profiles have weights.
type number interface{ int64 | float64 }

// summer adds up the values of profiles of one part and type by group and stack.
type summer interface {
	add(list []*weightedProfile) error
	// each calls use with the sums of each group, and forgets them.
	each(out *Samples, use func(*Samples) error) error
}

// sums is the summer of numbers of type T. Sums are rounded in the end: those of a block can be small.
type sums[T number] struct {
	*reader
	part  model.Part
	of    [][]T // by group and stack
	set   func(out *Samples, values []T)
	taken int
}

func newSums(r *reader, p model.Part, isFractional bool) summer {
	if isFractional {
		return &sums[float64]{reader: r, part: p, set: func(out *Samples, values []float64) { out.Fractions = values }}
	}
	return &sums[int64]{reader: r, part: p, set: func(out *Samples, values []int64) { out.Values = values }}
}

// ofGroup returns the sums of a group.
func (s *sums[T]) ofGroup(group int) ([]T, error) {
	for len(s.of) <= group {
		s.of = append(s.of, nil)
	}
	if more := s.part.Dict().Stacks.Len() - len(s.of[group]); more > 0 {
		s.taken += sumBytes * more
		if err := s.memory.Grow(sumBytes * more); err != nil {
			return nil, err
		}
		s.of[group] = append(s.of[group], make([]T, more)...)
	}
	return s.of[group], nil
}

func (s *sums[T]) add(list []*weightedProfile) error {
	// Of whole profiles only two columns are read.
	var whole, parts []*weightedProfile
	for _, w := range list {
		if _, isWhole := s.whole(w); isWhole {
			whole = append(whole, w)
		} else {
			parts = append(parts, w)
		}
	}
	err := s.eachColumns(s.part, whole, model.ColumnsWanted{}, func(w *weightedProfile, c *model.Columns) error {
		group, _ := s.whole(w)
		sum, err := s.ofGroup(group)
		if err != nil {
			return err
		}
		for i, stack := range c.Stacks {
			sum[stack] = otlp.SaturatingAdd(sum[stack], otlp.SaturatingMultiply(T(c.Values[i]), T(w.weight)))
		}
		for i, fraction := range c.Fractions {
			sum[c.Stacks[i]] += T(fraction)
		}
		return nil
	})
	if err != nil || len(parts) == 0 {
		return err
	}
	return s.observations(s.part, parts, model.ColumnsWanted{},
		func(w *weightedProfile, group int, c *model.Columns, i int) error {
			sum, err := s.ofGroup(group)
			if err == nil {
				at := &sum[c.Stacks[i]]
				*at = otlp.SaturatingAdd(*at, otlp.SaturatingMultiply(T(c.Values[i]), T(w.weight)))
				*at += T(c.Fraction(i))
			}
			return err
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
			if err := s.memory.Grow(4 * len(sum)); err != nil {
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
		out.Dict, out.Group, out.Stacks = s.part.Dict(), s.groups.names[group], stacks
		s.set(out, values)
		if err := use(out); err != nil {
			return err
		}
		s.of[group] = nil
	}
	return nil
}
