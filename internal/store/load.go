// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"iter"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// diskPart is what of a block on disk a service has.
type diskPart struct {
	block   *diskBlock
	service *blockfile.Service
	rows    *blockfile.Scan
	columns blockfile.Columns
	// isUnchecked is set if the dictionary is not loaded: nobody looks up what samples refer to.
	isUnchecked bool
}

// series returns a series without profiles; without the dictionary of the service, it has no attributes.
func (d *diskPart) series(dict *dictionary.Dictionary, service string, in *blockfile.Series, withDictionary bool) (*series, error) {
	sr := seriesOf(&dict.Strings, service, in)
	if withDictionary {
		sr.resource, sr.attributes = dictionary.AttributeSetIndex(in.Resource), dictionary.AttributeSetIndex(in.Attributes)
	}
	if sets := dict.AttributeSets.Len(); isOutside(int32(sr.resource), sets) || isOutside(int32(sr.attributes), sets) {
		return nil, &damagedBlock{d.block, errRange}
	}
	return &sr, nil
}

// isOutside reports whether an index is none of a table of n entries. Every table has entry 0.
func isOutside(i int32, n int) bool { return i < 0 || i > 0 && int(i) >= n }

// runsBy returns the parts of a list in which each entry follows the one before.
func runsBy[T any](list []T, follows func(last, next T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for n := 0; len(list) > 0; list = list[n:] {
			for n = 1; n < len(list) && follows(list[n-1], list[n]); n++ {
			}
			if !yield(list[:n]) {
				return
			}
		}
	}
}

// isNext reports whether the profiles of a series follow those of another one.
func isNext(last, next *blockfile.Series) bool {
	return last.FirstProfile+int64(last.Profiles) == next.FirstProfile
}

// dictionary loads the dictionary of a service.
func (b *diskBlock) dictionary(service *blockfile.Service, m *Memory) (*dictionary.Dictionary, error) {
	loading := dictionaryLoadFactor * service.Dictionary.Plain
	if err := m.Take(loading); err != nil {
		return nil, err
	}
	dict, err := b.Dictionary(service)
	if err != nil {
		return nil, b.fault(err)
	}
	m.Release(loading)
	return dict, m.Take(dict.MemoryBytes() + service.Dictionary.Plain) // its strings are parts of that
}

const (
	// dictionaryLoadFactor is about how many bytes of memory a byte of a dictionary takes while it is loaded, with the
	// buffers that it is read from.
	dictionaryLoadFactor = 8
	// rowsPerLoad is how many profiles are read at once, and loadBytes the memory of that.
	rowsPerLoad = 4 << 10
	loadBytes   = rowsPerLoad * 256
	// rowsPerFields is how many rows are read at once of which one is wanted.
	rowsPerFields = 512
)

var errRange = fmt.Errorf("%w: a profile has an index that is out of range", blockfile.ErrDamaged)

// profileLoader reads profiles of a block on disk.
type profileLoader struct {
	block  *block
	memory *Memory
	rows   []blockfile.Profile
	// wants chooses profiles.
	wants func(*blockfile.Series, *blockfile.Profile) bool
	// Without withFields, profiles have no meta; without withDictionary, that has no attributes.
	withFields, withDictionary bool
	current                    chunk
	last                       blockfile.Profile // whose meta is lastMeta
	lastMeta                   int32
}

// each calls use with the profiles of series: the index of the series, the number of the profile in it, and the profile, which is valid
// until use returns.
func (l *profileLoader) each(list []*blockfile.Series, use func(in, number int, c *chunk) error) error {
	l.lastMeta = -1
	first := 0
	for of := range runsBy(list, isNext) { // they are read at once
		if err := l.run(of, func(in, number int, c *chunk) error { return use(first+in, number, c) }); err != nil {
			return err
		}
		first += len(of)
	}
	return nil
}

func (l *profileLoader) run(list []*blockfile.Series, use func(in, number int, c *chunk) error) error {
	b := l.block.disk.block
	at, number, sample := 0, 0, list[0].FirstSample
	first, last := list[0].FirstProfile, list[len(list)-1]
	for end := last.FirstProfile + int64(last.Profiles); first < end; {
		rows := l.rows[:min(end-first, int64(len(l.rows)))]
		if err := l.block.disk.rows.ProfileTimes(first, rows); err != nil {
			return b.fault(err)
		}
		known := 0 // rows whose other fields are read, or are not needed
		for i := range rows {
			for number == list[at].Profiles {
				at, number = at+1, 0
				sample = list[at].FirstSample
			}
			p := &rows[i]
			if p.Samples < 0 {
				return &damagedBlock{b, errRange}
			}
			row := sample
			sample += int64(p.Samples)
			number++
			if !l.wants(list[at], p) {
				continue
			}
			if i >= known {
				known = min(len(rows), i+rowsPerFields)
				if err := l.fields(first+int64(i), rows[i:known]); err != nil {
					return b.fault(err)
				}
			}
			c, err := l.chunk(p, row)
			if err != nil {
				return err
			}
			if err := use(at, number-1, c); err != nil {
				return err
			}
		}
		first += int64(len(rows))
		if err := l.memory.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (l *profileLoader) fields(first int64, rows []blockfile.Profile) error {
	d := l.block.disk
	if err := d.rows.ProfileKinds(first, rows); err != nil || !l.withFields {
		return err
	}
	return d.rows.ProfileFields(d.service, first, rows)
}

// chunk returns a profile whose samples begin at a row.
func (l *profileLoader) chunk(p *blockfile.Profile, row int64) (*chunk, error) {
	c := &l.current
	*c = chunk{
		time: p.Time, duration: p.DurationNanos, start: p.Start, end: p.End, total: p.Total, samples: p.Samples,
		values: kind.Values(p.Kind), flags: chunkFlags(p.Flags), row: row,
	}
	if !l.withFields {
		return c, nil
	}
	if !l.withDictionary {
		p.AttributeSet, p.ScopeSet = 0, 0
	}
	last := &l.last
	if l.lastMeta < 0 || p.PeriodType != last.PeriodType || p.PeriodUnit != last.PeriodUnit || p.Period != last.Period ||
		p.Position != last.Position || p.AttributeSet != last.AttributeSet || p.ScopeSet != last.ScopeSet {
		strs, sets := &l.block.dict.Strings, l.block.dict.AttributeSets.Len()
		if isOutside(p.AttributeSet, sets) || isOutside(p.ScopeSet, sets) {
			return nil, &damagedBlock{l.block.disk.block, errRange}
		}
		l.last, l.lastMeta = *p, l.block.meta(meta{
			periodType: strs.Intern(p.PeriodType), periodUnit: strs.Intern(p.PeriodUnit), period: p.Period, position: p.Position,
			attributes: dictionary.AttributeSetIndex(p.AttributeSet), scope: dictionary.AttributeSetIndex(p.ScopeSet),
		})
	}
	c.meta = l.lastMeta
	return c, nil
}

const (
	// maxRowsLoaded is how many rows are read at once, and rowsLoadedBytes the memory of that.
	maxRowsLoaded   = 1 << 16
	rowsLoadedBytes = maxRowsLoaded * 56
)

// read reads samples of chunks, which must be in the order of the block, and calls use with those of each, in one or more parts: stacks and
// values, and what else is wanted of the columns that the chunks have.
func (d *diskPart) read(
	dict *dictionary.Dictionary, chunks []*chunk, want blockfile.Want, m *Memory, use func(*chunk, *blockfile.Columns) error,
) error {
	taken := 0
	defer func() { m.Release(taken) }()
	for len(chunks) > 0 {
		// Rows that follow each other are read at once.
		n, rows := 1, int(chunks[0].samples)
		for n < len(chunks) && rows < maxRowsLoaded && chunks[n].row == chunks[0].row+int64(rows) {
			rows += int(chunks[n].samples)
			n++
		}
		if n > 1 && rows > maxRowsLoaded { // without the last one, which may be large
			n--
			rows -= int(chunks[n].samples)
		}
		if more := rowsLoadedBytes/maxRowsLoaded*min(rows, maxRowsLoaded) - taken; more > 0 {
			taken += more
			if err := m.Take(more); err != nil {
				return err
			}
		}
		if err := d.readRows(dict, chunks[:n], rows, want, m, use); err != nil {
			return err
		}
		chunks = chunks[n:]
	}
	return nil
}

// readRows reads the rows of chunks that follow each other: those of several are at most maxRowsLoaded.
func (d *diskPart) readRows(
	dict *dictionary.Dictionary, chunks []*chunk, rows int, want blockfile.Want, m *Memory, use func(*chunk, *blockfile.Columns) error,
) error {
	stacks, sets := uint32(dict.Stacks.Len()), uint32(dict.AttributeSets.Len())
	isAnyOutside := func(list []int32, n uint32) bool {
		return slices.ContainsFunc(list, func(i int32) bool { return uint32(i) >= n })
	}
	flags := chunkFlags(0)
	for _, c := range chunks {
		flags |= c.flags
	}
	want.Attributes, want.Links = want.Attributes && flags&hasAttributes != 0, want.Links && flags&hasLinks != 0
	want.Timestamps = want.Timestamps && flags&hasTimestamps != 0
	cols := &d.columns
	for done := 0; done == 0 || done < rows; {
		n := min(rows-done, maxRowsLoaded)
		if err := d.rows.Samples(d.service, chunks[0].row+int64(done), n, want, cols); err != nil {
			return d.block.fault(err)
		}
		if !d.isUnchecked && (isAnyOutside(cols.Stacks, stacks) || isAnyOutside(cols.Attributes, sets)) {
			return &damagedBlock{d.block, fmt.Errorf("%w: a sample has an index that is out of range", blockfile.ErrDamaged)}
		}
		at := 0
		for _, c := range chunks {
			end := min(at+int(c.samples), n)
			part := cols.Slice(at, end)
			if err := use(c, &part); err != nil {
				return err
			}
			at = end
		}
		if err := m.Check(); err != nil {
			return err
		}
		if done += n; n == 0 {
			break
		}
	}
	return nil
}
