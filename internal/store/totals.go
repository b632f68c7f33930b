// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file makes deltas of cumulative profiles.

type totals struct {
	at, sum int64
	rows    []totalRow
}

type totalRow struct {
	rowKey
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
		rows[i] = totalRow{rowKey{c.stacks[i], c.attributes[i], c.links[i]}, value}
	}
	slices.SortFunc(rows, totalRow.compare)
	n := 0
	for i, row := range rows {
		if i > 0 && rows[n-1].compare(row) == 0 {
			rows[n-1].value += row.value
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

// difference replaces the totals of a profile by what was added since the profile before. A sum that is smaller than
// before means that the process has restarted: all of it was added since. The first profile is a baseline. difference
// reports whether the profile is not older than the one before. Profiles of an engine have no rows: their totals alone
// are replaced.
func (u *seriesUse) difference(cols *columns, c *model.Profile) bool {
	now, before := &totals{at: c.End, sum: c.Total, rows: cols.totals()}, u.totals
	if before != nil && now.at < before.at {
		return false
	}
	u.totals = now
	if before == nil {
		c.Flags |= model.IsBaseline
		return true
	}
	if now.sum >= before.sum {
		cols.set(subtract(now.rows, before.rows))
		c.Total -= before.sum
	} else {
		cols.set(now.rows)
		c.Flags |= model.IsReset
	}
	c.Flags &^= model.HasTimestamps
	c.Start = before.at
	return true
}

// subtract returns the differences that are not 0.
func subtract(now, before []totalRow) (rows []totalRow) {
	for len(now)+len(before) > 0 {
		order := -1 // which of the first rows comes first
		if len(now) == 0 {
			order = 1
		} else if len(before) > 0 {
			order = now[0].compare(before[0])
		}
		var row totalRow
		if order <= 0 {
			row, now = now[0], now[1:]
		}
		if order >= 0 {
			if order > 0 {
				row = before[0]
				row.value = 0
			}
			row.value -= before[0].value
			before = before[1:]
		}
		if row.value != 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

const (
	// totalsPart is the part of the bytes that the totals of all series may take, movedPart that of the dictionary that a
	// new block begins with for them.
	totalsPart = 8
	movedPart  = 16
	totalsBase = 64
)

// bytes returns the memory of the totals.
func (t *totals) bytes() int {
	if t == nil {
		return 0
	}
	return totalsBase + dictionary.BytesOf(t.rows)
}

// setTotals remembers the totals of a series' last profile, or forgets those before if now is nil.
func (s *Store) setTotals(use *seriesUse, now *totals) {
	s.totalsBytes += now.bytes() - use.totals.bytes()
	use.totals = now
}

// withTotals returns the series that have totals, those first that had the last profile.
func (s *Store) withTotals() []*seriesUse {
	var list []*seriesUse
	for _, use := range s.series {
		if use.totals != nil {
			list = append(list, use)
		}
	}
	slices.SortFunc(list, func(a, b *seriesUse) int { return b.last.Compare(a.last) })
	return list
}

// dropTotals forgets the totals of series. The next profile of each is a baseline again.
func (s *Store) dropTotals(list []*seriesUse) {
	for _, use := range list {
		s.setTotals(use, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Evicted[EvictedTotals] += len(list)
}

// trimTotals drops totals that take more than their part of the bytes, the oldest first, and some more, so that not
// each message does.
func (s *Store) trimTotals() {
	most := s.cfg.MaxBytes / totalsPart
	if s.totalsBytes <= most {
		return
	}
	list, kept := s.withTotals(), 0
	i := slices.IndexFunc(list, func(use *seriesUse) bool {
		kept += use.totals.bytes()
		return kept > most*3/4
	})
	if i >= 0 {
		s.dropTotals(list[i:])
	}
}

// moveTotals moves the totals of all series to the dictionary of a new block. It drops the oldest of them if these
// alone would fill it.
func (s *Store) moveTotals(dict *dictionary.Dictionary) {
	list := s.withTotals()
	var moves *mover.Mover
	for i, use := range list {
		if moves == nil {
			moves = mover.New(s.totalsOver, dict)
		}
		if dict.MemoryBytes() > s.cfg.MaxBytes/movedPart {
			s.dropTotals(list[i:])
			break
		}
		for i := range use.totals.rows {
			row := &use.totals.rows[i]
			row.stack = int32(moves.Stack(dictionary.StackIndex(row.stack)))
			row.attributes = int32(moves.Set(dictionary.AttributeSetIndex(row.attributes)))
			row.link = int32(moves.Link(dictionary.LinkIndex(row.link)))
		}
		slices.SortFunc(use.totals.rows, totalRow.compare)
	}
	s.totalsOver = dict
}
