// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// column is one profile of a group: the values of one sample type.
type column struct {
	profile int
	samples pprofile.SampleSlice
	value   int // which of a pprof sample's values
	// factor is what values are multiplied by if it is not 0.
	factor int64
	states int64 // of which the mean is written, as View has it
}

// valueAt returns the value of the kth observation of a sample; one that has only a timestamp counts 1.
func (c *column) valueAt(s pprofile.Sample, k int) int64 {
	if s.Values().Len() == 0 {
		return c.scaled(1)
	}
	return c.scaled(s.Values().At(k))
}

func (c *column) scaled(value int64) int64 {
	if c.factor == 0 {
		return value
	}
	return otlp.SaturatingMultiply(value, c.factor)
}

// writeSamples joins the samples of a group's profiles and writes them.
func (e *encoder) writeSamples(columns []column, types int) {
	e.values = slices.Grow(e.values[:0], types)[:types]
	e.timestampLabel = e.timestampLabel[:0]
	if e.view.Sample == nil && areAligned(columns) {
		e.writeAligned(columns)
		return
	}
	e.join.reset()
	e.join.combines = e.view.Sample != nil
	// Timestamped columns first: the decoder identifies the profile by the first label.
	for first := 0; first < len(columns); first += types {
		for _, c := range longestFirst(columns[first:min(first+types, len(columns))]) {
			e.joinColumn(columns, first+c)
		}
	}
	e.writeRows(columns)
}

// areAligned reports whether all the profiles list the same identities in the same order.
func areAligned(columns []column) bool {
	first := columns[0].samples
	for _, c := range columns[1:] {
		if c.samples.Len() != first.Len() {
			return false
		}
	}
	for _, c := range columns[1:] {
		for i := range first.Len() {
			if !haveSameIdentity(first.At(i), c.samples.At(i)) {
				return false
			}
		}
	}
	return true
}

func haveSameIdentity(a, b pprofile.Sample) bool {
	if a.StackIndex() != b.StackIndex() || a.LinkIndex() != b.LinkIndex() {
		return false
	}
	return a.AttributeIndices().Equal(b.AttributeIndices()) && a.TimestampsUnixNano().Equal(b.TimestampsUnixNano())
}

// writeAligned writes profiles that areAligned, without looking anything up.
func (e *encoder) writeAligned(columns []column) {
	for i := range columns[0].samples.Len() {
		s := columns[0].samples.At(i)
		for _, c := range columns {
			e.profile, e.sample = c.profile, i
			e.checkShape(c.samples.At(i))
		}
		labels := e.labelsOf(s)
		timestamps := s.TimestampsUnixNano()
		for k := range max(1, timestamps.Len()) {
			if e.err != nil {
				return
			}
			for _, c := range columns {
				e.values[c.value] = c.valueAt(c.samples.At(i), k)
			}
			if timestamps.Len() > 0 {
				e.setTimestamp(timestamps.At(k))
			}
			e.writeSample(s, &labels, e.values)
		}
		e.timestampLabel = e.timestampLabel[:0]
	}
}

// checkShape checks that a sample has exactly one value, or timestamps and either no values or as many.
func (e *encoder) checkShape(s pprofile.Sample) {
	values, timestamps := s.Values().Len(), s.TimestampsUnixNano().Len()
	switch {
	case timestamps == 0 && values != 1:
		e.failf("%s: without timestamps, a sample has exactly one value, found %d", e.samplePath(""), values)
	case timestamps != 0 && values != 0 && values != timestamps:
		e.failf("%s: found %d values for %d timestamps", e.samplePath(""), values, timestamps)
	}
}

// longestFirst returns the columns' numbers, those with most samples first. Profiles that were decoded from one pprof
// leave out the samples that are 0 for them: the longest one's order is then closest to the original's.
func longestFirst(columns []column) []int {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[b].samples.Len() - columns[a].samples.Len() })
	return order
}

// joinColumn adds the observations of one profile to the rows.
func (e *encoder) joinColumn(columns []column, column int) {
	c := &columns[column]
	samples := c.samples
	e.profile = c.profile
	e.join.column = int32(column)
	for i := range samples.Len() {
		s := samples.At(i)
		e.sample = i
		e.checkShape(s)
		if e.err != nil {
			return
		}
		if !e.checkStack(s.StackIndex()) {
			return
		}
		if e.view.Sample != nil {
			e.joinViewed(c, int32(i), s)
			continue
		}
		timestamps := s.TimestampsUnixNano()
		id := dictionary.Identity{
			Stack: dictionary.StackIndex(s.StackIndex()), Link: dictionary.LinkIndex(s.LinkIndex()),
			Attributes: e.attributeSet(s.AttributeIndices()),
		}
		for k := range max(1, timestamps.Len()) {
			time := int32(0)
			if timestamps.Len() > 0 {
				time = e.join.time(timestamps.At(k))
			}
			e.join.add(time, id, int32(i), c.valueAt(s, k))
		}
	}
}

// writeRows writes the joined samples.
func (e *encoder) writeRows(columns []column) {
	var labels sampleLabels
	for r := range e.join.rows {
		row := &e.join.rows[r]
		e.join.valuesOf(row, columns, e.values)
		c := columns[row.column]
		e.profile, e.sample = c.profile, int(row.sample)
		e.timestampLabel = e.timestampLabel[:0]
		if row.time != 0 {
			e.setTimestamp(e.join.times.At(row.time).nanos)
		}
		s := c.samples.At(int(row.sample))
		if r == 0 || row.column != e.join.rows[r-1].column || row.sample != e.join.rows[r-1].sample {
			labels = e.labelsOf(s)
		}
		e.writeSample(s, &labels, e.values)
		if e.err != nil {
			return
		}
	}
	e.timestampLabel = e.timestampLabel[:0]
}

// row is a pprof sample in the making.
type row struct {
	// column and sample are the OTLP sample that came first, to be read again when the row is written; time is its number
	// in joiner.times.
	column, sample, time int32
	// next is the following row of the same identity, cell the head of the row's values. -1 ends each list.
	next, cell int32
}

// cell is one value of a row. A list of cells, not a matrix, keeps the memory in proportion to the
// input: profiles may have few identities in common.
type cell struct {
	value        int64
	column, next int32
}

// chain lists the rows of one identity: several if a profile repeats it. Rows before cursor have a value of column
// already.
type chain struct{ first, last, cursor, column int32 }

// timestamp is a timestamp in a comparable form that is not zero.
type timestamp struct {
	exists bool
	nanos  uint64
}

// joiner joins the columns of a group by time and identity.
type joiner struct {
	rows    []row
	cells   []cell
	samples dictionary.Samples[chain] // grouped by time
	times   dictionary.Table[int32, timestamp]
	column  int32 // the current one
	// combines reports that values of one identity in a column are added up, instead of becoming rows of their own.
	combines bool
}

// reset empties the joiner. It keeps the samples of a message, so that it does not take the time of all stacks.
func (j *joiner) reset() {
	j.rows, j.cells = j.rows[:0], j.cells[:0]
	j.samples.Begin()
	j.times.Reset(0)
}

func (j *joiner) bytes() int {
	return dictionary.BytesOf(j.rows) + dictionary.BytesOf(j.cells) + j.samples.MemoryBytes() + j.times.MemoryBytes()
}

// time returns the number of a timestamp.
func (j *joiner) time(nanos uint64) int32 {
	return j.times.Intern(dictionary.Mix(nanos, 0), timestamp{exists: true, nanos: nanos})
}

// add adds an observation of the current column to a row of its time and identity. A row has one value of each column,
// so that two samples of one identity in a profile stay two samples.
func (j *joiner) add(time int32, id dictionary.Identity, sample int32, value int64) {
	at, isNew := j.samples.Intern(time, id)
	c := &j.samples.Entries[at].Observed
	if isNew {
		*c = chain{first: -1, last: -1, cursor: -1, column: j.column}
	}
	if c.column != j.column {
		c.cursor, c.column = c.first, j.column
	}
	if j.combines && !isNew {
		if last := j.rows[c.first].cell; j.cells[last].column == j.column {
			j.cells[last].value = otlp.SaturatingAdd(j.cells[last].value, value)
			return
		}
	}
	r := c.cursor
	if r >= 0 {
		c.cursor = j.rows[r].next
	} else {
		r = int32(len(j.rows))
		j.rows = append(j.rows, row{column: j.column, sample: sample, time: time, next: -1, cell: -1})
		if c.last < 0 {
			c.first = r
		} else {
			j.rows[c.last].next = r
		}
		c.last = r
	}
	j.cells = append(j.cells, cell{value: value, column: j.column, next: j.rows[r].cell})
	j.rows[r].cell = int32(len(j.cells) - 1)
}

// valuesOf fills values, one for each sample type, with the sums of a row's; the others are 0.
func (j *joiner) valuesOf(row *row, columns []column, values []int64) {
	clear(values)
	for c := row.cell; c >= 0; c = j.cells[c].next {
		value := &values[columns[j.cells[c].column].value]
		*value = otlp.SaturatingAdd(*value, j.cells[c].value)
	}
}
