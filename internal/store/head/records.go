// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"encoding/gob"
	"errors"
	"maps"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is what the log has of blocks that are not on disk yet.

// record is what a message adds to a block: entries of the dictionary (dictionary.AppendSince), and profiles as they
// are in memory, so that most messages take little more than their samples. The first record of a block has what is
// known of the series before.
type record struct {
	Begun   time.Time
	After   uint64
	Known   map[model.SeriesID]*Use
	Entries []byte
	Metas   []model.Meta
	Series  []model.BlockSeries
	Added   []Added
}

// Added is a profile that becomes one of a series of the block when it is in the log.
type Added struct {
	Series int32
	Chunk
}

// recorder encodes the records of a block, and knows what of it they have. Records are a stream of gob.
type recorder struct {
	mark          dictionary.Mark
	metas, series int
	encoder       *gob.Encoder
	out           bytes.Buffer
	entries       []byte
}

// The first byte of a record tells whether a stream begins with it.
const (
	continuesStream = iota
	beginsStream
)

// RecordBegin returns the first record of a block, for the log. It is valid until the next one.
func (e *Block) RecordBegin(known map[model.SeriesID]*Use) ([]byte, error) {
	return e.record(record{Begun: e.Begun, After: e.After, Known: known})
}

// RecordAdded returns the record of what a message adds.
func (e *Block) RecordAdded(added []Added) ([]byte, error) { return e.record(record{Added: added}) }

func (e *Block) record(rec record) ([]byte, error) {
	r := &e.recorder
	r.entries = e.Dict.AppendSince(r.entries[:0], r.mark)
	rec.Entries, rec.Metas = r.entries, e.Metas[r.metas:]
	for i := range e.Series[r.series:] {
		rec.Series = append(rec.Series, e.Series[r.series+i].BlockSeries)
	}
	r.mark, r.metas, r.series = e.Dict.Mark(), len(e.Metas), len(e.Series)
	begins := byte(continuesStream)
	if r.encoder == nil {
		r.encoder, begins = gob.NewEncoder(&r.out), beginsStream
	}
	r.out.Reset()
	r.out.Write(make([]byte, wal.HeaderBytes))
	r.out.WriteByte(begins)
	err := r.encoder.Encode(&rec)
	out := r.out.Bytes()
	if len(out) > LargeBytes { // the encoder has as much once more
		r.encoder, r.out, r.entries = nil, bytes.Buffer{}, nil
	}
	return out, err
}

// Replay reads the records of a block.
type Replay struct {
	*Known
	// Block is nil until its first record is read.
	Block   *Block
	decoder *gob.Decoder
	in      bytes.Buffer
}

// Record reads the next record.
func (r *Replay) Record(b []byte) error {
	switch {
	case len(b) == 0 || b[0] == continuesStream && r.decoder == nil:
		return errors.New("unknown record")
	case b[0] == beginsStream:
		r.decoder = gob.NewDecoder(&r.in)
	}
	r.in.Write(b[1:])
	var rec record
	if err := r.decoder.Decode(&rec); err != nil {
		return err
	}
	if r.Block == nil {
		return r.begin(&rec)
	}
	return r.add(&rec)
}

func (r *Replay) begin(rec *record) error {
	e := New(rec.Begun)
	if err := e.Dict.Read(rec.Entries); err != nil {
		return err
	}
	e.After, e.recorder = rec.After, recorder{mark: e.Dict.Mark()}
	for _, use := range rec.Known {
		if use.Totals == nil {
			continue
		}
		for _, row := range use.Totals.Rows {
			if row.IsOutside(e.Dict) {
				return model.ErrRange
			}
		}
	}
	clear(r.Series)
	maps.Copy(r.Series, rec.Known)
	r.Block, r.over = e, e.Dict
	return nil
}

func (r *Replay) add(rec *record) error {
	e := r.Block
	if err := e.Dict.Read(rec.Entries); err != nil {
		return err
	}
	strs, sets := &e.Dict.Strings, e.Dict.AttributeSets.Len()
	for _, m := range rec.Metas {
		if m.IsOutside(sets) {
			return model.ErrRange
		}
		m.PeriodUnit = kind.UnitName(m.PeriodUnit)
		e.Meta(m)
	}
	for _, sr := range rec.Series {
		if sr.IsOutside(sets) {
			return model.ErrRange
		}
		use := r.Series[sr.ID]
		if use == nil {
			use = &Use{}
			r.Series[sr.ID] = use
		}
		sr.Type, sr.Period = sr.Type.Named(), sr.Period.Named() // those of earlier versions
		for _, name := range []*string{&sr.Service, &sr.Profile, &sr.Type.Type, &sr.Type.Unit} {
			*name = strs.At(strs.Intern(*name)) // they share the memory of the dictionary's
		}
		e.byID[sr.ID] = e.AddSeries(sr, use)
	}
	for _, in := range rec.Added {
		if min(in.Series, in.MetaAt) < 0 || int(in.Series) >= len(e.Series) || int(in.MetaAt) >= len(e.Metas) {
			return model.ErrRange
		}
		sr := &e.Series[in.Series]
		sr.Use.Restore(&in.Chunk, e)
		e.Add(sr, in.Chunk)
	}
	e.recorder = recorder{mark: e.Dict.Mark(), metas: len(e.Metas), series: len(e.Series)}
	e.Measure()
	return nil
}
