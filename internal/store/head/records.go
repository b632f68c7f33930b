// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// This file is what the log has of blocks that are not on disk yet. A record has the entries that a message added to a
// block, and its chunks as they are in memory, so that most messages take little more than their samples.

// The kinds of records: their first byte.
const (
	recordBlock = 'b' // a new block begins; what is known of the series before
	recordAdd   = 'a' // what a message added to the last block
)

// What records have of structs.
var (
	profileFields = wal.StructOf[model.Profile]()
	metaFields    = wal.StructOf[model.Meta]()
	totalFields   = wal.StructOf[TotalRow]()
)

// logged is what of a block is in the log.
type logged struct {
	mark          dictionary.Mark
	metas, series int
}

// Added is a profile that becomes one of a series of the block when it is in the log.
type Added struct {
	Series int32
	Chunk
}

// AppendBegin appends the record of a new block, with what is known of the series before.
func (e *Block) AppendBegin(b []byte, series map[model.SeriesID]*Use) []byte {
	b = append(b, recordBlock)
	b = binary.AppendUvarint(b, e.ID)
	b = binary.AppendVarint(b, e.Begun.UnixNano())
	b = e.appendEntries(b)
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
		for i := range use.Totals.Rows {
			b = totalFields.Append(b, &use.Totals.Rows[i])
		}
	}
	return b
}

// AppendAdded appends the record of what a message adds.
func (e *Block) AppendAdded(b []byte, added []Added) []byte {
	b = e.appendEntries(append(b, recordAdd))
	b = binary.AppendUvarint(b, uint64(len(added)))
	for i := range added {
		c := &added[i]
		b = profileFields.Append(appendInts(b, c.Series, c.MetaAt), &c.Profile)
		b = append(binary.AppendUvarint(b, uint64(len(c.Data))), c.Data...)
	}
	return b
}

// appendInts appends numbers that are not negative.
func appendInts(b []byte, values ...int32) []byte {
	for _, v := range values {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// appendEntries appends the entries of the dictionary, the metas and the series that are not in the log yet.
func (e *Block) appendEntries(b []byte) []byte {
	start := len(b)
	b = e.Dict.AppendSince(append(b, 0, 0, 0, 0), e.logged.mark)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	b = binary.AppendUvarint(b, uint64(len(e.Metas)-e.logged.metas))
	for i := range e.Metas[e.logged.metas:] {
		b = metaFields.Append(b, &e.Metas[e.logged.metas+i])
	}
	b = binary.AppendUvarint(b, uint64(len(e.Series)-e.logged.series))
	for i := range e.Series[e.logged.series:] {
		sr := &e.Series[e.logged.series+i]
		b = append(b, sr.ID[:]...)
		var key Key
		if sr.Use != nil {
			key.Resource, key.Attributes = sr.Use.Resource, sr.Use.Attributes
		}
		b = append(append(b, key.Resource[:]...), key.Attributes[:]...)
		for _, name := range []string{sr.Service, sr.Profile, sr.Type.Type, sr.Type.Unit} {
			b = appendInts(b, int32(e.Dict.Strings.Intern(name)))
		}
		b = appendInts(b, int32(sr.Resource), int32(sr.Attributes))
	}
	e.logged = logged{e.Dict.Mark(), len(e.Metas), len(e.Series)}
	return b
}

// Replay reads records.
type Replay struct {
	*Known
	// Last is the block that began last. If IsBroken, a part of it could not be read: what follows of it is skipped.
	Last     *Block
	IsBroken bool
}

// Record reads a record, and returns the block that it begins, if it does. That is complete if there is no error.
func (r *Replay) Record(b []byte) (begun *Block, err error) {
	d := dictionary.RecordReader{Left: b}
	switch d.Byte() {
	case recordBlock:
		return r.block(&d)
	case recordAdd:
		if r.IsBroken {
			return nil, nil
		}
		if r.Last == nil {
			return nil, errors.New("the log does not begin with a block")
		}
		return nil, r.add(&d)
	}
	return nil, errors.New("unknown record")
}

func (r *Replay) block(d *dictionary.RecordReader) (*Block, error) {
	r.IsBroken = false
	if r.Last != nil {
		r.Last.Freeze()
	}
	id := d.Uvarint()
	e := New(time.Unix(0, d.Varint()))
	e.ID, r.over = id, e.Dict
	clear(r.Series)
	if err := r.entries(e, d); err != nil {
		return e, err
	}
	for range d.Count() {
		use := &Use{}
		var id model.SeriesID
		d.Fill(id[:])
		d.Fill(use.Resource[:])
		d.Fill(use.Attributes[:])
		use.Last, use.Gauge.At, use.Gauge.Interval = time.Unix(0, d.Varint()), d.Varint(), d.Varint()
		if d.Byte() == 1 {
			use.Totals = &Totals{At: d.Varint(), Since: d.Varint()}
			for range d.Count() {
				row := totalFields.Read(d)
				if row.IsOutside(e.Dict) {
					return e, model.ErrRange
				}
				use.Totals.Rows = append(use.Totals.Rows, row)
			}
		}
		r.Series[id] = use
	}
	r.Last = e
	return e, d.Err
}

func (r *Replay) entries(e *Block, d *dictionary.RecordReader) error {
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
		m := metaFields.Read(d)
		if m.IsOutside(sets) {
			return model.ErrRange
		}
		e.Meta(m)
	}
	for range d.Count() {
		var sr model.BlockSeries
		var key Key
		d.Fill(sr.ID[:])
		d.Fill(key.Resource[:])
		d.Fill(key.Attributes[:])
		service := dictionary.StringIndex(d.Index(strs))
		key.Profile, key.Type, key.Unit = dictionary.StringIndex(d.Index(strs)), dictionary.StringIndex(d.Index(strs)),
			dictionary.StringIndex(d.Index(strs))
		sr.Resource, sr.Attributes = dictionary.AttributeSetIndex(d.Index(sets)), dictionary.AttributeSetIndex(d.Index(sets))
		use := r.Series[sr.ID]
		if use == nil {
			use = &Use{Resource: key.Resource, Attributes: key.Attributes}
			r.Series[sr.ID] = use
		}
		names := &e.Dict.Strings
		sr.Service, sr.Profile, sr.Type = names.At(service), names.At(key.Profile),
			model.SampleType{Type: names.At(key.Type), Unit: names.At(key.Unit)}
		sr.Instance = InstanceOf(key.Resource)
		e.ByKey[key] = e.AddSeries(sr, use)
	}
	e.logged = logged{e.Dict.Mark(), len(e.Metas), len(e.Series)}
	return d.Err
}

func (r *Replay) add(d *dictionary.RecordReader) error {
	e := r.Last
	if err := r.entries(e, d); err != nil {
		return err
	}
	for range d.Count() {
		i, meta := d.Index(len(e.Series)), d.Index(len(e.Metas))
		c := Chunk{Profile: profileFields.Read(d)}
		c.MetaAt, c.Data = meta, append([]byte(nil), d.Bytes(d.Count())...)
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
