// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// Limits bound what one payload may cost. A zero field takes its default from DefaultLimits.
type Limits struct {
	// MaxProfileBytes is the largest accepted size of a payload after decompression, in bytes.
	// It is at most 4 GiB − 1.
	MaxProfileBytes int
	// MaxSamples is the largest number of samples times sample types that one payload may carry.
	MaxSamples int
	// MaxStackDepth is the largest number of locations in one stack; a deeper sample is dropped.
	MaxStackDepth int
	// MaxTableEntries is the largest number of entries of each of the payload's tables
	// (strings, functions, locations, mappings).
	MaxTableEntries int
	// MaxStringBytes is the largest size of a string. A longer one is cut off there, at a rune's boundary.
	MaxStringBytes int
	// MaxExpansion bounds the attribute values that a payload becomes, in bytes: 64 KiB and this many times its
	// size after decompression. pprof refers to a string by a number, OTLP repeats it in each value, so that a small
	// payload could become a message of any size. Samples (DropOverBudget) and comments (RepairDroppedComment)
	// beyond that are left out.
	MaxExpansion int
}

// DefaultLimits returns bounds that real profiles do not reach: the largest profile in testdata
// (the Go compiler's heap, all allocations recorded) is 8 MB.
func DefaultLimits() Limits {
	return Limits{
		MaxProfileBytes: 32 << 20,
		MaxSamples:      1 << 20,
		MaxStackDepth:   64 << 10,
		MaxTableEntries: 1 << 20,
		MaxStringBytes:  64 << 10,
		MaxExpansion:    4,
	}
}

// WithDefaults fills the fields that are zero or negative.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	or := func(limit, otherwise int) int { return cmp.Or(max(0, limit), otherwise) }
	return Limits{
		// Positions in a payload are uint32.
		MaxProfileBytes: int(min(int64(or(l.MaxProfileBytes, d.MaxProfileBytes)), math.MaxUint32-1)),
		MaxSamples:      or(l.MaxSamples, d.MaxSamples),
		MaxStackDepth:   or(l.MaxStackDepth, d.MaxStackDepth),
		MaxTableEntries: or(l.MaxTableEntries, d.MaxTableEntries),
		MaxStringBytes:  or(l.MaxStringBytes, d.MaxStringBytes),
		MaxExpansion:    or(l.MaxExpansion, d.MaxExpansion),
	}
}

// Counts has what was left out of a payload, and what was read in spite of a fault.
type Counts struct {
	// Dropped counts the samples that were left out, by reason.
	Dropped [NumDropReasons]int
	// Repaired counts what was read in spite of a fault in the payload, by fault.
	Repaired [NumRepairs]int
}

// DroppedSamples returns the sum of Dropped.
func (c *Counts) DroppedSamples() int { return otlp.Total(c.Dropped[:]) }

// DropReason is why a sample was left out. Its String is the value of a metric's attribute.
type DropReason int

// The reasons for which a sample is dropped while the rest of its payload arrives.
const (
	// DropUnknownLocation is a sample that refers to a location that the payload does not have.
	DropUnknownLocation DropReason = iota
	// DropStackTooDeep is a sample with more than Limits.MaxStackDepth locations.
	DropStackTooDeep
	// DropUnknownString is a sample whose labels, functions or mapping refer to a string that the payload does not have.
	DropUnknownString
	// DropMalformed is a sample whose own message is not valid protobuf.
	DropMalformed
	// DropTooManyLabels is a sample beyond four times Limits.MaxTableEntries labels in the payload. A set of labels
	// that repeats is counted once.
	DropTooManyLabels
	// DropOverBudget is a sample whose labels or values would make the result larger than Limits.MaxExpansion allows.
	DropOverBudget
	// NumDropReasons is the number of reasons.
	NumDropReasons int = iota
)

var dropReasonNames = [NumDropReasons]string{
	"unknown_location", "stack_too_deep", "unknown_string", "malformed", "too_many_labels", "over_budget",
}

func (r DropReason) String() string { return dropReasonNames[r] }

// Repair is a fault that the decoder tolerates. Its String is the value of a metric's attribute.
type Repair int

// The faults that producers are known to make.
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
	// RepairUnknownReference is a reference to a mapping or function that the payload does not have: it is left out.
	RepairUnknownReference
	// RepairDuplicateID is a location, function or mapping whose id is 0 or was seen before; the last one counts.
	RepairDuplicateID
	// RepairTruncatedText is a string above Limits.MaxStringBytes: the rest is cut off.
	RepairTruncatedText
	// RepairDroppedComment is a comment beyond what Limits.MaxExpansion allows.
	RepairDroppedComment
	// RepairDroppedAttribute is an attribute of another format that is not understood, repeats another's key, or is beyond
	// a limit.
	RepairDroppedAttribute
	// RepairFunctionIDs is a function of a payload in which all have the same id: they are numbered by their positions.
	RepairFunctionIDs
	// NumRepairs is the number of faults.
	NumRepairs int = iota
)

var repairNames = [NumRepairs]string{
	"missing_sample_types", "value_count", "first_string", "negative_line",
	"invalid_utf8", "negative_time", "unknown_reference", "duplicate_id",
	"truncated_text", "dropped_comment", "dropped_attribute", "function_ids",
}

func (r Repair) String() string { return repairNames[r] }

// ErrTooLarge is wrapped by the error for a payload that exceeds a limit.
var ErrTooLarge = errors.New("payload exceeds a limit")

// FormatError is the error for a payload that is not a readable pprof protobuf.
type FormatError struct {
	// Seems names what the payload appears to be instead, for example "a Go execution trace",
	// or is empty if it appears to be a damaged pprof.
	Seems string
	// IsOther reports that the payload certainly is what Seems names.
	IsOther bool
	// Err is the underlying fault; it may be nil if Seems is set.
	Err error
}

func (e *FormatError) Error() string {
	switch {
	case e.Seems == "":
		return fmt.Sprintf("not a readable pprof: %v", e.Err)
	case e.Err == nil:
		return "not a pprof protobuf: it seems to be " + e.Seems
	default:
		return fmt.Sprintf("not a pprof protobuf: it seems to be %s: %v", e.Seems, e.Err)
	}
}

func (e *FormatError) Unwrap() error { return e.Err }

func tooMany(what string, limit int) error {
	return fmt.Errorf("%w: more than %d %s", ErrTooLarge, limit, what)
}
