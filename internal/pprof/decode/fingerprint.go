// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// fingerprint identifies a sample in all payloads of an endpoint, whose ids and order of tables do not last. It is two
// hashes of the same bytes under seeds that are drawn once a process: two samples have the same one with odds of 1 in
// 2^128, and nobody can forge such a pair from outside (docs/decisions/0007-scrape-deltas.md). The hashed bytes of an
// entry contain the whole fingerprints of its parts.
type fingerprint struct{ a, b uint64 }

const fingerprintBytes = 16

var fingerprintSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func fingerprintOf(b []byte) fingerprint {
	return fingerprint{maphash.Bytes(fingerprintSeeds[0], b), maphash.Bytes(fingerprintSeeds[1], b)}
}

func (f fingerprint) appendTo(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, f.a), f.b)
}

// fingerprints has those of a payload's entries, by position. The zero value is one that is not known yet.
type fingerprints struct {
	payload *scan.Payload
	reader  *scan.SampleReader

	strings, mappings, functions, locations []fingerprint

	labelSets scan.Memo[fingerprint]

	// Scratch of a sample, of a mapping or function, of a location or labels, and of the labels as they are read.
	stack, entry, buffer []byte
	labels               []label
}

// label is a label: its key, and its value in the form that is hashed.
type label struct {
	key, str fingerprint // of a number, str is its unit
	num      int64
	kind     uint64 // labelString or labelNumber
}

const (
	labelString = 0
	labelNumber = 1
)

func (f *fingerprints) reset(r *scan.SampleReader) {
	p := r.Payload
	f.payload, f.reader = p, r
	f.strings, f.mappings = dictionary.Zeroed(f.strings, len(p.Strings)), dictionary.Zeroed(f.mappings, len(p.Mappings))
	f.functions, f.locations = dictionary.Zeroed(f.functions, len(p.Functions)),
		dictionary.Zeroed(f.locations, len(p.Locations))
	f.labelSets.Reset(p.Data, 0)
}

func (f *fingerprints) release() {
	f.payload, f.reader = nil, nil
	f.labelSets.Reset(nil, 0)
}

// bytes estimates the memory in use.
func (f *fingerprints) bytes() int {
	return dictionary.BytesOf(f.strings) + dictionary.BytesOf(f.mappings) + dictionary.BytesOf(f.functions) +
		dictionary.BytesOf(f.locations) + f.labelSets.Bytes() + dictionary.BytesOf(f.stack) +
		dictionary.BytesOf(f.entry) + dictionary.BytesOf(f.buffer) + dictionary.BytesOf(f.labels)
}

// of returns the fingerprint of an entry that consists of these words.
func (f *fingerprints) of(words ...uint64) fingerprint {
	f.entry = f.entry[:0]
	for _, word := range words {
		f.entry = binary.LittleEndian.AppendUint64(f.entry, word)
	}
	return fingerprintOf(f.entry)
}

// sample returns the fingerprint of the sample at a span, and leaves its values in the reader.
func (f *fingerprints) sample(at scan.Span) (fingerprint, scan.DropReason, bool) {
	r := f.reader
	if reason, ok := r.ReadAll(at); !ok {
		return fingerprint{}, reason, false
	}
	var set fingerprint
	if r.Labels.End != 0 {
		var reason scan.DropReason
		var ok bool
		if set, reason, ok = f.labelSet(r.Labels); !ok {
			return fingerprint{}, reason, false
		}
	}
	b := slices.Grow(f.stack[:0], (len(r.Stack)+1)*fingerprintBytes)
	for _, position := range r.Stack {
		b = f.location(position).appendTo(b)
	}
	b = set.appendTo(b) // always there, so that it cannot be mistaken for a location
	f.stack = b
	return fingerprintOf(b), 0, true
}

// string returns the fingerprint of a string that the payload has.
func (f *fingerprints) string(i uint64) fingerprint {
	if i == 0 {
		return fingerprint{}
	}
	return f.rawString(i)
}

// rawString is string, but index 0 is string_table[0] even if that is not empty.
func (f *fingerprints) rawString(i uint64) fingerprint {
	known := &f.strings[i]
	if *known == (fingerprint{}) {
		if at := f.payload.Strings[i]; at.Start != at.End { // an empty one is the zero value
			*known = fingerprintOf(f.payload.Data[at.Start:at.End])
		}
	}
	return *known
}

// mapping leaves out has_functions and the other flags: Go clears it once it meets a function of the mapping that it
// cannot name.
func (f *fingerprints) mapping(id uint64) fingerprint {
	position, ok := f.payload.MappingOf(id)
	if !ok {
		return fingerprint{}
	}
	known := &f.mappings[position]
	if *known == (fingerprint{}) {
		m := &f.payload.Mappings[position]
		file, id := f.string(m.Filename), f.string(m.BuildID)
		*known = f.of(file.a, file.b, id.a, id.b, m.Start, m.Limit, m.Offset)
	}
	return *known
}

// function covers a function except for its file.
func (f *fingerprints) function(position int) fingerprint {
	known := &f.functions[position]
	if *known == (fingerprint{}) {
		function := &f.payload.Functions[position]
		name, systemName := f.string(function.Name), f.string(function.SystemName)
		*known = f.of(name.a, name.b, systemName.a, systemName.b, uint64(max(0, function.StartLine)))
	}
	return *known
}

// location covers the files of functions only if there is no address: Go writes one file for a function, that of the
// frame it meets first, and a function can have several (by //line).
func (f *fingerprints) location(position int32) fingerprint {
	known := &f.locations[position]
	if *known != (fingerprint{}) {
		return *known
	}
	l := &f.payload.Locations[position]
	mapping := f.mapping(l.MappingID)
	folded := uint64(0)
	if l.IsFolded {
		folded = 1
	}
	b := mapping.appendTo(f.buffer[:0])
	b = binary.LittleEndian.AppendUint64(b, l.Address)
	b = binary.LittleEndian.AppendUint64(b, folded)
	for _, line := range f.payload.Lines[l.LineStart:l.LineEnd] {
		var function, file fingerprint
		if i, ok := f.payload.FunctionOf(line); ok {
			function = f.function(i)
			if l.Address == 0 {
				file = f.string(f.payload.Functions[i].Filename)
			}
		}
		b = file.appendTo(function.appendTo(b))
		b = binary.LittleEndian.AppendUint64(b, uint64(max(0, line.Line))) // as they are emitted
		b = binary.LittleEndian.AppendUint64(b, uint64(max(0, line.Column)))
	}
	*known, f.buffer = fingerprintOf(b), b
	return *known
}

// labelSet returns the fingerprint of the labels at a span: for each key its strings in their order, then its numbers.
// The order of keys does not count.
func (f *fingerprints) labelSet(at scan.Span) (fingerprint, scan.DropReason, bool) {
	if known := f.labelSets.Find(at); known != 0 {
		return *f.labelSets.At(known), 0, true
	}
	if reason, ok := f.readLabels(at); !ok {
		return fingerprint{}, reason, false
	}
	slices.SortStableFunc(f.labels, func(x, y label) int {
		return cmp.Or(cmp.Compare(x.key.a, y.key.a), cmp.Compare(x.key.b, y.key.b), cmp.Compare(x.kind, y.kind))
	})
	b := slices.Grow(f.buffer[:0], len(f.labels)*3*fingerprintBytes)
	for i := range f.labels {
		l := &f.labels[i]
		b = l.str.appendTo(l.key.appendTo(b))
		b = binary.LittleEndian.AppendUint64(b, uint64(l.num))
		b = binary.LittleEndian.AppendUint64(b, l.kind)
	}
	f.buffer = b
	var set fingerprint
	if len(b) > 0 {
		set = fingerprintOf(b)
	}
	f.labelSets.Add(at, set)
	return set, 0, true
}

func (f *fingerprints) readLabels(rest scan.Span) (scan.DropReason, bool) {
	f.labels = f.labels[:0]
	for {
		at, reason, ok := f.reader.NextLabel(&rest)
		if !ok || at.End == 0 {
			return reason, ok
		}
		read, reason, ok := f.payload.ReadLabel(at)
		if !ok {
			return reason, false
		}
		if read.IsEmpty() {
			continue
		}
		l := label{kind: labelString, str: f.string(read.Str)}
		if read.Str == 0 {
			l = label{kind: labelNumber, num: read.Num, str: f.string(read.Unit)}
		}
		if len(f.payload.Strings) > 0 {
			l.key = f.rawString(read.Key)
		}
		f.labels = append(f.labels, l)
	}
}
