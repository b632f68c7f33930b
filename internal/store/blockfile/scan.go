// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Scan reads rows of a block, from any on. It keeps the last page of each column, so that rows which follow those read
// before cost no more than their bytes. It is for one goroutine, which must close it.
type Scan struct {
	r                 *Reader
	profiles, samples map[int]*column
}

// Scan begins to read rows.
func (r *Reader) Scan() *Scan {
	return &Scan{r: r, profiles: map[int]*column{}, samples: map[int]*column{}}
}

// Close ends the reading.
func (s *Scan) Close() {
	for _, columns := range []map[int]*column{s.profiles, s.samples} {
		for _, c := range columns {
			c.close()
		}
	}
}

// profile and sample return a column of the file.
func (s *Scan) profile(index int) (*column, error) {
	return columnOf(s.profiles, index, func() (*parquetFile, error) { return s.r.open(&s.r.profiles, profilesFile) })
}

func (s *Scan) sample(index int) (*column, error) {
	return columnOf(s.samples, index, func() (*parquetFile, error) { return s.r.open(&s.r.samples, samplesFile) })
}

func columnOf(known map[int]*column, index int, open func() (*parquetFile, error)) (*column, error) {
	if c := known[index]; c != nil {
		return c, nil
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	c := &column{f: f, index: index}
	known[index] = c
	return c, nil
}

// ProfileTimes reads the times, the numbers of samples and the totals of profiles into list, from a row on.
func (s *Scan) ProfileTimes(first int64, list []Profile) error {
	return cmp.Or(setInts(s, first, list, map[int]func(p *Profile, v int64){
		4: func(p *Profile, v int64) { p.Start = v },
		5: func(p *Profile, v int64) { p.End = v },
		7: func(p *Profile, v int64) { p.Total = v },
	}), setInts(s, first, list, map[int]func(p *Profile, v int32){
		6: func(p *Profile, v int32) { p.Samples = v },
	}))
}

// ProfileStarts reads the starts of profiles, from a row on.
func (s *Scan) ProfileStarts(first int64, starts []int64) error {
	c, err := s.profile(4)
	if err != nil {
		return err
	}
	return readInts(c, first, starts)
}

// ProfileKinds reads into list how profiles count, from a row on.
func (s *Scan) ProfileKinds(first int64, list []Profile) error {
	return cmp.Or(setInts(s, first, list, map[int]func(p *Profile, v int64){
		2: func(p *Profile, v int64) { p.Time = v },
		3: func(p *Profile, v int64) { p.DurationNanos = v },
	}), setInts(s, first, list, map[int]func(p *Profile, v int32){
		14: func(p *Profile, v int32) { p.Kind = v },
		15: func(p *Profile, v int32) { p.Flags = v },
	}))
}

// ProfileFields reads the other fields of profiles of a service into list, from a row on.
func (s *Scan) ProfileFields(service *Service, first int64, list []Profile) error {
	return cmp.Or(setInts(s, first, list, map[int]func(p *Profile, v int64){
		10: func(p *Profile, v int64) { p.Period = v },
	}), setInts(s, first, list, map[int]func(p *Profile, v int32){
		11: func(p *Profile, v int32) { p.AttributeSet = service.set(v) },
		12: func(p *Profile, v int32) { p.ScopeSet = service.set(v) },
		13: func(p *Profile, v int32) { p.Position = v },
	}),
		s.eachString(8, first, len(list), func(i int, value string) { list[i].PeriodType = value }),
		s.eachString(9, first, len(list), func(i int, value string) { list[i].PeriodUnit = value }),
	)
}

// setInts sets the fields of profiles, of which the one at first is the first, that columns have.
func setInts[T int32 | int64](s *Scan, first int64, list []Profile, columns map[int]func(*Profile, T)) error {
	values := make([]T, len(list))
	for index, set := range columns {
		c, err := s.profile(index)
		if err == nil {
			err = readInts(c, first, values)
		}
		if err != nil {
			return err
		}
		for i := range list {
			set(&list[i], values[i])
		}
	}
	return nil
}

// eachString calls use with n values of a column of strings, most of which repeat the one before.
func (s *Scan) eachString(index int, first int64, n int, use func(i int, s string)) error {
	c, err := s.profile(index)
	if err != nil {
		return err
	}
	var last string
	return c.values(first, n, func(i int, v parquet.Value) {
		if b := v.ByteArray(); string(b) != last {
			last = string(b)
		}
		use(i, last)
	})
}

// set returns the index in the dictionary of a set of attributes.
func (s *Service) set(i int32) int32 {
	if i == 0 {
		return 0
	}
	return i - int32(s.FirstSet)
}

// Want selects the columns of samples to read, besides stacks and values.
type Want struct{ Attributes, Timestamps, Links bool }

// Columns holds samples, column by column.
type Columns struct {
	Stacks, Attributes []int32
	Values, Timestamps []int64
	Links              []dictionary.Link
}

// Slice returns the samples from a number on and before another one. A column that was not read is nil.
func (c *Columns) Slice(from, until int) Columns {
	part := Columns{Stacks: c.Stacks[from:until], Values: c.Values[from:until]}
	if len(c.Attributes) > 0 {
		part.Attributes = c.Attributes[from:until]
	}
	if len(c.Timestamps) > 0 {
		part.Timestamps = c.Timestamps[from:until]
	}
	if len(c.Links) > 0 {
		part.Links = c.Links[from:until]
	}
	return part
}

// Samples reads n samples of a service from a row on. Columns that are not wanted are empty.
func (s *Scan) Samples(service *Service, first int64, n int, want Want, c *Columns) error {
	c.Attributes, c.Timestamps, c.Links = c.Attributes[:0], c.Timestamps[:0], c.Links[:0]
	var err error
	ints := func(index int, to []int32) []int32 {
		to = slices.Grow(to[:0], n)[:n]
		of, failed := s.sample(index)
		if failed == nil {
			failed = readInts(of, first, to)
		}
		err = cmp.Or(err, failed)
		return to
	}
	values := func(index int, use func(i int, v parquet.Value)) {
		of, failed := s.sample(index)
		if failed == nil {
			failed = of.values(first, n, use)
		}
		err = cmp.Or(err, failed)
	}
	c.Stacks, c.Values = ints(stackColumn, c.Stacks), slices.Grow(c.Values[:0], n)[:n]
	for i := range c.Stacks {
		c.Stacks[i] -= int32(service.FirstStack)
	}
	of, failed := s.sample(valueColumn)
	if failed == nil {
		failed = readInts(of, first, c.Values)
	}
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	if want.Attributes {
		c.Attributes = ints(setColumn, c.Attributes)
		for i, set := range c.Attributes {
			c.Attributes[i] = service.set(set)
		}
	}
	if want.Timestamps {
		c.Timestamps = slices.Grow(c.Timestamps, n)[:n]
		values(timestampColumn, func(i int, v parquet.Value) { c.Timestamps[i] = v.Int64() })
	}
	if want.Links {
		c.Links = slices.Grow(c.Links, n)[:n]
		clear(c.Links)
		values(traceColumn, func(i int, v parquet.Value) { copy(c.Links[i].TraceID[:], v.ByteArray()) })
		values(spanColumn, func(i int, v parquet.Value) { copy(c.Links[i].SpanID[:], v.ByteArray()) })
	}
	return err
}

// column reads values of a column. Those from row at on are left of the page, if there is one, and of the pages of the
// row group.
type column struct {
	f     *parquetFile
	index int

	at, groupEnd int64
	pages        parquet.Pages
	page         parquet.Page
	left         parquet.ValueReader
}

func (c *column) close() {
	c.endPage()
	if c.pages != nil {
		_ = c.pages.Close()
		c.pages = nil
	}
}

func (c *column) endPage() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.left = nil, nil
	}
}

// readInts reads as many values as dst has, from a row on.
func readInts[T int32 | int64](c *column, first int64, dst []T) error {
	return c.read(first, len(dst), func(values parquet.ValueReader, from int) (int, error) {
		switch to := any(dst[from:]).(type) {
		case []int32:
			if r, ok := values.(parquet.Int32Reader); ok {
				return r.ReadInt32s(to)
			}
		case []int64:
			if r, ok := values.(parquet.Int64Reader); ok {
				return r.ReadInt64s(to)
			}
		}
		return 0, errType
	})
}

var errType = errors.New("a column has another type")

// values calls use with n values from a row on.
func (c *column) values(first int64, n int, use func(i int, v parquet.Value)) error {
	var buffer [512]parquet.Value
	return c.read(first, n, func(values parquet.ValueReader, from int) (int, error) {
		n, err := values.ReadValues(buffer[:min(n-from, len(buffer))])
		for i, v := range buffer[:n] {
			use(from+i, v)
		}
		return n, err
	})
}

// read calls use until it has read n values from a row on: use reads values of a page, of which the first has the
// number from.
func (c *column) read(first int64, n int, use func(values parquet.ValueReader, from int) (int, error)) error {
	if first < 0 || n < 0 || first+int64(n) > c.f.starts[len(c.f.starts)-1] {
		return fmt.Errorf("%w: %s has no rows %d to %d", ErrDamaged, c.f.name, first, first+int64(n))
	}
	err := recovered(func() error {
		for done := 0; done < n; {
			if err := c.seek(first + int64(done)); err != nil {
				return err
			}
			read, err := use(c.left, done)
			done, c.at = done+read, c.at+int64(read)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					return err
				}
				c.endPage()
			}
		}
		return nil
	})
	if err != nil {
		c.close()
		return unusable(c.f.name, err)
	}
	return nil
}

// seek has a page whose next value is that of a row.
func (c *column) seek(row int64) error {
	if c.pages != nil && c.at == row && row < c.groupEnd {
		if c.page != nil {
			return nil
		}
	} else {
		c.endPage()
		if err := c.seekPages(row); err != nil {
			return err
		}
	}
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	c.page, c.left = page, page.Values()
	return nil
}

func (c *column) seekPages(row int64) error {
	groups := c.f.RowGroups()
	g := sort.Search(len(groups), func(i int) bool { return c.f.starts[i+1] > row })
	if c.pages == nil || c.groupEnd != c.f.starts[g+1] {
		c.close()
		c.pages, c.groupEnd = groups[g].ColumnChunks()[c.index].Pages(), c.f.starts[g+1]
	}
	c.at = row
	return c.pages.SeekToRow(row - c.f.starts[g])
}
