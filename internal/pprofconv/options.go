// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"math"
	"time"
)

// Limits bound what one payload may cost. A zero field takes its default from DefaultLimits.
type Limits struct {
	// MaxProfileBytes is the largest accepted size of a payload after decompression, in bytes.
	// Above 4 GiB − 1 it means that.
	MaxProfileBytes int
	// MaxSamples is the largest number of samples times sample types that one payload may carry.
	MaxSamples int
	// MaxStackDepth is the largest number of locations in one stack; a deeper sample is dropped.
	MaxStackDepth int
	// MaxTableEntries is the largest number of entries of each of the payload's tables
	// (strings, functions, locations, mappings).
	MaxTableEntries int
	// MaxTextBytes is the longest text: of a longer one the rest is cut off, at a rune's boundary.
	MaxTextBytes int
	// MaxExpansion bounds the values of attributes that a payload becomes, in bytes: 64 KiB and this many times its
	// size after decompression. pprof names a text by a number, OTLP repeats it in each value, so that a small
	// payload could become a message of any size. What is beyond is left out: samples (DropOverBudget) and
	// comments (RepairDroppedComment).
	MaxExpansion int
}

// DefaultLimits gives bounds that real profiles do not meet: the largest profile in testdata
// (the Go compiler's heap, all allocations recorded) uses less than a tenth of each.
func DefaultLimits() Limits {
	return Limits{
		MaxProfileBytes: 128 << 20,
		MaxSamples:      4 << 20,
		MaxStackDepth:   64 << 10,
		MaxTableEntries: 4 << 20,
		MaxTextBytes:    64 << 10,
		MaxExpansion:    4,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.MaxProfileBytes <= 0 {
		l.MaxProfileBytes = d.MaxProfileBytes
	}
	l.MaxProfileBytes = int(min(int64(l.MaxProfileBytes), math.MaxUint32-1)) // positions in a payload are uint32
	if l.MaxSamples <= 0 {
		l.MaxSamples = d.MaxSamples
	}
	if l.MaxStackDepth <= 0 {
		l.MaxStackDepth = d.MaxStackDepth
	}
	if l.MaxTableEntries <= 0 {
		l.MaxTableEntries = d.MaxTableEntries
	}
	if l.MaxTextBytes <= 0 {
		l.MaxTextBytes = d.MaxTextBytes
	}
	if l.MaxExpansion <= 0 {
		l.MaxExpansion = d.MaxExpansion
	}
	return l
}

// DecodeOptions says how a pprof payload is turned into OTLP profiles.
type DecodeOptions struct {
	Limits Limits
	// IncludeOriginalPayload keeps the payload as it was received (compressed or not) in the
	// first profile's original_payload, with the format "pprof". A payload of which only what is new is
	// emitted is not kept: it says something else than the profiles do.
	IncludeOriginalPayload bool

	// Baseline makes cumulative values (all but inuse_*, objects and space) say what has happened since
	// the payload that was committed last: see Baseline, and DecodeStats.Delta for what came of it.
	// Their profiles begin at that payload's time and last until this one's; those without samples are
	// left out. They stand in a ScopeProfiles of their own, since a pprof has one time. The values
	// of other types stay what they are.
	Baseline *Baseline
	// At is when the payload was fetched. With a Baseline it stands in for times that payloads do not
	// have, or that did not move between them.
	At time.Time
}

func unixNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// DecodeStats counts what Decode did with one payload.
type DecodeStats struct {
	// UncompressedBytes is the size of the payload after decompression.
	UncompressedBytes int
	// Samples is the number of pprof samples that were understood. The number of OTLP samples
	// (pprofile.Profiles.SampleCount) differs: each sample type has its own.
	Samples int
	// Dropped counts the pprof samples that were left out, by reason.
	Dropped [numDropReasons]int
	// Repaired counts what was read in spite of a fault in the payload, by fault. With a Baseline, faults of
	// samples that are not emitted do not count.
	Repaired [numRepairs]int
	// Delta says what became of cumulative values; it is zero without a Baseline.
	Delta DeltaStats
}

// DroppedSamples is the sum of Dropped.
func (s *DecodeStats) DroppedSamples() int {
	n := 0
	for _, d := range s.Dropped {
		n += d
	}
	return n
}

// DropReason says why a sample was left out. Its String is the value of a metric's attribute.
type DropReason int

// The reasons for which a sample is dropped while the rest of its payload arrives.
const (
	// DropUnknownLocation is a sample that names a location which the payload does not have.
	DropUnknownLocation DropReason = iota
	// DropStackTooDeep is a sample with more than Limits.MaxStackDepth locations.
	DropStackTooDeep
	// DropUnknownString is a sample whose labels, functions or mapping name a string that the payload does not have.
	DropUnknownString
	// DropMalformed is a sample whose own message is not valid protobuf.
	DropMalformed
	// DropTooManyLabels is a sample after the payload has had four times Limits.MaxTableEntries
	// labels, label sets that repeat not counted again.
	DropTooManyLabels
	// DropOverBudget is a sample whose labels or values would make more of the payload than Limits.MaxExpansion allows.
	DropOverBudget
	numDropReasons
)

// NumDropReasons is the number of distinct drop reasons.
const NumDropReasons = int(numDropReasons)

var dropReasonNames = [numDropReasons]string{
	"unknown_location", "stack_too_deep", "unknown_string", "malformed", "too_many_labels", "over_budget",
}

func (r DropReason) String() string { return dropReasonNames[r] }

// Repair names a fault that the decoder reads past. Its String is the value of a metric's attribute.
type Repair int

// The faults that producers are known to make and that lose nothing.
const (
	// RepairMissingSampleTypes is a payload with samples and without sample types.
	RepairMissingSampleTypes Repair = iota
	// RepairValueCount is a sample with fewer or more values than there are sample types.
	RepairValueCount
	// RepairFirstString is a payload whose string_table[0] is not empty.
	RepairFirstString
	// RepairNegativeLine is a line or column below 0, which becomes 0.
	RepairNegativeLine
	// RepairInvalidUTF8 is a string that was not UTF-8; each invalid run becomes U+FFFD.
	RepairInvalidUTF8
	// RepairNegativeTime is a time or duration below 0, which becomes 0.
	RepairNegativeTime
	// RepairUnknownReference is a mapping or function that is named but absent: it reads as none.
	RepairUnknownReference
	// RepairDuplicateID is a location, function or mapping whose id is 0 or was seen before; the last one counts.
	RepairDuplicateID
	// RepairTruncatedText is a text above Limits.MaxTextBytes, of which the rest is cut off.
	RepairTruncatedText
	// RepairDroppedComment is a comment beyond what Limits.MaxExpansion allows.
	RepairDroppedComment
	numRepairs
)

// NumRepairs is the number of distinct repairs.
const NumRepairs = int(numRepairs)

var repairNames = [numRepairs]string{
	"missing_sample_types", "value_count", "first_string", "negative_line",
	"invalid_utf8", "negative_time", "unknown_reference", "duplicate_id",
	"truncated_text", "dropped_comment",
}

func (r Repair) String() string { return repairNames[r] }
