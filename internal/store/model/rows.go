// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"iter"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// RowKey is what distinguishes the samples of a profile without timestamps: indices of a dictionary.
type RowKey struct{ Stack, Attributes, Link int32 }

// Compare orders samples.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(cmp.Compare(k.Stack, other.Stack), cmp.Compare(k.Attributes, other.Attributes),
		cmp.Compare(k.Link, other.Link))
}

// IsOutside reports whether one of the indices is beyond the entries of a dictionary.
func (k RowKey) IsOutside(d *dictionary.Dictionary) bool {
	return IsOutside(k.Stack, d.Stacks.Len()) || IsOutside(k.Attributes, d.AttributeSets.Len()) ||
		IsOutside(k.Link, d.Links.Len())
}

// Flags are those of a profile with such a sample.
func (k RowKey) Flags() (flags Flags) {
	if k.Attributes != 0 {
		flags |= HasAttributes
	}
	if k.Link != 0 {
		flags |= HasLinks
	}
	return flags
}

// ColumnsWanted are the columns to read besides stacks and values.
type ColumnsWanted struct{ Attributes, Timestamps, Links bool }

// Of returns the columns that profiles with flags have.
func (w ColumnsWanted) Of(flags Flags) ColumnsWanted {
	return ColumnsWanted{
		Attributes: w.Attributes && flags&HasAttributes != 0, Timestamps: w.Timestamps && flags&HasTimestamps != 0,
		Links: w.Links && flags&HasLinks != 0,
	}
}

// AllColumns are all columns.
var AllColumns = ColumnsWanted{Attributes: true, Timestamps: true, Links: true}

// Columns are samples. A column is empty if it was not wanted, or if no profile that is read has it. Timestamps are
// Unix nanoseconds. Sums have Counts of samples, if these are wanted, and Fractions to add to the values, if there are
// some.
type Columns struct {
	Stacks, Attributes, Links  []int32
	Timestamps, Values, Counts []int64
	Fractions                  []float64
}

// Key returns what distinguishes a sample.
func (c *Columns) Key(i int) RowKey {
	return RowKey{c.Stacks[i], At(c.Attributes, i), At(c.Links, i)}
}

// Sum returns the sum of the values.
func (c *Columns) Sum() (sum float64) {
	for _, value := range c.Values {
		sum += float64(value)
	}
	return sum
}

// Append adds a sample.
func (c *Columns) Append(key RowKey, timestamp, value int64) {
	c.Stacks, c.Attributes, c.Links = append(c.Stacks, key.Stack), append(c.Attributes, key.Attributes),
		append(c.Links, key.Link)
	c.Timestamps, c.Values = append(c.Timestamps, timestamp), append(c.Values, value)
}

// AppendRow adds a row of other columns.
func (c *Columns) AppendRow(from *Columns, i int) {
	c.Stacks, c.Attributes, c.Links = appendAt(c.Stacks, from.Stacks, i), appendAt(c.Attributes, from.Attributes, i),
		appendAt(c.Links, from.Links, i)
	c.Timestamps, c.Values, c.Counts = appendAt(c.Timestamps, from.Timestamps, i), appendAt(c.Values, from.Values, i),
		appendAt(c.Counts, from.Counts, i)
	c.Fractions = appendAt(c.Fractions, from.Fractions, i)
}

func appendAt[T any](to, from []T, i int) []T {
	if len(from) == 0 {
		return to
	}
	return append(to, from[i])
}

// Slice returns a part of the rows.
func (c *Columns) Slice(from, until int) Columns {
	return Columns{
		Stacks: partOf(c.Stacks, from, until), Attributes: partOf(c.Attributes, from, until),
		Links: partOf(c.Links, from, until), Timestamps: partOf(c.Timestamps, from, until),
		Values: partOf(c.Values, from, until),
	}
}

func partOf[T any](list []T, from, until int) []T {
	if len(list) == 0 {
		return nil
	}
	return list[from:until]
}

// At returns an entry of a column, or 0 if nothing has one.
func At[T int32 | int64 | float64](column []T, i int) T {
	if len(column) == 0 {
		return 0
	}
	return column[i]
}

// Runs returns the parts of a list in which each entry goes on with the one before.
func Runs[T any](list []T, goesOn func(last, next *T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for n := 0; len(list) > 0; list = list[n:] {
			for n = 1; n < len(list) && goesOn(&list[n-1], &list[n]); n++ {
			}
			if !yield(list[:n]) {
				return
			}
		}
	}
}
