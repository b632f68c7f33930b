// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mapping is where the process has the program in its memory.
type Mapping struct {
	Start, Limit, Offset uint64
	File, BuildID        string
}

// Source has the context of a profile.
type Source struct {
	Names   *Names
	Bias    uint64
	Mapping Mapping
	// TicksPerSecond is the rate of the clock with which waits are measured.
	TicksPerSecond float64
	At             time.Time
}

// The numbers of the fields of pprof's messages, in proto/profile.proto of github.com/google/pprof.
const (
	profileSampleType, profileSample, profileMapping, profileLocation, profileFunction = 1, 2, 3, 4, 5
	profileStringTable, profileTime, profilePeriodType, profilePeriod                  = 6, 9, 11, 12
)

// writer writes a profile. Functions and strings are numbered in the order in which they come.
type writer struct {
	source            *Source
	out, part, packed []byte
	strings           map[string]uint64
	table             []string
	functions         map[frame]uint64 // without lines
	locations         []bool           // those that are written, by their number in Names
}

// Write returns a profile as pprof.
func Write(p *Profile, source *Source) ([]byte, error) {
	if err := source.Names.locate(p.Buckets, source.Bias); err != nil {
		return nil, fmt.Errorf("find the names of functions: %w", err)
	}
	w := &writer{source: source, strings: map[string]uint64{"": 0}, table: []string{""}, functions: map[frame]uint64{}}
	w.locations = make([]bool, len(source.Names.locations))
	if p.Kind == Memory {
		w.types("space", "bytes", p.Rate, "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "count",
			"inuse_space", "bytes")
	} else {
		w.types("contentions", "count", 1, "contentions", "count", "delay", "nanoseconds")
	}
	for _, b := range p.Buckets {
		if p.Kind == Memory && b.Allocs == 0 {
			continue // not published yet
		}
		w.sample(p.values(b, source.TicksPerSecond), b)
	}
	w.mapping()
	w.out = varint(w.out, profileTime, uint64(source.At.UnixNano()))
	for _, s := range w.table {
		w.out = protowire.AppendTag(w.out, profileStringTable, protowire.BytesType)
		w.out = protowire.AppendString(w.out, s)
	}
	return w.out, nil
}

// values returns the counts of a bucket, with the sampling undone.
func (p *Profile) values(b *Bucket, ticksPerSecond float64) []int64 {
	if p.Kind == Memory {
		allocs, allocBytes := unsampled(b.Allocs, int64(b.Size), p.Rate)
		inUse, inUseBytes := unsampled(b.Allocs-b.Frees, int64(b.Size), p.Rate)
		return []int64{allocs, allocBytes, inUse, inUseBytes}
	}
	waits := int64(b.Waits)
	if p.Kind == Block {
		waits = max(1, waits) // as the runtime has it
	}
	nanos := float64(b.Ticks)
	if !p.TicksAreNanos {
		nanos /= ticksPerSecond / 1e9
	}
	return []int64{waits * p.Scale, saturated(nanos * float64(p.Scale))}
}

// unsampled estimates how many objects there were of which count were sampled. The runtime samples a byte of an average
// of rate: it finds an object with the probability of 1 − exp(−size/rate).
func unsampled(count, size, rate int64) (objects, bytes int64) {
	if count == 0 || rate <= 1 {
		return count, count * size
	}
	scale := 1 / (1 - math.Exp(-float64(size)/float64(rate)))
	return saturated(float64(count) * scale), saturated(float64(count*size) * scale)
}

func saturated(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// types writes the period and the sample types: a name and a unit for each.
func (w *writer) types(periodType, periodUnit string, period int64, types ...string) {
	valueType := func(field protowire.Number, name, unit string) {
		w.part = varint(varint(w.part[:0], 1, w.string(name)), 2, w.string(unit))
		w.message(field)
	}
	valueType(profilePeriodType, periodType, periodUnit)
	w.out = varint(w.out, profilePeriod, uint64(period))
	for i := 0; i < len(types); i += 2 {
		valueType(profileSampleType, types[i], types[i+1])
	}
}

func (w *writer) sample(values []int64, b *Bucket) {
	for _, number := range b.locations {
		if !w.locations[number] {
			w.locations[number] = true
			w.location(number)
		}
	}
	w.part = w.part[:0]
	w.packed = w.packed[:0]
	for _, number := range b.locations {
		w.packed = protowire.AppendVarint(w.packed, uint64(number)+1)
	}
	w.part = protowire.AppendBytes(protowire.AppendTag(w.part, 1, protowire.BytesType), w.packed)
	w.packed = w.packed[:0]
	for _, v := range values {
		w.packed = protowire.AppendVarint(w.packed, uint64(v))
	}
	w.part = protowire.AppendBytes(protowire.AppendTag(w.part, 2, protowire.BytesType), w.packed)
	if b.Size != 0 {
		w.packed = varint(varint(w.packed[:0], 1, w.string("bytes")), 3, b.Size)
		w.part = protowire.AppendBytes(protowire.AppendTag(w.part, 3, protowire.BytesType), w.packed)
	}
	w.message(profileSample)
}

// location writes a location. Its id is its number + 1.
func (w *writer) location(number uint32) {
	l := &w.source.Names.locations[number]
	var lines []byte
	for _, f := range l.frames {
		line := varint(varint(nil, 1, w.function(f)), 2, uint64(f.line))
		lines = protowire.AppendBytes(protowire.AppendTag(lines, 4, protowire.BytesType), line)
	}
	w.part = varint(varint(varint(w.part[:0], 1, uint64(number)+1), 2, 1), 3, l.address+w.source.Bias)
	w.part = append(w.part, lines...)
	w.message(profileLocation)
}

func (w *writer) function(f frame) uint64 {
	f.line = 0
	if id, ok := w.functions[f]; ok {
		return id
	}
	id := uint64(len(w.functions) + 1)
	w.functions[f] = id
	names := w.source.Names.strings
	name := w.string(names[f.name])
	w.part = varint(varint(varint(w.part[:0], 1, id), 2, name), 3, name)
	w.part = varint(varint(w.part, 4, w.string(names[f.file])), 5, uint64(f.startLine))
	w.message(profileFunction)
	return id
}

func (w *writer) mapping() {
	m := &w.source.Mapping
	w.part = varint(varint(varint(varint(w.part[:0], 1, 1), 2, m.Start), 3, m.Limit), 4, m.Offset)
	w.part = varint(varint(w.part, 5, w.string(m.File)), 6, w.string(m.BuildID))
	const hasFunctions, hasInlineFrames = 7, 10
	for field := protowire.Number(hasFunctions); field <= hasInlineFrames; field++ {
		w.part = varint(w.part, field, 1)
	}
	w.message(profileMapping)
}

func (w *writer) string(s string) uint64 {
	i, ok := w.strings[s]
	if !ok {
		i = uint64(len(w.table))
		w.strings[s] = i
		w.table = append(w.table, s)
	}
	return i
}

// message appends part as a field of the profile.
func (w *writer) message(field protowire.Number) {
	w.out = protowire.AppendBytes(protowire.AppendTag(w.out, field, protowire.BytesType), w.part)
}

// varint appends a field unless it is 0.
func varint(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}
