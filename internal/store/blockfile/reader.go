// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// ErrDamaged is wrapped by errors for a block whose files are not what was written.
var ErrDamaged = errors.New("the block is damaged")

// Reader reads a block. It opens the files when they are first needed. It is safe for concurrent use.
type Reader struct {
	Index
	dir string

	mu                        sync.Mutex
	samples, profiles, series *parquetFile
	dictionaries              *dataFile
}

const maxIndexBytes = 256 << 20

// Open reads the index of a block, and checks the sizes of its files.
func Open(dir string) (*Reader, error) {
	r := &Reader{dir: dir}
	b, err := readIndex(filepath.Join(dir, IndexFile))
	if err != nil {
		return nil, unusable(IndexFile, err)
	}
	if err := r.decode(b); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, IndexFile, err)
	}
	if r.Version != Version {
		return nil, fmt.Errorf("%w: %s has version %d, but this program reads version %d", ErrVersion, dir, r.Version, Version)
	}
	for _, name := range []string{samplesFile, profilesFile, seriesFile, stacksFile, attributesFile, dictionariesFile} {
		path := filepath.Join(dir, name)
		if err := Fault("stat", path); err != nil {
			return nil, unusable(name, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, unusable(name, err)
		}
		if want := r.Files[name].Bytes; info.Size() != want {
			return nil, fmt.Errorf("%w: %s has %d bytes instead of %d", ErrDamaged, name, info.Size(), want)
		}
	}
	return r, nil
}

func readIndex(path string) ([]byte, error) {
	if err := Fault("open", path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxIndexBytes))
}

// Dir returns the directory.
func (r *Reader) Dir() string { return r.dir }

// Bytes returns the size of all files but the index.
func (r *Reader) Bytes() (n int64) {
	for _, f := range r.Files {
		n += f.Bytes
	}
	return n
}

// Check reads all files and compares their checksums.
func (r *Reader) Check() error {
	for name, want := range r.Files {
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return unusable(name, err)
		}
		h := crc32.New(castagnoli)
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err == nil && h.Sum32() != want.CRC {
			err = errors.New("checksum mismatch")
		}
		if err != nil {
			return unusable(name, err)
		}
	}
	return nil
}

// Close closes the files that are not being read. What was returned stays valid.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, f := range []*parquetFile{r.samples, r.profiles, r.series} {
		if f != nil {
			errs = append(errs, f.file.Close())
		}
	}
	if r.dictionaries != nil {
		errs = append(errs, r.dictionaries.Close())
	}
	r.samples, r.profiles, r.series, r.dictionaries = nil, nil, nil, nil
	return errors.Join(errs...)
}

// Labels reads the labels of series, which are in the order of services and their series, from the first until before the end.
func (r *Reader) Labels(first, end int) (list []map[string]string, err error) {
	n := 0
	for i := range r.Services {
		n += len(r.Services[i].Series)
	}
	f, err := r.open(&r.series, seriesFile)
	if err != nil {
		return nil, err
	}
	err = recovered(func() error {
		rows := parquet.NewGenericReader[labelsRow](f.File)
		defer func() { _ = rows.Close() }()
		if rows.NumRows() != int64(n) {
			return fmt.Errorf("%d series instead of the index's %d", rows.NumRows(), n)
		}
		if err := rows.SeekToRow(int64(first)); err != nil {
			return err
		}
		read := make([]labelsRow, end-first)
		if k, err := rows.Read(read); k < len(read) {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
		for _, row := range read {
			list = append(list, row.Labels)
		}
		return nil
	})
	if err != nil {
		return nil, unusable(seriesFile, err)
	}
	return list, nil
}

var decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))

// Dictionary reads the dictionary of a service.
func (r *Reader) Dictionary(s *Service) (*dictionary.Dictionary, error) {
	r.mu.Lock()
	if r.dictionaries == nil {
		r.dictionaries = &dataFile{path: filepath.Join(r.dir, dictionariesFile)}
	}
	f := r.dictionaries
	r.mu.Unlock()
	zipped := make([]byte, s.Dictionary.Bytes)
	if _, err := f.ReadAt(zipped, s.Dictionary.Offset); err != nil {
		return nil, unusable(dictionariesFile, err)
	}
	if crc32.Checksum(zipped, castagnoli) != s.Dictionary.CRC {
		return nil, fmt.Errorf("%w: %s: checksum mismatch for %q", ErrDamaged, dictionariesFile, s.Name)
	}
	plain, err := decoder.DecodeAll(zipped, make([]byte, 0, s.Dictionary.Plain))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dictionariesFile, err)
	}
	d, err := dictionary.Load(plain)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dictionariesFile, err)
	}
	return d, nil
}

// ProfileTimes reads the times, the numbers of samples and the totals of profiles into list, from a row on.
func (r *Reader) ProfileTimes(first int64, list []Profile) error {
	f, err := r.open(&r.profiles, profilesFile)
	if err != nil {
		return err
	}
	return cmp.Or(setInts(f, first, list, map[int]func(p *Profile, v int64){
		4: func(p *Profile, v int64) { p.Start = v },
		5: func(p *Profile, v int64) { p.End = v },
		7: func(p *Profile, v int64) { p.Total = v },
	}), setInts(f, first, list, map[int]func(p *Profile, v int32){
		6: func(p *Profile, v int32) { p.Samples = v },
	}))
}

// ProfileFields reads the other fields of profiles of a service into list, from a row on.
func (r *Reader) ProfileFields(s *Service, first int64, list []Profile) error {
	f, err := r.open(&r.profiles, profilesFile)
	if err != nil {
		return err
	}
	return cmp.Or(setInts(f, first, list, map[int]func(p *Profile, v int64){
		2:  func(p *Profile, v int64) { p.Time = v },
		3:  func(p *Profile, v int64) { p.DurationNanos = v },
		10: func(p *Profile, v int64) { p.Period = v },
	}), setInts(f, first, list, map[int]func(p *Profile, v int32){
		11: func(p *Profile, v int32) { p.AttributeSet = s.set(v) },
		12: func(p *Profile, v int32) { p.ScopeSet = s.set(v) },
		13: func(p *Profile, v int32) { p.Position = v },
		14: func(p *Profile, v int32) { p.Kind = v },
		15: func(p *Profile, v int32) { p.Flags = v },
	}),
		f.eachString(8, first, len(list), func(i int, value string) { list[i].PeriodType = value }),
		f.eachString(9, first, len(list), func(i int, value string) { list[i].PeriodUnit = value }),
	)
}

// setInts sets the fields of profiles, of which the one at first is the first, that columns have.
func setInts[T int32 | int64](f *parquetFile, first int64, list []Profile, columns map[int]func(*Profile, T)) error {
	values := make([]T, len(list))
	for column, set := range columns {
		if err := readInts(f, column, first, values); err != nil {
			return err
		}
		for i := range list {
			set(&list[i], values[i])
		}
	}
	return nil
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

// Samples reads n samples from a row on. Columns that are not wanted are empty.
func (r *Reader) Samples(s *Service, first int64, n int, want Want, c *Columns) error {
	f, err := r.open(&r.samples, samplesFile)
	if err != nil {
		return err
	}
	c.Stacks, c.Values = sized(c.Stacks, n), sized(c.Values, n)
	c.Attributes, c.Timestamps, c.Links = c.Attributes[:0], c.Timestamps[:0], c.Links[:0]
	err = errors.Join(readInts(f, stackColumn, first, c.Stacks), readInts(f, valueColumn, first, c.Values))
	firstStack := int32(s.FirstStack)
	for i := range c.Stacks {
		c.Stacks[i] -= firstStack
	}
	if want.Attributes && err == nil {
		c.Attributes = sized(c.Attributes, n)
		err = readInts(f, setColumn, first, c.Attributes)
		for i, set := range c.Attributes {
			c.Attributes[i] = s.set(set)
		}
	}
	if want.Timestamps && err == nil {
		c.Timestamps = sized(c.Timestamps, n)
		err = f.values(timestampColumn, first, n, func(i int, v parquet.Value) { c.Timestamps[i] = v.Int64() })
	}
	if want.Links && err == nil {
		c.Links = sized(c.Links, n)
		clear(c.Links)
		err = errors.Join(
			f.values(traceColumn, first, n, func(i int, v parquet.Value) { copy(c.Links[i].TraceID[:], v.ByteArray()) }),
			f.values(spanColumn, first, n, func(i int, v parquet.Value) { copy(c.Links[i].SpanID[:], v.ByteArray()) }),
		)
	}
	return err
}

// sized returns a slice of n entries of any value, in the memory of s if that suffices.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// parquetFile is an open file. starts has the first row of each row group, and in the end the number of all rows.
type parquetFile struct {
	*parquet.File
	file   *dataFile
	name   string
	starts []int64
}

func (r *Reader) open(at **parquetFile, name string) (*parquetFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *at != nil {
		return *at, nil
	}
	f := &dataFile{path: filepath.Join(r.dir, name)}
	p := &parquetFile{file: f, name: name}
	err := recovered(func() (err error) {
		p.File, err = parquet.OpenFile(f, r.Files[name].Bytes, parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		_ = f.Close()
		return nil, unusable(name, err)
	}
	n := int64(0)
	for _, g := range p.RowGroups() {
		p.starts = append(p.starts, n)
		n += g.NumRows()
	}
	p.starts = append(p.starts, n)
	*at = p
	return p, nil
}

// recovered calls f and returns its panic as an error: the library has some for files that are damaged.
func recovered(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// readInts reads as many values of a column as dst has, from a row on.
func readInts[T int32 | int64](f *parquetFile, column int, first int64, dst []T) error {
	return f.read(column, first, len(dst), func(values parquet.ValueReader, from, until int) (int, error) {
		switch to := any(dst[from:until]).(type) {
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

// eachString calls use with n values of a column of strings, most of which repeat the one before.
func (f *parquetFile) eachString(column int, first int64, n int, use func(i int, s string)) error {
	var s string
	return f.values(column, first, n, func(i int, v parquet.Value) {
		if b := v.ByteArray(); string(b) != s {
			s = string(b)
		}
		use(i, s)
	})
}

// values calls use with n values of any column from a row on.
func (f *parquetFile) values(column int, first int64, n int, use func(i int, v parquet.Value)) error {
	var buffer [512]parquet.Value
	return f.read(column, first, n, func(values parquet.ValueReader, from, until int) (int, error) {
		n, err := values.ReadValues(buffer[:min(until-from, len(buffer))])
		for i, v := range buffer[:n] {
			use(from+i, v)
		}
		return n, err
	})
}

// read calls use until it has read n values of a column from a row on: the values from a number on and before another one.
func (f *parquetFile) read(column int, first int64, n int, use func(values parquet.ValueReader, from, until int) (int, error)) error {
	if first < 0 || n < 0 || first+int64(n) > f.starts[len(f.starts)-1] {
		return fmt.Errorf("%w: %s has no rows %d to %d", ErrDamaged, f.name, first, first+int64(n))
	}
	groups := f.RowGroups()
	at := 0
	for g := sort.Search(len(groups), func(i int) bool { return f.starts[i+1] > first }); at < n; g++ {
		row := first + int64(at) - f.starts[g]
		until := min(n, at+int(f.starts[g+1]-f.starts[g]-row))
		err := recovered(func() error { return readColumn(groups[g].ColumnChunks()[column], row, at, until, use) })
		if err != nil {
			return unusable(f.name, err)
		}
		at = until
	}
	return nil
}

func readColumn(chunk parquet.ColumnChunk, row int64, at, until int, use func(values parquet.ValueReader, from, until int) (int, error)) error {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }()
	if err := pages.SeekToRow(row); err != nil {
		return err
	}
	for at < until {
		page, err := pages.ReadPage()
		if err != nil {
			return err
		}
		values := page.Values()
		for at < until {
			n, err := use(values, at, until)
			at += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
	return nil
}
