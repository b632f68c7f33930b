// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// SampleReader reads the samples of a payload, one at a time: Read, then ReadStack. Its fields are borrowed until the
// next Read.
type SampleReader struct {
	// Stack has the positions of the sample's locations, leaf first. The caller may replace them.
	Stack []int32
	// Values has the sample's values, but no more than Reset allows; ValueCount is how many there are.
	Values     []int64
	ValueCount int
	// Locations spans all location ids, Labels all labels, each with other fields between them; End is 0 if there are
	// none.
	Locations, Labels Span

	// Payload is the payload that is read.
	Payload    *Payload
	limits     *Limits
	maxValues  int
	labelCount int
}

// Reset prepares for the samples of a payload, of which at most maxValues values are kept.
func (r *SampleReader) Reset(p *Payload, limits *Limits, maxValues int) {
	r.Payload, r.limits, r.maxValues, r.labelCount = p, limits, maxValues, 0
}

// Release forgets the payload.
func (r *SampleReader) Release() { r.Payload, r.limits = nil, nil }

// Bytes returns the memory in use.
func (r *SampleReader) Bytes() int { return dictionary.BytesOf(r.Stack) + dictionary.BytesOf(r.Values) }

// Read reads the values of the sample at a span, and finds its locations and labels. If it returns false, the sample
// cannot be understood.
func (r *SampleReader) Read(at Span) (DropReason, bool) {
	r.Values, r.ValueCount = r.Values[:0], 0
	r.Locations, r.Labels = Span{}, Span{}
	data := r.Payload.Data
	var f field
	for p, end := int(at.Start), int(at.End); p < end; {
		start := p
		var err error
		if p, err = f.next(data, p, end); err != nil {
			return DropMalformed, false
		}
		switch f.number {
		case SampleLocationID:
			r.Locations.extend(start, p)
		case SampleValue:
			if !r.readValues(&f) {
				return DropMalformed, false
			}
		case SampleLabel:
			if f.wire != wireBytes {
				return DropMalformed, false
			}
			r.Labels.extend(start, p)
		}
	}
	return 0, true
}

// ReadAll is Read and ReadStack.
func (r *SampleReader) ReadAll(at Span) (DropReason, bool) {
	if reason, ok := r.Read(at); !ok {
		return reason, false
	}
	return r.ReadStack()
}

// extend makes s reach to a field.
func (s *Span) extend(start, end int) {
	if s.End == 0 {
		s.Start = uint32(start)
	}
	s.End = uint32(end)
}

// ReadStack reads the locations of the sample into Stack. If it returns false, they cannot be understood.
func (r *SampleReader) ReadStack() (DropReason, bool) {
	r.Stack = r.Stack[:0]
	var f field
	for p, end := int(r.Locations.Start), int(r.Locations.End); p < end; {
		p, _ = f.next(r.Payload.Data, p, end) // Read has read them all
		if f.number != SampleLocationID {
			continue
		}
		if reason, ok := r.readLocations(&f); !ok {
			return reason, false
		}
	}
	return 0, true
}

// readLocations appends the positions of locations to the stack.
func (r *SampleReader) readLocations(f *field) (DropReason, bool) {
	if f.wire != wireVarint && f.wire != wireBytes {
		return DropMalformed, false
	}
	room := r.limits.MaxStackDepth - len(r.Stack)
	if f.wire == wireVarint {
		if room <= 0 {
			return DropStackTooDeep, false
		}
		position, reason, ok := r.location(f.value)
		r.Stack = append(r.Stack, position)
		return reason, ok
	}
	data := r.Payload.Data[:f.end]
	size := f.end - f.start // an id takes a byte at least
	if size > room {
		if size = countVarints(data[f.start:]); size > room {
			return DropStackTooDeep, false
		}
	}
	stack := slices.Grow(r.Stack, size)
	ordered := r.Payload.LocationIDs.ordered
	if r.Payload.unreadable != nil {
		ordered = 0
	}
	for p := f.start; p < len(data); {
		id := uint64(data[p])
		if p++; id >= 0x80 {
			if id, p = varint(data, p-1); p < 0 {
				return DropMalformed, false
			}
		}
		if id-1 < ordered { // Fast path: all locations are in order, and readable.
			stack = append(stack, int32(id-1))
			continue
		}
		position, reason, ok := r.location(id)
		if !ok {
			return reason, false
		}
		stack = append(stack, position)
	}
	r.Stack = stack
	return 0, true
}

// location returns the position of a location whose strings the payload has.
func (r *SampleReader) location(id uint64) (position int32, reason DropReason, ok bool) {
	p := r.Payload
	i, ok := p.LocationIDs.Find(id)
	if !ok {
		return 0, DropUnknownLocation, false
	}
	if p.unreadable != nil && p.unreadable[i] {
		return 0, DropUnknownString, false
	}
	return int32(i), 0, true
}

func (r *SampleReader) readValues(f *field) bool {
	if f.wire == wireVarint {
		if r.ValueCount++; r.ValueCount <= r.maxValues {
			r.Values = append(r.Values, int64(f.value))
		}
		return true
	}
	if f.wire != wireBytes {
		return false
	}
	data := r.Payload.Data[:f.end]
	values, count := r.Values, r.ValueCount
	for p := f.start; p < len(data); {
		v := uint64(data[p])
		if p++; v >= 0x80 {
			if v, p = varint(data, p-1); p < 0 {
				return false
			}
		}
		if count++; count <= r.maxValues {
			values = append(values, int64(v))
		}
	}
	r.Values, r.ValueCount = values, count
	return true
}

// FitValues adjusts the number of values to that of sample types, and reports whether that was a repair. A missing
// value is 0. A sample without values, in a payload without sample types, is one observation and counts 1.
func (r *SampleReader) FitValues() (repaired bool) {
	n := r.Payload.ValuesPerSample()
	if r.ValueCount == n {
		return false
	}
	if len(r.Payload.SampleTypes) == 0 && r.ValueCount == 0 {
		r.Values = append(r.Values, 1)
		return false
	}
	for len(r.Values) < n {
		r.Values = append(r.Values, 0)
	}
	return true
}

// NextLabel returns the span of the next Label message in rest and moves rest past it; End is 0 after the last one.
func (r *SampleReader) NextLabel(rest *Span) (at Span, reason DropReason, ok bool) {
	var f field
	for rest.Start < rest.End {
		p, err := f.next(r.Payload.Data, int(rest.Start), int(rest.End))
		if err != nil {
			return Span{}, DropMalformed, false
		}
		rest.Start = uint32(p)
		if f.number != SampleLabel {
			continue
		}
		if r.labelCount++; r.labelCount > 4*r.limits.MaxTableEntries {
			return Span{}, DropTooManyLabels, false
		}
		return Span{uint32(f.start), uint32(f.end)}, 0, true
	}
	return Span{}, 0, true
}

// Label is a Label message.
type Label struct {
	Key, Str, Unit uint64
	Num            int64
}

// IsEmpty reports whether this is a number 0 without a unit, which profile.Parse does not read as a label.
func (l Label) IsEmpty() bool { return l.Str == 0 && l.Num == 0 && l.Unit == 0 }

// ReadLabel reads a Label message, and checks that the payload has its strings.
func (p *Payload) ReadLabel(at Span) (label Label, reason DropReason, ok bool) {
	var v [LabelNumUnit]uint64
	if !numbers(p.Data, int(at.Start), int(at.End), v[:]) {
		return Label{}, DropMalformed, false
	}
	label = Label{Key: v[LabelKey-1], Str: v[LabelStr-1], Num: int64(v[LabelNum-1]), Unit: v[LabelNumUnit-1]}
	// a string has no unit
	if !p.HasString(label.Key) || !p.HasString(label.Str) || label.Str == 0 && !p.HasString(label.Unit) {
		return Label{}, DropUnknownString, false
	}
	return label, 0, true
}
