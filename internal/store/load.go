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
	columns blockfile.Columns
	scratch columns
}

// partQuery chooses what of a block is loaded.
type partQuery struct {
	service string
	// until 0 means no end. A gauge counts from hold before from on: others that start after it say until when it
	// holds.
	from, until, hold int64
	// before is 0, or leaves out profiles of which no observation, which lasts for its value, can have begun before it.
	before int64
	// wanted chooses series.
	wanted func(*blockfile.Series) bool
	// Without the dictionary, which is most of what is read, there are no attributes, and samples cannot be read.
	withDictionary bool
}

// part loads the series of a service that wanted chooses, with the profiles that have a part in [from, until) but
// without samples.
func (b *diskBlock) part(
	name string, from, until int64, wanted func(*blockfile.Series) bool, withDictionary bool, m *Memory,
) (*block, error) {
	return b.loadPart(&partQuery{service: name, from: from, until: until, wanted: wanted, withDictionary: withDictionary}, m)
}

// wants reports whether a profile from start to end, or any of a series, is wanted.
func (q *partQuery) wants(isGauge bool, start, end, total int64, unit string) bool {
	if isGauge {
		end += q.hold
	}
	return end >= q.from && (q.until == 0 || start < q.until) && (q.before == 0 || start-durationOf(total, TimeUnit(unit)) < q.before)
}

func (b *diskBlock) loadPart(q *partQuery, m *Memory) (*block, error) {
	at, ok := b.services[q.service]
	if !ok || b.Until+q.hold < q.from || q.until != 0 && b.From >= q.until {
		return nil, nil
	}
	service := &b.Services[at]
	var list []*blockfile.Series
	for i := range service.Series {
		in := &service.Series[i]
		if q.wanted(in) && q.wants(in.Kind == kind.Gauge.String(), in.Start, in.End, in.Total, in.Unit) {
			list = append(list, in)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	dict := dictionary.New()
	if q.withDictionary {
		var err error
		if dict, err = b.dictionary(service, m); err != nil {
			return nil, err
		}
	}
	e := &block{dict: dict, disk: &diskPart{block: b, service: service}, byMeta: map[meta]int32{}, begun: b.catalog.begun}
	loader := &partLoader{partQuery: q, block: e, memory: m, sets: dict.AttributeSets.Len()}
	if err := m.Take(loadBytes); err != nil {
		return nil, err
	}
	defer m.Release(loadBytes)
	// Series that follow each other are read at once.
	for of := range runsBy(list, func(last, next *blockfile.Series) bool {
		return last.FirstProfile+int64(last.Profiles) == next.FirstProfile
	}) {
		if err := loader.series(of); err != nil {
			return nil, err
		}
	}
	return e, nil
}

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
	// loadedBytes is the memory of a profile that was loaded.
	loadedBytes = chunkBytes * 5 / 4
)

// partLoader adds profiles to a block.
type partLoader struct {
	*partQuery
	block  *block
	memory *Memory
	sets   int // of attributes
	rows   [rowsPerLoad]blockfile.Profile
}

// series loads series whose rows follow each other.
func (l *partLoader) series(list []*blockfile.Series) error {
	b := l.block.disk.block
	first, last := list[0].FirstProfile, list[len(list)-1]
	in, left, sample := (*series)(nil), 0, int64(0)
	for end := last.FirstProfile + int64(last.Profiles); first < end; {
		rows := l.rows[:min(end-first, rowsPerLoad)]
		if err := b.ProfileTimes(first, rows); err != nil {
			return b.fault(err)
		}
		known := 0 // rows whose other fields are read, or are not needed
		for i := range rows {
			for left == 0 {
				var err error
				if in, err = l.begin(list[0]); err != nil {
					return err
				}
				left, sample, list = list[0].Profiles, list[0].FirstSample, list[1:]
			}
			left--
			p := &rows[i]
			if p.Samples < 0 {
				return &damagedBlock{b, errRange}
			}
			row := sample
			sample += int64(p.Samples)
			if !l.wants(in.values == kind.Gauge, p.Start, p.End, p.Total, l.block.dict.Strings.At(in.unit)) {
				continue
			}
			if i >= known {
				known = min(len(rows), i+rowsPerFields)
				if err := b.ProfileFields(l.block.disk.service, first+int64(i), rows[i:known]); err != nil {
					return b.fault(err)
				}
			}
			if err := l.add(in, p, row); err != nil {
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

// rowsPerFields is how many rows are read at once of which one is wanted.
const rowsPerFields = 512

var errRange = fmt.Errorf("%w: a profile has an index that is out of range", blockfile.ErrDamaged)

// begin adds a series without profiles.
func (l *partLoader) begin(in *blockfile.Series) (*series, error) {
	sr := seriesOf(&l.block.dict.Strings, l.service, in)
	if l.withDictionary {
		sr.resource, sr.attributes = dictionary.AttributeSetIndex(in.Resource), dictionary.AttributeSetIndex(in.Attributes)
	}
	if int(sr.resource) >= l.sets || int(sr.attributes) >= l.sets || sr.resource < 0 || sr.attributes < 0 {
		return nil, &damagedBlock{l.block.disk.block, errRange}
	}
	if err := l.memory.Take(seriesBytes); err != nil {
		return nil, err
	}
	if l.from <= in.Start && (l.until == 0 || in.End < l.until) && l.before == 0 {
		if err := l.memory.Take(loadedBytes * in.Profiles); err != nil {
			return nil, err
		}
		l.memory.Release(loadedBytes * in.Profiles) // add takes it
		sr.chunks = make([]chunk, 0, in.Profiles)
	}
	l.block.series = append(l.block.series, sr)
	return &l.block.series[len(l.block.series)-1], nil
}

// add adds a profile whose samples begin at a row.
func (l *partLoader) add(sr *series, p *blockfile.Profile, row int64) error {
	e, strs := l.block, &l.block.dict.Strings
	if !l.withDictionary {
		p.AttributeSet, p.ScopeSet = 0, 0
	}
	if int(p.AttributeSet) >= l.sets || int(p.ScopeSet) >= l.sets || p.AttributeSet < 0 || p.ScopeSet < 0 {
		return &damagedBlock{e.disk.block, errRange}
	}
	if err := l.memory.Take(loadedBytes); err != nil {
		return err
	}
	c := chunk{
		time: p.Time, duration: p.DurationNanos, start: p.Start, end: p.End, total: p.Total, samples: p.Samples,
		values: kind.Values(p.Kind), flags: chunkFlags(p.Flags), row: row,
	}
	c.meta = e.meta(meta{
		periodType: strs.Intern(p.PeriodType), periodUnit: strs.Intern(p.PeriodUnit), period: p.Period, position: p.Position,
		attributes: dictionary.AttributeSetIndex(p.AttributeSet), scope: dictionary.AttributeSetIndex(p.ScopeSet),
	})
	e.add(sr, c)
	return nil
}

// load reads the samples of chunks of a block, which must be in its order.
func (e *block) load(chunks []*chunk, m *Memory) error {
	dict, out := e.dict, &e.disk.scratch
	taken, rows := 0, 0
	defer func() { m.Release(taken) }()
	return e.disk.read(dict, chunks, true, m, func(c *chunk, cols *blockfile.Columns) error {
		if rows == 0 {
			out.reset()
		}
		if more := rowScratchBytes*int(c.samples) - taken; more > 0 {
			taken += more
			if err := m.Take(more); err != nil {
				return err
			}
		}
		for i, stack := range cols.Stacks {
			set, link, timestamp := int32(0), int32(0), int64(0)
			if cols.Attributes != nil {
				set = cols.Attributes[i]
			}
			if cols.Links != nil && cols.Links[i] != (dictionary.Link{}) {
				link = int32(dict.Links.Intern(cols.Links[i]))
			}
			if c.flags&hasTimestamps != 0 {
				timestamp = cols.Timestamps[i] - c.time
			}
			out.stacks, out.attributes, out.links = append(out.stacks, stack), append(out.attributes, set), append(out.links, link)
			out.timestamps, out.values = append(out.timestamps, timestamp), append(out.values, cols.Values[i])
		}
		if rows += len(cols.Stacks); rows < int(c.samples) {
			return nil // the rest follows
		}
		rows = 0
		c.data = out.encode(c.flags)
		return m.Take(cap(c.data))
	})
}

const (
	// maxRowsLoaded is how many rows are read at once, and rowsLoadedBytes the memory of that.
	maxRowsLoaded   = 1 << 16
	rowsLoadedBytes = maxRowsLoaded * 56
	// rowScratchBytes is the memory of a row until it is encoded: columns that grow, and what they become.
	rowScratchBytes = 96
)

// read reads samples of chunks, which must be in the order of the block, and calls use with those of each, in one or
// more parts: stacks and values, and all else that the chunks have if all is true.
func (d *diskPart) read(dict *dictionary.Dictionary, chunks []*chunk, all bool, m *Memory, use func(*chunk, *blockfile.Columns) error) error {
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
		if err := d.readRows(dict, chunks[:n], rows, all, m, use); err != nil {
			return err
		}
		chunks = chunks[n:]
	}
	return nil
}

// readRows reads the rows of chunks that follow each other: those of several are at most maxRowsLoaded.
func (d *diskPart) readRows(
	dict *dictionary.Dictionary, chunks []*chunk, rows int, all bool, m *Memory, use func(*chunk, *blockfile.Columns) error,
) error {
	stacks, sets := uint32(dict.Stacks.Len()), uint32(dict.AttributeSets.Len())
	isOutside := func(list []int32, n uint32) bool {
		return slices.ContainsFunc(list, func(i int32) bool { return uint32(i) >= n })
	}
	var want blockfile.Want
	for _, c := range chunks {
		want.Attributes = want.Attributes || all && c.flags&hasAttributes != 0
		want.Links = want.Links || all && c.flags&hasLinks != 0
		want.Timestamps = want.Timestamps || all && c.flags&hasTimestamps != 0
	}
	cols := &d.columns
	for done := 0; done == 0 || done < rows; {
		n := min(rows-done, maxRowsLoaded)
		if err := d.block.Samples(d.service, chunks[0].row+int64(done), n, want, cols); err != nil {
			return d.block.fault(err)
		}
		if isOutside(cols.Stacks, stacks) || isOutside(cols.Attributes, sets) {
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
