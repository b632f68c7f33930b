// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"slices"
	"time"
)

// HeatMap shows when something happened within each second: columns of whole seconds, rows of parts of a second.
type HeatMap struct {
	Type SampleType
	// From is the start of the first column, a whole second, in Unix nanoseconds.
	From int64
	// Seconds is how many seconds are folded into one column.
	Seconds int
	// Columns and Rows are the numbers of both. Cells[column*Rows+row] is the sum of values.
	Columns, Rows int
	Cells         []float64
	// Observations is the number of observations in it. Those before the first column are left out.
	Observations int
	IsCut        bool
}

const (
	// maxHeatSeconds bounds the time of a heat map: the last hour of the selection.
	maxHeatSeconds = 3600
	maxHeatColumns = 1200
)

// HeatRows are the numbers of rows that a heat map can have: they divide a second into whole nanoseconds.
var HeatRows = []int{10, 20, 25, 40, 50, 100, 200}

// HeatMap adds up observations that have timestamps. A value that is a time, which ends at its timestamp, is spread over that time.
func (s *Store) HeatMap(ctx context.Context, sel Selection, columns, rowsOfSecond int) (*HeatMap, error) {
	v := s.view()
	defer v.release()
	t, r, err := v.read(&sel)
	if err != nil {
		return nil, err
	}
	terms, _ := v.choose(&sel, t, r.filters, s.cfg.Resolution)
	terms = slices.DeleteFunc(terms, func(t term) bool { return t.chunk.flags&(hasTimestamps|isMoved) != hasTimestamps })
	h := &HeatMap{Type: t, Rows: rowsOfSecond, Seconds: 1}
	from, until := sel.From, sel.Until
	first, last := span(terms)
	if from == 0 || from < first {
		from = first
	}
	if until == 0 || until > last {
		until = last
	}
	const second = int64(time.Second)
	h.From = from / second * second
	seconds := max(int((until-h.From+second-1)/second), 0)
	if seconds > maxHeatSeconds {
		h.From += int64(seconds-maxHeatSeconds) * second
		seconds, h.IsCut = maxHeatSeconds, true
	}
	columns = min(max(columns, 1), maxHeatColumns)
	h.Seconds = max((seconds+columns-1)/columns, 1)
	h.Columns = (seconds + h.Seconds - 1) / h.Seconds
	p := newSpreader(h.From, second/int64(rowsOfSecond), h.Columns*h.Seconds*rowsOfSecond)
	scale := timeUnit(t.Unit)
	for i := range terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.observations(&terms[i], func(_ int, row *rows) {
			end := terms[i].chunk.time + row.timestamp
			if p.add(end-durationOf(row.value, scale), end, float64(row.value)*terms[i].weight) {
				h.Observations++
			}
		})
	}
	h.fold(p.sums())
	return h, nil
}

// fold adds up the seconds of each column.
func (h *HeatMap) fold(bins []float64) {
	h.Cells = make([]float64, h.Columns*h.Rows)
	for i, value := range bins {
		second := i / h.Rows
		h.Cells[second/h.Seconds*h.Rows+i%h.Rows] += value
	}
}

// timeUnit returns the nanoseconds of a unit of time, 0 for another unit.
func timeUnit(unit string) int64 {
	switch unit {
	case "nanoseconds", "ns":
		return 1
	case "microseconds", "us", "µs":
		return 1e3
	case "milliseconds", "ms":
		return 1e6
	case "seconds", "s":
		return 1e9
	default:
		return 0
	}
}

// durationOf returns a value as nanoseconds, or 0 if it is not a time.
func durationOf(value, unit int64) int64 {
	if value <= 0 || unit == 0 || value > math.MaxInt64/4/unit {
		return 0
	}
	return value * unit
}

// spreader adds values to bins of equal width. What it costs does not depend on how many bins a value covers.
type spreader struct {
	from, width int64
	direct      []float64
	// slopes[i] is by how much the bins from i on get more than those before.
	slopes []float64
}

func newSpreader(from, width int64, bins int) *spreader {
	return &spreader{from: from, width: width, direct: make([]float64, bins), slopes: make([]float64, bins+1)}
}

// add spreads a value evenly over [start, end], and reports whether a part of it is in the bins.
func (s *spreader) add(start, end int64, value float64) bool {
	limit := s.from + s.width*int64(len(s.direct))
	if end < s.from || start >= limit || len(s.direct) == 0 {
		return false
	}
	if end <= start {
		if end >= limit {
			return false
		}
		s.direct[(end-s.from)/s.width] += value
		return true
	}
	density := value / float64(end-start)
	start, end = max(start, s.from), min(end, limit)
	if end == start {
		return false
	}
	first, last := (start-s.from)/s.width, (end-1-s.from)/s.width
	if first == last {
		s.direct[first] += density * float64(end-start)
		return true
	}
	s.direct[first] += density * float64(s.from+(first+1)*s.width-start)
	s.direct[last] += density * float64(end-(s.from+last*s.width))
	s.slopes[first+1] += density * float64(s.width)
	s.slopes[last] -= density * float64(s.width)
	return true
}

func (s *spreader) sums() []float64 {
	level := 0.0
	for i := range s.direct {
		level += s.slopes[i]
		// Adding and subtracting the same numbers in another order leaves a rounding error.
		if value := s.direct[i] + level; value > 1e-6 {
			s.direct[i] = value
		}
	}
	return s.direct
}
