// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
)

// maxSampleTypes is far above what any profiler records, and keeps a payload of nothing but
// sample types from becoming as many Profiles.
const maxSampleTypes = 1024

var errValueType = errors.New("a sample type or period type is malformed")

var errConcatenated = errors.New("several profiles one after another (time_nanos stands twice)")

// span is a part of the plain payload: [start, end).
type span struct{ start, end uint32 }

type rawValueType struct{ typ, unit uint64 }

// scanned is a payload taken apart but not yet interned: strings are still numbers of
// string_table entries, and entities still have pprof's ids.
type scanned struct {
	data []byte

	sampleTypes []rawValueType
	samples     []span
	strings     []span
	comments    []uint64
	mappings    []rawMapping
	functions   []rawFunction
	locations   []rawLocation
	lines       []rawLine

	periodType                       rawValueType
	period, timeNanos, durationNanos int64
	dropFrames, keepFrames           uint64
	defaultSampleType, docURL        uint64
	// maxString is the largest string index of all functions and mappings.
	maxString uint64
	// sampleBytes is the size of all Sample messages.
	sampleBytes                          int
	mappingIDs, functionIDs, locationIDs idMap
}

func (s *scanned) reset(data []byte) {
	*s = scanned{
		data:        data,
		sampleTypes: s.sampleTypes[:0],
		samples:     s.samples[:0],
		strings:     s.strings[:0],
		comments:    s.comments[:0],
		mappings:    s.mappings[:0],
		functions:   s.functions[:0],
		locations:   s.locations[:0],
		lines:       s.lines[:0],
		mappingIDs:  s.mappingIDs, functionIDs: s.functionIDs, locationIDs: s.locationIDs,
	}
}

// scan takes the payload apart. Fields may stand in any order, so nothing is resolved yet.
// An entry that is malformed in itself is left out; a fault between entries ends the payload.
func (s *scanned) scan(limits *Limits, stats *DecodeStats) error {
	if err := s.count(limits); err != nil {
		return err
	}
	var f field
	for p := 0; p < len(s.data); {
		at := p
		p, _ = f.next(s.data, p, len(s.data)) // count has read them all
		if f.number == 0 || f.number > pprofscan.ProfileDocURL {
			continue
		}
		if err := s.take(&f, limits); err != nil {
			return fmt.Errorf("field %d at byte %d of %d: %w", f.number, at, len(s.data), err)
		}
	}
	s.mappingIDs.build(len(s.mappings), func(i int) uint64 { return s.mappings[i].id }, stats)
	s.functionIDs.build(len(s.functions), func(i int) uint64 { return s.functions[i].id }, stats)
	s.locationIDs.build(len(s.locations), func(i int) uint64 { return s.locations[i].id }, stats)
	return nil
}

// count finds how many entries there are of each kind, so that the slices are made once and no larger.
func (s *scanned) count(limits *Limits) error {
	var counts [pprofscan.ProfileDocURL + 1]int
	var f field
	for p := 0; p < len(s.data); {
		at := p
		var err error
		if p, err = f.next(s.data, p, len(s.data)); err != nil {
			return fmt.Errorf("at byte %d of %d: %w", at, len(s.data), err)
		}
		if f.number == 0 || f.number > pprofscan.ProfileDocURL {
			continue
		}
		counts[f.number]++
		if f.number == pprofscan.ProfileSample && f.wire == wireBytes {
			s.sampleBytes += f.end - f.start
		}
	}
	if counts == [pprofscan.ProfileDocURL + 1]int{} {
		return errors.New("no field of pprof's Profile message is there")
	}
	if n := counts[pprofscan.ProfileSample]; n > limits.MaxSamples {
		return tooMany("samples", limits.MaxSamples)
	}
	for _, table := range []struct {
		name  string
		field int
	}{
		{"string_table", pprofscan.ProfileStringTable}, {"location", pprofscan.ProfileLocation},
		{"function", pprofscan.ProfileFunction}, {"mapping", pprofscan.ProfileMapping},
	} {
		if err := checkEntries(table.name, counts[table.field], limits); err != nil {
			return err
		}
	}
	s.samples = slices.Grow(s.samples, counts[pprofscan.ProfileSample])
	s.strings = slices.Grow(s.strings, counts[pprofscan.ProfileStringTable])
	s.locations = slices.Grow(s.locations, counts[pprofscan.ProfileLocation])
	s.lines = slices.Grow(s.lines, counts[pprofscan.ProfileLocation])
	s.functions = slices.Grow(s.functions, counts[pprofscan.ProfileFunction])
	s.mappings = slices.Grow(s.mappings, counts[pprofscan.ProfileMapping])
	return nil
}

// take keeps one field of the Profile message.
func (s *scanned) take(f *field, limits *Limits) error {
	if f.number <= pprofscan.ProfileStringTable || f.number == pprofscan.ProfilePeriodType {
		if f.wire != wireBytes {
			return errWireType
		}
		return s.takeMessage(f, limits)
	}
	if f.number == pprofscan.ProfileComment {
		return s.takeComments(f, limits)
	}
	if f.wire != wireVarint {
		return errWireType
	}
	switch f.number {
	case pprofscan.ProfileDropFrames:
		s.dropFrames = f.value
	case pprofscan.ProfileKeepFrames:
		s.keepFrames = f.value
	case pprofscan.ProfileTimeNanos:
		if s.timeNanos != 0 {
			return errConcatenated
		}
		s.timeNanos = int64(f.value)
	case pprofscan.ProfileDurationNanos:
		s.durationNanos = int64(f.value)
	case pprofscan.ProfilePeriod:
		s.period = int64(f.value)
	case pprofscan.ProfileDefaultSampleType:
		s.defaultSampleType = f.value
	case pprofscan.ProfileDocURL:
		s.docURL = f.value
	}
	return nil
}

func (s *scanned) takeMessage(f *field, limits *Limits) error {
	at := span{uint32(f.start), uint32(f.end)}
	switch f.number {
	case pprofscan.ProfileSample:
		s.samples = append(s.samples, at)
	case pprofscan.ProfileStringTable:
		s.strings = append(s.strings, at)
	case pprofscan.ProfileLocation:
		return s.takeLocation(f.start, f.end, limits)
	case pprofscan.ProfileFunction:
		s.takeFunction(f.start, f.end)
	case pprofscan.ProfileMapping:
		s.takeMapping(f.start, f.end)
	case pprofscan.ProfileSampleType:
		if len(s.sampleTypes) >= maxSampleTypes {
			return tooMany("sample types", maxSampleTypes)
		}
		v, err := s.valueType(f.start, f.end)
		s.sampleTypes = append(s.sampleTypes, v)
		return err
	case pprofscan.ProfilePeriodType:
		var err error
		s.periodType, err = s.valueType(f.start, f.end)
		return err
	}
	return nil
}

func (s *scanned) takeComments(f *field, limits *Limits) error {
	if f.wire == wireVarint {
		s.comments = append(s.comments, f.value)
		return checkEntries("comment", len(s.comments), limits)
	}
	if f.wire != wireBytes {
		return errWireType
	}
	for p := f.start; p < f.end; {
		var v uint64
		if v, p = varint(s.data[:f.end], p); p < 0 {
			return errVarint
		}
		s.comments = append(s.comments, v)
		if err := checkEntries("comment", len(s.comments), limits); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanned) valueType(p, end int) (rawValueType, error) {
	var v [2]uint64
	if !numbers(s.data, p, end, v[:]) {
		return rawValueType{}, errValueType
	}
	return rawValueType{typ: v[0], unit: v[1]}, nil
}

func checkEntries(table string, n int, limits *Limits) error {
	if n > limits.MaxTableEntries {
		return tooMany(table+" entries", limits.MaxTableEntries)
	}
	return nil
}

func tooMany(what string, limit int) error {
	return fmt.Errorf("%w: more than %d %s", ErrTooLarge, limit, what)
}
