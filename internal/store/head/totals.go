// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file makes deltas of cumulative profiles.

// Totals are the last values of a series' cumulative profile, those of an engine without rows.
type Totals struct {
	// At is the time of the profile, and Since that of the one before, or At if it is the first. sum is set without Rows.
	At, Since, sum int64
	Rows           []TotalRow
}

// TotalRow is a total of one stack, set of attributes and link.
type TotalRow struct {
	model.RowKey
	Value int64
	// isOld means that the row is from the profile before.
	isOld bool
}

func compareTotals(a, b TotalRow) int { return a.Compare(b.RowKey) }

// totals returns the values of the columns: one for each identity, sorted.
func (c *Encoder) totals() (rows []TotalRow) {
	rows = make([]TotalRow, len(c.Values))
	for i, value := range c.Values {
		rows[i] = TotalRow{RowKey: c.Key(i), Value: value}
	}
	return combined(rows)
}

// combined returns the rows sorted, those of one key added up, in the same memory.
func combined(rows []TotalRow) []TotalRow {
	slices.SortFunc(rows, compareTotals)
	n := 0
	for i, row := range rows {
		if i > 0 && rows[n-1].Compare(row.RowKey) == 0 {
			rows[n-1].Value = otlp.SaturatingAdd(rows[n-1].Value, row.Value)
			continue
		}
		rows[n] = row
		n++
	}
	return rows[:n]
}

// set replaces the rows of the columns. None of them has a timestamp.
func (c *Encoder) set(rows []TotalRow) {
	c.Reset()
	for _, row := range rows {
		c.Append(row.RowKey, 0, row.Value)
	}
}

// Difference replaces the totals of a profile by what was added since the profile before. If totals fall by more than
// estimateShare allows, the process has restarted, and all of the profile was added since. The first profile is a
// baseline. A profile of the same time is another part of a divided one, or was sent again. Difference returns false
// for a profile that is older than the one before.
func (u *Use) Difference(cols *Encoder, c *model.Profile) bool {
	before, rows := u.Totals, cols.totals()
	if before == nil {
		u.Totals = &Totals{At: c.End, Since: c.End, Rows: rows}
		c.Flags |= model.IsBaseline
		return true
	}
	if c.End < before.At {
		return false
	}
	now := &Totals{At: c.End, Since: before.At}
	if c.End == before.At {
		now.Since = before.Since
	}
	added, falls := now.follow(before, rows)
	if falls {
		added, c.Flags = rows, c.Flags|model.IsReset
		now.follow(before.current(c.End), rows)
	}
	u.Totals = now
	cols.set(added)
	c.Flags &^= model.HasTimestamps
	c.Total = 0
	for _, row := range added {
		c.Total = otlp.SaturatingAdd(c.Total, row.Value)
	}
	if now.Since == now.At {
		c.Flags |= model.IsBaseline
		return true
	}
	c.Start = now.Since
	return true
}

// estimateShare bounds how much totals may fall while a process goes on: by a 64th, because those of jemalloc and
// tcmalloc are estimates. A stack whose total falls within that bound has added nothing.
const estimateShare = 64

// follow sets the rows to those of a profile, of its other parts, and of the profile before as long as parts can be
// missing. It returns what the profile adds to what was before, and whether more than an estimate falls.
func (t *Totals) follow(before *Totals, rows []TotalRow) (added []TotalRow, falls bool) {
	old, isPart, shared, lost := before.Rows, before.At == t.At, int64(0), int64(0)
	t.Rows = make([]TotalRow, 0, max(len(rows), len(old)))
	keep := func(row TotalRow) {
		if isPart || !row.isOld {
			row.isOld = row.isOld || !isPart
			t.Rows = append(t.Rows, row)
		}
	}
	for _, row := range rows {
		for len(old) > 0 && old[0].Compare(row.RowKey) < 0 {
			keep(old[0])
			old = old[1:]
		}
		total := row.Value
		if len(old) > 0 && old[0].Compare(row.RowKey) == 0 {
			row.Value = otlp.SaturatingSubtract(total, old[0].Value)
			shared = otlp.SaturatingAdd(shared, old[0].Value)
			lost = otlp.SaturatingAdd(lost, max(0, otlp.SaturatingSubtract(old[0].Value, total)))
			total, row.Value = max(total, old[0].Value), max(0, row.Value)
			old = old[1:]
		}
		t.Rows = append(t.Rows, TotalRow{RowKey: row.RowKey, Value: total})
		if row.Value != 0 {
			added = append(added, row)
		}
	}
	for _, row := range old {
		keep(row)
	}
	return added, lost > shared/estimateShare
}

// current returns totals with the rows that have arrived for a time.
func (t *Totals) current(at int64) *Totals {
	out := &Totals{At: at}
	for _, row := range t.Rows {
		if t.At == at && !row.isOld {
			out.Rows = append(out.Rows, row)
		}
	}
	return out
}

// DifferenceOfSums is Difference for a profile of which only the sum is known.
func (u *Use) DifferenceOfSums(c *model.Profile) bool {
	now, before := &Totals{At: c.End, Since: c.End, sum: c.Total}, u.Totals
	if before != nil && now.At < before.At {
		return false
	}
	u.Totals = now
	if before == nil {
		c.Flags |= model.IsBaseline
		return true
	}
	if before.sum-now.sum > before.sum/estimateShare {
		c.Flags |= model.IsReset
	} else {
		c.Total = otlp.SaturatingSubtract(c.Total, before.sum) // below 0 if an estimate falls, as the engine's rows are
	}
	c.Flags &^= model.HasTimestamps
	c.Start = before.At
	return true
}

// Move moves the totals to the dictionary of another block.
func (t *Totals) Move(moves *mover.Mover) {
	for i := range t.Rows {
		moves.Key(&t.Rows[i].RowKey)
	}
	slices.SortFunc(t.Rows, compareTotals)
}

const totalsBase = 64

// Bytes returns the memory of the totals.
func (t *Totals) Bytes() int {
	if t == nil {
		return 0
	}
	return totalsBase + dictionary.BytesOf(t.Rows)
}

// Restore brings what is known of a series up to date with a chunk of the log. It arrived after its block was begun,
// whatever its time is.
func (u *Use) Restore(c *Chunk, e *Block) {
	for _, t := range []time.Time{e.Begun, time.Unix(0, c.Last())} {
		if t.After(u.Last) {
			u.Last = t
		}
	}
	if c.Values == kind.Delta {
		return
	}
	var cols Encoder
	_ = c.decode(model.AllColumns, &model.Columns{}, func(part *model.Columns) error {
		for i := range part.Stacks {
			cols.Append(part.Key(i), 0, part.Values[i])
		}
		return nil
	})
	if c.Values == kind.Gauge {
		u.Gauge.See(c.Start, e.hash(&cols))
		return
	}
	now := &Totals{At: c.End, Since: c.Start, Rows: cols.totals()}
	if c.Flags&model.IsBaseline != 0 {
		now.Since = c.End
	}
	if before := u.Totals; before != nil && (c.End == before.At || c.Flags&(model.IsBaseline|model.IsReset) == 0) {
		now.Rows = combined(append(now.Rows, before.Rows...))
	}
	u.Totals = now
}
