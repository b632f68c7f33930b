// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Open implements Block.
func (e *engineBlock) Open(service string, _ bool, m *model.Memory) (model.Part, error) {
	return &enginePart{
		SnapshotPart: &head.SnapshotPart{Snapshot: e.Snapshot, Series: e.Parts[service].Series, Memory: m}, block: e,
		service: service, dict: e.block.Dict,
	}, nil
}

// enginePart reads the profiles of a service from what was listed, and asks the engine for sums of their samples.
type enginePart struct {
	*head.SnapshotPart
	block   *engineBlock
	service string
	// dict is that of the last sums. The block's grows with each.
	dict *dictionary.Dictionary
	err  error
}

// Dict implements Part.
func (p *enginePart) Dict() *dictionary.Dictionary { return p.dict }

// SamplesHave implements model.Adder.
func (p *enginePart) SamplesHave(key string, values []string) bool {
	if !slices.ContainsFunc(p.Series, func(sr head.Series) bool { return sr.Flags&model.HasAttributes != 0 }) {
		return false
	}
	of := p.block.listed[p.service]
	has, err := p.block.engine.HasAttribute(p.block.ctx, of.types, of.from, of.until, key, values)
	p.err = cmp.Or(p.err, err)
	return has || err != nil
}

// Rows implements Part.
func (p *enginePart) Rows(n int, at func(i int) (*model.BlockSeries, *model.Profile), want model.ColumnsWanted,
	use func(i int, c *model.Columns) error) error {
	list := make([]model.Addend, n)
	for i := range list {
		list[i].Series, list[i].Profile = at(i)
		list[i].Class, list[i].Weight = i, 1
	}
	for of := range model.Runs(list, func(a, b *model.Addend) bool { return a.Series.Type == b.Series.Type }) {
		if err := p.Add(of, model.SumsWanted{ColumnsWanted: want, Stacks: true}, use); err != nil {
			return err
		}
	}
	return nil
}

// What a profile takes in a query, with a span of its own, and what a span takes in the request.
const (
	addedBytes = 256
	spanBytes  = 96
)

// Add implements model.Adder.
func (p *enginePart) Add(list []model.Addend, want model.SumsWanted,
	use func(class int, c *model.Columns) error) error {
	taken := addedBytes * len(list)
	defer func() { p.Memory.Release(taken) }()
	if err := cmp.Or(p.err, p.Memory.Grow(taken)); err != nil || len(list) == 0 {
		return err
	}
	spans := newSpans(p, list, want)
	n := len(spans.query.Spans)
	taken += spanBytes * n
	if err := p.Memory.Grow(spanBytes * n); err != nil || n == 0 {
		return err
	}
	rows := engineRows{enginePart: p, want: &want, used: p.block.block.Dict.MemoryBytes(),
		columns: make([]model.Columns, len(spans.sums)), stacks: make([][]EngineID, len(spans.sums)),
		wanted: map[EngineID]int32{}}
	if err := p.block.engine.Rows(p.block.ctx, &spans.query, rows.add); err != nil {
		return err
	}
	if err := rows.resolve(&spans.query); err != nil {
		return err
	}
	p.dict = p.block.block.Dict.Snapshot()
	for i, sum := range spans.sums {
		c := &rows.columns[i]
		if len(c.Values) == 0 {
			continue
		}
		c.Stacks = make([]int32, len(c.Values))
		for k, id := range rows.stacks[i] {
			c.Stacks[k] = rows.wanted[id]
		}
		if err := use(sum.class-1, c); err != nil {
			return err
		}
		if sum.next != 0 {
			for k := range c.Values {
				c.Values[k] *= int64(sum.factor)
			}
			if err := use(sum.next-1, c); err != nil {
				return err
			}
		}
	}
	return p.Memory.Check()
}

// engineRows are the rows of an answer by their sum.
type engineRows struct {
	*enginePart
	want    *model.SumsWanted
	columns []model.Columns
	stacks  [][]EngineID
	// wanted are the stacks of all rows.
	wanted map[EngineID]int32
	// used is the memory of the dictionary.
	used int
}

func (e *engineRows) add(row *EngineRow) error {
	if row.Sum < 0 || int(row.Sum) >= len(e.columns) {
		return fmt.Errorf("%w has a sum that nobody asked for", ErrEngine)
	}
	c, dict := &e.columns[row.Sum], e.block.block.Dict
	if e.want.Stacks {
		e.stacks[row.Sum] = append(e.stacks[row.Sum], row.Stack)
		if _, ok := e.wanted[row.Stack]; !ok {
			e.wanted[row.Stack] = 0
			_ = e.Memory.Grow(2 * cacheBytes)
		}
	}
	if e.want.Attributes || e.want.Keys != nil {
		var set []int32
		for _, a := range row.Attributes {
			set = append(set, e.block.attribute(a))
		}
		c.Attributes = append(c.Attributes, int32(dict.AttributeSets.Intern(set)))
	}
	if e.want.Links {
		link, _ := dictionary.ParseLink(row.Trace, row.Span)
		c.Links = append(c.Links, int32(dict.Links.Intern(link)))
	}
	if e.want.Timestamps {
		c.Timestamps = append(c.Timestamps, row.Time)
	}
	if e.want.Counts {
		c.Counts = append(c.Counts, row.Value)
	}
	if row.Fraction != 0 && c.Fractions == nil {
		c.Fractions = make([]float64, len(c.Values))
	}
	c.Values = append(c.Values, row.Value)
	if c.Fractions != nil {
		c.Fractions = append(c.Fractions, row.Fraction)
	}
	return cmp.Or(e.grown(), e.Memory.Grow(rowBytes))
}

// grown takes the memory by which the dictionary has grown.
func (e *engineRows) grown() error {
	before := e.used
	e.used = e.block.block.Dict.MemoryBytes()
	return e.Memory.Grow(e.used - before)
}

// resolve adds the stacks to the dictionary, and sets their indices.
func (e *engineRows) resolve(q *EngineQuery) error {
	if len(e.wanted) == 0 {
		return nil
	}
	dict := e.block.block.Dict
	var lines []dictionary.Line
	var locations []int32
	ids := slices.Collect(maps.Keys(e.wanted))
	return e.block.engine.Stacks(e.block.ctx, e.service, q.From, q.Until+1, ids, func(s *EngineStack) error {
		locations = locations[:0]
		for i := 0; i < len(s.Frames); {
			f := s.Frames[i]
			l := dictionary.Location{Address: f.Address}
			if f.Mapping != "" {
				l.Mapping = dict.Mappings.Intern(dictionary.Mapping{Filename: dict.Strings.Intern(f.Mapping)})
			}
			lines = lines[:0]
			for lines = appendLine(lines, dict, f); ; lines = appendLine(lines, dict, s.Frames[i]) {
				i++
				// Frames of one address are inlined calls, or, if one function comes again, a recursive one.
				if f.Address == 0 || i == len(s.Frames) || s.Frames[i].Address != f.Address || s.Frames[i].Mapping != f.Mapping ||
					s.Frames[i].Function == f.Function {
					break
				}
			}
			locations = append(locations, int32(dict.Locations.Intern(l, lines)))
		}
		if _, ok := e.wanted[s.ID]; ok {
			e.wanted[s.ID] = int32(dict.Stacks.Intern(locations))
		}
		return e.grown()
	})
}

// appendLine appends a frame as a line, if it has a function.
func appendLine(lines []dictionary.Line, dict *dictionary.Dictionary, f EngineFrame) []dictionary.Line {
	if f.Function == "" && f.File == "" && f.Line == 0 {
		return lines
	}
	function := dict.Functions.Intern(dictionary.Function{Name: dict.Strings.Intern(f.Function),
		Filename: dict.Strings.Intern(f.File)})
	return append(lines, dictionary.Line{Function: function, Line: max(f.Line, 0)})
}
