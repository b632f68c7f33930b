// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import "google.golang.org/protobuf/encoding/protowire"

// PprofWire is any message of pprof as bytes on the wire. Its methods return the bytes with one more field, so
// that a test can write fields in any order, repeated, unknown, or with references to nothing, which profile.Write
// cannot do. Strings are referred to by their index.
//
//	payload := PprofWire(nil).
//		Strings("", "cpu", "nanoseconds", "key", "").
//		ValueType(PprofSampleType, 1, 2).
//		Message(PprofSample, PprofWire(nil).
//			Packed(PprofSampleValue, 7).
//			Label(PprofLabel{Key: 3, Str: 4}))
type PprofWire []byte

// The field numbers of the messages of github.com/google/pprof/proto/profile.proto.
const (
	PprofSampleType        protowire.Number = 1
	PprofSample            protowire.Number = 2
	PprofMapping           protowire.Number = 3
	PprofLocation          protowire.Number = 4
	PprofFunction          protowire.Number = 5
	PprofString            protowire.Number = 6
	PprofDropFrames        protowire.Number = 7
	PprofKeepFrames        protowire.Number = 8
	PprofTimeNanos         protowire.Number = 9
	PprofDurationNanos     protowire.Number = 10
	PprofPeriodType        protowire.Number = 11
	PprofPeriod            protowire.Number = 12
	PprofComment           protowire.Number = 13
	PprofDefaultSampleType protowire.Number = 14
	PprofDocURL            protowire.Number = 15

	PprofSampleLocation protowire.Number = 1
	PprofSampleValue    protowire.Number = 2
	PprofSampleLabel    protowire.Number = 3

	PprofLocationLine protowire.Number = 4
)

// Varint adds a number.
func (w PprofWire) Varint(field protowire.Number, v uint64) PprofWire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

// Int adds a number that may be negative.
func (w PprofWire) Int(field protowire.Number, v int64) PprofWire { return w.Varint(field, uint64(v)) }

// Fixed32 adds a number of four bytes. No field of pprof is one.
func (w PprofWire) Fixed32(field protowire.Number, v uint32) PprofWire {
	return protowire.AppendFixed32(protowire.AppendTag(w, field, protowire.Fixed32Type), v)
}

// Fixed64 adds a number of eight bytes. No field of pprof is one.
func (w PprofWire) Fixed64(field protowire.Number, v uint64) PprofWire {
	return protowire.AppendFixed64(protowire.AppendTag(w, field, protowire.Fixed64Type), v)
}

// Message adds a message, a string or bytes.
func (w PprofWire) Message(field protowire.Number, message PprofWire) PprofWire {
	return protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), message)
}

// Packed adds numbers as one field.
func (w PprofWire) Packed(field protowire.Number, values ...uint64) PprofWire {
	var packed PprofWire
	for _, v := range values {
		packed = protowire.AppendVarint(packed, v)
	}
	return w.Message(field, packed)
}

// Unpacked adds numbers, each as a field of its own.
func (w PprofWire) Unpacked(field protowire.Number, values ...uint64) PprofWire {
	for _, v := range values {
		w = w.Varint(field, v)
	}
	return w
}

// Strings adds to the string table.
func (w PprofWire) Strings(strings ...string) PprofWire {
	for _, s := range strings {
		w = w.Message(PprofString, PprofWire(s))
	}
	return w
}

// ValueType adds a sample type or, as PprofPeriodType, the period's.
func (w PprofWire) ValueType(field protowire.Number, typ, unit int64) PprofWire {
	return w.Message(field, PprofWire(nil).nonZero(1, typ).nonZero(2, unit))
}

// nonZero adds the numbers that are not 0, with consecutive field numbers, as most writers do.
func (w PprofWire) nonZero(first protowire.Number, values ...int64) PprofWire {
	for i, v := range values {
		if v != 0 {
			w = w.Int(first+protowire.Number(i), v)
		}
	}
	return w
}

// PprofLabel is a sample's label; fields that are 0 are not written.
type PprofLabel struct{ Key, Str, Num, Unit int64 }

// Label adds a label to a sample.
func (w PprofWire) Label(l PprofLabel) PprofWire {
	return w.Message(PprofSampleLabel, PprofWire(nil).nonZero(1, l.Key, l.Str, l.Num, l.Unit))
}

// PprofMappingFields are the fields of a mapping; those that are 0 are not written.
type PprofMappingFields struct {
	ID, Start, Limit, Offset                                    uint64
	File, BuildID                                               int64
	HasFunctions, HasFilenames, HasLineNumbers, HasInlineFrames bool
}

// Mapping adds a mapping.
func (w PprofWire) Mapping(m PprofMappingFields) PprofWire {
	message := PprofWire(nil).
		nonZero(1, int64(m.ID), int64(m.Start), int64(m.Limit), int64(m.Offset), m.File, m.BuildID).
		nonZero(7, bit(m.HasFunctions), bit(m.HasFilenames), bit(m.HasLineNumbers), bit(m.HasInlineFrames))
	return w.Message(PprofMapping, message)
}

// PprofLocationFields are the fields of a location; those that are 0 are not written.
type PprofLocationFields struct {
	ID, Mapping, Address uint64
	Lines                []PprofLine
	IsFolded             bool
}

// PprofLine is a line of a location; fields that are 0 are not written.
type PprofLine struct {
	Function     uint64
	Line, Column int64
}

// Location adds a location.
func (w PprofWire) Location(l PprofLocationFields) PprofWire {
	message := PprofWire(nil).nonZero(1, int64(l.ID), int64(l.Mapping), int64(l.Address))
	for _, line := range l.Lines {
		message = message.Message(PprofLocationLine, PprofWire(nil).nonZero(1, int64(line.Function), line.Line, line.Column))
	}
	return w.Message(PprofLocation, message.nonZero(5, bit(l.IsFolded)))
}

// PprofFunctionFields are the fields of a function; those that are 0 are not written.
type PprofFunctionFields struct {
	ID                                uint64
	Name, SystemName, File, StartLine int64
}

// Function adds a function.
func (w PprofWire) Function(f PprofFunctionFields) PprofWire {
	return w.Message(PprofFunction, PprofWire(nil).nonZero(1, int64(f.ID), f.Name, f.SystemName, f.File, f.StartLine))
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
