// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// rowsPerWrite is how many rows are written at a time.
	rowsPerWrite = 1 << 10
	// maxRowsPerGroup bounds a row group, and so the memory of a Writer.
	maxRowsPerGroup = 1 << 18
	// maxFrames is about how many frames of a stack stacks.parquet has, and stack_hash is of. Dictionaries have all.
	maxFrames = 512
	// pageBytes is the size of a page: what a query of a few rows has to read.
	pageBytes = 64 << 10
	// A series begins a page if the one before has at least this many rows, since most queries read whole series. A page
	// takes about a hundred bytes in each column.
	minPageSamples, minPageProfiles = 4 << 10, 512
)

// Writer writes a block: Service, and for each of its series Series, and for each profile Profile; then EndService with
// the dictionary; in the end Close. After an error, all of them return it again.
type Writer struct {
	dir   string
	index Index
	err   error

	samples    *table[sample]
	profiles   *table[profileRow]
	series     *table[seriesRow]
	stacks     *table[stackRow]
	attributes *table[attributeRow]

	dictionaries  *file
	codec         codec
	plain, zipped []byte

	service *Service
	// current is the series whose profiles are written, or nil.
	current            *model.BlockSeries
	labels             map[string]string
	seriesCount        int
	nextStack, nextSet int
}

// codec is that of Parquet with one encoder for all files of a block. An encoder takes 1.5 MB when it is first used.
type codec struct {
	compress.Codec
	encoder *zstd.Encoder
}

func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}

// Create begins a block in a directory, which must not be there.
func Create(dir, name string) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	if err := Fault("mkdir", dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, index: Index{Version: Version, Block: name, Files: map[string]File{}},
		codec: codec{&parquet.Zstd, encoder}}
	w.samples, w.profiles = newTable[sample](w, samplesFile), newTable[profileRow](w, profilesFile)
	w.series, w.stacks, w.attributes = newTable[seriesRow](w, seriesFile), newTable[stackRow](w, stacksFile),
		newTable[attributeRow](w, attributesFile)
	w.dictionaries = w.create(dictionariesFile)
	if w.err != nil {
		w.Abort()
	}
	return w, w.err
}

func (w *Writer) fail(err error) {
	w.err = cmp.Or(w.err, err)
}

// Service begins a service.
func (w *Writer) Service(name string) {
	w.index.Services = append(w.index.Services,
		Service{Name: name, FirstSeries: w.seriesCount, FirstStack: w.nextStack, FirstSet: w.nextSet})
	w.service = &w.index.Services[len(w.index.Services)-1]
}

// Series begins a series with the given labels. What follows from its profiles must not be set.
func (w *Writer) Series(sr model.BlockSeries, labels map[string]string) {
	w.endSeries()
	sr.First, sr.FirstSample = int64(w.index.ProfileCount), int64(w.index.SampleCount)
	sr.Service = w.service.Name
	sr.Resource, sr.Attributes = numberOf(w.service, sr.Resource), numberOf(w.service, sr.Attributes)
	w.profiles.endPage(minPageProfiles)
	w.samples.endPage(minPageSamples)
	w.current, w.labels = &sr, labels
}

// endSeries writes the series, if there is one.
func (w *Writer) endSeries() {
	s, in := w.current, w.service
	if s == nil {
		return
	}
	if in.SeriesCount == 0 {
		in.Start, in.End = s.Start, s.End
	}
	in.Start, in.End, in.SeriesCount = min(in.Start, s.Start), max(in.End, s.End), in.SeriesCount+1
	w.series.add(seriesRow{w.index.Block, int32(w.seriesCount), fieldsOf(s), labelsField{w.labels}})
	w.current = nil
	w.seriesCount++
}

// Profile adds a profile of the series. It expects as many rows as p has samples.
func (w *Writer) Profile(p Profile, rows iter.Seq2[Row, error]) error {
	w.current.Count(&p.Profile, &p.Meta)
	if w.index.ProfileCount == 0 {
		w.index.From, w.index.Until = p.Start, p.End
	}
	w.index.From, w.index.Until = min(w.index.From, p.Start, p.First()), max(w.index.Until, p.End)
	w.index.ProfileCount, w.index.SampleCount = w.index.ProfileCount+1, w.index.SampleCount+int(p.Samples)
	for _, set := range p.Sets() {
		*set = numberOf(w.service, *set)
	}
	row := profileRow{w.index.Block, int32(w.seriesCount), p}
	w.profiles.add(row)
	for sample, err := range rows {
		if err != nil {
			w.fail(err)
			break
		}
		w.samples.add(w.service.sampleOf(&row, sample))
	}
	return w.err
}

// EndService writes the dictionary of the service.
func (w *Writer) EndService(d *dictionary.Dictionary) error {
	w.endSeries()
	var frames stackRow
	for i := range d.Stacks.Len() {
		frames = stackOf(d, dictionary.StackIndex(i), frames)
		frames.Block, frames.Stack = w.index.Block, int32(w.nextStack+i)
		w.stacks.add(frames)
		w.stacks.flush() // its lists are used again
	}
	for i := 1; i < d.AttributeSets.Len(); i++ {
		for _, a := range d.AttributeSets.At(dictionary.AttributeSetIndex(i)) {
			attribute := d.Attributes.At(dictionary.AttributeIndex(a))
			w.attributes.add(attributeRow{w.index.Block, int32(w.nextSet + i), d.Strings.At(attribute.Key),
				attribute.Value.AsString()})
		}
	}
	w.nextStack, w.nextSet = w.nextStack+d.Stacks.Len(), w.nextSet+d.AttributeSets.Len()
	w.plain = d.AppendSince(w.plain[:0], dictionary.Mark{})
	w.zipped, _ = w.codec.Encode(w.zipped, w.plain) // it does not fail
	w.service.Dictionary = Range{w.dictionaries.Bytes, len(w.zipped), len(w.plain), crc32.Checksum(w.zipped, castagnoli)}
	_, err := w.dictionaries.Write(w.zipped)
	w.fail(err)
	return w.err
}

func stackOf(d *dictionary.Dictionary, i dictionary.StackIndex, r stackRow) stackRow {
	r.FunctionNames, r.FileNames, r.MappingNames = r.FunctionNames[:0], r.FileNames[:0], r.MappingNames[:0]
	r.LineNumbers, r.Addresses = r.LineNumbers[:0], r.Addresses[:0]
	var key []byte
	for _, l := range d.Stacks.At(i) {
		if len(r.FunctionNames) >= maxFrames {
			break
		}
		location, lines := d.Locations.At(dictionary.LocationIndex(l))
		mapping := d.Strings.At(d.Mappings.At(location.Mapping).Filename)
		if len(lines) == 0 {
			lines = noLine
		}
		lines = lines[:min(len(lines), maxFrames)]
		for _, line := range lines {
			f := d.Functions.At(line.Function)
			name, filename := d.Strings.At(cmp.Or(f.Name, f.SystemName)), d.Strings.At(f.Filename)
			r.FunctionNames, r.FileNames = append(r.FunctionNames, name), append(r.FileNames, filename)
			r.LineNumbers, r.Addresses = append(r.LineNumbers, line.Line), append(r.Addresses, location.Address)
			r.MappingNames = append(r.MappingNames, mapping)
			key = appendFrame(key, name, filename, mapping, line.Line)
			if name == "" {
				key = appendFrame(key, "", "", "", int64(location.Address))
			}
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(key)
	r.StackHash = fmt.Sprintf("%016x", h.Sum64())
	return r
}

// appendFrame adds a frame to what identifies a stack, in all blocks and on all machines.
func appendFrame(key []byte, function, file, mapping string, number int64) []byte {
	for _, s := range []string{function, file, mapping} {
		key = append(append(key, s...), 0xff) // is not in UTF-8
	}
	return binary.LittleEndian.AppendUint64(key, uint64(number))
}

// noLine is the line of a location without lines.
var noLine = []dictionary.Line{{}}

// Close writes the index and makes all files durable. step is the interval of a coarser block, or 0.
func (w *Writer) Close(step time.Duration) (*Index, error) {
	w.index.Step = int64(step)
	w.fail(errors.Join(w.samples.close(), w.profiles.close(), w.series.close(), w.stacks.close(), w.attributes.close(),
		w.dictionaries.close()))
	if w.err == nil {
		b, err := Seal(&w.index)
		w.fail(err)
		index := w.create(IndexFile)
		_, err = index.Write(b)
		w.fail(errors.Join(err, index.close()))
	}
	if w.err == nil {
		w.fail(SyncDir(w.dir))
	}
	if w.err != nil {
		w.Abort()
		return nil, w.err
	}
	return &w.index, nil
}

// Abort deletes the block. Close does so after an error.
func (w *Writer) Abort() {
	w.fail(errors.New("the block was abandoned"))
	for _, f := range []*file{w.samples.file, w.profiles.file, w.series.file, w.stacks.file, w.attributes.file,
		w.dictionaries} {
		if f != nil && f.f != nil {
			_ = f.f.Close()
		}
	}
	_ = os.RemoveAll(w.dir)
}

// table is a Parquet file. add buffers rows, and writes rowsPerWrite at a time.
type table[T any] struct {
	w      *Writer
	file   *file
	writer *parquet.GenericWriter[T]
	rows   []T
	// inPage is the number of rows since endPage has ended a page.
	inPage int
}

func newTable[T any](w *Writer, name string) *table[T] {
	t := &table[T]{w: w, file: w.create(name)}
	t.writer = parquet.NewGenericWriter[T](t.file, parquet.PageBufferSize(pageBytes),
		parquet.MaxRowsPerRowGroup(maxRowsPerGroup), parquet.Compression(&w.codec),
		parquet.CreatedBy("otelcol-profiles", fmt.Sprint(Version), ""))
	return t
}

func (t *table[T]) add(row T) {
	if t.rows = append(t.rows, row); len(t.rows) >= rowsPerWrite {
		t.flush()
	}
}

func (t *table[T]) flush() {
	if t.w.err == nil {
		_, err := t.writer.Write(t.rows)
		t.w.fail(err)
	}
	t.inPage += len(t.rows)
	t.rows = t.rows[:0]
}

// endPage ends the page if it has at least that many rows.
func (t *table[T]) endPage(rows int) {
	if t.inPage+len(t.rows) < rows {
		return
	}
	t.flush()
	t.inPage = 0
	for _, column := range t.writer.ColumnWriters() {
		if t.w.err == nil {
			t.w.fail(column.Flush())
		}
	}
}

func (t *table[T]) close() error {
	t.flush()
	if t.w.err != nil {
		return t.w.err
	}
	return errors.Join(t.writer.Close(), t.file.close())
}

// file is a file of the block, whose size and checksum the index has.
type file struct {
	File
	f      *os.File
	buffer *bufio.Writer
	path   string
	name   string
	index  *Index
}

func (w *Writer) create(name string) *file {
	path := filepath.Join(w.dir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	w.fail(cmp.Or(Fault("create", path), err))
	return &file{f: f, buffer: bufio.NewWriterSize(faulty{f, path}, 64<<10), path: path, name: name, index: &w.index}
}

var _ io.Writer = (*file)(nil)

func (f *file) Write(b []byte) (int, error) {
	f.CRC = crc32.Update(f.CRC, castagnoli, b)
	f.Bytes += int64(len(b))
	return f.buffer.Write(b)
}

// faulty writes a file and makes it durable unless a test wants an error.
type faulty struct {
	*os.File // nil if it could not be created
	path     string
}

func (f faulty) Sync() error {
	if err := Fault("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f faulty) Write(b []byte) (int, error) {
	if err := Fault("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

// close makes the file durable.
func (f *file) close() error {
	err := errors.Join(f.buffer.Flush(), faulty{f.f, f.path}.Sync(), f.f.Close())
	f.index.Files[f.name] = f.File
	return err
}
