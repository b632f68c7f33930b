// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
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
	dictionaries              *os.File
}

const maxIndexBytes = 256 << 20

// Open reads the index of a block, and checks the sizes of its files.
func Open(dir string) (*Reader, error) {
	f, err := os.Open(filepath.Join(dir, IndexFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = f.Close() }()
	r := &Reader{dir: dir}
	if err := json.NewDecoder(io.LimitReader(f, maxIndexBytes)).Decode(&r.Index); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, IndexFile, err)
	}
	if r.Version != Version {
		return nil, fmt.Errorf("%s has layout version %d, but this program reads version %d", dir, r.Version, Version)
	}
	for _, name := range []string{samplesFile, profilesFile, seriesFile, stacksFile, attributesFile, dictionariesFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if want := r.Files[name].Bytes; info.Size() != want {
			return nil, fmt.Errorf("%w: %s has %d bytes instead of %d", ErrDamaged, name, info.Size(), want)
		}
	}
	return r, nil
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
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		h := crc32.New(castagnoli)
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err == nil && h.Sum32() != want.CRC {
			err = errors.New("checksum mismatch")
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
		}
	}
	return nil
}

// Close closes the files. What was returned stays valid.
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
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, seriesFile, err)
	}
	return list, nil
}

var decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))

// Dictionary reads the dictionary of a service.
func (r *Reader) Dictionary(s *Service) (*dictionary.Dictionary, error) {
	r.mu.Lock()
	if r.dictionaries == nil {
		f, err := os.Open(filepath.Join(r.dir, dictionariesFile))
		if err != nil {
			r.mu.Unlock()
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		r.dictionaries = f
	}
	f := r.dictionaries
	r.mu.Unlock()
	zipped := make([]byte, s.Dictionary.Bytes)
	if _, err := f.ReadAt(zipped, s.Dictionary.Offset); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dictionariesFile, err)
	}
	if crc32.Checksum(zipped, castagnoli) != s.Dictionary.CRC {
		return nil, fmt.Errorf("%w: %s: checksum mismatch for %q", ErrDamaged, dictionariesFile, s.Name)
	}
	plain, err := decoder.DecodeAll(zipped, make([]byte, 0, s.Dictionary.Plain))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dictionariesFile, err)
	}
	d := dictionary.New()
	if err := d.Read(plain); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dictionariesFile, err)
	}
	return d, nil
}

// Profiles reads the profiles of a series.
func (r *Reader) Profiles(s *Service, series *Series) (list []Profile, err error) {
	f, err := r.open(&r.profiles, profilesFile)
	if err != nil {
		return nil, err
	}
	list = make([]Profile, series.Profiles)
	for column, set := range map[int]func(p *Profile, v parquet.Value){
		2:  func(p *Profile, v parquet.Value) { p.Time = v.Int64() },
		3:  func(p *Profile, v parquet.Value) { p.DurationNanos = v.Int64() },
		4:  func(p *Profile, v parquet.Value) { p.Start = v.Int64() },
		5:  func(p *Profile, v parquet.Value) { p.End = v.Int64() },
		6:  func(p *Profile, v parquet.Value) { p.Samples = v.Int32() },
		7:  func(p *Profile, v parquet.Value) { p.Total = v.Int64() },
		8:  func(p *Profile, v parquet.Value) { p.PeriodType = v.String() },
		9:  func(p *Profile, v parquet.Value) { p.PeriodUnit = v.String() },
		10: func(p *Profile, v parquet.Value) { p.Period = v.Int64() },
		11: func(p *Profile, v parquet.Value) { p.AttributeSet = s.set(v.Int32()) },
		12: func(p *Profile, v parquet.Value) { p.ScopeSet = s.set(v.Int32()) },
		13: func(p *Profile, v parquet.Value) { p.Position = v.Int32() },
		14: func(p *Profile, v parquet.Value) { p.Kind = v.Int32() },
		15: func(p *Profile, v parquet.Value) { p.Flags = v.Int32() },
	} {
		i := 0
		if err := f.values(column, series.FirstProfile, len(list), func(v parquet.Value) { set(&list[i], v); i++ }); err != nil {
			return nil, err
		}
	}
	return list, nil
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

// Samples reads n samples from a row on. Columns that are not wanted are empty.
func (r *Reader) Samples(s *Service, first int64, n int, want Want, c *Columns) error {
	f, err := r.open(&r.samples, samplesFile)
	if err != nil {
		return err
	}
	c.Stacks, c.Attributes, c.Values, c.Timestamps, c.Links = c.Stacks[:0], c.Attributes[:0], c.Values[:0], c.Timestamps[:0], c.Links[:0]
	firstStack := int32(s.FirstStack)
	err = errors.Join(
		f.values(stackColumn, first, n, func(v parquet.Value) { c.Stacks = append(c.Stacks, v.Int32()-firstStack) }),
		f.values(valueColumn, first, n, func(v parquet.Value) { c.Values = append(c.Values, v.Int64()) }),
	)
	if want.Attributes && err == nil {
		err = f.values(setColumn, first, n, func(v parquet.Value) { c.Attributes = append(c.Attributes, s.set(v.Int32())) })
	}
	if want.Timestamps && err == nil {
		err = f.values(timestampColumn, first, n, func(v parquet.Value) { c.Timestamps = append(c.Timestamps, v.Int64()) })
	}
	if want.Links && err == nil {
		c.Links = append(c.Links, make([]dictionary.Link, n)...)
		i, k := 0, 0
		err = errors.Join(
			f.values(traceColumn, first, n, func(v parquet.Value) { copy(c.Links[i].TraceID[:], v.ByteArray()); i++ }),
			f.values(spanColumn, first, n, func(v parquet.Value) { copy(c.Links[k].SpanID[:], v.ByteArray()); k++ }),
		)
	}
	return err
}

// parquetFile is an open file. starts has the first row of each row group, and in the end the number of all rows.
type parquetFile struct {
	*parquet.File
	file   *os.File
	name   string
	starts []int64
}

func (r *Reader) open(at **parquetFile, name string) (*parquetFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *at != nil {
		return *at, nil
	}
	f, err := os.Open(filepath.Join(r.dir, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	p := &parquetFile{file: f, name: name}
	err = recovered(func() (err error) {
		p.File, err = parquet.OpenFile(f, r.Files[name].Bytes, parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
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
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// values calls use with n values of a column from a row on.
func (f *parquetFile) values(column int, first int64, n int, use func(parquet.Value)) error {
	if first < 0 || n < 0 || first+int64(n) > f.starts[len(f.starts)-1] {
		return fmt.Errorf("%w: %s has no rows %d to %d", ErrDamaged, f.name, first, first+int64(n))
	}
	groups := f.RowGroups()
	for g := sort.Search(len(groups), func(i int) bool { return f.starts[i+1] > first }); n > 0; g++ {
		part := int(min(int64(n), f.starts[g+1]-first))
		err := recovered(func() error { return readColumn(groups[g].ColumnChunks()[column], first-f.starts[g], part, use) })
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, f.name, err)
		}
		first, n = first+int64(part), n-part
	}
	return nil
}

func readColumn(chunk parquet.ColumnChunk, first int64, n int, use func(parquet.Value)) error {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }()
	if err := pages.SeekToRow(first); err != nil {
		return err
	}
	var buffer [512]parquet.Value
	for n > 0 {
		page, err := pages.ReadPage()
		if err != nil {
			return err
		}
		values := page.Values()
		for n > 0 {
			k, err := values.ReadValues(buffer[:min(n, len(buffer))])
			for _, v := range buffer[:k] {
				use(v)
			}
			n -= k
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
