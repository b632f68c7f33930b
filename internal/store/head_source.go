// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
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

// hourOf returns the hour of the block in which a profile of it goes: that in which the block began, if it is not
// further away than an hour.
func (e *block) hourOf(c *chunk) int64 {
	begun, start := e.begun.Truncate(time.Hour).UnixNano(), time.Unix(0, c.Start).Truncate(time.Hour).UnixNano()
	if d := start - begun; d >= -int64(time.Hour) && d <= int64(time.Hour) {
		return begun
	}
	return start
}

// headSource is what of a block in memory goes to one on disk.
type headSource struct {
	*block
	hour int64
}

// Services returns the names of all services of the head.
func (h *headSource) Services() (names []string) {
	for i := range h.series {
		if h.series[i].Profiles > 0 {
			names = append(names, h.series[i].Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Begin adds the stacks that the profiles of the hour have, in their order, with the mappings in theirs.
func (h *headSource) Begin(service string, dict *dictionary.Dictionary) (list []compaction.Series, err error) {
	moves := mover.New(h.dict, dict)
	used := map[dictionary.StackIndex]bool{}
	chunks := map[*series][]*chunk{}
	for i := range h.series {
		sr := &h.series[i]
		if sr.Profiles == 0 || sr.Service != service {
			continue
		}
		for k := range sr.chunks {
			if c := &sr.chunks[k]; h.hourOf(c) == h.hour {
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
		slices.SortStableFunc(of, func(a, b *chunk) int { return cmp.Compare(a.Start, b.Start) })
		list = append(list, h.seriesOf(sr, of, moves))
	}
	return list, nil
}

// End has nothing to end.
func (h *headSource) End() {}

func (h *headSource) seriesOf(sr *series, chunks []*chunk, moves *mover.Mover) compaction.Series {
	strs := &h.dict.Strings
	return compaction.Series{
		Series: blockfile.Series{
			ID: blockfile.ID(sr.ID[:]), Instance: fmt.Sprintf("%016x", sr.Instance), Profile: sr.Profile, Type: sr.Type.Type,
			Unit: sr.Type.Unit,
			Kind: sr.Values.String(), Start: chunks[0].Start,
			Resource: int32(moves.Set(sr.Resource)), Attributes: int32(moves.Set(sr.Attributes)),
		},
		Labels: model.LabelsOf(h.dict, &sr.BlockSeries),
		Profiles: func(yield func(compaction.Profile, error) bool) {
			for _, c := range chunks {
				m := h.metas[c.Meta]
				p := blockfile.Profile{
					Time: c.Time, DurationNanos: c.Duration, Start: c.Start, End: c.End, Total: c.Total, Samples: c.Samples,
					PeriodType: strs.At(m.PeriodType), PeriodUnit: strs.At(m.PeriodUnit), Period: m.Period,
					AttributeSet: int32(moves.Set(m.Attributes)), ScopeSet: int32(moves.Set(m.Scope)),
					Position: m.Position, Kind: int32(c.Values), Flags: int32(c.Flags),
				}
				if !yield(compaction.Profile{Profile: p, Rows: h.rowsOf(c, moves)}, nil) {
					return
				}
			}
		},
	}
}

var errEnough = errors.New("nobody wants more")

// rowsOf returns the samples of a chunk, over the dictionary of the new block.
func (h *headSource) rowsOf(c *chunk, moves *mover.Mover) iter.Seq2[blockfile.Row, error] {
	return func(yield func(blockfile.Row, error) bool) {
		_ = c.decode(model.ColumnsWanted{Attributes: true, Timestamps: true, Links: true}, &model.Columns{},
			func(part *model.Columns) error {
				for i := range part.Stacks {
					row := blockfile.Row{
						Stack: int32(moves.Stack(dictionary.StackIndex(part.Stacks[i]))), Value: part.Values[i], Timestamp: c.Time,
						Attributes: int32(moves.Set(dictionary.AttributeSetIndex(model.At(part.Attributes, i)))),
						Link:       h.dict.Links.At(dictionary.LinkIndex(model.At(part.Links, i))),
					}
					if len(part.Timestamps) > 0 {
						row.Timestamp = part.Timestamps[i]
					}
					if !yield(row, nil) {
						return errEnough
					}
				}
				return nil
			})
	}
}
