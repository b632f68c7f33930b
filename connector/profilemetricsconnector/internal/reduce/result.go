// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"crypto/sha256"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Reason is why samples are not in a metric.
type Reason int

// The reasons.
const (
	// Index: an index is out of range. Shape: values and timestamps do not go together. Negative: a value is below 0.
	Index Reason = iota
	Shape
	Negative
	// Unit: the profile's unit cannot be converted to the metric's.
	Unit
	// Values: what happened, for a metric of a state, or a state for a metric of what happens.
	Values
	// Expansion: the stacks of the message share their frames too often.
	Expansion
	// Baseline: the first total of a process: nothing shows how much of it is new. Order: a total or state that is older
	// than the last one. Duplicate: a total or state that was sent again.
	Baseline
	Order
	Duplicate
	// Cumulative: totals have no hottest functions.
	Cumulative
	// MaxSeries: there was no room for another series.
	MaxSeries
	NumReasons
)

func (r Reason) String() string {
	return [NumReasons]string{"index", "shape", "negative", "unit", "values", "expansion", "baseline", "order",
		"duplicate", "cumulative", "max_series"}[r]
}

// Dropped counts samples by reason, once for each metric that they are not in.
type Dropped [NumReasons]int

// Exemplar is a sample that belongs to a span.
type Exemplar struct {
	Value   int64
	Time    pcommon.Timestamp
	TraceID pcommon.TraceID
	SpanID  pcommon.SpanID
}

// MaxExemplars bounds the exemplars of a series: those with the largest values.
const MaxExemplars = 4

// Exemplars are the largest ones of a series.
type Exemplars []Exemplar

// Add adds an exemplar, if it is among the largest.
func (e *Exemplars) Add(x Exemplar) {
	if len(*e) < MaxExemplars {
		*e = append(*e, x)
		return
	}
	least := 0
	for i := range *e {
		if (*e)[i].Value < (*e)[least].Value {
			least = i
		}
	}
	if (*e)[least].Value < x.Value {
		(*e)[least] = x
	}
}

// Addition is what a message adds to a series. Its strings are parts of the message.
type Addition struct {
	// Key identifies the series.
	Key    []byte
	Metric int
	// Resource and Sample are the values of the metric's keys, Frame is a function or a package.
	Resource, Sample []string
	Frame            string
	// Value is in nanoseconds if the metric's unit is s.
	Value     int64
	Samples   int
	Exemplars Exemplars
	// Source is the number of the profile that a state or a total is of, or −1.
	Source int
	// sample is the sample that was counted last.
	sample int
}

// Source is a profile whose values are a state or a total.
type Source struct {
	// Identity identifies the profile's series: its resource, attributes and type.
	Identity [sha256.Size]byte
	Metric   int
	Values   kind.Values
	Time     int64
	// Total is the sum of all its values.
	Total int64
	// Fingerprint tells the profile from another part of it, if it was divided: a message that is sent again has the same
	// one.
	Fingerprint uint64
}

// Functions are what a resource has of the functions of one type.
type Functions struct {
	// Entry is the number of the type.
	Entry int
	// Resource are the values of the keys, Version that of the attribute by which functions are compared.
	Resource []string
	Version  string
	// Total is the sum of all values, Observations the number of samples that the profiler took for them.
	Total, Observations float64
	Samples             int
	Sums                []FunctionSum
}

// FunctionSum is what a function has.
type FunctionSum struct {
	Name  string
	Value float64
}

// Result is what a message adds. It is valid until the next one.
type Result struct {
	Additions []Addition
	Sources   []Source
	Functions []Functions
	Dropped   Dropped
	Samples   int
	// Overflow counts the samples for which series.Table had no room.
	Overflow int
}
