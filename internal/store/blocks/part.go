// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blocks

import (
	"cmp"
	"iter"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
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

// part is what of a block on disk a service has.
type part struct {
	block   *Block
	service *blockfile.Service
	scan    *blockfile.Scan
	memory  *model.Memory
	taken   int
	dict    *dictionary.Dictionary
	// hasDictionary is not set if nobody looks up what samples refer to.
	hasDictionary bool

	rows    []blockfile.Profile
	metas   []model.Meta
	columns blockfile.Columns
	// piece has the columns of one profile.
	piece model.Columns
	// rowsTaken is how many rows the memory is for.
	rowsTaken int
}

// Open implements Block.
func (b *Block) Open(service string, withDictionary bool, m *model.Memory) (model.Part, error) {
	p := &part{block: b, service: b.services[service], memory: m, dict: dictionary.New(),
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

func (p *part) take(n int) error {
	p.taken += n
	return p.memory.Grow(n)
}

func (p *part) loadDictionary() error {
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
func (p *part) Close() {
	p.memory.Release(p.taken)
	if p.scan != nil {
		p.scan.Close()
	}
}

// Dict implements Part.
func (p *part) Dict() *dictionary.Dictionary { return p.dict }

// Resources implements Part: a dictionary is of one service.
func (p *part) Resources() iter.Seq[dictionary.AttributeSetIndex] {
	return func(func(dictionary.AttributeSetIndex) bool) {}
}

// Meta implements Part.
func (p *part) Meta(of *model.Profile) *model.Meta { return &p.metas[of.MetaAt] }

// Profiles implements Part.
func (p *part) Profiles(
	list []*model.BlockSeries, withFields bool, wants func(*model.BlockSeries, *model.Profile) bool,
	use func(in, number int, p *model.Profile) error,
) error {
	rows := 0
	for _, sr := range list {
		rows += sr.Profiles
	}
	if rows = min(rows, rowsPerLoad); len(p.rows) < rows {
		p.rows = make([]blockfile.Profile, rows)
	}
	first := 0
	for run := range model.Runs(list, isNext) { // they are read at once
		r := profileRun{part: p, list: run, withFields: withFields, wants: wants}
		if err := r.each(func(in, number int, c *model.Profile) error { return use(first+in, number, c) }); err != nil {
			return err
		}
		first += len(run)
	}
	return nil
}

// profileRun reads the profiles of series that follow each other.
type profileRun struct {
	*part
	list       []*model.BlockSeries
	withFields bool
	wants      func(*model.BlockSeries, *model.Profile) bool
}

func (r *profileRun) each(use func(in, number int, p *model.Profile) error) error {
	at := position{list: r.list, sample: r.list[0].FirstSample}
	first, last := r.list[0].First, r.list[len(r.list)-1]
	for end := last.First + int64(last.Profiles); first < end; {
		rows := r.rows[:min(end-first, int64(len(r.rows)))]
		if err := r.scan.ProfileTimes(first, rows); err != nil {
			return r.block.fault(err)
		}
		known := 0 // rows whose other fields are read, or are not needed
		for i := range rows {
			row := &rows[i]
			if row.Samples < 0 {
				return r.block.fault(model.ErrRange)
			}
			in, number := at.next(row)
			if !r.wants(r.list[in], &row.Profile) {
				continue
			}
			if i >= known {
				known = min(len(rows), i+rowsPerFields)
				if err := r.fields(first+int64(i), rows[i:known]); err != nil {
					return r.block.fault(err)
				}
			}
			if err := cmp.Or(r.setMeta(row), use(in, number, &row.Profile)); err != nil {
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

// position is the number of a profile in a list of series, and its first sample.
type position struct {
	list       []*model.BlockSeries
	in, number int
	sample     int64
}

// next sets where a profile has its samples, and returns the index of its series, and its number in that.
func (p *position) next(row *blockfile.Profile) (in, number int) {
	for p.number == p.list[p.in].Profiles {
		p.in, p.number = p.in+1, 0
		p.sample = p.list[p.in].FirstSample
	}
	row.At = p.sample
	p.sample += int64(row.Samples)
	p.number++
	return p.in, p.number - 1
}

func (r *profileRun) fields(first int64, rows []blockfile.Profile) error {
	if err := r.scan.ProfileKinds(first, rows); err != nil || !r.withFields {
		return err
	}
	return r.scan.ProfileMetas(r.service, first, rows)
}

// setMeta sets where the part has the fields of a profile.
func (r *profileRun) setMeta(row *blockfile.Profile) error {
	if !r.withFields {
		return nil
	}
	if !r.hasDictionary {
		row.Attributes, row.Scope = 0, 0
	}
	if n := len(r.metas); n == 0 || r.metas[n-1] != row.Meta {
		if row.IsOutside(r.dict.AttributeSets.Len()) {
			return r.block.fault(model.ErrRange)
		}
		r.metas = append(r.metas, row.Meta)
	}
	row.MetaAt = int32(len(r.metas) - 1)
	return nil
}

// Rows implements Part.
func (p *part) Rows(
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
		run := rowRun{part: p, first: profile(first).At, profiles: 1, rows: int(profile(first).Samples),
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
	*part
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
	want = want.Of(r.flags)
	for done := 0; done < r.rows; {
		n := min(r.rows-done, maxRowsLoaded)
		if err := r.read(r.first+int64(done), n, want); err != nil {
			return err
		}
		at := 0
		for i := range r.profiles {
			end := min(at+samplesOf(i), n)
			r.piece = r.columns.Slice(at, end)
			if err := use(i, &r.piece); err != nil {
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
func (p *part) read(first int64, n int, want model.ColumnsWanted) error {
	c := &p.columns
	if err := p.scan.Samples(p.service, first, n, want, c); err != nil {
		return p.block.fault(err)
	}
	isAnyOutside := func(list []int32, n int) bool {
		return slices.ContainsFunc(list, func(i int32) bool { return model.IsOutside(i, n) })
	}
	if p.hasDictionary &&
		(isAnyOutside(c.Stacks, p.dict.Stacks.Len()) || isAnyOutside(c.Attributes, p.dict.AttributeSets.Len())) {
		return p.block.fault(model.ErrRange)
	}
	c.Links = c.Links[:0]
	for _, link := range c.Traces {
		i := int32(0)
		if link != (dictionary.Link{}) {
			i = int32(p.dict.Links.Intern(link))
		}
		c.Links = append(c.Links, i)
	}
	return nil
}
