// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp"

// DropReason is why a sample was left out. Its String is the value of a metric's attribute.
type DropReason int8

// Understood means that there is no reason to drop a sample: no index, of it or of anything that it refers to, is out
// of range.
const Understood DropReason = -1

// The reasons for which a sample is dropped, but not the rest of its message. The first five are named by the table for
// which an index, of the sample or of anything that it refers to, is out of range.
const (
	DropStackIndex DropReason = iota
	DropLocationIndex
	DropFunctionIndex
	DropMappingIndex
	DropStringIndex
	// DropNoObservation is a sample with neither values nor timestamps.
	DropNoObservation
	// DropLengths is a sample with values and timestamps, but not equally many.
	DropLengths
	// DropSeveralValues is a sample with several values and no timestamps.
	DropSeveralValues
	// NumDropReasons is the number of reasons.
	NumDropReasons int = iota
)

// The reasons for attributes and links without which a sample is still understood.
const (
	indexOutOfRange DropReason = DropReason(NumDropReasons) + iota
	valueLeftOut               // CleanValue has counted it
)

var dropReasonNames = [NumDropReasons]string{
	"stack_index", "location_index", "function_index", "mapping_index", "string_index",
	"no_observation", "lengths", "several_values",
}

func (r DropReason) String() string { return dropReasonNames[r] }

// Stats counts what went into a batch.
type Stats struct {
	// Samples and Profiles are the numbers of those in the messages.
	Samples, Profiles int
	// Dropped counts samples that were left out, by reason.
	Dropped [NumDropReasons]int
	// Repairs counts faults that cost no sample.
	Repairs [NumRepairs]int
	// Entries counts the dictionaries' entries by table, in the order of Tables.
	Entries [len(Tables)]int
}

// DroppedSamples returns the sum of Dropped.
func (s Stats) DroppedSamples() int { return otlp.Total(s.Dropped[:]) }
