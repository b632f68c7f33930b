// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// encIdentity is what the samples of several profiles are joined by. The stack comes first, since it
// is what mostly differs.
type encIdentity struct {
	stack, link int32
	attributes  encSetID
	timed       bool
	timestamp   uint64
}

// encRow is a pprof sample in the making.
type encRow struct {
	key encIdentity
	// column and sample say which OTLP sample came first, to be read again when the row is written.
	column, sample int32
	// lastColumn is the column that gave the row its last value, next the following row of the same
	// identity, cell the head of its values. -1 ends each list.
	lastColumn, next, cell int32
}

// encCell is one value of a row. A list of cells, not a matrix, keeps the memory in proportion to the
// input: profiles may have few identities in common.
type encCell struct {
	value        int64
	column, next int32
}

// encChain lists the rows of one identity: several where a profile repeats it. Rows before cursor
// have their value for the column in hand.
type encChain struct{ first, last, cursor, column int32 }

const (
	// encScanAhead is how far along the rows a sample is always looked for before the hash table is asked.
	encScanAhead = 16
	// encScanRounds is how often a column may go round all the rows. It costs much less than to build
	// the hash table, and profiles made from one pprof then rarely need that.
	encScanRounds = 16
)

// encZip joins the columns of a group by identity.
type encZip struct {
	rows []encRow
	// stacks[r] is row r's stack again, dense, to go along quickly.
	stacks []int32
	cells  []encCell
	// column is the one being added; its next sample is expected at row cursor, or at most budget rows
	// further on.
	column         int32
	cursor, budget int
	// started says that there are rows of earlier columns.
	started bool
	// chains and byKey index the rows; they are filled when a sample is first not found by going along.
	chains  []encChain
	byKey   map[encIdentity]int32
	indexed bool
}

func (z *encZip) reset() {
	z.rows, z.stacks, z.cells, z.chains = z.rows[:0], z.stacks[:0], z.cells[:0], z.chains[:0]
	z.byKey = encClear(z.byKey)
	z.indexed, z.started = false, false
}

// bytes is what the memory takes, the map aside.
func (z *encZip) bytes() int {
	return bytesOf(z.rows) + bytesOf(z.stacks) + bytesOf(z.cells) + bytesOf(z.chains)
}

func (z *encZip) startColumn(column int) {
	z.started = len(z.rows) > 0
	z.column, z.cursor, z.budget = int32(column), 0, encScanRounds*len(z.rows)
}

// add puts an observation of the current column into the row of its identity. Each row takes one value
// of a column, so that what a profile lists twice stays two samples.
func (z *encZip) add(key encIdentity, sample int32, value int64) {
	r := z.find(key)
	if r < 0 {
		r = int32(len(z.rows))
		z.stacks = append(z.stacks, key.stack)
		z.rows = append(z.rows, encRow{key: key, column: z.column, sample: sample, lastColumn: -1, next: -1, cell: -1})
		if z.indexed {
			z.index(r)
		}
	}
	row := &z.rows[r]
	row.lastColumn = z.column
	z.cells = append(z.cells, encCell{value: value, column: z.column, next: row.cell})
	row.cell = int32(len(z.cells) - 1)
}

// find gives a row of the identity that has no value of the current column yet, or -1.
func (z *encZip) find(key encIdentity) int32 {
	if !z.started {
		return -1 // the first column has nobody to share a row with
	}
	// Fast path: the columns follow one order, so the row is the next one or a little further.
	if r, sure := z.scan(key); sure {
		return r
	}
	// Slow path.
	if !z.indexed {
		z.indexAll()
	}
	c, ok := z.byKey[key]
	if !ok {
		return -1
	}
	chain := &z.chains[c]
	if chain.column != z.column {
		chain.cursor, chain.column = chain.first, z.column
	}
	for chain.cursor >= 0 && z.rows[chain.cursor].lastColumn == z.column {
		chain.cursor = z.rows[chain.cursor].next
	}
	if chain.cursor >= 0 {
		z.cursor = int(chain.cursor) + 1
	}
	return chain.cursor
}

// scan looks for the identity along the rows, from the cursor to the end and round to the cursor again.
// It is sure where it found a row without a value of the current column, or went all the way.
func (z *encZip) scan(key encIdentity) (row int32, sure bool) {
	steps := min(max(encScanAhead, z.budget), len(z.stacks))
	ahead := z.stacks[z.cursor:min(z.cursor+steps, len(z.stacks))]
	round := z.stacks[:steps-len(ahead)]
	r := z.scanPart(key, z.cursor, ahead)
	if r < 0 {
		r = z.scanPart(key, 0, round)
	}
	return r, r >= 0 || steps == len(z.stacks)
}

// scanPart looks for the identity among the rows from first on, whose stacks are given.
func (z *encZip) scanPart(key encIdentity, first int, stacks []int32) int32 {
	for k, stack := range stacks {
		if stack != key.stack {
			continue
		}
		r := first + k
		if row := &z.rows[r]; row.key == key && row.lastColumn != z.column {
			z.cursor = r + 1
			z.budget -= k
			return int32(r)
		}
	}
	z.budget -= len(stacks)
	return -1
}

func (z *encZip) indexAll() {
	z.indexed = true
	for r := range z.rows {
		z.index(int32(r))
	}
}

func (z *encZip) index(r int32) {
	key := z.rows[r].key
	c, ok := z.byKey[key]
	if !ok {
		z.byKey[key] = int32(len(z.chains))
		z.chains = append(z.chains, encChain{first: r, last: r, cursor: r, column: -1})
		return
	}
	chain := &z.chains[c]
	z.rows[chain.last].next = r
	chain.last = r
}

// valuesOf fills values, one for each column, with those of a row; the others are 0.
func (z *encZip) valuesOf(row *encRow, values []int64) {
	clear(values)
	for c := row.cell; c >= 0; c = z.cells[c].next {
		values[z.cells[c].column] = z.cells[c].value
	}
}
