// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

const (
	// maxGroups is the largest number of groups; further values go into one group.
	maxGroups = 32
	// OtherGroup is the name of that group.
	OtherGroup = "(other)"
	// NoGroup is the group of samples without the attribute.
	NoGroup = "(none)"
	// maxCells bounds the sums of one query, in number.
	maxCells = 48 << 20
)

// groups numbers the values that an answer is divided by. Without a key there is only group 0, whose name is empty.
type groups struct {
	names  []string
	byName map[string]int
	// sets[epoch][set] is the group of samples with that set of attributes, plus one.
	sets []map[dictionary.AttributeSetIndex]int
}

func newGroups(epochs int) *groups {
	g := &groups{byName: map[string]int{}, sets: make([]map[dictionary.AttributeSetIndex]int, epochs)}
	for i := range g.sets {
		g.sets[i] = map[dictionary.AttributeSetIndex]int{}
	}
	return g
}

// maxGroupBytes bounds the name of a group. Very many series and samples can share a long value.
const maxGroupBytes = 1 << 10

func groupName(value string) string {
	if len(value) > maxGroupBytes {
		return strings.ToValidUTF8(value[:maxGroupBytes], "") + "…"
	}
	return value
}

// number returns the number of a group. Beyond maxGroups, all names share OtherGroup.
func (g *groups) number(name string) int {
	if i, ok := g.byName[name]; ok {
		return i
	}
	if len(g.names) == maxGroups {
		if name != OtherGroup {
			return g.number(OtherGroup)
		}
	} else if len(g.names) > maxGroups {
		return g.byName[OtherGroup]
	}
	i := len(g.names)
	g.names = append(g.names, name)
	g.byName[name] = i
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
	if value, ok := f.resourceValue(sr, f.groupKey); ok {
		return g.number(groupName(value)), true
	}
	return 0, false
}

// ofSample returns the group of samples with a set of attributes, of a series whose resource does not decide it.
func (g *groups) ofSample(epoch int, f *filter, set dictionary.AttributeSetIndex) int {
	i, ok := g.sets[epoch][set]
	if !ok {
		name := NoGroup
		if value, has := f.value(set, f.groupKey); has {
			name = groupName(value)
		}
		i = g.number(name)
		g.sets[epoch][set] = i
	}
	return i
}

// reader reads the observations of terms that belong to a selection.
type reader struct {
	sel     *Selection
	filters []*filter
	groups  *groups
}

// whole reports whether all observations of a term belong to the selection and to one group.
func (r *reader) whole(t *term) (group int, whole bool) {
	f := r.filters[t.epoch]
	group, same := r.groups.ofSeries(r.sel, f, t.series)
	return group, same && f.required(t.series) == 0 && !r.sel.cuts(t.chunk)
}

// cuts reports whether only a part of a chunk's timestamps lies in the selected time.
func (sel *Selection) cuts(c *chunk) bool {
	return c.flags&hasTimestamps != 0 && c.flags&isMoved == 0 &&
		(sel.From > c.start || sel.Until != 0 && sel.Until < c.end)
}

// observations calls use for each observation of a term that belongs to the selection.
func (r *reader) observations(t *term, use func(group int, row *rows)) {
	f := r.filters[t.epoch]
	group, same := r.groups.ofSeries(r.sel, f, t.series)
	required, cuts := f.required(t.series), r.sel.cuts(t.chunk)
	for row := t.chunk.rows(); row.next(); {
		if cuts {
			at := t.chunk.time + row.timestamp
			if at < r.sel.From || r.sel.Until != 0 && at >= r.sel.Until {
				continue
			}
		}
		set := dictionary.AttributeSetIndex(row.attribute)
		if !f.sample(set, required) {
			continue
		}
		if !same {
			group = r.groups.ofSample(t.epoch, f, set)
		}
		use(group, &row)
	}
}

// stackSums[epoch][group] has the sum of values of each stack, or is nil if there are none.
type stackSums [][][]int64

// sum adds up the values of terms by stack.
func (v *view) sum(ctx context.Context, r *reader, terms []term) (stackSums, error) {
	for i := range terms {
		if w := terms[i].weight; w != math.Trunc(w) {
			sums, err := sumAs[float64](ctx, v, r, terms)
			return roundSums(sums), err
		}
	}
	return sumAs[int64](ctx, v, r, terms)
}

func sumAs[T number](ctx context.Context, v *view, r *reader, terms []term) ([][][]T, error) {
	sums := make([][][]T, len(v.epochs))
	cells := 0
	sumsOf := func(epoch, group int) []T {
		for len(sums[epoch]) <= group {
			sums[epoch] = append(sums[epoch], nil)
		}
		if sums[epoch][group] == nil {
			stacks := v.epochs[epoch].dict.Stacks.Len()
			if cells += stacks; cells > maxCells {
				stacks = 0
			}
			sums[epoch][group] = make([]T, stacks)
		}
		return sums[epoch][group]
	}
	for i := range terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t := &terms[i]
		if group, whole := r.whole(t); whole {
			if sum := sumsOf(t.epoch, group); len(sum) > 0 {
				addTo(t.chunk, sum, T(t.weight))
			}
		} else {
			r.observations(t, func(group int, row *rows) {
				if sum := sumsOf(t.epoch, group); len(sum) > 0 {
					sum[row.stack] += T(row.value) * T(t.weight)
				}
			})
		}
		if cells > maxCells {
			return nil, fmt.Errorf("%w: more than %d sums of stacks", ErrTooLarge, maxCells)
		}
	}
	return sums, nil
}

func roundSums(sums [][][]float64) stackSums {
	rounded := make(stackSums, len(sums))
	for e, groups := range sums {
		rounded[e] = make([][]int64, len(groups))
		for g, values := range groups {
			if values == nil {
				continue
			}
			whole := make([]int64, len(values))
			for i, v := range values {
				if v != 0 {
					whole[i] = int64(math.Round(v))
				}
			}
			rounded[e][g] = whole
		}
	}
	return rounded
}
