// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

// Sample is a sample by names, for Builder.Sample.
type Sample struct {
	Stack      []Location // leaf first
	Values     []int64
	Timestamps []uint64
	Attributes []Attribute
	TraceID    [16]byte // with SpanID, the link; none if both are zero
	SpanID     [8]byte
}

// Location is a location by names.
type Location struct {
	Address    uint64
	Mapping    *Mapping // nil for none
	Lines      []Line   // innermost first
	Attributes []Attribute
}

// Line is a line of a function.
type Line struct {
	Function     Function
	Line, Column int64
}

// Function is a function by names.
type Function struct {
	Name, SystemName, File string
	StartLine              int64
}

// Mapping is a mapped file.
type Mapping struct {
	Start, Limit, Offset uint64
	File                 string
	Attributes           []Attribute
}

// Attribute is an attribute; pcommon.Value.FromRaw must accept Value.
type Attribute struct {
	Key   string
	Value any
	Unit  string
}

// Attr returns an attribute without a unit.
func Attr(key string, value any) Attribute { return Attribute{Key: key, Value: value} }

// Stack returns a location for each function, leaf first.
func Stack(functions ...string) []Location {
	stack := make([]Location, len(functions))
	for i, name := range functions {
		stack[i] = Location{Lines: []Line{{Function: Function{Name: name}}}}
	}
	return stack
}

// Value returns a sample of one value, with a location for each function, leaf first.
func Value(value int64, functions ...string) Sample {
	return Sample{Values: []int64{value}, Stack: Stack(functions...)}
}

// Observed returns a sample of timestamps only, with a location for each function, leaf first.
func Observed(timestamps []uint64, functions ...string) Sample {
	return Sample{Timestamps: timestamps, Stack: Stack(functions...)}
}

// With returns the sample with more attributes.
func (s Sample) With(attributes ...Attribute) Sample {
	s.Attributes = append(s.Attributes[:len(s.Attributes):len(s.Attributes)], attributes...)
	return s
}

// Linked returns the sample with a link.
func (s Sample) Linked(traceID [16]byte, spanID [8]byte) Sample {
	s.TraceID, s.SpanID = traceID, spanID
	return s
}
