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
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
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
	memory *memory
	types  int
	rows   []identity
	// room is how many values all tables of a query may still add.
	room *int
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

func newTable(m *memory, types, stacks int, room *int) *table {
	_ = m.take(4 * stacks) // row's callers check
	t := &table{memory: m, types: types, plain: make([]int32, stacks), room: room}
	t.index.Reset(0)
	return t
}

// bytes is what the table takes.
func (t *table) bytes() int {
	return 4*cap(t.plain) + len(t.rows)*rowBytes + valueBytes*(len(t.values)+len(t.fractions))
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
	*t.room -= max(t.types, rowValues)
	_ = t.memory.take(rowBytes + valueBytes*t.types)
	t.rows = append(t.rows, id)
	t.values = append(t.values, make([]int64, t.types)...)
	if t.fractions != nil {
		_ = t.memory.take(valueBytes * t.types)
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
		_ = t.memory.take(valueBytes * len(t.values))
		t.fractions = make([]float64, len(t.values))
	}
	t.fractions[row*t.types+column] += value
}

// stacks returns the distinct stacks of all rows, of n in the dictionary, in the order of the rows.
func (t *table) stacks(n int) (list []dictionary.StackIndex) {
	seen := make([]bool, n)
	for _, row := range t.rows {
		if !seen[row.stack] {
			seen[row.stack] = true
			list = append(list, dictionary.StackIndex(row.stack))
		}
	}
	return list
}

// round adds the fractions to the values.
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
func (s *Store) Merge(ctx context.Context, sel Selection) (*Merged, error) {
	v := s.view(newMemory(ctx, sel.Meter))
	defer v.release()
	sel.GroupBy = ""
	first, r, err := v.read(&sel, sel.Type == "")
	if err != nil {
		return nil, err
	}
	types := []SampleType{first}
	if sel.Type == "" {
		types = v.sampleTypes(sel.Service, sel.Profile)
	}
	m := &merger{
		Store: s, view: v, sel: &sel, types: types,
		reader:     r,
		attributes: map[blockSet]bool{},
		tables:     make([]*table, len(v.blocks)), room: minMergedValues, maxValues: minMergedValues,
	}
	for column, t := range types {
		if err := m.column(column, t); err != nil {
			return nil, err
		}
	}
	return m.assemble()
}

// merger merges the columns of a pprof.
type merger struct {
	*Store
	view   *view
	sel    *Selection
	types  []SampleType
	reader *reader
	// tables are those of the blocks. They have room for so many more values, of maxValues.
	tables          []*table
	room, maxValues int
	// time is the first start of all terms; duration and count are those of the sample type with most; newest is the
	// latest term.
	time, duration int64
	count          int
	newest         *weightedChunk
	// attributes are the sets of attributes of the terms' series, by block.
	attributes map[blockSet]bool
}

type blockSet struct {
	block int
	set   dictionary.AttributeSetIndex
}

func (m *merger) column(column int, t SampleType) error {
	terms, values, err := m.view.choose(m.sel, t, m.reader.filters)
	if err != nil {
		return err
	}
	_ = values
	duration, count, samples := int64(0), 0, 0
	for i := range terms {
		t := &terms[i]
		samples += int(t.chunk.samples)
		if t.weight > 0 {
			duration += t.chunk.duration
			count++
			m.attributes[blockSet{t.block, t.series.attributes}] = true
			if m.newest == nil || t.chunk.last() > m.newest.chunk.last() {
				m.newest = t
			}
			if m.time == 0 || t.chunk.time < m.time {
				m.time = t.chunk.time
			}
		}
	}
	m.duration, m.count = max(m.duration, duration), max(m.count, count)
	more := min(rowValues*samples, maxMergedValues-m.maxValues)
	m.maxValues, m.room = m.maxValues+more, m.room+more
	// Fast path: sum by stack in a dense array, as most profiles have nothing else.
	plain, rest := m.split(terms)
	if isFractional(plain) {
		err = mergeSums(m, plain, func(t *table, id identity, value float64) { t.addFraction(id, column, value) })
	} else {
		err = mergeSums(m, plain, func(t *table, id identity, value int64) { t.add(id, column, value) })
	}
	if err == nil {
		err = m.view.load(rest)
	}
	for i := range rest {
		if err == nil {
			m.chunk(&rest[i], column)
			err = m.ended()
		}
	}
	return err
}

func mergeSums[T number](m *merger, terms []weightedChunk, add func(t *table, id identity, value T)) error {
	return eachSum(m.view, m.reader, terms, func(block, _ int, sums []T) error {
		for stack, value := range sums {
			if value == 0 {
				continue
			}
			if add(m.table(block), identity{stack: int32(stack)}, value); m.room < 0 || m.view.memory.take(0) != nil {
				break
			}
		}
		return m.ended()
	})
}

// An answer may have minMergedValues + rowValues × the samples that it merges, up to maxMergedValues, which bounds its memory.
// Each distinct sample of a block has a value of each type, and counts as rowValues at least, the memory of its identity. So
// samples of up to so many types are refused only above maxMergedValues, and those of very many types that hardly share a
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
			ErrTooLarge, m.maxValues, len(m.types), rowValues)
	}
	return m.view.memory.check()
}

func (m *merger) table(block int) *table {
	if m.tables[block] == nil {
		m.tables[block] = newTable(m.view.memory, len(m.types), m.view.blocks[block].dict.Stacks.Len(), &m.room)
	}
	return m.tables[block]
}

// split separates the terms whose samples have only stacks and values from the others.
func (m *merger) split(terms []weightedChunk) (plain, rest []weightedChunk) {
	for _, t := range terms {
		simple := t.chunk.flags&(hasAttributes|hasLinks) == 0 && (t.chunk.flags&hasTimestamps == 0 || !m.sel.Timestamps)
		// A single profile keeps the order of its samples, and those whose value is 0.
		if _, whole := m.reader.whole(&t); whole && simple && len(terms) > 1 {
			plain = append(plain, t)
		} else {
			rest = append(rest, t)
		}
	}
	return plain, rest
}

func (m *merger) chunk(t *weightedChunk, column int) {
	m.reader.observations(t, func(_ int, row *rows) {
		if m.room < 0 {
			return // column returns the error
		}
		id := identity{stack: row.stack, attributes: row.attribute, link: row.link}
		if m.sel.Timestamps && t.chunk.flags&hasTimestamps != 0 {
			id.timed, id.timestamp = true, t.chunk.time+row.timestamp
		}
		if t.weight == math.Trunc(t.weight) {
			m.table(t.block).add(id, column, row.value*int64(t.weight))
		} else {
			m.table(t.block).addFraction(id, column, float64(row.value)*t.weight)
		}
	})
}

// assemble moves the blocks' rows to one dictionary and writes them as profiles.
func (m *merger) assemble() (*Merged, error) {
	dict, memory := dictionary.New(), m.view.memory
	all := m.newWhole()
	var meta meta
	var metaBlock *block
	if m.newest != nil {
		metaBlock = m.view.blocks[m.newest.block]
		meta = metaBlock.metas[m.newest.chunk.meta]
		// Each sample type has the profile's attributes.
		m.room -= len(m.types) * len(metaBlock.dict.AttributeSets.At(meta.attributes))
		if err := m.ended(); err != nil {
			return nil, err
		}
	}
	for block, t := range m.tables {
		if t == nil {
			continue
		}
		from, before := m.view.blocks[block].dict, dict.MemoryBytes()
		moving := moverBytes(from) + from.MemoryBytes() // at most all of it
		if err := memory.take(moving); err != nil {
			return nil, err
		}
		mover := dictionary.NewMover(from, dict)
		mover.Stacks(t.stacks(from.Stacks.Len()))
		all.plain = append(all.plain, make([]int32, dict.Stacks.Len()-len(all.plain))...)
		for i, row := range t.rows {
			row.stack = int32(mover.Stack(dictionary.StackIndex(row.stack)))
			row.attributes = int32(mover.AttributeSet(dictionary.AttributeSetIndex(row.attributes)))
			row.link = int32(mover.Link(dictionary.LinkIndex(row.link)))
			for column := range t.types {
				all.add(row, column, t.values[i*t.types+column])
				if t.fractions != nil {
					all.addFraction(row, column, t.fractions[i*t.types+column])
				}
			}
			if i%rowsPerCheck == 0 {
				if err := memory.check(); err != nil {
					return nil, err
				}
			}
		}
		memory.release(moving - (dict.MemoryBytes() - before) + t.bytes())
		m.tables[block] = nil
	}
	all.round()
	out := &Merged{Profiles: pprofile.NewProfiles(), Count: m.count}
	if m.newest != nil {
		m.write(out.Profiles, dict, all, metaBlock.dict, meta)
	}
	copied := dictionaryPart * dict.MemoryBytes()
	if err := memory.take(copied); err != nil {
		return nil, err
	}
	dict.CopyTo(out.Dictionary())
	return out, memory.keep(copied + all.written)
}

// newWhole returns a table with room for the rows of all blocks.
func (m *merger) newWhole() *table {
	rows := 0
	for _, t := range m.tables {
		if t != nil {
			rows += len(t.rows)
		}
	}
	room := rows * len(m.types)
	t := newTable(m.view.memory, len(m.types), 0, &room)
	t.rows, t.values = make([]identity, 0, rows), make([]int64, 0, room)
	return t
}

func (m *merger) write(pd pprofile.Profiles, dict *dictionary.Dictionary, all *table, from *dictionary.Dictionary, meta meta) {
	mover := dictionary.NewMover(from, dict)
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", m.sel.Service)
	sp := rp.ScopeProfiles().AppendEmpty()
	sp.Scope().Attributes().PutStr("pprof.scope.profile_name", m.sel.Profile)
	if len(m.types) > 1 {
		m.writeScope(sp.Scope().Attributes(), from, meta)
	}
	attributes := m.commonAttributes(from, dict.AttributeSets.At(mover.AttributeSet(meta.attributes)), meta.attributes)
	periodType, periodUnit := mover.String(meta.periodType), mover.String(meta.periodUnit)
	for column, t := range m.types {
		p := sp.Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(int32(dict.Strings.Intern(t.Type)))
		p.SampleType().SetUnitStrindex(int32(dict.Strings.Intern(t.Unit)))
		p.PeriodType().SetTypeStrindex(int32(periodType))
		p.PeriodType().SetUnitStrindex(int32(periodUnit))
		p.SetPeriod(meta.period)
		p.SetTime(pcommon.Timestamp(max(m.time, 0)))
		p.SetDurationNano(uint64(m.duration))
		p.AttributeIndices().FromRaw(attributes)
		all.write(p.Samples(), dict, column)
	}
}

// commonAttributes returns the attributes of the newest profile, whose indices in the result are moved, without those of its series that
// the other series do not have.
func (m *merger) commonAttributes(from *dictionary.Dictionary, moved []int32, newest dictionary.AttributeSetIndex) (common []int32) {
	type attribute struct {
		key   string
		value dictionary.Value
	}
	counts := map[attribute]int{}
	for in := range m.attributes {
		dict := m.view.blocks[in.block].dict
		for _, i := range dict.AttributeSets.At(in.set) {
			a := dict.Attributes.At(dictionary.AttributeIndex(i))
			counts[attribute{dict.Strings.At(a.Key), a.Value}]++
		}
	}
	for n, i := range from.AttributeSets.At(newest) {
		a := from.Attributes.At(dictionary.AttributeIndex(i))
		key := from.Strings.At(a.Key)
		if !kind.IsSeriesAttribute(key) || counts[attribute{key, a.Value}] == len(m.attributes) {
			common = append(common, moved[n])
		}
	}
	return common
}

// writeScope writes the order of sample types that the newest profile's scope has, if none of them is missing.
func (m *merger) writeScope(scope pcommon.Map, from *dictionary.Dictionary, meta meta) {
	for _, i := range from.AttributeSets.At(meta.scope) {
		a := from.Attributes.At(dictionary.AttributeIndex(i))
		value := pcommon.NewValueEmpty()
		a.Value.CopyTo(value)
		if value.Type() != pcommon.ValueTypeSlice || value.Slice().Len() == len(m.types) {
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
		if t.memory.take(0) != nil {
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
				_ = t.memory.take(2 * valueBytes)
				s.Values().Append(values[column])
				s.TimestampsUnixNano().Append(uint64(row.timestamp))
				continue
			}
		}
		taken := writtenBytes + 4*len(dict.AttributeSets.At(dictionary.AttributeSetIndex(row.attributes)))
		t.written += taken
		_ = t.memory.take(taken)
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
