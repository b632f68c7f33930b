// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package decode turns pprof payloads into OTLP profiles. It is pure: bytes in, pdata out; no clock, no network, no
// logging.
//
// Decode decompresses a payload (decompress.go) and scans it with pprof/scan; with a Baseline, it finds what is new
// (baseline.go, compare.go, fingerprint.go). Then it reads each sample and interns what it refers to: strings
// (strings.go), locations, functions and mappings (entities.go), labels (labels.go). Samples of one identity are added
// up, or listed if they have times (timed.go), and everything is written as pdata (samples.go, emit.go). Read also
// interns the samples of a payload, but leaves it to the caller what they mean (read.go).
package decode

import (
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/signature"
)

// Options configure how a pprof payload is turned into OTLP profiles.
type Options struct {
	Limits scan.Limits
	// IncludeOriginalPayload keeps the payload as it was received (compressed or not) in the
	// first profile's original_payload, with the format "pprof". It is not kept if only what is new is
	// emitted: its values are not those of the profiles.
	IncludeOriginalPayload bool

	// TimestampLabels are the keys of numeric labels that are the time of a sample: one number of the years 2000 to 2100,
	// in nanoseconds. Such samples get timestamps, in profiles of their own before those of the other samples, and no
	// values if all are 1. With a Baseline they are labels like others.
	TimestampLabels []string

	// Baseline, if set, turns cumulative values into what has happened since the payload that was committed last: see
	// Baseline, and Stats.Delta for the outcome. Temporality is what is stated of the values: cumulative means that all
	// but states (inuse_*, objects …) are totals. Without it they are those of otlp/kind. Their profiles begin at that
	// payload's time and last until this one's; those without samples are left out. They have a ScopeProfiles of their
	// own, since a pprof has one time. The values of other types do not change.
	Baseline    *Baseline
	Temporality kind.Temporality
	// At is when the payload was fetched. With a Baseline it is used if the payloads have no times
	// or the same one.
	At time.Time

	// Window, if it has a duration, is the time and duration of the profiles, whatever the payload states.
	Window Window

	// Meter, if set, bounds Decode, which takes memory for the plain bytes, the tables and the profiles. Decode returns
	// its error.
	Meter *size.Meter
}

// Window is a time and a duration, in nanoseconds.
type Window struct{ Time, Duration uint64 }

// Stats counts what Decode did with one payload. With a Baseline, faults of samples that are not emitted do not
// count as repaired.
type Stats struct {
	// UncompressedBytes is the size of the payload after decompression.
	UncompressedBytes int
	// Samples is the number of pprof samples that could be read. The number of OTLP samples
	// (pprofile.Profiles.SampleCount) differs: each sample type has its own.
	Samples int
	scan.Counts
	// Delta is what became of cumulative values; it is zero without a Baseline.
	Delta DeltaStats
}

// DefaultTimestampLabels returns the keys of the labels in which Datadog's profilers and this project's encoder write
// times.
func DefaultTimestampLabels() []string { return []string{"end_timestamp_ns", scan.KeyTimestamp} }

// worker is the scratch memory of one Decode or Read. It is kept for the next one.
type worker struct {
	decompressor
	payload scan.Payload
	reader  scan.SampleReader
	interner
	comparison comparison
	samples    dictionary.ObservedSamples
	timed      timedSamples

	dict   *dictionary.Dictionary // of Decode
	limits scan.Limits
	meter  *size.Meter
	opened int // what was reserved before the first sample
	stats  Stats
	types  []int // scratch: the numbers of all sample types

	// stacks are those that Read has interned, by the bytes of their location ids. It pays off when
	// stacks repeat, as in samples with timestamps, which Read is for. Decode's samples are already combined by stack.
	stacks scan.Memo[dictionary.StackIndex]
}

var workers = sync.Pool{New: func() any { return newWorker() }}

func newWorker() *worker {
	w := &worker{dict: dictionary.New()}
	w.buildIDs = map[uint64]int32{}
	return w
}

// Decode turns a pprof payload (gzip, zstd or plain) into OTLP profiles: one ResourceProfiles
// without attributes, one ScopeProfiles without a name, and one Profile per sample type, pprof's
// default first. The result is empty (there is no ResourceProfiles) if the payload has neither
// sample types nor samples. It keeps nothing of payload. Options.Baseline changes what
// is emitted.
//
// The error is a *FormatError if the payload is not pprof or is damaged, and wraps ErrTooLarge if it
// exceeds a limit. A sample that cannot be read is left out and counted.
func Decode(payload []byte, opts Options) (pprofile.Profiles, Stats, error) {
	w := workers.Get().(*worker)
	defer w.release()
	profiles, err := w.run(payload, opts)
	return profiles, w.stats, err
}

func (w *worker) run(payload []byte, opts Options) (pprofile.Profiles, error) {
	if opts.Baseline != nil {
		opts.Baseline.Discard()
	}
	w.meter = opts.Meter
	if err := w.open(payload, w.dict, opts.Limits); err != nil {
		return pprofile.NewProfiles(), err
	}
	profiles, err := w.decode(opts)
	if err != nil {
		return pprofile.NewProfiles(), err
	}
	if opts.IncludeOriginalPayload && profiles.ProfileCount() > 0 && !w.comparison.isActive {
		first := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		first.SetOriginalPayloadFormat("pprof")
		first.OriginalPayload().FromRaw(payload)
	}
	return profiles, nil
}

// open decompresses and scans a payload whose strings go into dict.
func (w *worker) open(payload []byte, dict *dictionary.Dictionary, limits scan.Limits) error {
	w.limits, w.stats = limits.WithDefaults(), Stats{}
	w.stringTable.dict, w.stringTable.payload, w.stringTable.limits, w.stringTable.counts = dict, &w.payload, &w.limits,
		&w.stats.Counts
	data, err := w.plain(payload, w.limits.MaxProfileBytes, w.meter)
	if err != nil {
		return err
	}
	w.stats.UncompressedBytes = len(data)
	if seems, ok := signature.Of(data); ok {
		return &scan.FormatError{Seems: seems.Name, IsOther: true}
	}
	if err := w.payload.Scan(data, &w.limits, &w.stats.Counts, w.meter); err != nil {
		if errors.Is(err, scan.ErrTooLarge) || w.meter.Err() != nil {
			return err
		}
		if seems := signature.Describe(data); seems != "" {
			return &scan.FormatError{Seems: seems, IsOther: seems == signature.Zlib}
		}
		return &scan.FormatError{Err: err}
	}
	return nil
}

// decode interns the samples of the payload and returns them as pdata. Its error is that of the Meter.
func (w *worker) decode(opts Options) (pprofile.Profiles, error) {
	p := &w.payload
	total := len(p.Samples)
	emitted := total
	if opts.Baseline != nil {
		w.reader.Reset(p, &w.limits, p.ValuesPerSample())
		if err := w.comparison.compare(&w.reader, &opts, &w.stats.Counts); err != nil {
			return pprofile.NewProfiles(), err
		}
		w.stats.Delta = w.comparison.stats
		if w.comparison.isActive {
			emitted = w.comparison.newSamples
		}
		if w.comparison.isEmpty() {
			w.stats.Samples = w.comparison.samples
			return pprofile.NewProfiles(), nil
		}
	}
	share := func(n int) int { return int(int64(n) * int64(emitted) / int64(max(1, total))) }
	sizes := dictionary.Sizes{
		Strings:        share(len(p.Strings)),
		Functions:      share(len(p.Functions)),
		Locations:      share(len(p.Locations)),
		Lines:          share(len(p.Lines)),
		Stacks:         emitted,
		StackLocations: share(p.SampleBytes) / 2, // most ids take two bytes
	}
	w.opened = w.meter.InUse()
	if err := w.meter.Grow(sizes.Bytes() + (sampleBytes+observationBytes)*emitted +
		numberBytes*min(emitted*p.ValuesPerSample(), p.SampleBytes)); err != nil {
		return pprofile.NewProfiles(), err
	}
	w.dict.Reset(sizes)
	w.prepare(p.ValuesPerSample())
	// A value has at least one byte.
	w.samples.Reset(emitted, p.ValuesPerSample(), min(emitted*p.ValuesPerSample(), p.SampleBytes))
	w.timed = timedSamples{}
	if opts.Baseline == nil {
		w.timestampLabels = opts.TimestampLabels
	}
	if err := w.addSamples(); err != nil {
		return pprofile.NewProfiles(), err
	}
	if err := w.reserve(w.pdataBytes()); err != nil {
		return pprofile.NewProfiles(), err
	}
	return w.emit(opts.Window), nil
}

// The memory of a sample, of an observation, and of a value in ObservedSamples.
const (
	sampleBytes      = 40
	observationBytes = 16
	numberBytes      = 8
)

// reserve reserves what the worker has built, and more bytes.
func (w *worker) reserve(more int) error {
	s := &w.samples
	return w.meter.GrowTo(w.opened + w.dict.BuildBytes() + w.labels.buildBytes() + sampleBytes*len(s.Entries) +
		observationBytes*len(s.Observations) + numberBytes*len(s.Values) + more)
}

// commentBytes returns the memory of the comments: each is in the payload's list, in a value, and in the attribute of
// all.
func (w *worker) commentBytes() int {
	const listed, copies = 48, 4
	total := 0
	for _, c := range w.payload.Comments {
		if c < uint64(len(w.payload.Strings)) {
			total += int(w.payload.Strings[c].End - w.payload.Strings[c].Start)
		}
	}
	return listed*len(w.payload.Comments) + copies*int(min(int64(total), w.budget))
}

func (w *worker) pdataBytes() int {
	const ofSample = size.SampleBytes + size.NumberBytes
	n, perType := w.commentBytes(), 0
	for i := range w.samples.Entries {
		s := &w.samples.Entries[i]
		bytes := ofSample + 4*len(w.dict.AttributeSets.At(s.Attributes))
		if s.Group == timed {
			perType += bytes
			continue
		}
		types := 0
		for _, v := range w.samples.ValuesOf(s.Observed.First) {
			if v != 0 {
				types++
			}
		}
		n += max(1, types) * bytes
	}
	if w.timed.exist {
		perType += 2 * size.NumberBytes * len(w.samples.Observations)
	}
	return n + perType*w.payload.ValuesPerSample()
}

// prepare resets what interns the payload's entries, and counts the faults of its tables.
func (w *worker) prepare(maxValues int) {
	p := &w.payload
	w.interner.reset()
	w.reader.Reset(p, &w.limits, maxValues)
	if len(p.SampleTypes) == 0 && len(p.Samples) > 0 {
		w.stats.Repaired[scan.RepairMissingSampleTypes]++
	}
	if len(p.Strings) > 0 && p.Strings[0].Start != p.Strings[0].End {
		w.stats.Repaired[scan.RepairFirstString]++
	}
}

// addSamples interns all samples that can be read, with what they refer to. With a Baseline it interns only those that
// have something new: the comparison has counted those that cannot be read, but not those over the budget, which only
// emitted samples use.
func (w *worker) addSamples() error {
	w.stats.Samples = len(w.payload.Samples)
	if w.comparison.isActive {
		w.stats.Samples = w.comparison.samples
	}
	for i, at := range w.payload.Samples {
		if more, isDue := dueBefore(i, at); isDue {
			if err := w.reserve(more); err != nil {
				return err
			}
		}
		if w.comparison.isActive && !w.comparison.isNew(i) {
			continue
		}
		if reason, ok := w.addSample(i, at); !ok && (!w.comparison.isActive || reason == scan.DropOverBudget) {
			w.stats.Dropped[reason]++
			w.stats.Samples--
		}
	}
	return nil
}

const (
	// checkEvery is the number of samples after which the worker reserves what they have taken.
	checkEvery = 1 << 10
	// A sample above largeSampleBytes can consist of labels, which need up to perLabelByte bytes for each of theirs.
	largeSampleBytes = 16 << 10
	perLabelByte     = 64
)

// dueBefore reports whether memory must be reserved before sample i is read, and how much that one may take itself.
func dueBefore(i int, at scan.Span) (more int, isDue bool) {
	large := int(at.End-at.Start) - largeSampleBytes
	return perLabelByte * max(0, large), i%checkEvery == 0 || large > 0
}

// addSample interns one sample, once all of it is known to be readable.
func (w *worker) addSample(i int, at scan.Span) (scan.DropReason, bool) {
	r := &w.reader
	if reason, ok := r.ReadAll(at); !ok {
		return reason, false
	}
	if !w.spendOnTypes() {
		return scan.DropOverBudget, false
	}
	var set labelSet
	if r.Labels.End != 0 {
		var reason scan.DropReason
		var ok bool
		if set, reason, ok = w.labelSet(r); !ok {
			return reason, false
		}
	}
	stack := w.stack(r.Stack)
	if r.FitValues() {
		w.stats.Repaired[scan.RepairValueCount]++
	}
	if w.comparison.isActive {
		w.comparison.apply(i, r.Values)
	}
	id := dictionary.Identity{Stack: stack, Attributes: set.attributes, Link: set.link}
	if set.timestamp != 0 {
		w.timed.add(set.timestamp)
		w.samples.Observe(timed, id, set.timestamp, r.Values)
	} else {
		w.samples.Add(untimed, id, r.Values)
	}
	return 0, true
}

// freeTypes is how many sample types a payload may have before a sample's values and labels count against the budget:
// each non-zero value becomes an OTLP sample with attributes of its own, and a missing value becomes a zero.
const freeTypes = 16

// spendOnTypes reports whether the budget allows the current sample to be in the profiles of all its types.
func (w *worker) spendOnTypes() bool {
	n, given := w.payload.ValuesPerSample(), len(w.reader.Values)
	if n <= freeTypes {
		return true
	}
	labelBytes := int(w.reader.Labels.End - w.reader.Labels.Start)
	return w.spend(8*max(0, n-given-freeTypes) + max(0, given-freeTypes)*labelBytes)
}

// release puts the worker back, unless the payload has made it too large to be kept.
func (w *worker) release() {
	if w.reset() {
		workers.Put(w)
	}
}

// reset forgets everything that belongs to the payload, and reports whether the worker is small enough to be kept.
func (w *worker) reset() bool {
	w.decompressor.release()
	if w.bytes() > scan.MaxKeptBytes {
		return false
	}
	w.interner.release()
	w.reader.Release()
	w.stacks.Reset(nil, 0)
	w.comparison.forget()
	w.dict.Reset(dictionary.Sizes{})
	w.meter = nil
	return true
}

// bytes estimates the worker's memory, without the decompressor's. Of the dictionary's tables and the hash
// tables, whose capacity is not known, it counts what the payload has used.
func (w *worker) bytes() int {
	const hashSlots = 16 // bytes for an entry
	entries := w.dict.Sizes()
	return w.payload.Bytes() + w.reader.Bytes() + w.interner.bytes() + w.comparison.bytes() + w.samples.MemoryBytes() +
		w.stacks.Bytes() +
		(16+hashSlots)*entries.Strings + (32+hashSlots)*(entries.Functions+entries.Locations+w.dict.Links.Len()) +
		(64+hashSlots)*(w.dict.Attributes.Len()+w.dict.Mappings.Len()) + (4+hashSlots)*entries.Stacks +
		// lines and stacks of the dictionary, whose ids mostly take two bytes
		24*len(w.payload.Lines) + 2*w.payload.SampleBytes
}
