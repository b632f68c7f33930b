// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// HourOf returns the hour of the block in which a profile of it goes: that in which the block began, if it is not
// further away than an hour.
func (e *Block) HourOf(c *Chunk) int64 {
	begun, start := e.Begun.Truncate(time.Hour).UnixNano(), time.Unix(0, c.Start).Truncate(time.Hour).UnixNano()
	if d := start - begun; d >= -int64(time.Hour) && d <= int64(time.Hour) {
		return begun
	}
	return start
}

// Source is what of a block in memory goes to one on disk.
type Source struct {
	*Block
	Hour int64
}

// Services returns the names of all services of the head.
func (h *Source) Services() (names []string) {
	for i := range h.Series {
		if h.Series[i].Profiles > 0 {
			names = append(names, h.Series[i].Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Step returns 0: profiles are in memory as they came.
func (h *Source) Step() time.Duration { return 0 }

// Begin adds the stacks that the profiles of the hour have, in their order, with the mappings in theirs.
func (h *Source) Begin(service string, dict *dictionary.Dictionary) (list []compaction.Series, err error) {
	moves := mover.New(h.Dict, dict)
	used := map[dictionary.StackIndex]bool{}
	chunks := map[*Series][]*Chunk{}
	for i := range h.Series {
		sr := &h.Series[i]
		if sr.Profiles == 0 || sr.Service != service {
			continue
		}
		for k := range sr.Chunks {
			if c := &sr.Chunks[k]; h.HourOf(c) == h.Hour {
				chunks[sr] = append(chunks[sr], c)
				_ = c.decode(model.ColumnsWanted{}, &model.Columns{}, func(part *model.Columns) error {
					for _, stack := range part.Stacks {
						used[dictionary.StackIndex(stack)] = true
					}
					return nil
				})
			}
		}
	}
	moves.Stacks(slices.Sorted(maps.Keys(used)))
	for sr, of := range chunks {
		slices.SortStableFunc(of, func(a, b *Chunk) int { return cmp.Compare(a.Start, b.Start) })
		list = append(list, h.seriesOf(sr, of, moves))
	}
	return list, nil
}

// End has nothing to end.
func (h *Source) End() {}

func (h *Source) seriesOf(sr *Series, chunks []*Chunk, moves *mover.Mover) compaction.Series {
	return compaction.Series{
		BlockSeries: model.BlockSeries{
			ID: sr.ID, Instance: sr.Instance, Service: sr.Service, Profile: sr.Profile, Type: sr.Type,
			Resource: moves.Set(sr.Resource), Attributes: moves.Set(sr.Attributes), Start: chunks[0].Start,
		},
		Labels: model.LabelsOf(h.Dict, &sr.BlockSeries),
		Profiles: func(yield func(compaction.Profile, error) bool) {
			for _, c := range chunks {
				p := blockfile.Profile{Profile: c.Profile, Meta: h.Metas[c.MetaAt]}
				moves.Meta(&p.Meta)
				if !yield(compaction.Profile{Profile: p, Rows: h.rowsOf(c, moves)}, nil) {
					return
				}
			}
		},
	}
}

var errEnough = errors.New("nobody wants more")

// rowsOf returns the samples of a chunk, over the dictionary of the new block.
func (h *Source) rowsOf(c *Chunk, moves *mover.Mover) iter.Seq2[blockfile.Row, error] {
	return func(yield func(blockfile.Row, error) bool) {
		var columns blockfile.Columns
		_ = c.decode(model.AllColumns, &columns.Columns, func(*model.Columns) error {
			for i := range columns.Stacks {
				row := columns.Row(i)
				row.Trace, row.Link = h.Dict.Links.At(dictionary.LinkIndex(row.Link)), 0
				moves.Key(&row.RowKey.RowKey)
				if !yield(row, nil) {
					return errEnough
				}
			}
			return nil
		})
	}
}
