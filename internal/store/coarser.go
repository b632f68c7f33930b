// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// This file makes old days coarser: the profiles of a series that start within one step become one. Its samples are added up by stack,
// attributes and link, and lose their timestamps. Deltas are summed if they end in their step, too: a longer one, such as the first after an
// outage, would spread the others over its time. Gauges are averaged over the time for which they hold, and what
// rounding leaves goes to the next step, so that sums over many steps stay what they were.

// Downsampling is the rule by which days become coarser.
type Downsampling struct {
	// After is the age at which a day is reduced to one profile for each series and Step. 0 is never.
	After, Step time.Duration
}

// isFor reports whether the block of a day of this age must be made coarser.
func (d *Downsampling) isFor(b *diskBlock, age time.Duration) bool {
	return d.After > 0 && age > 24*time.Hour+d.After && time.Duration(b.Step) < d.Step
}

type coarser struct {
	step    int64
	columns columns
	out     []*chunk
	// rest is the sum of gauges' values times nanoseconds that rounding has left so far.
	rest map[rowKey]float64
}

// coarserRun replaces the profiles of a series that one block has.
func coarserRun(ctx context.Context, run *seriesRun, step time.Duration) error {
	if err := run.part.load(run.chunks, newMemory(ctx, nil)); err != nil {
		return err
	}
	byStart := slices.Clone(run.chunks)
	slices.SortStableFunc(byStart, func(a, b *chunk) int { return cmp.Compare(a.start, b.start) })
	m := &coarser{step: int64(step), rest: map[rowKey]float64{}}
	if byStart[0].values == kind.Gauge {
		m.gauges(byStart)
	} else {
		m.deltas(byStart)
	}
	for _, c := range run.chunks {
		c.data = nil
	}
	slices.SortStableFunc(m.out, func(a, b *chunk) int { return cmp.Compare(a.start, b.start) })
	run.chunks = m.out
	return nil
}

// stepOf returns the number of the step in which a profile starts.
func (m *coarser) stepOf(c *chunk) int64 { return (c.start - floorMod(c.start, m.step)) / m.step }

func floorMod(a, b int64) int64 { return (a%b + b) % b }

// deltas sums deltas that start and end in one step and have the same fields.
func (m *coarser) deltas(chunks []*chunk) {
	type sumKey struct {
		step  int64
		meta  int32
		flags chunkFlags
	}
	sums := map[sumKey]map[rowKey]int64{}
	wholes := map[sumKey]*chunk{}
	for _, c := range chunks {
		if c.flags&isBaseline != 0 || c.end > (m.stepOf(c)+1)*m.step {
			m.out = append(m.out, new(*c))
			continue
		}
		key := sumKey{m.stepOf(c), c.meta, c.flags & isMoved}
		whole := wholes[key]
		if whole == nil {
			whole = &chunk{time: c.time, duration: c.duration, start: c.start, end: c.end, meta: c.meta, values: c.values, flags: key.flags}
			wholes[key], sums[key] = whole, map[rowKey]int64{}
			m.out = append(m.out, whole)
		}
		end := max(whole.time+whole.duration, c.time+c.duration)
		whole.time = min(whole.time, c.time)
		whole.duration = end - whole.time
		whole.end = max(whole.end, c.end)
		for row := c.rows(); row.next(); {
			sums[key][rowKey{row.stack, row.attribute, row.link}] += row.value
		}
	}
	for key, whole := range wholes {
		m.finish(whole, sums[key])
	}
}

// gauges averages gauges of one step that follow each other. The last one before a gap stays as it is: it holds for its own interval.
func (m *coarser) gauges(chunks []*chunk) {
	var group []*chunk
	for i, c := range chunks {
		if len(group) > 0 && (m.stepOf(c) != m.stepOf(group[0]) || c.meta != group[0].meta || c.flags&isMoved != group[0].flags&isMoved) {
			m.mean(group, c.start)
			group = nil
		}
		if isFollowed := i+1 < len(chunks) && chunks[i+1].start <= c.end; isFollowed {
			group = append(group, c)
			continue
		}
		m.mean(group, c.start)
		group = nil
		m.out = append(m.out, new(*c))
	}
}

// mean adds the mean of gauges that hold until end.
func (m *coarser) mean(group []*chunk, end int64) {
	if len(group) == 0 || group[0].start == end {
		return
	}
	first := group[0]
	sums := map[rowKey]float64{}
	for i, c := range group {
		until := end
		if i+1 < len(group) {
			until = group[i+1].start
		}
		for row := c.rows(); row.next(); {
			sums[rowKey{row.stack, row.attribute, row.link}] += float64(row.value) * float64(until-c.start)
		}
	}
	held := float64(end - first.start)
	values := make(map[rowKey]int64, len(sums))
	for key, sum := range sums {
		sum += m.rest[key]
		value := math.Round(sum / held)
		m.rest[key] = sum - value*held
		if value != 0 {
			values[key] = int64(value)
		}
	}
	whole := &chunk{
		time: first.time, duration: first.duration, start: first.start, end: first.start + 2*(end-first.start),
		meta: first.meta, values: first.values, flags: first.flags & isMoved,
	}
	m.out = append(m.out, whole)
	m.finish(whole, values)
}

// finish writes the samples of a profile, in the order of their stacks.
func (m *coarser) finish(c *chunk, values map[rowKey]int64) {
	rows := make([]totalRow, 0, len(values))
	for key, value := range values {
		if key.attributes != 0 {
			c.flags |= hasAttributes
		}
		if key.link != 0 {
			c.flags |= hasLinks
		}
		c.total += value
		rows = append(rows, totalRow{key, value})
	}
	slices.SortFunc(rows, totalRow.compare)
	m.columns.set(rows)
	c.samples, c.data = int32(len(rows)), m.columns.encode(c.flags)
}
