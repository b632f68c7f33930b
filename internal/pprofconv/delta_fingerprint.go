// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// fingerprint stands for a sample over all payloads of an endpoint, where neither ids nor the order of
// tables last. It is two hashes of the same bytes under seeds that are drawn once a process: two samples
// share one with the odds of 1 in 2^128, and nobody can forge such a pair from outside
// (docs/decisions/0007-scrape-deltas.md). What is hashed of an entry holds the fingerprints of its parts whole.
type fingerprint struct{ a, b uint64 }

var fingerprintSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func fingerprintOf(b []byte) fingerprint {
	return fingerprint{maphash.Bytes(fingerprintSeeds[0], b), maphash.Bytes(fingerprintSeeds[1], b)}
}

func (f fingerprint) appendTo(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, f.a), f.b)
}

// brokenLocation marks a location that names a string which the payload does not have.
var brokenLocation = fingerprint{0, 1}

// fingerprints are those of a payload's entries, by position; the zero value where one is not known yet.
type fingerprints struct {
	strings, mappings, functions, locations []fingerprint

	labelSets  []labelSetFingerprint // the first one is unused
	labelIndex profiledict.HashIndex
	labelsRead int

	// Scratch of one entry, of one sample's locations, and of its labels.
	entry, sample []byte
	labels        []labelFingerprint
}

// labelSetFingerprint is a set of labels by where it stands in the payload.
type labelSetFingerprint struct {
	at span
	fingerprint
}

func (f *fingerprints) reset(s *scanned) {
	f.strings = sizedFingerprints(f.strings, len(s.strings))
	f.mappings = sizedFingerprints(f.mappings, len(s.mappings))
	f.functions = sizedFingerprints(f.functions, len(s.functions))
	f.locations = sizedFingerprints(f.locations, len(s.locations))
	f.labelSets = append(f.labelSets[:0], labelSetFingerprint{})
	f.labelIndex.Reset(0)
	f.labelsRead = 0
}

func sizedFingerprints(s []fingerprint, n int) []fingerprint {
	if cap(s) < n {
		return make([]fingerprint, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// stringFingerprint is that of a string for which hasString holds.
func (d *decoder) stringFingerprint(i uint64) fingerprint {
	if i == 0 {
		return fingerprint{}
	}
	return d.rawStringFingerprint(i)
}

func (d *decoder) rawStringFingerprint(i uint64) fingerprint {
	known := &d.delta.strings[i]
	if *known == (fingerprint{}) {
		if at := d.strings[i]; at.start != at.end { // one that is empty is as good as none
			*known = fingerprintOf(d.data[at.start:at.end])
		}
	}
	return *known
}

// mappingFingerprint leaves out has_functions and its like: Go takes that one back once it meets a
// function of the mapping that it cannot name.
func (d *decoder) mappingFingerprint(id uint64) fingerprint {
	position, ok := d.mappingIDs.find(id)
	if !ok {
		return fingerprint{}
	}
	known := &d.delta.mappings[position]
	if *known == (fingerprint{}) {
		m := &d.mappings[position]
		b := d.stringFingerprint(m.filename).appendTo(d.delta.entry[:0])
		b = d.stringFingerprint(m.buildID).appendTo(b)
		b = binary.LittleEndian.AppendUint64(b, m.start)
		b = binary.LittleEndian.AppendUint64(b, m.limit)
		b = binary.LittleEndian.AppendUint64(b, m.offset)
		*known, d.delta.entry = fingerprintOf(b), b
	}
	return *known
}

// functionFingerprint covers a function but for its file.
func (d *decoder) functionFingerprint(position int) fingerprint {
	known := &d.delta.functions[position]
	if *known == (fingerprint{}) {
		f := &d.functions[position]
		b := d.stringFingerprint(f.name).appendTo(d.delta.entry[:0])
		b = d.stringFingerprint(f.systemName).appendTo(b)
		b = binary.LittleEndian.AppendUint64(b, uint64(max(0, f.startLine)))
		*known, d.delta.entry = fingerprintOf(b), b
	}
	return *known
}

// locationFingerprint gives brokenLocation for one that cannot be read. The files of its functions count
// only where there is no address: Go writes one file a function, that of the frame it meets first, and a
// function may have several (by //line).
func (d *decoder) locationFingerprint(position int) fingerprint {
	known := &d.delta.locations[position]
	if *known != (fingerprint{}) {
		return *known
	}
	l := &d.locations[position]
	if !d.isReadable(l) {
		*known = brokenLocation
		return *known
	}
	mapping := d.mappingFingerprint(l.mappingID)
	lines := d.lines[l.lineStart:l.lineEnd]
	for _, line := range lines {
		if i, ok := d.functionOf(line); ok {
			d.functionFingerprint(i) // before d.delta.entry is in use
		}
	}
	folded := uint64(0)
	if l.folded {
		folded = 1
	}
	b := mapping.appendTo(d.delta.entry[:0])
	b = binary.LittleEndian.AppendUint64(b, l.address)
	b = binary.LittleEndian.AppendUint64(b, folded)
	for _, line := range lines {
		var function, file fingerprint
		if i, ok := d.functionOf(line); ok {
			function = d.functionFingerprint(i)
			if l.address == 0 {
				file = d.stringFingerprint(d.functions[i].filename)
			}
		}
		b = file.appendTo(function.appendTo(b))
		b = binary.LittleEndian.AppendUint64(b, uint64(max(0, line.line))) // as they are emitted
		b = binary.LittleEndian.AppendUint64(b, uint64(max(0, line.column)))
	}
	*known, d.delta.entry = fingerprintOf(b), b
	return *known
}

// functionOf gives the position of a line's function. Id 0 is none, even where an entry has it.
func (d *decoder) functionOf(line rawLine) (position int, ok bool) {
	if line.functionID == 0 {
		return 0, false
	}
	return d.functionIDs.find(line.functionID)
}
