// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file makes deltas of cumulative profiles.

// totals are the last values of a series' cumulative profile, those of an engine without rows.
type totals struct {
	// at is the time of the profile, since that of the one before, or of this one if it is the first.
	at, since, sum int64
	rows           []totalRow
}

type totalRow struct {
	rowKey
	// isOld means that the row is from the profile before.
	isOld bool
	value int64
}

// rowKey is what distinguishes the rows of a profile without timestamps.
type rowKey struct{ stack, attributes, link int32 }

func (r totalRow) compare(other totalRow) int {
	return cmp.Or(cmp.Compare(r.stack, other.stack), cmp.Compare(r.attributes, other.attributes),
		cmp.Compare(r.link, other.link))
}

// totals returns the values of the columns: one for each identity, sorted.
func (c *columns) totals() (rows []totalRow) {
	rows = make([]totalRow, len(c.values))
	for i, value := range c.values {
		rows[i] = totalRow{rowKey: rowKey{c.stacks[i], c.attributes[i], c.links[i]}, value: value}
	}
	return combined(rows)
}

// combined returns the rows sorted, those of one key added up, in the same memory.
func combined(rows []totalRow) []totalRow {
	slices.SortFunc(rows, totalRow.compare)
	n := 0
	for i, row := range rows {
		if i > 0 && rows[n-1].compare(row) == 0 {
			rows[n-1].value = otlp.SaturatingAdd(rows[n-1].value, row.value)
			continue
		}
		rows[n] = row
		n++
	}
	return rows[:n]
}

// set replaces the rows of the columns. None of them has a timestamp.
func (c *columns) set(rows []totalRow) {
	c.reset()
	for _, row := range rows {
		c.stacks, c.attributes, c.links = append(c.stacks, row.stack), append(c.attributes, row.attributes),
			append(c.links, row.link)
		c.timestamps, c.values = append(c.timestamps, 0), append(c.values, row.value)
	}
}

// difference replaces the totals of a profile by what was added since the profile before. Values that fall together
// mean that the process has restarted: all of the profile was added since. The first profile is a baseline. A
// profile of the same time is another part of one that was divided, or was sent again. difference reports whether the
// profile is not older than the one before.
func (u *seriesUse) difference(cols *columns, c *model.Profile) bool {
	before, rows := u.totals, cols.totals()
	if before == nil {
		u.totals = &totals{at: c.End, since: c.End, rows: rows}
		c.Flags |= model.IsBaseline
		return true
	}
	if c.End < before.at {
		return false
	}
	now := &totals{at: c.End, since: before.at}
	if c.End == before.at {
		now.since = before.since
	}
	added, falls := now.follow(before, rows)
	if falls {
		added, c.Flags = rows, c.Flags|model.IsReset
		now.follow(before.current(c.End), rows)
	}
	u.totals = now
	cols.set(added)
	c.Flags &^= model.HasTimestamps
	c.Total = totalOf(added)
	if now.since == now.at {
		c.Flags |= model.IsBaseline
		return true
	}
	c.Start = now.since
	return true
}

// follow sets the rows to those of a profile, of its other parts, and of the profile before as long as parts can be
// missing. It returns what the profile adds to what was before, and whether the values that both have fall together. One
// that falls alone has added nothing: jemalloc's and tcmalloc's totals are estimates, which may fall.
func (t *totals) follow(before *totals, rows []totalRow) (added []totalRow, falls bool) {
	old, isPart, rise := before.rows, before.at == t.at, int64(0)
	t.rows = make([]totalRow, 0, max(len(rows), len(old)))
	keep := func(row totalRow) {
		if isPart || !row.isOld {
			row.isOld = row.isOld || !isPart
			t.rows = append(t.rows, row)
		}
	}
	for _, row := range rows {
		for len(old) > 0 && old[0].compare(row) < 0 {
			keep(old[0])
			old = old[1:]
		}
		total := row.value
		if len(old) > 0 && old[0].compare(row) == 0 {
			row.value = otlp.SaturatingSubtract(total, old[0].value)
			rise = otlp.SaturatingAdd(rise, row.value)
			total, row.value = max(total, old[0].value), max(0, row.value)
			old = old[1:]
		}
		t.rows = append(t.rows, totalRow{rowKey: row.rowKey, value: total})
		if row.value != 0 {
			added = append(added, row)
		}
	}
	for _, row := range old {
		keep(row)
	}
	return added, rise < 0
}

// current returns totals with the rows that have arrived for a time.
func (t *totals) current(at int64) *totals {
	out := &totals{at: at}
	for _, row := range t.rows {
		if t.at == at && !row.isOld {
			out.rows = append(out.rows, row)
		}
	}
	return out
}

func totalOf(rows []totalRow) (sum int64) {
	for _, row := range rows {
		sum = otlp.SaturatingAdd(sum, row.value)
	}
	return sum
}

// differenceOfSums is difference for a profile of which the sum alone is known.
func (u *seriesUse) differenceOfSums(c *model.Profile) bool {
	now, before := &totals{at: c.End, since: c.End, sum: c.Total}, u.totals
	if before != nil && now.at < before.at {
		return false
	}
	u.totals = now
	switch {
	case before == nil:
		c.Flags |= model.IsBaseline
		return true
	case now.sum >= before.sum:
		c.Total -= before.sum
	default:
		c.Flags |= model.IsReset
	}
	c.Flags &^= model.HasTimestamps
	c.Start = before.at
	return true
}

const totalsBase = 64

// bytes returns the memory of the totals.
func (t *totals) bytes() int {
	if t == nil {
		return 0
	}
	return totalsBase + dictionary.BytesOf(t.rows)
}

// restore brings what is known of a series up to date with a chunk of the log. It arrived after its block was begun,
// whatever its time is.
func (u *seriesUse) restore(c *chunk, begun time.Time) {
	for _, t := range []time.Time{begun, time.Unix(0, c.Last())} {
		if t.After(u.last) {
			u.last = t
		}
	}
	if c.Values == kind.Delta {
		return
	}
	var cols columns
	_ = c.decode(model.ColumnsWanted{Attributes: true, Links: true}, &model.Columns{}, func(part *model.Columns) error {
		for i := range part.Stacks {
			cols.stacks, cols.values = append(cols.stacks, part.Stacks[i]), append(cols.values, part.Values[i])
			cols.attributes, cols.links = append(cols.attributes, model.At(part.Attributes, i)),
				append(cols.links, model.At(part.Links, i))
		}
		return nil
	})
	if c.Values == kind.Gauge {
		u.gauge.See(c.Start, cols.hash())
		return
	}
	now := &totals{at: c.End, since: c.Start, rows: cols.totals()}
	if c.Flags&model.IsBaseline != 0 {
		now.since = c.End
	}
	if before := u.totals; before != nil && (c.End == before.at || c.Flags&(model.IsBaseline|model.IsReset) == 0) {
		now.rows = combined(append(now.rows, before.rows...))
	}
	u.totals = now
}
