// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Scan reads rows of a block, from any on. It keeps the last page of each column, so that rows which follow those read
// before cost no more than their bytes. It is for one goroutine, which must close it.
type Scan struct{ profiles, samples columns }

// Scan begins to read rows.
func (r *Reader) Scan() *Scan {
	return &Scan{
		profiles: columns{open: func() (*parquetFile, error) { return r.open(&r.profiles, profilesFile) },
			known: map[string]*column{}},
		samples: columns{open: func() (*parquetFile, error) { return r.open(&r.samples, samplesFile) },
			known: map[string]*column{}},
	}
}

// Close ends the reading.
func (s *Scan) Close() {
	for _, of := range []columns{s.profiles, s.samples} {
		for _, c := range of.known {
			c.close()
		}
	}
}

// columns are those of a file that were read, by name.
type columns struct {
	open  func() (*parquetFile, error)
	known map[string]*column
	// longs, ints and buffer are memory for values.
	longs  []int64
	ints   []int32
	buffer []parquet.Value
}

func (of *columns) column(name string) (*column, error) {
	if c := of.known[name]; c != nil {
		return c, nil
	}
	f, err := of.open()
	if err != nil {
		return nil, err
	}
	leaf, ok := f.Schema().Lookup(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no column %s", ErrDamaged, f.name, name)
	}
	c := &column{f: f, index: leaf.ColumnIndex}
	of.known[name] = c
	return c, nil
}

// field reads a column of profiles.parquet into profiles, of which the one at first is the first.
type field func(from *columns, first int64, list []Profile) error

func longs(name string, at func(*Profile) *int64) field {
	return func(from *columns, first int64, list []Profile) error {
		from.longs = slices.Grow(from.longs[:0], len(list))[:len(list)]
		err := readInts(from, name, first, from.longs)
		for i, v := range from.longs {
			*at(&list[i]) = v
		}
		return err
	}
}

func ints[T ~int32](name string, at func(*Profile) *T) field {
	return func(from *columns, first int64, list []Profile) error {
		from.ints = slices.Grow(from.ints[:0], len(list))[:len(list)]
		err := readInts(from, name, first, from.ints)
		for i, v := range from.ints {
			*at(&list[i]) = T(v)
		}
		return err
	}
}

// texts reads strings, most of which repeat the one before.
func texts(name string, at func(*Profile) *string) field {
	return func(from *columns, first int64, list []Profile) error {
		var last string
		return from.values(name, first, len(list), func(i int, v parquet.Value) {
			if b := v.ByteArray(); string(b) != last {
				last = string(b)
			}
			*at(&list[i]) = last
		})
	}
}

// The columns of profiles.parquet that are read together.
var (
	timeFields = []field{
		longs("start", func(p *Profile) *int64 { return &p.Start }),
		longs("end", func(p *Profile) *int64 { return &p.End }),
		longs("total", func(p *Profile) *int64 { return &p.Total }),
		ints("samples", func(p *Profile) *int32 { return &p.Samples }),
	}
	kindFields = []field{
		longs("time", func(p *Profile) *int64 { return &p.Time }),
		longs("duration_nanos", func(p *Profile) *int64 { return &p.Duration }),
		ints("kind", func(p *Profile) *kind.Values { return &p.Values }),
		ints("flags", func(p *Profile) *model.Flags { return &p.Flags }),
	}
	metaFields = []field{
		texts("period_type", func(p *Profile) *string { return &p.PeriodType }),
		texts("period_unit", func(p *Profile) *string { return &p.PeriodUnit }),
		longs("period", func(p *Profile) *int64 { return &p.Period }),
		ints("attribute_set", func(p *Profile) *dictionary.AttributeSetIndex { return &p.Attributes }),
		ints("scope_attribute_set", func(p *Profile) *dictionary.AttributeSetIndex { return &p.Scope }),
		ints("position", func(p *Profile) *int32 { return &p.Position }),
	}
)

// ProfileTimes reads the times, the numbers of samples and the totals of profiles into list, from a row on.
func (s *Scan) ProfileTimes(first int64, list []Profile) error {
	return s.read(first, list, timeFields)
}

// ProfileStarts reads the starts of profiles, from a row on.
func (s *Scan) ProfileStarts(first int64, starts []int64) error {
	return readInts(&s.profiles, "start", first, starts)
}

// ProfileKinds reads into list how profiles count, from a row on.
func (s *Scan) ProfileKinds(first int64, list []Profile) error {
	return s.read(first, list, kindFields)
}

// ProfileMetas reads the other fields of profiles of a service into list, from a row on.
func (s *Scan) ProfileMetas(service *Service, first int64, list []Profile) error {
	err := s.read(first, list, metaFields)
	for i := range list {
		for _, at := range list[i].Sets() {
			*at = set(service, *at)
		}
	}
	return err
}

func (s *Scan) read(first int64, list []Profile, fields []field) error {
	for _, read := range fields {
		if err := read(&s.profiles, first, list); err != nil {
			return err
		}
	}
	return nil
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

// readInts reads as many values of a column as dst has, from a row on.
func readInts[T int32 | int64](of *columns, name string, first int64, dst []T) error {
	c, err := of.column(name)
	if err != nil {
		return err
	}
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

// valuesAtOnce is how many values are read at once that are no numbers.
const valuesAtOnce = 512

var errType = errors.New("a column has another type")

// values calls use with n values of a column, from a row on.
func (of *columns) values(name string, first int64, n int, use func(i int, v parquet.Value)) error {
	c, err := of.column(name)
	if err != nil {
		return err
	}
	of.buffer = slices.Grow(of.buffer[:0], valuesAtOnce)[:valuesAtOnce]
	return c.read(first, n, func(values parquet.ValueReader, from int) (int, error) {
		n, err := values.ReadValues(of.buffer[:min(n-from, valuesAtOnce)])
		for i, v := range of.buffer[:n] {
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
