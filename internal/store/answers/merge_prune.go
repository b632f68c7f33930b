// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	pprofscan "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// This file leaves out the smallest samples of a pprof that would need more memory than a query can have.

// tableBytes is what the rows take so far.
func (m *merger) tableBytes() int {
	return len(m.rows)*rowBytes + valueBytes*(len(m.values)+len(m.fractions))
}

// isFull reports whether the samples have taken their part of the memory, with what they take in the end.
func (m *merger) isFull() bool {
	if m.parts == 0 || len(m.rows) < minPruned {
		return false
	}
	built := m.dictBytes + m.tableBytes()
	finishing := dictionaryPart*m.dictBytes + writtenBytes*len(m.values)
	return built+finishing > (m.memory.Free()+built)/m.parts
}

// prune leaves out the smallest samples, three of four. Those with one outermost location become one sample.
func (m *merger) prune() error {
	m.endBlock()
	m.dict.OrderMappings(m.mappings)
	pruning := 2*valueBytes*len(m.rows) + moverBytes(m.dict)
	if err := cmp.Or(m.memory.Grow(pruning), m.memory.Check()); err != nil {
		return err
	}
	old, leftOut, keep := m.dict, m.leftOut, m.largest(len(m.rows)/4)
	m.memory.Release(m.dictBytes + m.tableBytes())
	dict := dictionary.NewCopying()
	moves := mover.New(old, dict)
	var stacks []dictionary.StackIndex
	for i, row := range m.rows {
		if keep[i] {
			stacks = append(stacks, dictionary.StackIndex(row.stack))
		}
	}
	moves.Stacks(stacks)
	m.addAgain(dict, func(i int, row identity) identity {
		switch {
		case keep[i]:
			row.stack = int32(moves.Stack(dictionary.StackIndex(row.stack)))
			row.attributes = int32(moves.Set(dictionary.AttributeSetIndex(row.attributes)))
			row.link = int32(moves.Link(dictionary.LinkIndex(row.link)))
			return row
		case leftOut[row.stack]:
			row = identity{stack: int32(moves.Stack(dictionary.StackIndex(row.stack)))}
			m.leftOut[row.stack] = true
			return row
		}
		m.leftOutRows++
		return identity{stack: m.leftOutBelow(moves, old.Stacks.At(dictionary.StackIndex(row.stack)))}
	})
	m.mappings = m.mappings[:0]
	for i := range m.dict.Mappings.Len() {
		m.mappings = append(m.mappings, dictionary.MappingIndex(i))
	}
	m.placed = dictionary.MappingIndex(len(m.mappings) - 1)
	m.dictBytes = m.dict.MemoryBytes()
	m.memory.Release(pruning)
	return cmp.Or(m.memory.Grow(m.dictBytes), m.ended())
}

// largest marks the n largest samples: a value is as large as the part that it is of the values of its type. What was
// left out stays.
func (m *merger) largest(n int) []bool {
	wholes := make([]float64, m.types)
	value := func(i int) float64 {
		v := float64(m.values[i])
		if m.fractions != nil {
			v += m.fractions[i]
		}
		return math.Abs(v)
	}
	for i := range m.values {
		wholes[i%m.types] += value(i)
	}
	sizes := make([]float64, len(m.rows))
	for i := range m.values {
		if whole := wholes[i%m.types]; whole > 0 && !m.leftOut[m.rows[i/m.types].stack] {
			sizes[i/m.types] = max(sizes[i/m.types], value(i)/whole)
		}
	}
	return largest(sizes, n, nil, func(i int, _ []bool) bool { return !m.leftOut[m.rows[i].stack] })
}

// maxLeftOut is how many outermost locations are kept apart in what is left out.
const maxLeftOut = 1 << 10

// leftOutBelow returns a stack for what is left out of those that have the outermost location of one.
func (m *merger) leftOutBelow(moves *mover.Mover, stack []int32) int32 {
	function := m.dict.Functions.Intern(dictionary.Function{Name: m.dict.Strings.Intern(LeftOutName)})
	locations := []int32{int32(m.dict.Locations.Intern(dictionary.Location{}, []dictionary.Line{{Function: function}}))}
	if len(stack) > 0 && len(m.leftOut) < maxLeftOut {
		locations = append(locations, int32(moves.Location(dictionary.LocationIndex(stack[len(stack)-1]))))
	}
	at := int32(m.dict.Stacks.Intern(locations))
	m.leftOut[at] = true
	return at
}

// comment adds, to the attributes of the profile, a comment of what was left out.
func (m *merger) comment(attributes []int32) []int32 {
	comments := pcommon.NewValueEmpty()
	list := comments.SetEmptySlice()
	attributes = slices.DeleteFunc(attributes, func(i int32) bool {
		a := m.dict.Attributes.At(dictionary.AttributeIndex(i))
		if m.dict.Strings.At(a.Key) != pprofscan.AttributeComment {
			return false
		}
		known := pcommon.NewValueEmpty()
		if a.Value.CopyTo(known); known.Type() == pcommon.ValueTypeSlice {
			known.Slice().CopyTo(list)
		} else {
			list.AppendEmpty().SetStr(known.AsString())
		}
		return true
	})
	list.AppendEmpty().
		SetStr(fmt.Sprintf(
			"The %d smallest samples are left out: all of them need more memory than a query may take. Their values are in %s.",
			m.leftOutRows, LeftOutName))
	return append(attributes, int32(m.dict.Attributes.Intern(dictionary.Attribute{
		Key: m.dict.Strings.Intern(pprofscan.AttributeComment), Value: dictionary.ValueOf(comments),
	})))
}
