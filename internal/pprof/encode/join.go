// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// column is one profile of a group: the values of one sample type.
type column struct {
	profile int
	samples pprofile.SampleSlice
	value   int // which of a pprof sample's values
}

// writeSamples joins the samples of a group's profiles and writes them.
func (e *encoder) writeSamples(columns []column, types int) {
	e.values = slices.Grow(e.values[:0], types)[:types]
	e.timestampLabel = e.timestampLabel[:0]
	if areAligned(columns) {
		e.writeAligned(columns)
		return
	}
	e.join.reset()
	for first := 0; first < len(columns); first += types { // those with timestamps first: the first label tells the decoder which one it is
		for _, c := range longestFirst(columns[first : first+types]) {
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
				e.values[c.value] = valueAt(c.samples.At(i), k)
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

// valueAt returns the value of the kth observation; one that has only a timestamp counts 1.
func valueAt(s pprofile.Sample, k int) int64 {
	if s.Values().Len() == 0 {
		return 1
	}
	return s.Values().At(k)
}

// longestFirst returns the columns' numbers, those with most samples first. Profiles that were decoded
// from one pprof leave out the samples that are 0 for them: the longest one's order is then closest to
// the original's, and a scan along it finds the samples of the others.
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
	samples := columns[column].samples
	e.profile = columns[column].profile
	e.join.startColumn(column)
	for i := range samples.Len() {
		s := samples.At(i)
		e.sample = i
		e.checkShape(s)
		if e.err != nil {
			return
		}
		timestamps := s.TimestampsUnixNano()
		key := identity{stack: s.StackIndex(), link: s.LinkIndex(), attributes: e.attributeSet(s.AttributeIndices())}
		for k := range max(1, timestamps.Len()) {
			if timestamps.Len() > 0 {
				key.timed, key.timestamp = true, timestamps.At(k)
			}
			e.join.add(key, int32(i), valueAt(s, k))
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
		if row.key.timed {
			e.setTimestamp(row.key.timestamp)
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

// identity is what the samples of several profiles are joined by. The stack comes first, since it
// usually differs.
type identity struct {
	stack, link int32
	attributes  dictionary.AttributeSetIndex
	timed       bool
	timestamp   uint64
}

// row is a pprof sample in the making.
type row struct {
	key identity
	// column and sample are the OTLP sample that came first, to be read again when the row is written.
	column, sample int32
	// lastColumn is the column of the row's last value, next the following row of the same
	// identity, cell the head of its values. -1 ends each list.
	lastColumn, next, cell int32
}

// cell is one value of a row. A list of cells, not a matrix, keeps the memory in proportion to the
// input: profiles may have few identities in common.
type cell struct {
	value        int64
	column, next int32
}

// chain lists the rows of one identity: several if a profile repeats it. Rows before cursor
// have a value of the current column already.
type chain struct{ first, last, cursor, column int32 }

const (
	// scanAhead is how many rows are always scanned for a sample before the hash table is used.
	scanAhead = 16
	// scanRounds is how often the samples of a column may scan all rows. It costs much less than building
	// the hash table, and profiles decoded from one pprof then rarely need that.
	scanRounds = 16
)

// joiner joins the columns of a group by identity.
type joiner struct {
	rows []row
	// stacks[r] is row r's stack again: a dense slice is faster to scan.
	stacks []int32
	cells  []cell
	// column is the current one; its next sample is expected at row cursor. Its samples may scan budget more rows.
	column         int32
	cursor, budget int
	// started is set if there are rows of earlier columns.
	started bool
	// chains and byKey index the rows, once a scan has not found a sample.
	chains  []chain
	byKey   map[identity]int32
	indexed bool
}

func (j *joiner) reset() {
	j.rows, j.stacks, j.cells, j.chains = j.rows[:0], j.stacks[:0], j.cells[:0], j.chains[:0]
	j.byKey = cleared(j.byKey)
	j.indexed, j.started = false, false
}

// bytes is the memory in use, without the map.
func (j *joiner) bytes() int {
	return dictionary.BytesOf(j.rows) + dictionary.BytesOf(j.stacks) + dictionary.BytesOf(j.cells) + dictionary.BytesOf(j.chains)
}

func (j *joiner) startColumn(column int) {
	j.started = len(j.rows) > 0
	j.column, j.cursor, j.budget = int32(column), 0, scanRounds*len(j.rows)
}

// add adds an observation of the current column to a row of its identity. A row has one value of
// each column, so that two samples of one identity in a profile stay two samples.
func (j *joiner) add(key identity, sample int32, value int64) {
	r := j.find(key)
	if r < 0 {
		r = int32(len(j.rows))
		j.stacks = append(j.stacks, key.stack)
		j.rows = append(j.rows, row{key: key, column: j.column, sample: sample, lastColumn: -1, next: -1, cell: -1})
		if j.indexed {
			j.index(r)
		}
	}
	row := &j.rows[r]
	row.lastColumn = j.column
	j.cells = append(j.cells, cell{value: value, column: j.column, next: row.cell})
	row.cell = int32(len(j.cells) - 1)
}

// find returns a row of the identity that has no value of the current column yet, or -1.
func (j *joiner) find(key identity) int32 {
	if !j.started {
		return -1 // each sample of the first column is a row
	}
	// Fast path: the columns follow one order, so the row is the next one or a little further.
	if r, isCertain := j.scan(key); isCertain {
		return r
	}
	// Slow path.
	if !j.indexed {
		j.indexAll()
	}
	c, ok := j.byKey[key]
	if !ok {
		return -1
	}
	chain := &j.chains[c]
	if chain.column != j.column {
		chain.cursor, chain.column = chain.first, j.column
	}
	for chain.cursor >= 0 && j.rows[chain.cursor].lastColumn == j.column {
		chain.cursor = j.rows[chain.cursor].next
	}
	if chain.cursor >= 0 {
		j.cursor = int(chain.cursor) + 1
	}
	return chain.cursor
}

// scan looks for the identity along the rows, from the cursor to the end and then from the start.
// It is certain if it found a row without a value of the current column, or scanned all rows.
func (j *joiner) scan(key identity) (row int32, isCertain bool) {
	steps := min(max(scanAhead, j.budget), len(j.stacks))
	ahead := j.stacks[j.cursor:min(j.cursor+steps, len(j.stacks))]
	wrapped := j.stacks[:steps-len(ahead)]
	r := j.scanPart(key, j.cursor, ahead)
	if r < 0 {
		r = j.scanPart(key, 0, wrapped)
	}
	return r, r >= 0 || steps == len(j.stacks)
}

// scanPart looks for the identity among the rows from first on, which have these stacks.
func (j *joiner) scanPart(key identity, first int, stacks []int32) int32 {
	for k, stack := range stacks {
		if stack != key.stack {
			continue
		}
		r := first + k
		if row := &j.rows[r]; row.key == key && row.lastColumn != j.column {
			j.cursor = r + 1
			j.budget -= k
			return int32(r)
		}
	}
	j.budget -= len(stacks)
	return -1
}

func (j *joiner) indexAll() {
	j.indexed = true
	for r := range j.rows {
		j.index(int32(r))
	}
}

func (j *joiner) index(r int32) {
	key := j.rows[r].key
	c, ok := j.byKey[key]
	if !ok {
		j.byKey[key] = int32(len(j.chains))
		j.chains = append(j.chains, chain{first: r, last: r, cursor: r, column: -1})
		return
	}
	chain := &j.chains[c]
	j.rows[chain.last].next = r
	chain.last = r
}

// valuesOf fills values, one for each sample type, with those of a row; the others are 0.
func (j *joiner) valuesOf(row *row, columns []column, values []int64) {
	clear(values)
	for c := row.cell; c >= 0; c = j.cells[c].next {
		values[columns[j.cells[c].column].value] = j.cells[c].value
	}
}
