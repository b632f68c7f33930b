// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// coarser makes one profile of those of a series that start within one step. Its samples are added up by stack,
// attributes and link, and lose their timestamps.
//
// Deltas are summed if they end in their step, too: a longer one, such as the first after an outage, would spread the
// others over its time, and stays as it is. Gauges are averaged over the time for which they hold, and what rounding
// leaves goes to the next step, so that sums over many steps are what they were. The last gauge before a gap stays as
// it is: it holds for its own interval.
type coarser struct {
	step  int64
	write func(*Profile) error
	// number is that of the current step.
	number int64
	// sums are those of the current step's deltas.
	sums map[fields]*group[int64]
	// last is the latest gauge, in one or more parts, of which it is not known yet for how long it holds. means has those
	// of the current step before it, with values multiplied by nanoseconds.
	last  []*Profile
	means *group[float64]
	// rest is, for each row, the sum of gauges' values times nanoseconds that rounding has left so far.
	rest map[blockfile.RowKey]float64
}

// fields are what profiles that become one have in common.
type fields struct {
	model.Meta
	values kind.Values
	moved  model.Flags
}

func fieldsOf(p *blockfile.Profile) fields { return fields{p.Meta, p.Values, p.Flags & model.IsMoved} }

// group has profiles that become one: the first of them, with the sums of all rows.
type group[T int64 | float64] struct {
	blockfile.Profile
	rows map[blockfile.RowKey]T
}

func newGroup[T int64 | float64](p *Profile) *group[T] {
	g := &group[T]{Profile: p.Profile, rows: map[blockfile.RowKey]T{}}
	g.Flags &= model.IsMoved
	return g
}

// add adds the rows of a profile, multiplied by factor.
func (g *group[T]) add(p *Profile, factor T) error {
	for row, err := range p.Rows {
		if err != nil {
			return err
		}
		g.rows[row.RowKey] = otlp.SaturatingAdd(g.rows[row.RowKey], T(row.Value)*factor)
	}
	return nil
}

func newCoarser(step time.Duration, write func(*Profile) error) *coarser {
	return &coarser{step: int64(step), write: write, sums: map[fields]*group[int64]{},
		rest: map[blockfile.RowKey]float64{}}
}

// add adds the next profile.
func (c *coarser) add(p *Profile) error {
	if p.Values == kind.Gauge {
		if err := c.endStep(); err != nil {
			return err
		}
		return c.gauge(p)
	}
	if err := c.gauge(nil); err != nil {
		return err
	}
	return c.delta(p)
}

// end writes what is left.
func (c *coarser) end() error {
	if err := c.endStep(); err != nil {
		return err
	}
	return c.gauge(nil)
}

// stepOf returns the number of the step in which a profile starts.
func (c *coarser) stepOf(p *blockfile.Profile) int64 {
	return (p.Start - (p.Start%c.step+c.step)%c.step) / c.step
}

func (c *coarser) delta(p *Profile) error {
	n := c.stepOf(&p.Profile)
	if isLong := p.Flags&model.IsBaseline != 0 || p.End > (n+1)*c.step; isLong || n != c.number {
		if err := c.endStep(); err != nil {
			return err
		}
		if c.number = n; isLong {
			return c.write(p)
		}
	}
	g := c.sums[fieldsOf(&p.Profile)]
	if g == nil {
		g = newGroup[int64](p)
		g.Time = p.KeptAt()
		c.sums[fieldsOf(&p.Profile)] = g
	}
	// Times that profiles state can be years apart, or missing.
	end := max(g.Time+g.Duration, p.KeptAt()+p.Duration)
	g.Time = min(g.Time, p.KeptAt())
	g.Duration, g.End = end-g.Time, max(g.End, p.End)
	return g.add(p, 1)
}

// endStep writes the sums of the current step.
func (c *coarser) endStep() error {
	if len(c.sums) == 0 {
		return nil
	}
	list := slices.SortedFunc(maps.Values(c.sums), func(a, b *group[int64]) int { return cmp.Compare(a.Start, b.Start) })
	clear(c.sums)
	for _, g := range list {
		if err := c.writeRows(g.Profile, g.rows); err != nil {
			return err
		}
	}
	return nil
}

// gauge adds the next gauge, or the last one of the series if next is nil. It skips a gauge that lasts no time: that
// was sent again.
func (c *coarser) gauge(next *Profile) error {
	last := c.last
	if next != nil && next.End == next.Start {
		return nil
	}
	if next != nil && len(last) > 0 && next.Start == last[0].Start {
		c.last = append(last, new(*next))
		return nil
	}
	if c.last = nil; next != nil {
		c.last = []*Profile{new(*next)}
	}
	if len(last) == 0 {
		return nil
	}
	isFollowed := next != nil && next.Start <= last[0].End
	if g := c.means; g != nil &&
		(!isFollowed || c.stepOf(&last[0].Profile) != c.stepOf(&g.Profile) ||
			fieldsOf(&last[0].Profile) != fieldsOf(&g.Profile)) {
		if err := c.writeMean(last[0].Start); err != nil {
			return err
		}
	}
	if isFollowed && c.means == nil {
		c.means = newGroup[float64](last[0])
	}
	for _, part := range last {
		err := error(nil)
		if isFollowed {
			err = c.means.add(part, float64(next.Start-part.Start))
		} else {
			err = c.write(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeMean writes the mean of gauges that hold until end.
func (c *coarser) writeMean(end int64) error {
	g := c.means
	c.means = nil
	held := end - g.Start
	if held == 0 {
		return nil
	}
	values := make(map[blockfile.RowKey]int64, len(g.rows))
	for key, sum := range g.rows {
		sum += c.rest[key]
		value := otlp.SaturatingRound(sum / float64(held))
		if c.rest[key] = sum - float64(value)*float64(held); c.rest[key] == 0 {
			delete(c.rest, key)
		}
		if value != 0 {
			values[key] = value
		}
	}
	g.End = g.Start + 2*held
	return c.writeRows(g.Profile, values)
}

// writeRows writes a profile with the given rows, in the order of their stacks.
func (c *coarser) writeRows(p blockfile.Profile, values map[blockfile.RowKey]int64) error {
	p.Total, p.Samples = 0, int32(len(values))
	keys := slices.SortedFunc(maps.Keys(values), blockfile.RowKey.Compare)
	for _, key := range keys {
		p.Total = otlp.SaturatingAdd(p.Total, values[key])
		p.Flags |= key.Flags()
	}
	return c.write(&Profile{p, func(yield func(blockfile.Row, error) bool) {
		for _, key := range keys {
			if !yield(blockfile.Row{RowKey: key, Value: values[key]}, nil) {
				return
			}
		}
	}})
}
