// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file reads the samples of a query from a view: Source.Select of a Store.

type viewReader struct {
	view  *view
	query *Query
	*reader
	chunks [][]weightedChunk
	// only has the indices in Query.Only.
	only map[seriesID]int
	// out is what Read's callers use, and buffers are its columns if they are no sums.
	out     Samples
	buffers *rowBuffers
}

// rowsPerRead is the most rows of Samples that are no sums.
const rowsPerRead = 512

type rowBuffers struct {
	stacks, attributes, links [rowsPerRead]int32
	times, values             [rowsPerRead]int64
}

// Select begins to read the samples of a selection.
func (s *Store) Select(ctx context.Context, q *Query) (*Selected, error) {
	v := s.view(q.Memory)
	selected, err := v.selected(q)
	if err != nil {
		v.release()
		return nil, err
	}
	return selected, nil
}

func (v *view) selected(q *Query) (*Selected, error) {
	if q.Only != nil {
		return v.only(q)
	}
	if q.TimedOnly && q.Profile == "" {
		return v.timed(q)
	}
	types, r, err := v.read(&q.Selection, q.allTypes())
	if err != nil {
		return nil, err
	}
	in := &viewReader{view: v, query: q, reader: r}
	out := &Selected{Types: types, SampleReader: in}
	for i, t := range types {
		chunks, values, err := v.choose(&q.Selection, t, r.filters)
		if err != nil {
			return nil, err
		}
		if q.TimedOnly {
			chunks = slices.DeleteFunc(chunks, func(w weightedChunk) bool { return w.chunk.flags&(hasTimestamps|isMoved) != hasTimestamps })
		}
		if i == 0 {
			out.Summary = Summary{Type: t, Values: values}
		}
		in.chunks = append(in.chunks, chunks)
	}
	in.describe(out)
	return out, nil
}

// describe sets the fields of out that follow from the chunks.
func (r *viewReader) describe(out *Selected) {
	newest := newestProfile{attributes: map[blockSet]bool{}}
	for i, chunks := range r.chunks {
		if i == 0 {
			out.Profiles = len(chunks)
			out.From, out.Until = span(chunks)
		}
		duration, count := int64(0), 0
		for k := range chunks {
			w := &chunks[k]
			out.Samples += int(w.chunk.samples)
			if w.weight <= 0 && r.query.Only == nil {
				continue
			}
			duration += w.chunk.duration
			count++
			newest.add(w)
			at := w.chunk.time
			if r.query.Only != nil {
				at = w.chunk.profileTime()
			}
			if out.Time == 0 || at < out.Time {
				out.Time = at
			}
		}
		out.Duration, out.Count = max(out.Duration, duration), max(out.Count, count)
	}
	out.Newest = newest.fields(r.view)
}

// timed selects the observations of all profiles of a service that have times.
func (v *view) timed(q *Query) (*Selected, error) {
	err := v.loadParts(&q.Selection, func(in *blockfile.Series) bool { return in.Timestamps })
	if err != nil {
		return nil, err
	}
	filters, err := v.filters(&q.Selection)
	if err != nil {
		return nil, err
	}
	isService := func(e *block) bool {
		return slices.ContainsFunc(e.series, func(sr series) bool { return e.dict.Strings.At(sr.service) == q.Service })
	}
	if !slices.ContainsFunc(v.catalog(), isService) {
		return nil, fmt.Errorf("%w: there is no service %q", ErrNothing, Shorten(q.Service))
	}
	in := &viewReader{
		view: v, query: q, reader: &reader{sel: &q.Selection, filters: filters, groups: newGroups(len(v.blocks)), memory: v.memory},
	}
	out := &Selected{SampleReader: in}
	types := map[SampleType]int{}
	for n, e := range v.blocks {
		strs := &e.dict.Strings
		for i := range e.series {
			sr := &e.series[i]
			typ := SampleType{strs.At(sr.typ), strs.At(sr.unit)}
			if strs.At(sr.service) != q.Service || !typ.is(q.Type) || !filters[n].canMatch(sr) {
				continue
			}
			at, ok := types[typ]
			if !ok {
				at = len(out.Types)
				types[typ] = at
				out.Types, in.chunks = append(out.Types, typ), append(in.chunks, nil)
			}
			for k := range sr.chunks {
				c := &sr.chunks[k]
				if c.flags&(hasTimestamps|isMoved) != hasTimestamps || c.end < q.From || q.Until != 0 && c.start >= q.Until {
					continue
				}
				if err := v.memory.Take(weightedChunkBytes); err != nil {
					return nil, err
				}
				in.chunks[at] = append(in.chunks[at], weightedChunk{block: n, series: sr, chunk: c, weight: 1})
			}
		}
	}
	return out, nil
}

func (r *viewReader) Close() { r.view.release() }

func (r *viewReader) Read(use func(*Samples) error) error {
	for i, chunks := range r.chunks {
		if err := r.readType(i, chunks, use); err != nil {
			return err
		}
	}
	return nil
}

func (r *viewReader) readType(at int, chunks []weightedChunk, use func(*Samples) error) error {
	r.out = Samples{Type: at, Weight: 1}
	want := r.query.Want
	switch {
	case want.Profiles:
		return r.profiles(chunks, use)
	case want.Series || r.query.TimedOnly:
	case want.Attributes || want.Links || want.Times:
		var plain []weightedChunk
		plain, chunks = r.split(chunks)
		if err := r.sums(plain, use); err != nil {
			return err
		}
	default:
		return r.sums(chunks, use)
	}
	if want.isCount() {
		return r.counts(chunks, use)
	}
	return r.rows(chunks, use)
}

// split separates the chunks whose samples have only stacks and values from the others.
func (r *viewReader) split(chunks []weightedChunk) (plain, rest []weightedChunk) {
	for _, w := range chunks {
		simple := w.chunk.flags&(hasAttributes|hasLinks) == 0 && (w.chunk.flags&hasTimestamps == 0 || !r.query.Want.Times)
		// A single profile keeps the order of its samples, and those whose value is 0.
		if _, whole := r.whole(&w); whole && simple && len(chunks) > 1 {
			plain = append(plain, w)
		} else {
			rest = append(rest, w)
		}
	}
	return plain, rest
}

func (r *viewReader) sums(chunks []weightedChunk, use func(*Samples) error) error {
	if isFractional(chunks) {
		return sumsOf(r, chunks, use, func(out *Samples, values []float64) { out.Fractions = values })
	}
	return sumsOf(r, chunks, use, func(out *Samples, values []int64) { out.Values = values })
}

func sumsOf[T number](r *viewReader, chunks []weightedChunk, use func(*Samples) error, set func(out *Samples, values []T)) error {
	stacks := r.out.Stacks
	defer func() { r.out = Samples{Type: r.out.Type, Weight: 1, Stacks: stacks[:0]} }()
	return eachSum(r.view, r.reader, chunks, func(block, group int, sums []T) error {
		if more := len(sums) - cap(stacks); more > 0 {
			if err := r.memory.Take(4 * more); err != nil {
				return err
			}
			stacks = make([]int32, 0, len(sums))
		}
		// The sums move to the front: they are not read again.
		stacks = stacks[:0]
		values := sums[:0]
		for stack, value := range sums {
			if value != 0 {
				stacks, values = append(stacks, int32(stack)), append(values, value)
			}
		}
		r.out.Dict, r.out.Group, r.out.Stacks = r.view.blocks[block].dict, r.groups.names[group], stacks
		set(&r.out, values)
		return use(&r.out)
	})
}

// counts reads how many samples there are of each set of attributes.
func (r *viewReader) counts(chunks []weightedChunk, use func(*Samples) error) error {
	var rest []weightedChunk
	for i := range chunks {
		w := &chunks[i]
		if w.chunk.flags&hasAttributes != 0 {
			rest = append(rest, *w)
			continue
		}
		r.begin(w)
		r.out.Count = int(w.chunk.samples)
		if err := use(&r.out); err != nil {
			return err
		}
	}
	r.out.Count = 0
	return r.rows(rest, use)
}

func (r *viewReader) begin(w *weightedChunk) {
	r.out.Dict = r.view.blocks[w.block].dict
	r.out.Resource, r.out.Profile, r.out.Weight = w.series.resource, w.series.attributes, w.weight
	r.out.Series, r.out.Time = r.only[w.series.id], w.chunk.profileTime()
}

func (r *viewReader) rows(chunks []weightedChunk, use func(*Samples) error) error {
	if err := r.view.load(chunks); err != nil {
		return err
	}
	if len(chunks) > 0 && r.buffers == nil {
		r.buffers = &rowBuffers{} // once: there can be very many types
	}
	want, buffers, n := r.query.Want, r.buffers, 0
	var err error
	flush := func() {
		r.out.Values = buffers.values[:n]
		if r.out.Stacks = nil; want.Stacks {
			r.out.Stacks = buffers.stacks[:n]
		}
		if r.out.Attributes = nil; want.Attributes {
			r.out.Attributes = buffers.attributes[:n]
		}
		if r.out.Links = nil; want.Links {
			r.out.Links = buffers.links[:n]
		}
		if r.out.Times = nil; r.out.IsTimed {
			r.out.Times = buffers.times[:n]
		}
		if n > 0 && err == nil {
			err = use(&r.out)
		}
		n = 0
	}
	for i := range chunks {
		w := &chunks[i]
		r.begin(w)
		r.out.IsTimed = want.Times && w.chunk.flags&hasTimestamps != 0
		r.observations(w, func(_ int, row *rows) {
			buffers.stacks[n], buffers.attributes[n], buffers.links[n] = row.stack, row.attribute, row.link
			buffers.times[n], buffers.values[n] = w.chunk.time+row.timestamp, row.value
			if n++; n == rowsPerRead {
				flush()
			}
		})
		if flush(); err != nil {
			return err
		}
		if err := r.memory.Check(); err != nil {
			return err
		}
	}
	return nil
}

type newestProfile struct {
	latest *weightedChunk
	// attributes are the sets of attributes of the chunks' series, by block.
	attributes map[blockSet]bool
}

type blockSet struct {
	block int
	set   dictionary.AttributeSetIndex
}

func (n *newestProfile) add(w *weightedChunk) {
	n.attributes[blockSet{w.block, w.series.attributes}] = true
	if n.latest == nil || w.chunk.last() > n.latest.chunk.last() {
		n.latest = w
	}
}

func (n *newestProfile) fields(v *view) *ProfileFields {
	if n.latest == nil {
		return nil
	}
	e := v.blocks[n.latest.block]
	m := e.metas[n.latest.chunk.meta]
	return &ProfileFields{
		Dict: e.dict, PeriodType: e.dict.Strings.At(m.periodType), PeriodUnit: e.dict.Strings.At(m.periodUnit), Period: m.period,
		Attributes: n.common(v, e.dict, m.attributes), Scope: e.dict.AttributeSets.At(m.scope),
	}
}

// common returns the attributes of the latest profile without those of its series that the other series do not have.
func (n *newestProfile) common(v *view, from *dictionary.Dictionary, newest dictionary.AttributeSetIndex) (common []int32) {
	type attribute struct {
		key   string
		value dictionary.Value
	}
	counts := map[attribute]int{}
	for in := range n.attributes {
		dict := v.blocks[in.block].dict
		for _, i := range dict.AttributeSets.At(in.set) {
			a := dict.Attributes.At(dictionary.AttributeIndex(i))
			counts[attribute{dict.Strings.At(a.Key), a.Value}]++
		}
	}
	for _, i := range from.AttributeSets.At(newest) {
		a := from.Attributes.At(dictionary.AttributeIndex(i))
		key := from.Strings.At(a.Key)
		if !kind.IsSeriesAttribute(key) || counts[attribute{key, a.Value}] == len(n.attributes) {
			common = append(common, i)
		}
	}
	return common
}
