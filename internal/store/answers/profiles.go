// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// Merged are the profiles of a selection, merged: one for each sample type, all in one scope.
type Merged struct {
	pprofile.Profiles
	// Count is the number of profiles that were merged.
	Count int
	// LeftOut is the number of samples that are left out because all of them need more memory than a query can have. Their
	// values are in stacks of the outermost location and LeftOutName.
	LeftOut int
}

// LeftOutName is the name of a frame that stands for what is left out.
const LeftOutName = "(left out)"

// Merge merges the selected samples of all sample types, or of the one that is selected, to OTLP profiles that are one
// pprof.
func (s *Querier) Merge(ctx context.Context, sel model.Selection) (merged *Merged, err error) {
	err = s.MergeTo(ctx, sel, func(m *Merged) error { merged = m; return nil })
	return merged, err
}

// MergeTo calls use with what Merge returns: again with less if that, or use, needs more memory than a query can have.
func (s *Querier) MergeTo(ctx context.Context, sel model.Selection, use func(*Merged) error) error {
	sel.GroupBy = ""
	q := s.query(ctx, sel, Want{Stacks: true, Attributes: true, Links: true, Times: sel.Timestamps})
	q.AllTypes = true
	return s.MergeQuery(ctx, q, use)
}

// MergeQuery merges the samples of a query as MergeTo does.
func (s *Querier) MergeQuery(ctx context.Context, q *Query, use func(*Merged) error) error {
	return q.Memory.Fitted(func(parts int) error {
		merged, err := s.merge(ctx, q, parts)
		if err != nil {
			return err
		}
		return use(merged)
	})
}

func (s *Querier) merge(ctx context.Context, q *Query, parts int) (*Merged, error) {
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	m := &merger{Selected: selected, sel: &q.Selection, parts: parts}
	m.memory, m.types = q.Memory, len(selected.Types)
	m.maxValues = min(minMergedValues+rowValues*selected.Samples, maxMergedValues)
	m.reset(dictionary.NewCopying())
	if err := selected.Read(m.add); err != nil {
		return nil, err
	}
	m.endBlock()
	if q.Shorten != nil {
		if err := m.shorten(q.Shorten); err != nil {
			return nil, err
		}
	}
	return m.assemble()
}

// shorten replaces the stacks of samples of one type, and adds up the samples that become equal.
func (m *merger) shorten(by Shorten) error {
	m.round()
	stacks := make([]int32, len(m.rows))
	for i, id := range m.rows {
		stacks[i] = id.stack
	}
	if err := m.memory.Grow(4*len(stacks) + m.dictBytes); err != nil { // no new stack is longer than the old one
		return err
	}
	if err := by(m.memory, m.dict, stacks, m.values); err != nil {
		return err
	}
	m.addAgain(m.dict, func(i int, row identity) identity {
		row.stack = stacks[i]
		return row
	})
	return m.ended()
}

// addAgain adds the values of all rows to others, over another dictionary.
func (m *merger) addAgain(dict *dictionary.Dictionary, to func(i int, row identity) identity) {
	before := m.table
	m.reset(dict)
	for i, row := range before.rows {
		id := to(i, row)
		for at := i * m.types; at < (i+1)*m.types; at++ {
			m.table.add(id, at%m.types, before.values[at])
			if before.fractions != nil {
				m.table.addFraction(id, at%m.types, before.fractions[at])
			}
		}
	}
}

// merger merges the columns of a pprof, over one dictionary.
type merger struct {
	*Selected
	sel *model.Selection
	table
	maxValues int
	// dict takes dictBytes.
	dict      *dictionary.Dictionary
	dictBytes int
	// moves is from the dictionary of the current block. mappings has the positions of mappings, and placed is the last of
	// them.
	moves    *mover.Mover
	from     *dictionary.Dictionary
	mappings []dictionary.MappingIndex
	placed   dictionary.MappingIndex
	// parts is 0, or how many parts of the free memory there are, of which the answer has one. leftOut are the stacks of
	// what was left out, leftOutRows is how many samples were.
	parts       int
	leftOut     map[int32]bool
	leftOutRows int
}

// reset begins with an empty table and dictionary.
func (m *merger) reset(dict *dictionary.Dictionary) {
	m.dict, m.dictBytes, m.room = dict, dict.MemoryBytes(), m.maxValues
	m.rows, m.values, m.fractions, m.leftOut = nil, nil, nil, map[int32]bool{}
	m.index = dictionary.HashIndex{}
	m.index.Reset(0)
}

// begin prepares for the samples of a dictionary.
func (m *merger) begin(dict *dictionary.Dictionary) error {
	if m.from == dict {
		return nil
	}
	m.endBlock()
	if err := m.memory.Grow(moverBytes(dict)); err != nil {
		return err
	}
	m.moves, m.from = mover.New(dict, m.dict), dict
	return nil
}

// rowsPerStep is the number of rows between two steps.
const rowsPerStep = 16

func (m *merger) add(s *Samples) error {
	isWhole := s.Weight == math.Trunc(s.Weight)
	for i := range s.Len() {
		if err := m.begin(s.Dict); err != nil {
			return err
		}
		id := identity{
			stack:      int32(m.moves.Stack(dictionary.StackIndex(model.At(s.Stacks, i)))),
			attributes: int32(m.moves.Set(dictionary.AttributeSetIndex(model.At(s.Attributes, i)))),
			link:       int32(m.moves.Link(dictionary.LinkIndex(model.At(s.Links, i)))),
		}
		if s.IsTimed {
			id.timed, id.timestamp = true, s.Timestamps[i]
		}
		if value := model.At(s.Values, i); isWhole {
			m.table.add(id, s.Type, otlp.SaturatingMultiply(value, int64(s.Weight)))
		} else {
			m.table.addFraction(id, s.Type, float64(value)*s.Weight)
		}
		if s.Fractions != nil {
			m.table.addFraction(id, s.Type, s.Fractions[i]*s.Weight)
		}
		if i%rowsPerStep == 0 {
			if err := m.step(); err != nil {
				return err
			}
		}
	}
	if err := m.step(); err != nil {
		return err
	}
	return m.ended()
}

// step takes the memory by which the dictionary has grown, and prunes what is full.
func (m *merger) step() error {
	bytes := m.dict.MemoryBytes()
	err := m.memory.Grow(bytes - m.dictBytes)
	m.dictBytes = bytes
	if err != nil || m.room < 0 {
		return m.ended()
	}
	if m.isFull() {
		return m.prune()
	}
	return nil
}

// An answer may have minMergedValues + rowValues × the samples that it merges, up to maxMergedValues, which bounds its
// memory. Each distinct sample of a block has a value of each type, and counts as rowValues at least, the memory of its
// identity. So samples of up to rowValues types are refused only above maxMergedValues, and those of very many types
// that hardly share a stack before they take memory in proportion to their product.
const (
	minMergedValues = 4 << 20
	maxMergedValues = 16 << 20
	rowValues       = 4
)

// ended returns an error if the query has ended, or has too many values.
func (m *merger) ended() error {
	if m.room < 0 {
		return fmt.Errorf("%w: its samples have more than %d values, one of each of %d sample types, or %d for fewer types",
			model.ErrTooLarge, m.maxValues, len(m.Types), rowValues)
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
	out := &Merged{Profiles: pprofile.NewProfiles(), Count: m.Count, LeftOut: m.leftOutRows}
	if m.Newest != nil {
		m.write(out.Profiles)
	}
	m.dict.OrderMappings(m.mappings)
	copied := dictionaryPart * m.dict.MemoryBytes()
	if err := m.memory.Grow(copied); err != nil {
		return nil, err
	}
	m.dict.CopyTo(out.Dictionary())
	return out, m.memory.Keep(copied + m.written)
}

// endBlock frees what is known of a block's dictionary. Mappings stay in the order of the blocks' dictionaries: readers
// treat the first one as the main binary.
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
	if m.leftOutRows > 0 {
		attributes = m.comment(attributes)
	}
	periodType, periodUnit := dict.Strings.Intern(newest.PeriodType), dict.Strings.Intern(newest.PeriodUnit)
	for column, t := range m.Types {
		p := sp.Profiles().AppendEmpty()
		name := t.Type
		if slices.ContainsFunc(m.Types, func(o model.SampleType) bool { return o.Type == name && o != t }) {
			name += "_" + t.Unit // pprof's tools lose types that share a name: async-profiler's itimer/count and itimer/ns
		}
		p.SampleType().SetTypeStrindex(int32(dict.Strings.Intern(name)))
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
