// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// MaxSampleTypes is far above what any profiler records. It bounds the number of Profiles that a payload of sample
// types becomes.
const MaxSampleTypes = 1024

var (
	errValueType    = errors.New("a sample type or period type is malformed")
	errNoStrings    = errors.New("there are sample types and no string_table")
	errConcatenated = errors.New("several profiles one after another (time_nanos appears twice)")
)

// Span is a part of the payload: [Start, End).
type Span struct{ Start, End uint32 }

// ValueType is a ValueType message. Here and below, strings are indices of string_table.
type ValueType struct{ Type, Unit uint64 }

// Mapping is a Mapping message.
type Mapping struct {
	ID, Start, Limit, Offset uint64
	Filename, BuildID        uint64
	// Has are the four flags, from has_functions on; MappingFlags are their attributes.
	Has [len(MappingFlags)]bool
}

// Function is a Function message.
type Function struct {
	ID                         uint64
	Name, SystemName, Filename uint64
	StartLine                  int64
}

// Location is a Location message; its lines are Payload.Lines[LineStart:LineEnd].
type Location struct {
	ID, MappingID, Address uint64
	LineStart, LineEnd     uint32
	IsFolded               bool
}

// Line is a Line message.
type Line struct {
	FunctionID   uint64
	Line, Column int64
}

// Payload is a decompressed payload, scanned: entries as they are on the wire, samples still as spans.
type Payload struct {
	// Data is borrowed.
	Data []byte

	SampleTypes []ValueType
	Samples     []Span
	Strings     []Span
	Comments    []uint64
	Mappings    []Mapping
	Functions   []Function
	Locations   []Location
	Lines       []Line

	PeriodType ValueType
	// Numbers are the fields that are a number or the index of a string, by field number.
	Numbers [ProfileDocURL + 1]uint64

	// SampleBytes is the size of all Sample messages.
	SampleBytes int
	// The positions of entries by their ids.
	MappingIDs, FunctionIDs, LocationIDs IDs

	// maxString is the largest string index of all functions and mappings. If the payload lacks that string, unreadable
	// tells, for each location, whether it refers to a string that the payload lacks.
	maxString  uint64
	unreadable []bool
}

// Scan reads data into p. Fields may come in any order, so nothing is resolved yet. An entry that is malformed in
// itself is left out. A fault between entries is an error, and so is a limit, with an error that wraps ErrTooLarge.
// Scan reserves the memory of the tables with meter.
func (p *Payload) Scan(data []byte, limits *Limits, counts *Counts, meter *pdatasize.Meter) error {
	*p = Payload{
		Data:        data,
		SampleTypes: p.SampleTypes[:0],
		Samples:     p.Samples[:0],
		Strings:     p.Strings[:0],
		Comments:    p.Comments[:0],
		Mappings:    p.Mappings[:0],
		Functions:   p.Functions[:0],
		Locations:   p.Locations[:0],
		Lines:       p.Lines[:0],
		MappingIDs:  p.MappingIDs, FunctionIDs: p.FunctionIDs, LocationIDs: p.LocationIDs,
	}
	if err := p.count(limits, meter); err != nil {
		return err
	}
	var f field
	for at := 0; at < len(data); {
		start := at
		at, _ = f.next(data, at, len(data)) // count has read them all
		if f.number == 0 || f.number > ProfileDocURL {
			continue
		}
		if err := p.readField(&f, limits, meter); err != nil {
			return fmt.Errorf("field %d at byte %d of %d: %w", f.number, start, len(data), err)
		}
	}
	if int64(len(p.Samples))*int64(p.ValuesPerSample()) > int64(limits.MaxSamples) {
		return tooMany("samples times sample types", limits.MaxSamples)
	}
	if len(p.SampleTypes) > 0 && len(p.Strings) == 0 {
		return errNoStrings
	}
	p.repairFunctionIDs(counts)
	if err := errors.Join(
		p.MappingIDs.build(len(p.Mappings), func(i int) uint64 { return p.Mappings[i].ID }, counts, meter),
		p.FunctionIDs.build(len(p.Functions), func(i int) uint64 { return p.Functions[i].ID }, counts, meter),
		p.LocationIDs.build(len(p.Locations), func(i int) uint64 { return p.Locations[i].ID }, counts, meter),
	); err != nil || p.HasString(p.maxString) {
		return err
	}
	p.unreadable = make([]bool, len(p.Locations)) // of damaged payloads only
	for i := range p.Locations {
		p.unreadable[i] = !p.isReadable(&p.Locations[i])
	}
	return nil
}

// repairFunctionIDs numbers functions by their position if all have the same id, although lines refer to them by
// position: Pyroscope's profiler for .NET writes 0.
func (p *Payload) repairFunctionIDs(counts *Counts) {
	n := uint64(len(p.Functions))
	if n == 0 || n == 1 && p.Functions[0].ID != 0 {
		return
	}
	for i := range p.Functions {
		if p.Functions[i].ID != p.Functions[0].ID {
			return
		}
	}
	refersByPosition := false
	for _, line := range p.Lines {
		if line.FunctionID > n {
			return
		}
		refersByPosition = refersByPosition || line.FunctionID != p.Functions[0].ID && line.FunctionID != 0
	}
	if !refersByPosition {
		return
	}
	for i := range p.Functions {
		p.Functions[i].ID = uint64(i + 1)
	}
	counts.Repaired[RepairFunctionIDs] += len(p.Functions)
}

// Bytes estimates the memory in use, without Data and maps.
func (p *Payload) Bytes() int {
	return dictionary.BytesOf(p.SampleTypes) + dictionary.BytesOf(p.Samples) + dictionary.BytesOf(p.Strings) +
		dictionary.BytesOf(p.Comments) + dictionary.BytesOf(p.Mappings) +
		dictionary.BytesOf(p.Functions) + dictionary.BytesOf(p.Locations) + dictionary.BytesOf(p.Lines) +
		dictionary.BytesOf(p.MappingIDs.dense) + dictionary.BytesOf(p.FunctionIDs.dense) +
		dictionary.BytesOf(p.LocationIDs.dense)
}

// ValuesPerSample returns how many values a sample should have: one if there are no sample types, a count.
func (p *Payload) ValuesPerSample() int { return max(1, len(p.SampleTypes)) }

// HasString reports whether the payload has a string of this index. Index 0 is the empty string, even if
// the payload lacks it.
func (p *Payload) HasString(i uint64) bool { return i < uint64(len(p.Strings)) || i == 0 }

// FunctionOf returns the position of a line's function. Id 0 means no function, even if an entry has it.
func (p *Payload) FunctionOf(line Line) (position int, ok bool) {
	if line.FunctionID == 0 {
		return 0, false
	}
	return p.FunctionIDs.Find(line.FunctionID)
}

// MappingOf returns the position of a mapping. Id 0 means no mapping, even if an entry has it.
func (p *Payload) MappingOf(id uint64) (position int, ok bool) {
	if id == 0 {
		return 0, false
	}
	return p.MappingIDs.Find(id)
}

// isReadable reports whether the payload has all strings that a location refers to, through its mapping and functions.
func (p *Payload) isReadable(l *Location) bool {
	if i, ok := p.MappingOf(l.MappingID); ok {
		if m := &p.Mappings[i]; !p.HasString(m.Filename) || !p.HasString(m.BuildID) {
			return false
		}
	}
	for _, line := range p.Lines[l.LineStart:l.LineEnd] {
		if i, ok := p.FunctionOf(line); ok {
			if f := &p.Functions[i]; !p.HasString(f.Name) || !p.HasString(f.SystemName) || !p.HasString(f.Filename) {
				return false
			}
		}
	}
	return true
}

// count counts the entries of each kind, so that the slices are made once and no larger.
func (p *Payload) count(limits *Limits, meter *pdatasize.Meter) error {
	var counts [ProfileDocURL + 1]int
	var f field
	for at := 0; at < len(p.Data); {
		// Fast path: a message or string of less than 128 bytes.
		if tag := p.Data[at]; tag&7 == wireBytes && uint(tag>>3)-1 < ProfileDocURL && at+1 < len(p.Data) {
			if end := at + 2 + int(p.Data[at+1]); p.Data[at+1] < 0x80 && end <= len(p.Data) {
				counts[tag>>3]++
				if tag>>3 == ProfileSample {
					p.SampleBytes += end - at - 2
				}
				at = end
				continue
			}
		}
		start := at
		var err error
		if at, err = f.next(p.Data, at, len(p.Data)); err != nil {
			return fmt.Errorf("at byte %d of %d: %w", start, len(p.Data), err)
		}
		if f.number == 0 || f.number > ProfileDocURL {
			continue
		}
		counts[f.number]++
		if f.number == ProfileSample && f.wire == wireBytes {
			p.SampleBytes += f.end - f.start
		}
	}
	if counts == [ProfileDocURL + 1]int{} {
		return errors.New("no field of pprof's Profile message was found")
	}
	if n := counts[ProfileSample]; n > limits.MaxSamples {
		return tooMany("samples", limits.MaxSamples)
	}
	for _, table := range []struct {
		name  string
		field int
	}{
		{"string_table", ProfileStringTable}, {"location", ProfileLocation},
		{"function", ProfileFunction}, {"mapping", ProfileMapping},
	} {
		if err := checkEntries(table.name, counts[table.field], limits); err != nil {
			return err
		}
	}
	const spanBytes, mappingBytes, functionBytes, locationBytes, lineBytes = 8, 64, 40, 40, 24
	if err := meter.Grow(spanBytes*(counts[ProfileSample]+counts[ProfileStringTable]) +
		(locationBytes+lineBytes)*counts[ProfileLocation] + functionBytes*counts[ProfileFunction] +
		mappingBytes*counts[ProfileMapping]); err != nil {
		return err
	}
	p.Samples = slices.Grow(p.Samples, counts[ProfileSample])
	p.Strings = slices.Grow(p.Strings, counts[ProfileStringTable])
	p.Locations = slices.Grow(p.Locations, counts[ProfileLocation])
	p.Lines = slices.Grow(p.Lines, counts[ProfileLocation])
	p.Functions = slices.Grow(p.Functions, counts[ProfileFunction])
	p.Mappings = slices.Grow(p.Mappings, counts[ProfileMapping])
	return nil
}

// readField reads one field of the Profile message into p.
func (p *Payload) readField(f *field, limits *Limits, meter *pdatasize.Meter) error {
	if f.number <= ProfileStringTable || f.number == ProfilePeriodType {
		if f.wire != wireBytes {
			return errWireType
		}
		return p.readMessage(f, limits, meter)
	}
	if f.number == ProfileComment {
		const perByte = 16 // a comment has at least a byte, and the slice of all comments grows twofold
		if err := meter.Grow(perByte * max(1, f.end-f.start)); err != nil {
			return err
		}
		return p.readComments(f, limits)
	}
	if f.wire != wireVarint {
		return errWireType
	}
	if f.number == ProfileTimeNanos && p.Numbers[ProfileTimeNanos] != 0 {
		return errConcatenated
	}
	p.Numbers[f.number] = f.value
	return nil
}

func (p *Payload) readMessage(f *field, limits *Limits, meter *pdatasize.Meter) error {
	at := Span{uint32(f.start), uint32(f.end)}
	switch f.number {
	case ProfileSample:
		p.Samples = append(p.Samples, at)
	case ProfileStringTable:
		p.Strings = append(p.Strings, at)
	case ProfileLocation:
		// A line has at least two bytes, and the slice of all lines grows twofold.
		const largeBytes, perByte = 4 << 10, 36
		if err := meter.Grow(perByte * max(0, f.end-f.start-largeBytes)); err != nil {
			return err
		}
		return p.readLocation(f.start, f.end, limits)
	case ProfileFunction:
		p.readFunction(f.start, f.end)
	case ProfileMapping:
		p.readMapping(f.start, f.end)
	case ProfileSampleType:
		if len(p.SampleTypes) >= MaxSampleTypes {
			return tooMany("sample types", MaxSampleTypes)
		}
		v, err := p.readValueType(f.start, f.end)
		p.SampleTypes = append(p.SampleTypes, v)
		return err
	case ProfilePeriodType:
		var err error
		p.PeriodType, err = p.readValueType(f.start, f.end)
		return err
	}
	return nil
}

func (p *Payload) readComments(f *field, limits *Limits) error {
	if f.wire == wireVarint {
		p.Comments = append(p.Comments, f.value)
		return checkEntries("comment", len(p.Comments), limits)
	}
	if f.wire != wireBytes {
		return errWireType
	}
	for at := f.start; at < f.end; {
		var v uint64
		if v, at = varint(p.Data[:f.end], at); at < 0 {
			return errVarint
		}
		p.Comments = append(p.Comments, v)
		if err := checkEntries("comment", len(p.Comments), limits); err != nil {
			return err
		}
	}
	return nil
}

func (p *Payload) readValueType(start, end int) (ValueType, error) {
	var v [ValueTypeUnit]uint64
	if !numbers(p.Data, start, end, v[:]) {
		return ValueType{}, errValueType
	}
	return ValueType{Type: v[ValueTypeType-1], Unit: v[ValueTypeUnit-1]}, nil
}

func (p *Payload) readMapping(start, end int) {
	var v [MappingHasInlineFrames]uint64
	if !numbers(p.Data, start, end, v[:]) {
		return
	}
	m := Mapping{
		ID: v[MappingID-1], Start: v[MappingStart-1], Limit: v[MappingLimit-1], Offset: v[MappingOffset-1],
		Filename: v[MappingFilename-1], BuildID: v[MappingBuildID-1],
	}
	for k, flag := range v[MappingHasFunctions-1:] {
		m.Has[k] = flag != 0
	}
	p.maxString = max(p.maxString, m.Filename, m.BuildID)
	p.Mappings = append(p.Mappings, m)
}

func (p *Payload) readFunction(start, end int) {
	var v [FunctionStartLine]uint64
	if !numbers(p.Data, start, end, v[:]) {
		return
	}
	f := Function{
		ID: v[FunctionID-1], Name: v[FunctionName-1], SystemName: v[FunctionSystemName-1],
		Filename: v[FunctionFilename-1], StartLine: int64(v[FunctionStartLine-1]),
	}
	p.maxString = max(p.maxString, f.Name, f.SystemName, f.Filename)
	p.Functions = append(p.Functions, f)
}

func (p *Payload) readLocation(start, end int, limits *Limits) error {
	l := Location{LineStart: uint32(len(p.Lines))}
	isValid, err := p.readLocationFields(&l, start, end, limits)
	if !isValid {
		p.Lines = p.Lines[:l.LineStart]
		return err
	}
	l.LineEnd = uint32(len(p.Lines))
	p.Locations = append(p.Locations, l)
	return nil
}

// readLocationFields reads a Location message into l, and its lines into p. The error is that of a limit.
func (p *Payload) readLocationFields(l *Location, start, end int, limits *Limits) (isValid bool, err error) {
	var f field
	for at := start; at < end; {
		if at, err = f.next(p.Data, at, end); err != nil {
			return false, nil
		}
		if f.number == 0 || f.number > LocationIsFolded {
			continue
		}
		if (f.number == LocationLine) != (f.wire == wireBytes) || f.wire&1 != 0 {
			return false, nil
		}
		switch f.number {
		case LocationID:
			l.ID = f.value
		case LocationMappingID:
			l.MappingID = f.value
		case LocationAddress:
			l.Address = f.value
		case LocationLine:
			if len(p.Lines) >= limits.MaxTableEntries {
				return false, tooMany("line entries", limits.MaxTableEntries)
			}
			if !p.readLine(f.start, f.end) {
				return false, nil
			}
		case LocationIsFolded:
			l.IsFolded = f.value != 0
		}
	}
	return true, nil
}

func (p *Payload) readLine(start, end int) bool {
	var v [LineColumn]uint64
	if !numbers(p.Data, start, end, v[:]) {
		return false
	}
	p.Lines = append(p.Lines,
		Line{FunctionID: v[LineFunctionID-1], Line: int64(v[LineLine-1]), Column: int64(v[LineColumn-1])})
	return true
}

func checkEntries(table string, n int, limits *Limits) error {
	if n > limits.MaxTableEntries {
		return tooMany(table+" entries", limits.MaxTableEntries)
	}
	return nil
}

// IDs finds the position of an entry by pprof's id. Ids are usually the positions plus one, and nothing has to be
// looked up. Otherwise a slice has the positions, and a map those of ids above the number of entries.
type IDs struct {
	// ordered is the number of entries if each id is the position plus one, else 0.
	ordered uint64
	dense   []uint32 // position plus one, by id
	sparse  map[uint64]uint32
}

// build maps the ids of n entries. If several entries have the same id, the last one counts, as in
// profile.Parse before it refuses them. The error is that of meter.
func (m *IDs) build(n int, id func(int) uint64, counts *Counts, meter *pdatasize.Meter) error {
	m.ordered, m.dense, m.sparse = 0, m.dense[:0], nil
	if isOrdered(n, id) {
		m.ordered = uint64(n)
		return nil
	}
	const denseBytes, sparseBytes = 4, 40
	size, sparse := n+1, 0
	for i := range n {
		if id(i) >= uint64(size) {
			sparse++
		}
	}
	if err := meter.Grow(denseBytes*size + sparseBytes*sparse); err != nil {
		return err
	}
	m.dense = dictionary.Zeroed(m.dense, size)
	for i := range n {
		id := id(i)
		position := uint32(i + 1)
		if id < uint64(size) {
			if m.dense[id] != 0 || id == 0 {
				counts.Repaired[RepairDuplicateID]++
			}
			m.dense[id] = position
			continue
		}
		if m.sparse == nil {
			m.sparse = make(map[uint64]uint32, sparse)
		}
		if m.sparse[id] != 0 {
			counts.Repaired[RepairDuplicateID]++
		}
		m.sparse[id] = position
	}
	return nil
}

func isOrdered(n int, id func(int) uint64) bool {
	for i := range n {
		if id(i) != uint64(i+1) {
			return false
		}
	}
	return true
}

// Find returns the position of the entry with this id.
func (m *IDs) Find(id uint64) (position int, ok bool) {
	if m.ordered != 0 {
		return int(id) - 1, id-1 < m.ordered
	}
	return m.lookup(id)
}

func (m *IDs) lookup(id uint64) (position int, ok bool) {
	if id < uint64(len(m.dense)) {
		p := m.dense[id]
		return int(p) - 1, p != 0
	}
	p := m.sparse[id]
	return int(p) - 1, p != 0
}
