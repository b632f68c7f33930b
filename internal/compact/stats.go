// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

// DropReason tells why a sample was left out. Its String is the value of a metric's attribute.
type DropReason int

// The reasons for which a sample is dropped while the rest of its message arrives. The first five
// are named by the table that an index, of the sample or below it, should have pointed into.
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
	// DropSeveralValues is a sample with more than one value and no timestamps to tell them apart.
	DropSeveralValues
	// NumDropReasons is the number of reasons.
	NumDropReasons int = iota
)

var dropReasonNames = [NumDropReasons]string{
	"stack_index", "location_index", "function_index", "mapping_index", "string_index",
	"no_observation", "lengths", "several_values",
}

func (r DropReason) String() string { return dropReasonNames[r] }

// dropReason is the reason for which a sample is dropped whose stack could not be imported.
func dropReason(why Reason) DropReason {
	return DropReason(why - StackOutOfRange)
}

// Stats counts what went into a batch.
type Stats struct {
	// Samples and Profiles are what the messages held.
	Samples, Profiles int
	// Dropped counts samples that were left out, by reason.
	Dropped [NumDropReasons]int
	// Repairs counts faults that cost no sample.
	Repairs [NumRepairs]int
	// Entries counts the dictionaries' entries by table, in the order of Tables.
	Entries [len(Tables)]int
}
