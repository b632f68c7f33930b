// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// identity is what samples that are combined have in common.
type identity struct {
	stack, attributes, link int32
	timed                   bool
	timestamp               int64
}

// untimed is what observations that become one sample have in common.
func (id identity) untimed() identity {
	id.timestamp = 0
	return id
}

// table adds up values by identity, with a column for each sample type.
type table struct {
	memory *Memory
	types  int
	rows   []identity
	// room is how many values may still be added.
	room int
	// values has a row of types values for each identity. fractions, if there are any, are added in the end, so that
	// integers stay exact.
	values    []int64
	fractions []float64
	index     dictionary.HashIndex
	// plain[stack] is the row of a stack without anything else, plus one.
	plain []int32
	// written is what the samples take that were made of rows.
	written int
}

// row returns the row of an identity. Its callers check the memory.
func (t *table) row(id identity) int {
	isPlain := id.attributes == 0 && id.link == 0 && !id.timed
	if isPlain && t.plain[id.stack] != 0 {
		return int(t.plain[id.stack] - 1)
	}
	var p dictionary.HashProbe
	if !isPlain {
		h := dictionary.Mix(0, uint64(uint32(id.stack))<<32|uint64(uint32(id.attributes)))
		p = t.index.Start(dictionary.Mix(dictionary.Mix(h, uint64(uint32(id.link))), uint64(id.timestamp)))
		for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
			if t.rows[e-1] == id {
				return int(e - 1)
			}
		}
	}
	t.room -= max(t.types, rowValues)
	_ = t.memory.Take(rowBytes + valueBytes*t.types)
	t.rows = append(t.rows, id)
	t.values = append(t.values, make([]int64, t.types)...)
	if t.fractions != nil {
		_ = t.memory.Take(valueBytes * t.types)
		t.fractions = append(t.fractions, make([]float64, t.types)...)
	}
	if isPlain {
		t.plain[id.stack] = int32(len(t.rows))
	} else {
		t.index.Insert(p, int32(len(t.rows)))
	}
	return len(t.rows) - 1
}

func (t *table) add(id identity, column int, value int64) {
	t.values[t.row(id)*t.types+column] += value
}

func (t *table) addFraction(id identity, column int, value float64) {
	row := t.row(id)
	if t.fractions == nil {
		_ = t.memory.Take(valueBytes * len(t.values))
		t.fractions = make([]float64, len(t.values))
	}
	t.fractions[row*t.types+column] += value
}

func (t *table) round() {
	for i, v := range t.fractions {
		t.values[i] += int64(math.Round(v))
	}
}

// Merged are the profiles of a selection, merged: one for each sample type, all in one scope.
type Merged struct {
	pprofile.Profiles
	// Count is the number of profiles that were merged.
	Count int
}

// Merge merges the selected samples of all sample types, or of the one that is selected, to OTLP profiles that are one pprof.
func (s *Querier) Merge(ctx context.Context, sel Selection) (*Merged, error) {
	sel.GroupBy = ""
	q := s.query(ctx, sel, Want{Stacks: true, Attributes: true, Links: true, Times: sel.Timestamps})
	q.AllTypes = true
	return s.MergeQuery(ctx, q, nil)
}

// MergeQuery merges the samples of a query. keep chooses among them; nil keeps all.
func (s *Querier) MergeQuery(ctx context.Context, q *Query, keep func(samples *Samples, row int) bool) (*Merged, error) {
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	m := &merger{
		Selected: selected, sel: &q.Selection, dict: dictionary.NewCopying(),
		table: table{memory: q.Memory, types: len(selected.Types)},
	}
	m.index.Reset(0)
	m.maxValues = min(minMergedValues+rowValues*selected.Samples, maxMergedValues)
	m.room = m.maxValues
	add := m.add
	if keep != nil {
		add = func(samples *Samples) error { return m.add(samples.kept(keep)) }
	}
	if err := selected.Read(add); err != nil {
		return nil, err
	}
	m.endBlock()
	return m.assemble()
}

// merger merges the columns of a pprof, over one dictionary.
type merger struct {
	*Selected
	sel *Selection
	table
	maxValues int
	dict      *dictionary.Dictionary
	// moves is from the dictionary of the current block. mappings has the positions of mappings, and placed is the last of them.
	moves     *mover.Mover
	from      *dictionary.Dictionary
	fromBytes int
	mappings  []dictionary.MappingIndex
	placed    dictionary.MappingIndex
}

func (m *merger) add(s *Samples) error {
	if m.from != s.Dict {
		m.endBlock()
		if err := m.memory.Take(moverBytes(s.Dict)); err != nil {
			return err
		}
		m.moves, m.from, m.fromBytes = mover.New(s.Dict, m.dict), s.Dict, s.Dict.MemoryBytes()+s.Dict.StringBytes()
	}
	moves, before, moving := m.moves, m.dict.MemoryBytes(), m.fromBytes // at most all of it
	if err := m.memory.Take(moving); err != nil {
		return err
	}
	for _, stack := range s.Stacks {
		moves.Stack(dictionary.StackIndex(stack))
	}
	if more := m.dict.Stacks.Len() - len(m.plain); more > 0 {
		_ = m.memory.Take(plainBytes * more) // ended checks
		m.plain = append(m.plain, make([]int32, more)...)
	}
	whole := s.Weight == math.Trunc(s.Weight)
	for i := range s.Len() {
		id := identity{
			stack: int32(moves.Stack(dictionary.StackIndex(at32(s.Stacks, i)))), attributes: int32(moves.Set(dictionary.AttributeSetIndex(at32(s.Attributes, i)))),
			link: int32(moves.Link(dictionary.LinkIndex(at32(s.Links, i)))),
		}
		if s.IsTimed {
			id.timed, id.timestamp = true, s.Times[i]
		}
		switch {
		case s.Fractions != nil:
			m.table.addFraction(id, s.Type, s.Fractions[i]*s.Weight)
		case whole:
			m.table.add(id, s.Type, s.Values[i]*int64(s.Weight))
		default:
			m.table.addFraction(id, s.Type, float64(s.Values[i])*s.Weight)
		}
		if m.room < 0 || m.memory.Take(0) != nil {
			break
		}
	}
	m.memory.Release(moving - (m.dict.MemoryBytes() - before))
	return m.ended()
}

// An answer may have minMergedValues + rowValues × the samples that it merges, up to maxMergedValues, which bounds its memory.
// Each distinct sample of a block has a value of each type, and counts as rowValues at least, the memory of its identity. So
// samples of up to rowValues types are refused only above maxMergedValues, and those of very many types that hardly share a
// stack before they take memory in proportion to their product.
const (
	minMergedValues = 4 << 20
	maxMergedValues = 16 << 20
	rowValues       = 4
)

// ended returns an error if the query has ended, or has too many values.
func (m *merger) ended() error {
	if m.room < 0 {
		return fmt.Errorf("%w: its samples have more than %d values, one of each of %d sample types, or %d for fewer types",
			ErrTooLarge, m.maxValues, len(m.Types), rowValues)
	}
	return m.memory.Check()
}

func (m *merger) assemble() (*Merged, error) {
	if m.Newest != nil {
		// Each sample type has the profile's attributes.
		m.room -= len(m.Types) * len(m.Newest.Attributes)
	}
	if err := m.ended(); err != nil {
		return nil, err
	}
	m.round()
	out := &Merged{Profiles: pprofile.NewProfiles(), Count: m.Count}
	if m.Newest != nil {
		m.write(out.Profiles)
	}
	m.dict.OrderMappings(m.mappings)
	copied := dictionaryPart * m.dict.MemoryBytes()
	if err := m.memory.Take(copied); err != nil {
		return nil, err
	}
	m.dict.CopyTo(out.Dictionary())
	return out, m.memory.keep(copied + m.written)
}

// endBlock frees what is known of a block's dictionary. Mappings stay in the order of the blocks' dictionaries: readers treat the first one as
// the main binary.
func (m *merger) endBlock() {
	m.mappings = append(m.mappings, make([]dictionary.MappingIndex, m.dict.Mappings.Len()-len(m.mappings))...)
	if m.moves == nil {
		return
	}
	for _, i := range m.moves.Mappings {
		if i != 0 && m.mappings[i] == 0 {
			m.placed++
			m.mappings[i] = m.placed
		}
	}
	m.memory.Release(moverBytes(m.from))
	m.moves, m.from = nil, nil
}

func (m *merger) write(pd pprofile.Profiles) {
	newest, dict := m.Newest, m.dict
	moves := mover.New(newest.Dict, dict)
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", m.sel.Service)
	sp := rp.ScopeProfiles().AppendEmpty()
	sp.Scope().Attributes().PutStr("pprof.scope.profile_name", m.sel.Profile)
	if len(m.Types) > 1 {
		m.writeScope(sp.Scope().Attributes())
	}
	attributes := make([]int32, len(newest.Attributes))
	for i, a := range newest.Attributes {
		attributes[i] = int32(moves.Attribute(dictionary.AttributeIndex(a)))
	}
	periodType, periodUnit := dict.Strings.Intern(newest.PeriodType), dict.Strings.Intern(newest.PeriodUnit)
	for column, t := range m.Types {
		p := sp.Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(int32(dict.Strings.Intern(t.Type)))
		p.SampleType().SetUnitStrindex(int32(dict.Strings.Intern(t.Unit)))
		p.PeriodType().SetTypeStrindex(int32(periodType))
		p.PeriodType().SetUnitStrindex(int32(periodUnit))
		p.SetPeriod(newest.Period)
		p.SetTime(pcommon.Timestamp(max(m.Time, 0)))
		p.SetDurationNano(uint64(m.Duration))
		p.AttributeIndices().FromRaw(attributes)
		m.table.write(p.Samples(), dict, column)
	}
}

// writeScope writes the order of sample types that the newest profile's scope has, if none of them is missing.
func (m *merger) writeScope(scope pcommon.Map) {
	from := m.Newest.Dict
	for _, i := range m.Newest.Scope {
		a := from.Attributes.At(dictionary.AttributeIndex(i))
		value := pcommon.NewValueEmpty()
		a.Value.CopyTo(value)
		if value.Type() != pcommon.ValueTypeSlice || value.Slice().Len() == len(m.Types) {
			value.CopyTo(scope.PutEmpty(from.Strings.At(a.Key)))
		}
	}
}

// maxRepeatedAttributes is how many attributes each observation of a sample may have for itself.
const maxRepeatedAttributes = 16

// write writes a column's samples. One that is 0 in all columns goes into the first. Observations that differ in their time
// alone and have many attributes are one sample, which has these once. Others keep their order, and the message a size that
// allows a pprof in which each of them has a deep stack.
func (t *table) write(dst pprofile.SampleSlice, dict *dictionary.Dictionary, column int) {
	timed := map[identity]pprofile.Sample{}
	for i, row := range t.rows {
		if t.memory.Take(0) != nil {
			return // assemble returns the error
		}
		values := t.values[i*t.types : (i+1)*t.types]
		if values[column] == 0 && (column > 0 || slices.ContainsFunc(values, func(v int64) bool { return v != 0 })) {
			continue
		}
		isShared := row.timed && len(dict.AttributeSets.At(dictionary.AttributeSetIndex(row.attributes))) > maxRepeatedAttributes
		if isShared {
			if s, ok := timed[row.untimed()]; ok {
				t.written += 2 * valueBytes
				_ = t.memory.Take(2 * valueBytes)
				s.Values().Append(values[column])
				s.TimestampsUnixNano().Append(uint64(row.timestamp))
				continue
			}
		}
		taken := writtenBytes + 4*len(dict.AttributeSets.At(dictionary.AttributeSetIndex(row.attributes)))
		t.written += taken
		_ = t.memory.Take(taken)
		s := dst.AppendEmpty()
		s.SetStackIndex(row.stack)
		s.SetLinkIndex(row.link)
		dict.AttributeSets.CopyTo(dictionary.AttributeSetIndex(row.attributes), s.AttributeIndices())
		s.Values().Append(values[column])
		if row.timed {
			s.TimestampsUnixNano().Append(uint64(row.timestamp))
		}
		if isShared {
			timed[row.untimed()] = s
		}
	}
}
