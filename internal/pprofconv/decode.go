// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofconv turns pprof payloads into OTLP profiles and back. It is pure: bytes in, pdata
// out, and the other way round; no clock, no network, no logging.
package pprofconv

import (
	"errors"
	"math"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// decoder is the scratch memory of one Decode call. It is kept for the next one.
type decoder struct {
	decompressor
	scanned
	dict   *profiledict.Dictionary
	limits Limits
	stats  DecodeStats

	// text holds the bytes of string_table; entry i is text[strings[i].start−textStart : strings[i].end−textStart].
	text      string
	textStart uint32
	// repaired are the strings that were not UTF-8, by their index in the payload.
	repaired map[uint64]string
	// budget is what is left of the bytes that attribute values may take.
	budget int

	// What an entry became in the dictionary, by its position in the payload.
	stringIndices   []profiledict.StringIndex // not above 0: not interned yet, see unchecked
	mappingIndices  []int32                   // unresolved: not interned yet
	functionIndices []int32
	locationIndices []int32
	// resolved is locationIndices by pprof's id, for ids below the number of locations, and 0 where
	// the location is not interned yet (or is the zero value).
	resolved []int32

	// buildIDs are the attributes of build ids, by their index in string_table.
	buildIDs map[uint64]int32

	labels labelSets
	kept   []sample
	// firstOfStack is the first kept sample of each stack, identities finds the others.
	// Sample 0 is the first of its stack, so that HashIndex need not know an entry 0.
	firstOfStack []int32
	identities   profiledict.HashIndex
	// values holds the values of kept, one after another, valuesPerSample each.
	values          []int64
	valuesPerSample int

	// visit takes the samples where they are not kept here: see Read. stacks is for those alone.
	visit  func(Sample)
	stacks knownStacks

	// delta is what Decode does for a Baseline.
	delta deltaPass

	// Scratch of one sample.
	stack                 []int32
	sampleValues          []int64 // at most maxValues of the valueCount that the sample has
	valueCount, maxValues int
	lineScratch           []profiledict.Line
	setScratch            []int32
	// typeScratch are the numbers of all sample types.
	typeScratch []int
}

// unresolved marks an entry that no sample has reached yet, broken one that cannot be understood, readable one
// that is about to be interned.
const (
	unresolved = -1
	broken     = -2
	readable   = -3
)

// minBudget is what the attribute values of any payload may take: small payloads repeat themselves the most.
const minBudget = 64 << 10

// spend takes n bytes from what attribute values may take, and reports whether there were so many left.
func (d *decoder) spend(n int) bool {
	if n > d.budget {
		return false
	}
	d.budget -= n
	return true
}

// maxKeptEntries bounds the snapshots that are kept between Decode and Commit.
const maxKeptEntries = 1 << 20

var decoders = sync.Pool{New: func() any { return newDecoder() }}

func newDecoder() *decoder { return &decoder{dict: profiledict.New(), buildIDs: map[uint64]int32{}} }

// Decode turns a pprof payload (gzip, zstd or plain) into OTLP profiles: one ResourceProfiles
// without attributes, one ScopeProfiles without a name, and one Profile per sample type, pprof's
// default first. Nothing is emitted (there is no ResourceProfiles) for a payload that has neither
// sample types nor samples. The result keeps nothing of payload. DecodeOptions.Baseline changes what
// is emitted.
//
// A payload that is not pprof, or that is damaged, gives a *FormatError; one above a limit gives an
// error that wraps ErrTooLarge. A sample that cannot be understood is left out and counted.
func Decode(payload []byte, opts DecodeOptions) (pprofile.Profiles, DecodeStats, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.limits = opts.Limits.withDefaults()
	d.stats = DecodeStats{}
	if opts.Baseline != nil {
		opts.Baseline.Discard()
		d.delta.baseline, d.delta.atNanos = opts.Baseline, unixNanos(opts.At)
	}
	data, err := d.plain(payload, d.limits.MaxProfileBytes)
	if err != nil {
		return pprofile.NewProfiles(), d.stats, err
	}
	if err := d.decode(data); err != nil {
		return pprofile.NewProfiles(), d.stats, err
	}
	profiles := d.emit()
	if opts.IncludeOriginalPayload && profiles.ProfileCount() > 0 && !d.delta.active {
		first := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		first.SetOriginalPayloadFormat("pprof")
		first.OriginalPayload().FromRaw(payload)
	}
	return profiles, d.stats, nil
}

// decode fills the dictionary and the kept samples from plain bytes.
func (d *decoder) decode(data []byte) error {
	d.stats.UncompressedBytes = len(data)
	d.budget = minBudget + min(d.limits.MaxExpansion, math.MaxInt32)*len(data)
	if name := seems(data); name != "" {
		return &FormatError{Seems: name}
	}
	d.scanned.reset(data)
	if err := d.scan(&d.limits, &d.stats); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if isText(data[:min(len(data), 64)]) {
			return &FormatError{Seems: "text", Err: err}
		}
		return &FormatError{Err: err}
	}
	d.valuesPerSample = max(1, len(d.sampleTypes))
	d.maxValues = d.valuesPerSample
	if d.visit != nil {
		d.maxValues = maxSampleTypes
	}
	if int64(len(d.samples))*int64(d.valuesPerSample) > int64(d.limits.MaxSamples) {
		return tooMany("samples times sample types", d.limits.MaxSamples)
	}
	if d.delta.baseline != nil {
		if d.planDelta(); d.delta.saysNothing() {
			return nil
		}
	}
	d.prepare()
	d.takeSamples()
	return nil
}

// prepare sizes the tables for the payload's entries.
func (d *decoder) prepare() {
	samples := len(d.samples)
	if d.delta.active {
		samples = d.delta.taken
	}
	if d.visit == nil {
		share := func(n int) int { return int(int64(n) * int64(samples) / int64(max(1, len(d.samples)))) }
		d.dict.Reset(profiledict.Sizes{
			Strings:        share(len(d.strings)),
			Functions:      share(len(d.functions)),
			Locations:      share(len(d.locations)),
			Lines:          share(len(d.lines)),
			Stacks:         samples,
			StackLocations: share(d.sampleBytes) / 2, // most ids take two bytes
		})
	}
	d.takeText()
	d.stringIndices = sized(d.stringIndices, len(d.strings), 0)
	d.mappingIndices = sized(d.mappingIndices, len(d.mappings), unresolved)
	d.functionIndices = sized(d.functionIndices, len(d.functions), unresolved)
	d.locationIndices = sized(d.locationIndices, len(d.locations), unresolved)
	d.resolved = sized(d.resolved, len(d.locations)+1, 0)
	d.labels.reset()
	clear(d.buildIDs)
	d.stacks.reset()
	d.identities.Reset(0)
	d.firstOfStack = append(d.firstOfStack[:0], noSample) // the empty stack is always there
	d.kept, d.values = d.kept[:0], d.values[:0]
	if d.visit == nil {
		d.kept = slices.Grow(d.kept, samples)
		d.values = slices.Grow(d.values, min(samples*d.valuesPerSample, d.sampleBytes)) // a value takes a byte at least
		d.firstOfStack = slices.Grow(d.firstOfStack, samples+1)
	}
	if len(d.sampleTypes) == 0 && len(d.samples) > 0 {
		d.stats.Repaired[RepairMissingSampleTypes]++
	}
	if len(d.strings) > 0 && d.strings[0].start != d.strings[0].end {
		d.stats.Repaired[RepairFirstString]++
	}
}

// sized gives a slice of n entries, each of them fill, in the memory of s where it is large enough.
func sized[T ~int32](s []T, n int, fill T) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	s = s[:n]
	for i := range s {
		s[i] = fill
	}
	return s
}

// release lets go of everything that belongs to the payload, and of the decoder where that has made it too large to
// be kept.
func (d *decoder) release() {
	if d.reset() {
		decoders.Put(d)
	}
}

// reset lets go of everything that belongs to the payload, and reports whether what stays is small enough to be kept.
func (d *decoder) reset() bool {
	d.decompressor.release()
	if d.bytes() > pprofscan.MaxKeptBytes {
		return false
	}
	d.data, d.text, d.repaired = nil, "", nil
	d.delta.active, d.delta.baseline = false, nil
	d.labels.reset()
	d.dict.Reset(profiledict.Sizes{})
	return true
}

// bytes is about what the decoder's memory takes, the decompressor's aside. Of the dictionary's tables and the hash
// tables, whose capacity is not known, it counts what the payload has filled.
func (d *decoder) bytes() int {
	const hashSlots = 16 // bytes for an entry
	entries := d.dict.Sizes()
	return pprofscan.BytesOf(d.samples) + pprofscan.BytesOf(d.strings) + pprofscan.BytesOf(d.comments) + pprofscan.BytesOf(d.mappings) + pprofscan.BytesOf(d.functions) +
		pprofscan.BytesOf(d.locations) + pprofscan.BytesOf(d.lines) + pprofscan.BytesOf(d.mappingIDs.dense) + pprofscan.BytesOf(d.functionIDs.dense) +
		pprofscan.BytesOf(d.locationIDs.dense) + pprofscan.BytesOf(d.stringIndices) + pprofscan.BytesOf(d.mappingIndices) +
		pprofscan.BytesOf(d.functionIndices) + pprofscan.BytesOf(d.locationIndices) + pprofscan.BytesOf(d.resolved) + pprofscan.BytesOf(d.kept) +
		pprofscan.BytesOf(d.firstOfStack) + pprofscan.BytesOf(d.values) + pprofscan.BytesOf(d.stack) + pprofscan.BytesOf(d.sampleValues) +
		pprofscan.BytesOf(d.lineScratch) + pprofscan.BytesOf(d.setScratch) + pprofscan.BytesOf(d.stacks.list) + d.labels.bytes() + d.delta.bytes() +
		(16+hashSlots)*entries.Strings + (32+hashSlots)*(entries.Functions+entries.Locations+d.dict.Links.Len()) +
		(64+hashSlots)*(d.dict.Attributes.Len()+d.dict.Mappings.Len()) + (4+hashSlots)*entries.Stacks +
		24*len(d.lines) + 2*d.sampleBytes // lines and stacks of the dictionary, whose ids mostly take two bytes
}
