// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Row is a value of a profile.
type Row struct {
	RowKey
	Value int64
	// Timestamp is in Unix nanoseconds, if the profile HasTimestamps.
	Timestamp int64
}

// RowKey is what distinguishes the rows of a profile without timestamps. Its indices are of the dictionary of its
// service. Its link is Trace.
type RowKey struct {
	model.RowKey
	Trace dictionary.Link
}

// Compare orders rows.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(k.RowKey.Compare(other.RowKey), bytes.Compare(k.Trace.TraceID[:], other.Trace.TraceID[:]),
		bytes.Compare(k.Trace.SpanID[:], other.Trace.SpanID[:]))
}

// Flags are those of a profile with such a row.
func (k RowKey) Flags() model.Flags {
	if k.Trace != (dictionary.Link{}) {
		return k.RowKey.Flags() | model.HasLinks
	}
	return k.RowKey.Flags()
}

// Columns are rows, column by column. Links stand for themselves.
type Columns struct {
	model.Columns
	Traces []dictionary.Link
}

// Row returns a row.
func (c *Columns) Row(i int) Row {
	row := Row{RowKey: RowKey{RowKey: c.Key(i)}, Value: c.Values[i], Timestamp: model.At(c.Timestamps, i)}
	if len(c.Traces) > 0 {
		row.Trace = c.Traces[i]
	}
	return row
}

// sample is a row of samples.parquet.
type sample struct {
	Block         string `parquet:"block,dict"`
	Series        int32  `parquet:"series,delta"`
	Time          int64  `parquet:"time,timestamp(nanosecond),delta"`
	DurationNanos int64  `parquet:"duration_nanos,delta"`
	Stack         int32  `parquet:"stack,delta"`
	Value         int64  `parquet:"value"`
	AttributeSet  int32  `parquet:"attribute_set,delta"`
	// Timestamp is the time of the observation, or null.
	Timestamp int64  `parquet:"timestamp,optional,timestamp(nanosecond),delta"`
	TraceID   []byte `parquet:"trace_id,optional"`
	SpanID    []byte `parquet:"span_id,optional"`
}

// sampleOf returns a row of a profile.
func (s *Service) sampleOf(of *profileRow, row Row) sample {
	out := sample{
		Block: of.Block, Series: of.Series, Time: of.Time, DurationNanos: of.Duration,
		Stack: int32(s.FirstStack) + row.Stack, Value: row.Value, AttributeSet: numberOf(s, row.Attributes),
	}
	if of.Flags&model.HasTimestamps != 0 {
		out.Timestamp = row.Timestamp
	}
	if row.Trace != (dictionary.Link{}) {
		link := row.Trace // only such a row takes memory
		out.TraceID, out.SpanID = link.TraceID[:], link.SpanID[:]
	}
	return out
}

// Samples reads n samples of a service from a row on. Columns that are not wanted are empty.
func (s *Scan) Samples(service *Service, first int64, n int, want model.ColumnsWanted, c *Columns) error {
	c.Attributes, c.Timestamps, c.Traces = c.Attributes[:0], c.Timestamps[:0], c.Traces[:0]
	c.Stacks, c.Values = slices.Grow(c.Stacks[:0], n)[:n], slices.Grow(c.Values[:0], n)[:n]
	err := cmp.Or(readInts(&s.samples, "stack", first, c.Stacks), readInts(&s.samples, "value", first, c.Values))
	for i := range c.Stacks {
		c.Stacks[i] -= int32(service.FirstStack)
	}
	if want.Attributes {
		c.Attributes = slices.Grow(c.Attributes, n)[:n]
		err = cmp.Or(err, readInts(&s.samples, "attribute_set", first, c.Attributes))
		for i, number := range c.Attributes {
			c.Attributes[i] = set(service, number)
		}
	}
	values := func(name string, use func(i int, v parquet.Value)) {
		err = cmp.Or(err, s.samples.values(name, first, n, use))
	}
	if want.Timestamps {
		c.Timestamps = slices.Grow(c.Timestamps, n)[:n]
		values("timestamp", func(i int, v parquet.Value) { c.Timestamps[i] = v.Int64() })
	}
	if want.Links {
		c.Traces = slices.Grow(c.Traces, n)[:n]
		clear(c.Traces)
		values("trace_id", func(i int, v parquet.Value) { copy(c.Traces[i].TraceID[:], v.ByteArray()) })
		values("span_id", func(i int, v parquet.Value) { copy(c.Traces[i].SpanID[:], v.ByteArray()) })
	}
	return err
}
