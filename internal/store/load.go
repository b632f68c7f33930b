// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

const (
	// dictionaryLoadFactor is about how many bytes of memory a byte of a dictionary takes while it is loaded, with the
	// buffers that it is read from.
	dictionaryLoadFactor = 8
	// rowsPerLoad is how many profiles are read at once, and loadBytes the memory of that.
	rowsPerLoad = 4 << 10
	loadBytes   = rowsPerLoad * 256
	// rowsPerFields is how many rows are read at once of which one is wanted.
	rowsPerFields = 512
	// maxRowsLoaded is how many samples are read at once, and rowLoadedBytes the memory of one.
	maxRowsLoaded  = 1 << 16
	rowLoadedBytes = 60
)

// diskPart is what of a block on disk a service has.
type diskPart struct {
	block   *diskBlock
	service *blockfile.Service
	scan    *blockfile.Scan
	memory  *model.Memory
	taken   int
	dict    *dictionary.Dictionary
	// hasDictionary is not set if nobody looks up what samples refer to.
	hasDictionary bool

	rows    []blockfile.Profile
	metas   []model.Meta
	last    blockfile.Profile // whose meta is the last one
	current model.Profile
	raw     blockfile.Columns
	columns model.Columns
	// rowsTaken is how many rows the memory is for.
	rowsTaken int
}

// Open implements Block.
func (b *diskBlock) Open(service string, withDictionary bool, m *model.Memory) (model.Part, error) {
	p := &diskPart{block: b, service: b.services[service], memory: m, dict: dictionary.New(),
		hasDictionary: withDictionary}
	if err := p.take(loadBytes); err != nil {
		p.Close()
		return nil, err
	}
	p.scan = b.Scan()
	if withDictionary {
		if err := p.loadDictionary(); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

func (p *diskPart) take(n int) error {
	p.taken += n
	return p.memory.Grow(n)
}

func (p *diskPart) loadDictionary() error {
	loading := dictionaryLoadFactor * p.service.Dictionary.Plain
	if err := p.memory.Grow(loading); err != nil {
		return err
	}
	dict, err := p.block.Dictionary(p.service)
	p.memory.Release(loading)
	if err != nil {
		return p.block.fault(err)
	}
	p.dict = dict
	return p.take(dict.MemoryBytes() + p.service.Dictionary.Plain) // its strings are parts of that
}

// Close implements Part.
func (p *diskPart) Close() {
	p.memory.Release(p.taken)
	if p.scan != nil {
		p.scan.Close()
	}
}

// Dict implements Part.
func (p *diskPart) Dict() *dictionary.Dictionary { return p.dict }

// Resources implements Part: a dictionary is of one service.
func (p *diskPart) Resources() iter.Seq[dictionary.AttributeSetIndex] {
	return func(func(dictionary.AttributeSetIndex) bool) {}
}

// Meta implements Part.
func (p *diskPart) Meta(of *model.Profile) *model.Meta { return &p.metas[of.Meta] }

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
func isNext(last, next *model.BlockSeries) bool { return last.First+int64(last.Profiles) == next.First }

// Starts implements Block.
func (b *diskBlock) Starts(list []*model.BlockSeries, use func(in int, starts []int64) error) error {
	scan := b.Scan()
	defer scan.Close()
	first := 0
	for run := range runsBy(list, isNext) {
		rows := 0
		for _, in := range run {
			rows += in.Profiles
		}
		starts := make([]int64, rows)
		if err := scan.ProfileStarts(run[0].First, starts); err != nil {
			return b.fault(err)
		}
		for i, in := range run {
			if err := use(first+i, starts[:in.Profiles]); err != nil {
				return err
			}
			starts = starts[in.Profiles:]
		}
		first += len(run)
	}
	return nil
}

// Profiles implements Part.
func (p *diskPart) Profiles(
	list []*model.BlockSeries, withFields bool, wants func(*model.BlockSeries, *model.Profile) bool,
	use func(in, number int, p *model.Profile) error,
) error {
	if p.rows == nil {
		p.rows = make([]blockfile.Profile, rowsPerLoad)
	}
	first := 0
	for run := range runsBy(list, isNext) { // they are read at once
		r := profileRun{diskPart: p, list: run, withFields: withFields, wants: wants}
		if err := r.each(func(in, number int, c *model.Profile) error { return use(first+in, number, c) }); err != nil {
			return err
		}
		first += len(run)
	}
	return nil
}

// profileRun reads the profiles of series that follow each other.
type profileRun struct {
	*diskPart
	list       []*model.BlockSeries
	withFields bool
	wants      func(*model.BlockSeries, *model.Profile) bool
}

func (r *profileRun) each(use func(in, number int, p *model.Profile) error) error {
	at, number, sample := 0, 0, r.list[0].FirstSample
	first, last := r.list[0].First, r.list[len(r.list)-1]
	for end := last.First + int64(last.Profiles); first < end; {
		rows := r.rows[:min(end-first, int64(len(r.rows)))]
		if err := r.scan.ProfileTimes(first, rows); err != nil {
			return r.block.fault(err)
		}
		known := 0 // rows whose other fields are read, or are not needed
		for i := range rows {
			for number == r.list[at].Profiles {
				at, number = at+1, 0
				sample = r.list[at].FirstSample
			}
			row := &rows[i]
			if row.Samples < 0 {
				return r.block.fault(model.ErrRange)
			}
			p := r.profile(row, sample)
			sample += int64(row.Samples)
			number++
			if !r.wants(r.list[at], p) {
				continue
			}
			if i >= known {
				known = min(len(rows), i+rowsPerFields)
				if err := r.fields(first+int64(i), rows[i:known]); err != nil {
					return r.block.fault(err)
				}
			}
			if err := cmp.Or(r.setFields(p, row), use(at, number-1, p)); err != nil {
				return err
			}
		}
		first += int64(len(rows))
		if err := r.memory.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *profileRun) fields(first int64, rows []blockfile.Profile) error {
	if err := r.scan.ProfileKinds(first, rows); err != nil || !r.withFields {
		return err
	}
	return r.scan.ProfileFields(r.service, first, rows)
}

// profile returns a profile, of which only the time for which it counts is known, and whose samples begin at a row.
func (p *diskPart) profile(row *blockfile.Profile, at int64) *model.Profile {
	p.current = model.Profile{Start: row.Start, End: row.End, Total: row.Total, Samples: row.Samples, At: at}
	return &p.current
}

// setFields sets the other fields.
func (r *profileRun) setFields(p *model.Profile, row *blockfile.Profile) error {
	p.Time, p.Duration, p.Values, p.Flags = row.Time, row.DurationNanos, kind.Values(row.Kind), model.Flags(row.Flags)
	if !r.withFields {
		return nil
	}
	if !r.hasDictionary {
		row.AttributeSet, row.ScopeSet = 0, 0
	}
	last := &r.last
	if len(r.metas) == 0 || row.PeriodType != last.PeriodType || row.PeriodUnit != last.PeriodUnit ||
		row.Period != last.Period ||
		row.Position != last.Position || row.AttributeSet != last.AttributeSet || row.ScopeSet != last.ScopeSet {
		strs, sets := &r.dict.Strings, r.dict.AttributeSets.Len()
		if model.IsOutside(row.AttributeSet, sets) || model.IsOutside(row.ScopeSet, sets) {
			return r.block.fault(model.ErrRange)
		}
		r.last = *row
		r.metas = append(r.metas, model.Meta{
			PeriodType: strs.Intern(row.PeriodType), PeriodUnit: strs.Intern(row.PeriodUnit), Period: row.Period,
			Position:   row.Position,
			Attributes: dictionary.AttributeSetIndex(row.AttributeSet), Scope: dictionary.AttributeSetIndex(row.ScopeSet),
		})
	}
	p.Meta = int32(len(r.metas) - 1)
	return nil
}

// Rows implements Part.
func (p *diskPart) Rows(
	n int, at func(i int) (*model.BlockSeries, *model.Profile), want model.ColumnsWanted,
	use func(i int, c *model.Columns) error,
) error {
	defer func() {
		p.memory.Release(rowLoadedBytes * p.rowsTaken)
		p.rowsTaken = 0
	}()
	profile := func(i int) *model.Profile {
		_, of := at(i)
		return of
	}
	for first := 0; first < n; {
		// Rows that follow each other are read at once.
		run := rowRun{diskPart: p, first: profile(first).At, profiles: 1, rows: int(profile(first).Samples),
			flags: profile(first).Flags}
		for first+run.profiles < n {
			next := profile(first + run.profiles)
			if next.At != run.first+int64(run.rows) || run.rows+int(next.Samples) > maxRowsLoaded {
				break
			}
			run.profiles, run.rows, run.flags = run.profiles+1, run.rows+int(next.Samples), run.flags|next.Flags
		}
		begin := first
		samplesOf := func(i int) int { return int(profile(begin + i).Samples) }
		if err := run.each(samplesOf, want, func(i int, c *model.Columns) error { return use(begin+i, c) }); err != nil {
			return err
		}
		first += run.profiles
	}
	return nil
}

// rowRun reads the rows of profiles that follow each other: those of several are at most maxRowsLoaded.
type rowRun struct {
	*diskPart
	first          int64
	profiles, rows int
	flags          model.Flags
}

func (r *rowRun) each(samplesOf func(i int) int, want model.ColumnsWanted,
	use func(i int, c *model.Columns) error) error {
	if more := min(r.rows, maxRowsLoaded) - r.rowsTaken; more > 0 {
		r.rowsTaken += more
		if err := r.memory.Grow(rowLoadedBytes * more); err != nil {
			return err
		}
	}
	want.Attributes, want.Links = want.Attributes && r.flags&model.HasAttributes != 0, want.Links &&
		r.flags&model.HasLinks != 0
	want.Timestamps = want.Timestamps && r.flags&model.HasTimestamps != 0
	for done := 0; done < r.rows; {
		n := min(r.rows-done, maxRowsLoaded)
		if err := r.read(r.first+int64(done), n, want); err != nil {
			return err
		}
		at := 0
		for i := range r.profiles {
			end := min(at+samplesOf(i), n)
			part := r.columns.Slice(at, end)
			if err := use(i, &part); err != nil {
				return err
			}
			at = end
		}
		if err := r.memory.Check(); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// read fills the columns.
func (p *diskPart) read(first int64, n int, want model.ColumnsWanted) error {
	if err := p.scan.Samples(p.service, first, n, blockfile.Want(want), &p.raw); err != nil {
		return p.block.fault(err)
	}
	isAnyOutside := func(list []int32, n int) bool {
		return slices.ContainsFunc(list, func(i int32) bool { return uint32(i) >= uint32(n) })
	}
	if p.hasDictionary &&
		(isAnyOutside(p.raw.Stacks, p.dict.Stacks.Len()) || isAnyOutside(p.raw.Attributes, p.dict.AttributeSets.Len())) {
		return p.block.fault(fmt.Errorf("%w: a sample has an index that is out of range", blockfile.ErrDamaged))
	}
	links := p.columns.Links[:0]
	for _, link := range p.raw.Links {
		i := int32(0)
		if link != (dictionary.Link{}) {
			i = int32(p.dict.Links.Intern(link))
		}
		links = append(links, i)
	}
	p.columns = model.Columns{
		Stacks: p.raw.Stacks, Attributes: p.raw.Attributes, Links: links, Timestamps: p.raw.Timestamps, Values: p.raw.Values,
	}
	return nil
}
