// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// whole reports whether all samples of a profile belong to the selection and to one group.
func (s *scan) whole(w *weightedProfile) bool {
	return w.series.isGroup && w.series.required == 0 && !s.sel.Cuts(&w.Profile)
}

// samples calls use with the samples of profiles that belong to the selection, some thousand rows at a time, which are
// of one group. It reads the wanted columns, and those that decide, of profiles that are not whole.
func (s *scan) samples(list []*weightedProfile, want model.ColumnsWanted,
	use func(w *weightedProfile, group int, c *model.Columns) error) error {
	for _, isWhole := range []bool{true, false} {
		of := s.together[:0]
		for _, w := range list {
			if s.whole(w) == isWhole {
				of = append(of, w)
				want.Attributes = want.Attributes || !w.series.isGroup || w.series.required != 0
				want.Timestamps = want.Timestamps || s.sel.Cuts(&w.Profile)
			}
		}
		if s.together = of; len(of) == 0 {
			continue
		}
		each := func(w *weightedProfile, c *model.Columns) error {
			if isWhole {
				return use(w, s.groups.number(w.series.group), c)
			}
			return s.selectedRows(w, c, use)
		}
		at := func(i int) (*model.BlockSeries, *model.Profile) { return &of[i].series.BlockSeries, &of[i].Profile }
		var err error
		if sums := s.filter.summing; sums != nil {
			err = s.added(sums, of, each)
		} else {
			err = s.part.Rows(len(of), at, want, func(i int, c *model.Columns) error { return each(of[i], c) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// selectedRows calls use with the rows of a profile that belong to the selection, those of one group that follow each
// other at once.
func (s *scan) selectedRows(w *weightedProfile, c *model.Columns,
	use func(w *weightedProfile, group int, c *model.Columns) error) error {
	group, ofSeries, cuts := 0, 0, s.sel.Cuts(&w.Profile)
	if w.series.isGroup {
		ofSeries = s.groups.number(w.series.group)
	}
	flush := func() error {
		if len(s.selected.Stacks) == 0 {
			return nil
		}
		err := use(w, group, &s.selected)
		s.selected = s.selected.Slice(0, 0)
		return err
	}
	for i := range c.Stacks {
		set, next := dictionary.AttributeSetIndex(model.At(c.Attributes, i)), ofSeries
		if cuts && (c.Timestamps[i] < s.sel.From || s.sel.Until != 0 && c.Timestamps[i] >= s.sel.Until) ||
			!s.filter.sample(set, w.series.required) {
			continue
		}
		if !w.series.isGroup {
			next = s.groups.ofSample(s.filter, set, w.series.group)
		}
		if next != group {
			if err := flush(); err != nil {
				return err
			}
			group = next
		}
		s.selected.AppendRow(c, i)
	}
	return flush()
}

// summer adds up the values of profiles of the current part, of one type, by group and stack.
type summer interface {
	add(w *weightedProfile, group int, c *model.Columns) error
	// each calls use with the sums of each group, and forgets them.
	each(out *Samples, use func(*Samples) error) error
}

// sums is the summer of integers, or of floating-point numbers if profiles have weights. Sums are rounded in the end:
// those of a block can be small.
type sums[T int64 | float64] struct {
	*scan
	of     [][]T // by group and stack
	stacks []int32
	set    func(out *Samples, values []T)
}

// ofGroup returns the sums of a group.
func (s *sums[T]) ofGroup(group int) ([]T, error) {
	for len(s.of) <= group {
		s.of = append(s.of, nil)
	}
	of, n := s.of[group], s.part.Dict().Stacks.Len()
	if more := n - cap(of); more > 0 {
		if err := s.memory.Grow(sumBytes * more); err != nil {
			return nil, err
		}
	}
	if more := n - len(of); more > 0 {
		s.of[group] = append(of, make([]T, more)...)
	}
	return s.of[group], nil
}

func (s *sums[T]) add(w *weightedProfile, group int, c *model.Columns) error {
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
}

func (s *sums[T]) each(out *Samples, use func(*Samples) error) error {
	for group, sum := range s.of {
		if more := len(sum) - cap(s.stacks); more > 0 {
			if err := s.memory.Grow(4 * more); err != nil {
				return err
			}
		}
		// The sums move to the front: they are not read again.
		stacks, values := slices.Grow(s.stacks[:0], len(sum)), sum[:0]
		for stack, value := range sum {
			if value != 0 {
				stacks, values = append(stacks, int32(stack)), append(values, value)
			}
		}
		s.stacks, s.of[group] = stacks, sum[:0]
		if len(sum) == 0 {
			continue
		}
		*out = Samples{Dict: s.part.Dict(), Type: out.Type, Group: s.groups.names[group], Weight: 1}
		out.Stacks = stacks
		s.set(out, values)
		if err := use(out); err != nil {
			return err
		}
	}
	return nil
}
