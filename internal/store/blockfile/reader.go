// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// ErrDamaged is that of package model.
var ErrDamaged = model.ErrDamaged

// Reader reads a block. It opens the files when they are first needed. It is safe for concurrent use.
type Reader struct {
	Index
	dir string

	mu                        sync.Mutex
	samples, profiles, series *parquetFile
	dictionaries              *dataFile
}

// Open reads the index of a block, and checks the sizes of its files.
func Open(dir string) (*Reader, error) {
	r := &Reader{dir: dir}
	if err := ReadSealed(filepath.Join(dir, IndexFile), &r.Index); err != nil {
		return nil, err
	}
	if r.Version != Version {
		return nil, fmt.Errorf("%w: %s has version %d, but this program reads version %d", ErrVersion, dir, r.Version,
			Version)
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

// Close closes the files. What was returned stays valid.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range []*parquetFile{r.samples, r.profiles, r.series} {
		if f != nil {
			f.file.Close()
		}
	}
	if r.dictionaries != nil {
		r.dictionaries.Close()
	}
	r.samples, r.profiles, r.series, r.dictionaries = nil, nil, nil, nil
}

// readSeries reads rows of series.parquet, as many as n from the first on.
func readSeries[T any](r *Reader, first, n int) (list []T, err error) {
	f, err := r.open(&r.series, seriesFile)
	if err != nil {
		return nil, err
	}
	if first < 0 || n < 0 || int64(first)+int64(n) > f.NumRows() {
		return nil, fmt.Errorf("%w: %s has no rows %d to %d", ErrDamaged, seriesFile, first, first+n)
	}
	err = recovered(func() error {
		rows := parquet.NewGenericReader[T](f.File)
		defer func() { _ = rows.Close() }()
		if err := rows.SeekToRow(int64(first)); err != nil {
			return err
		}
		list = make([]T, n)
		for done := 0; done < n; {
			k, err := rows.Read(list[done:])
			if done += k; done < n && err != nil {
				return err
			}
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
		f.Close()
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
