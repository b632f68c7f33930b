// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is the write-ahead log: what was added to blocks that are not on disk yet. A record has the entries that a
// message added to a block, and its chunks as they are in memory, so that most messages take little more than their
// samples. Each block begins in a segment of its own, which is deleted when the block is on disk.

// The kinds of records: their first byte.
const (
	recordBlock = 'B' // a new block begins; what is known of the series before
	recordAdd   = 'A' // what a message added to the last block
)

const logFolder = "wal"

// writeLog writes the log. Its methods are called one at a time.
type writeLog struct {
	*wal.Log
	buffer []byte
}

// openLog begins a segment after those that are there.
func openLog(dir string) (*writeLog, error) {
	log, err := wal.Open(filepath.Join(dir, logFolder))
	if err != nil {
		return nil, err
	}
	return &writeLog{Log: log}, nil
}

// begin begins a block in a segment of its own, with what is known of the series before.
func (w *writeLog) begin(e *head.Block, series map[model.SeriesID]*head.Use) error {
	segment, err := w.Begin()
	if err != nil {
		return err
	}
	e.Segment = segment
	b := append(w.buffer[:0], recordBlock)
	b = binary.AppendUvarint(b, e.ID)
	b = binary.AppendVarint(b, e.Begun.UnixNano())
	b = appendEntries(b, e)
	b = binary.AppendUvarint(b, uint64(len(series)))
	for id, use := range series {
		b = append(append(append(b, id[:]...), use.Resource[:]...), use.Attributes[:]...)
		b = binary.AppendVarint(binary.AppendVarint(b, use.Last.UnixNano()), use.Gauge.At)
		b = binary.AppendVarint(b, use.Gauge.Interval)
		if use.Totals == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendVarint(binary.AppendVarint(append(b, 1), use.Totals.At), use.Totals.Since)
		b = binary.AppendUvarint(b, uint64(len(use.Totals.Rows)))
		for _, row := range use.Totals.Rows {
			b = appendInts(b, row.Stack, row.Attributes, row.Link)
			b = binary.AppendVarint(b, row.Value)
		}
	}
	return w.write(b)
}

func (w *writeLog) add(e *head.Block, chunks []addedChunk) error {
	b := append(w.buffer[:0], recordAdd)
	b = appendEntries(b, e)
	b = binary.AppendUvarint(b, uint64(len(chunks)))
	for i := range chunks {
		c := &chunks[i].chunk
		b = appendInts(b, chunks[i].series, c.Samples, c.Meta, int32(c.Values), int32(c.Flags))
		for _, v := range []int64{c.Time, c.Duration, c.Start, c.End, c.Total} {
			b = binary.AppendVarint(b, v)
		}
		b = append(binary.AppendUvarint(b, uint64(len(c.Data))), c.Data...)
	}
	return w.write(b)
}

func (w *writeLog) write(b []byte) error {
	w.buffer = b
	if len(b) > largeBytes {
		w.buffer = nil
	}
	return w.Append(b)
}

// appendInts appends numbers that are not negative.
func appendInts(b []byte, values ...int32) []byte {
	for _, v := range values {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// appendEntries appends the entries of the dictionary, the metas and the series that are not in the log yet.
func appendEntries(b []byte, e *head.Block) []byte {
	start := len(b)
	b = e.Dict.AppendSince(append(b, 0, 0, 0, 0), e.Logged.Mark)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	b = binary.AppendUvarint(b, uint64(len(e.Metas)-e.Logged.Metas))
	for _, m := range e.Metas[e.Logged.Metas:] {
		b = appendInts(b, int32(m.PeriodType), int32(m.PeriodUnit), int32(m.Attributes), int32(m.Scope), m.Position)
		b = binary.AppendVarint(b, m.Period)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Series)-e.Logged.Series))
	for i := range e.Series[e.Logged.Series:] {
		sr := &e.Series[e.Logged.Series+i]
		b = append(b, sr.ID[:]...)
		var key head.Key
		if sr.Use != nil {
			key.Resource, key.Attributes = sr.Use.Resource, sr.Use.Attributes
		}
		b = append(append(b, key.Resource[:]...), key.Attributes[:]...)
		for _, name := range []string{sr.Service, sr.Profile, sr.Type.Type, sr.Type.Unit} {
			b = appendInts(b, int32(e.Dict.Strings.Intern(name)))
		}
		b = appendInts(b, int32(sr.Resource), int32(sr.Attributes))
	}
	e.Logged = head.Logged{Mark: e.Dict.Mark(), Metas: len(e.Metas), Series: len(e.Series)}
	return b
}

// replay reads the log in a directory into blocks, of which wants tells which are not on disk. Wrong bytes cost what
// follows them up to the next block.
func (s *Store) replay(dir string, wants func(id uint64) bool) error {
	r := replayer{Store: s, wants: wants}
	err := wal.Replay(dir, func(segment int, record []byte) error {
		r.segment = segment
		return r.record(record)
	}, r.found)
	if r.isBroken && r.last != nil {
		r.last.Freeze() // the log could not be read beyond this place, if more of the block followed
	}
	return err
}

// found reports a segment that could not be read to its end.
func (r *replayer) found(fault *wal.Fault) {
	if fault.IsTorn {
		r.stats.Torn++
		r.isBroken = fault.Err != nil
		r.disk.Report(
			"the end of the write-ahead log is torn and was cut: the process had been ended, or the disk was full, while it wrote", nil)
		return
	}
	r.stats.Damaged++
	r.isBroken = true
	r.disk.Report("the write-ahead log is damaged; what follows in the block is lost: "+fault.Path,
		fmt.Errorf("at byte %d: %w", fault.At, fault.Err))
}

type replayer struct {
	*Store
	wants   func(id uint64) bool
	segment int
	last    *head.Block // is not one of the store if it is on disk
	// isBroken tells that a part of the last block cannot be read: what follows of it is skipped.
	isBroken bool
}

func (r *replayer) record(b []byte) error {
	d := dictionary.RecordReader{Left: b}
	switch d.Byte() {
	case recordBlock:
		return r.block(&d)
	case recordAdd:
		if r.isBroken {
			return nil
		}
		if r.last == nil {
			return errors.New("the log does not begin with a block")
		}
		return r.add(&d)
	default:
		return errors.New("unknown record")
	}
}

func (r *replayer) block(d *dictionary.RecordReader) error {
	r.isBroken = false
	id, begun := d.Uvarint(), time.Unix(0, d.Varint())
	r.nextID = max(r.nextID, id+1)
	if r.last != nil {
		r.last.Freeze()
	}
	e := head.New(begun)
	e.ID, e.Segment = id, r.segment
	clear(r.series)
	if err := r.entries(e, d); err != nil {
		return err
	}
	for range d.Count() {
		use := &head.Use{}
		var id model.SeriesID
		d.Fill(id[:])
		d.Fill(use.Resource[:])
		d.Fill(use.Attributes[:])
		use.Last, use.Gauge.At, use.Gauge.Interval = time.Unix(0, d.Varint()), d.Varint(), d.Varint()
		if d.Byte() == 1 {
			use.Totals = &head.Totals{At: d.Varint(), Since: d.Varint()}
			for range d.Count() {
				key := head.RowKey{Stack: d.Index(e.Dict.Stacks.Len()), Attributes: d.Index(e.Dict.AttributeSets.Len()),
					Link: d.Index(e.Dict.Links.Len())}
				use.Totals.Rows = append(use.Totals.Rows, head.TotalRow{RowKey: key, Value: d.Varint()})
			}
		}
		r.series[id] = use
	}
	r.last, r.totalsOver = e, e.Dict
	if d.Err == nil && r.wants(id) {
		r.blocks = append(r.blocks, e)
	}
	return d.Err
}

func (r *replayer) entries(e *head.Block, d *dictionary.RecordReader) error {
	var size [4]byte
	d.Fill(size[:])
	entries := d.Bytes(int(binary.LittleEndian.Uint32(size[:])))
	if d.Err != nil {
		return d.Err
	}
	if err := e.Dict.Read(entries); err != nil {
		return err
	}
	strs, sets := e.Dict.Strings.Len(), e.Dict.AttributeSets.Len()
	for range d.Count() {
		m := model.Meta{PeriodType: dictionary.StringIndex(d.Index(strs)), PeriodUnit: dictionary.StringIndex(d.Index(strs))}
		m.Attributes, m.Scope = dictionary.AttributeSetIndex(d.Index(sets)), dictionary.AttributeSetIndex(d.Index(sets))
		m.Position, m.Period = int32(d.Uvarint()), d.Varint()
		e.Meta(m)
	}
	for range d.Count() {
		var sr model.BlockSeries
		var key head.Key
		d.Fill(sr.ID[:])
		d.Fill(key.Resource[:])
		d.Fill(key.Attributes[:])
		service := dictionary.StringIndex(d.Index(strs))
		key.Profile, key.Type, key.Unit = dictionary.StringIndex(d.Index(strs)), dictionary.StringIndex(d.Index(strs)),
			dictionary.StringIndex(d.Index(strs))
		sr.Resource, sr.Attributes = dictionary.AttributeSetIndex(d.Index(sets)), dictionary.AttributeSetIndex(d.Index(sets))
		use := r.series[sr.ID]
		if use == nil {
			use = &head.Use{Resource: key.Resource, Attributes: key.Attributes}
			r.series[sr.ID] = use
		}
		names := &e.Dict.Strings
		sr.Service, sr.Profile, sr.Type = names.At(service), names.At(key.Profile),
			model.SampleType{Type: names.At(key.Type), Unit: names.At(key.Unit)}
		sr.Instance = instanceOf(key.Resource)
		e.ByKey[key] = e.AddSeries(sr, use)
	}
	e.Logged = head.Logged{Mark: e.Dict.Mark(), Metas: len(e.Metas), Series: len(e.Series)}
	return d.Err
}

func (r *replayer) add(d *dictionary.RecordReader) error {
	e := r.last
	if err := r.entries(e, d); err != nil {
		return err
	}
	for range d.Count() {
		i := d.Index(len(e.Series))
		c := head.Chunk{Profile: model.Profile{Samples: int32(d.Uvarint()), Meta: d.Index(len(e.Metas)),
			Values: kind.Values(d.Uvarint()), Flags: model.Flags(d.Uvarint())}}
		c.Time, c.Duration, c.Start, c.End, c.Total = d.Varint(), d.Varint(), d.Varint(), d.Varint(), d.Varint()
		c.Data = append([]byte(nil), d.Bytes(d.Count())...)
		if d.Err != nil {
			return d.Err
		}
		sr := &e.Series[i]
		sr.Use.Restore(&c, e.Begun)
		e.Add(sr, c)
	}
	e.Measure()
	return d.Err
}
