// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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
	memory *model.Memory
	types  int
	rows   []identity
	// room is how many values may still be added.
	room int
	// values has a row of types values for each identity. fractions, if there are any, are added in the end, so that
	// integers stay exact.
	values    []int64
	fractions []float64
	index     dictionary.HashIndex
	// written is what the samples take that were made of rows.
	written int
}

// row returns the row of an identity. Its callers check the memory.
func (t *table) row(id identity) int {
	h := dictionary.Mix(0, uint64(uint32(id.stack))<<32|uint64(uint32(id.attributes)))
	p := t.index.Start(dictionary.Mix(dictionary.Mix(h, uint64(uint32(id.link))), uint64(id.timestamp)))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.rows[e-1] == id {
			return int(e - 1)
		}
	}
	t.room -= max(t.types, rowValues)
	_ = t.memory.Grow(rowBytes + valueBytes*t.types)
	t.rows = append(t.rows, id)
	t.values = append(t.values, make([]int64, t.types)...)
	if t.fractions != nil {
		_ = t.memory.Grow(valueBytes * t.types)
		t.fractions = append(t.fractions, make([]float64, t.types)...)
	}
	t.index.Insert(p, int32(len(t.rows)))
	return len(t.rows) - 1
}

func (t *table) add(id identity, column int, value int64) {
	at := t.row(id)*t.types + column
	t.values[at] = otlp.SaturatingAdd(t.values[at], value)
}

func (t *table) addFraction(id identity, column int, value float64) {
	row := t.row(id)
	if t.fractions == nil {
		_ = t.memory.Grow(valueBytes * len(t.values))
		t.fractions = make([]float64, len(t.values))
	}
	t.fractions[row*t.types+column] += value
}

// round adds the fractions to the values.
func (t *table) round() {
	for i, v := range t.fractions {
		t.values[i] = otlp.SaturatingAdd(t.values[i], otlp.SaturatingRound(v))
	}
	t.fractions = nil
}

// maxRepeatedAttributes is how many attributes each observation of a sample may have for itself.
const maxRepeatedAttributes = 16

// write writes a column's samples. One that is 0 in all columns goes into the first. Observations that differ in their
// time alone and have many attributes are one sample, which has these once. Others keep their order, and the message a
// size that allows a pprof in which each of them has a deep stack.
func (t *table) write(dst pprofile.SampleSlice, dict *dictionary.Dictionary, column int) {
	timed := map[identity]pprofile.Sample{}
	for i, row := range t.rows {
		if t.memory.Grow(0) != nil {
			return // assemble returns the error
		}
		values := t.values[i*t.types : (i+1)*t.types]
		if values[column] == 0 && (column > 0 || slices.ContainsFunc(values, func(v int64) bool { return v != 0 })) {
			continue
		}
		isShared := row.timed &&
			len(dict.AttributeSets.At(dictionary.AttributeSetIndex(row.attributes))) > maxRepeatedAttributes
		if isShared {
			if s, ok := timed[row.untimed()]; ok {
				t.written += 2 * valueBytes
				_ = t.memory.Grow(2 * valueBytes)
				s.Values().Append(values[column])
				s.TimestampsUnixNano().Append(uint64(row.timestamp))
				continue
			}
		}
		taken := writtenBytes + 4*len(dict.AttributeSets.At(dictionary.AttributeSetIndex(row.attributes)))
		t.written += taken
		_ = t.memory.Grow(taken)
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
