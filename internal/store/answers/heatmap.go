// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"math"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// HeatMap shows when something happened within each second: columns of whole seconds, rows of parts of a second.
type HeatMap struct {
	Type model.SampleType
	// From is the start of the first column, a whole second, in Unix nanoseconds.
	From int64
	// Seconds is how many seconds are added up in one column.
	Seconds int
	// Columns and Rows are the numbers of both. Cells[column*Rows+row] is the sum of values.
	Columns, Rows int
	Cells         []float64
	// Observations is the number of observations in it. IsCut reports that those before the first column are left out.
	Observations int
	IsCut        bool
}

const (
	// maxHeatSeconds bounds the time of a heat map, which shows the end of a longer selection.
	maxHeatSeconds = 3600
	maxHeatColumns = 1200
)

// HeatRows are the numbers of rows that a heat map can have: they divide a second into whole nanoseconds.
var HeatRows = []int{10, 20, 25, 40, 50, 100, 200}

// HeatMap adds up observations that have timestamps. A value that is a time, which ends at its timestamp, is spread
// over that time.
func (s *Querier) HeatMap(ctx context.Context, sel model.Selection, columns, rowsOfSecond int) (*HeatMap, error) {
	sel.GroupBy = ""
	q := s.query(ctx, sel, Want{Times: true})
	q.TimedOnly = true
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	h := &HeatMap{Type: selected.Type, Rows: rowsOfSecond, Seconds: 1}
	from, until := sel.From, sel.Until
	first, last := selected.From, selected.Until
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
	if err := q.Memory.Grow(16*h.Columns*h.Seconds*rowsOfSecond + 8*h.Columns*rowsOfSecond); err != nil {
		return nil, err
	}
	b := newBins(h.From, second/int64(rowsOfSecond), h.Columns*h.Seconds*rowsOfSecond)
	scale := kind.NanosPer(h.Type.Unit)
	err = selected.Read(func(samples *Samples) error {
		for i, end := range samples.Timestamps {
			value := samples.Values[i]
			if b.add(end-durationOf(value, scale), end, float64(value)*samples.Weight) {
				h.Observations++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.addUp(b.sums())
	return h, q.Memory.Keep(8 * len(h.Cells))
}

// addUp adds up the seconds of each column.
func (h *HeatMap) addUp(sums []float64) {
	h.Cells = make([]float64, h.Columns*h.Rows)
	for i, value := range sums {
		second := i / h.Rows
		h.Cells[second/h.Seconds*h.Rows+i%h.Rows] += value
	}
}

// durationOf returns a value as nanoseconds, or 0 if it is not a time.
func durationOf(value, unit int64) int64 {
	if value <= 0 || unit == 0 || value > math.MaxInt64/4/unit {
		return 0
	}
	return value * unit
}

// bins are sums over time in bins of equal width. The cost of adding a value does not depend on how many bins it
// covers.
type bins struct {
	from, width int64
	// direct[i] is what was added to bin i alone; slopes[i] is by how much all bins from i on exceed those before.
	direct, slopes []float64
}

func newBins(from, width int64, n int) *bins {
	return &bins{from: from, width: width, direct: make([]float64, n), slopes: make([]float64, n+1)}
}

// add spreads a value evenly over [start, end], and reports whether a part of it is in the bins.
func (b *bins) add(start, end int64, value float64) bool {
	limit := b.from + b.width*int64(len(b.direct))
	if end < b.from || start >= limit || len(b.direct) == 0 {
		return false
	}
	if end <= start {
		if end >= limit {
			return false
		}
		b.direct[(end-b.from)/b.width] += value
		return true
	}
	density := value / float64(end-start)
	start, end = max(start, b.from), min(end, limit)
	if end == start {
		return false
	}
	first, last := (start-b.from)/b.width, (end-1-b.from)/b.width
	if first == last {
		b.direct[first] += density * float64(end-start)
		return true
	}
	b.direct[first] += density * float64(b.from+(first+1)*b.width-start)
	b.direct[last] += density * float64(end-(b.from+last*b.width))
	b.slopes[first+1] += density * float64(b.width)
	b.slopes[last] -= density * float64(b.width)
	return true
}

// sums returns the sum of each bin, and ends the use of b.
func (b *bins) sums() []float64 {
	level := 0.0
	for i := range b.direct {
		level += b.slopes[i]
		b.direct[i] += level
		// Adding and subtracting the same numbers in another order leaves a rounding error.
		if math.Abs(b.direct[i]) < 1e-6 {
			b.direct[i] = 0
		}
	}
	return b.direct
}
