// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// SampleReader reads the samples of a payload, one at a time: Read, ReadStack, Resolve. Its fields are borrowed until
// the next Read.
type SampleReader struct {
	// Stack has the sample's locations, leaf first, by the numbers that Resolve has assigned.
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
	// hasUnresolved tells that Stack has positions of locations that have no number yet.
	hasUnresolved bool
	// numbers has the numbers of locations by position. byID has the same by pprof's id, for ids up to the number of
	// locations, and 0 if there is none yet.
	numbers, byID []int32
}

// The numbers of locations that Resolve has not numbered.
const (
	unread     = -1
	unreadable = -2 // refers to a string that the payload does not have
	readable   = -3
)

// Reset prepares for the samples of a payload, of which at most maxValues values are kept.
func (r *SampleReader) Reset(p *Payload, limits *Limits, maxValues int) {
	r.Payload, r.limits, r.maxValues, r.labelCount = p, limits, maxValues, 0
	n := len(p.Locations)
	r.numbers = slices.Grow(r.numbers[:0], n)[:n]
	for i := range r.numbers {
		r.numbers[i] = unread
	}
	r.byID = dictionary.Zeroed(r.byID, n+1)
}

// Release forgets the payload.
func (r *SampleReader) Release() { r.Payload, r.limits = nil, nil }

// Bytes returns the memory in use.
func (r *SampleReader) Bytes() int {
	return dictionary.BytesOf(r.Stack) + dictionary.BytesOf(r.Values) + dictionary.BytesOf(r.numbers) +
		dictionary.BytesOf(r.byID)
}

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
	r.Stack, r.hasUnresolved = r.Stack[:0], false
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

// readLocations appends locations to the stack: as the location's number or, if it has none, a negative number for its
// position.
func (r *SampleReader) readLocations(f *field) (DropReason, bool) {
	if f.wire != wireVarint && f.wire != wireBytes {
		return DropMalformed, false
	}
	room := r.limits.MaxStackDepth - len(r.Stack)
	if f.wire == wireVarint {
		if room <= 0 {
			return DropStackTooDeep, false
		}
		i, reason, ok := r.location(f.value)
		if ok {
			r.Stack = append(r.Stack, i)
		}
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
	byID := r.byID
	for p := f.start; p < len(data); {
		id := uint64(data[p])
		if p++; id >= 0x80 {
			if id, p = varint(data, p-1); p < 0 {
				return DropMalformed, false
			}
		}
		if id < uint64(len(byID)) && byID[id] != 0 {
			// Fast path: an earlier sample has the location.
			stack = append(stack, byID[id])
			continue
		}
		i, reason, ok := r.location(id)
		if !ok {
			return reason, false
		}
		stack = append(stack, i)
	}
	r.Stack = stack
	return 0, true
}

// location returns the number of a location, or a negative number for the position of one that can be numbered.
func (r *SampleReader) location(id uint64) (int32, DropReason, bool) {
	position, ok := r.Payload.LocationIDs.Find(id)
	if !ok {
		return 0, DropUnknownLocation, false
	}
	i := r.numbers[position]
	if i == unread {
		i = unreadable
		if r.Payload.isReadable(&r.Payload.Locations[position]) {
			i = readable
		}
		r.numbers[position] = i
	}
	switch i {
	case unreadable:
		return 0, DropUnknownString, false
	case readable:
		r.hasUnresolved = true
		return int32(-1 - position), 0, true
	default:
		return i, 0, true
	}
}

// Resolve calls number for the positions of the sample's locations that have no number yet, which must not return a
// negative one. Call it only once the whole sample is known to be readable, so that a dropped sample interns nothing.
func (r *SampleReader) Resolve(number func(position int) int32) {
	if !r.hasUnresolved {
		return
	}
	for k, i := range r.Stack {
		if i >= 0 {
			continue
		}
		position := -1 - int(i)
		known := r.numbers[position]
		if known < 0 {
			known = number(position)
			r.numbers[position] = known
			if id := r.Payload.Locations[position].ID; id < uint64(len(r.byID)) {
				r.byID[id] = known
			}
		}
		r.Stack[k] = known
	}
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
