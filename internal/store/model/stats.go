// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"
)

// Evicted is a reason for which profiles are dropped. Its String is the value of a metric's attribute.
type Evicted int

// The reasons.
const (
	// EvictedAge is a profile that is older than Window.
	EvictedAge Evicted = iota
	// EvictedBytes is a profile that was dropped to make room.
	EvictedBytes
	// EvictedSeries is a profile of a series that was dropped for a new one.
	EvictedSeries
	// EvictedTotals is the last profile of a series of totals, which the next one can no longer be compared with.
	EvictedTotals
	// NumEvicted is the number of reasons.
	NumEvicted = int(iota)
)

func (e Evicted) String() string { return [...]string{"age", "bytes", "max_series", "totals"}[e] }

// Refused is a reason for which profiles or samples are not kept. Its String is the value of a metric's attribute.
type Refused int

// The reasons.
const (
	// RefusedSeries is a profile of a message with a new series beyond MaxSeries, while no other series is unused.
	RefusedSeries Refused = iota
	// RefusedSize is a profile of a message that would fill more than a quarter of the store.
	RefusedSize
	// RefusedSamples is a sample that cannot be understood: an index is out of range, or the numbers of values and
	// timestamps do not match.
	RefusedSamples
	// RefusedOrder is a profile of totals that is older than the one before of its series.
	RefusedOrder
	// RefusedElsewhere is a profile that another exporter keeps, in the engine that answers queries.
	RefusedElsewhere
	// RefusedFull is a profile that cannot be written to the log, or that has no room in memory while blocks cannot be
	// written.
	RefusedFull
	// NumRefused is the number of reasons.
	NumRefused = int(iota)
)

func (r Refused) String() string {
	return [...]string{"max_series", "size", "malformed_samples", "out_of_order", "kept_elsewhere", "full"}[r]
}

// Stats describe what the store holds and has dropped.
type Stats struct {
	// Series counts the series in memory. Profiles and Samples count what the store holds; Bytes estimates its memory.
	Series, Profiles, Samples, Bytes int
	// DiskBlocks and DiskBytes are the number and the size of the blocks on disk. DiskFailing is 1 while profiles cannot
	// be written there.
	DiskBlocks  int
	DiskBytes   int64
	DiskFailing int
	// CoarseUntil is the end of the profiles of which there is one for each CoarseStep, or 0. Both are nanoseconds.
	CoarseUntil, CoarseStep int64
	// Maintained is when Maintain last ended without an error: blocks that were due had been written and joined.
	Maintained time.Time
	// Torn counts ends of the log that were cut, Damaged blocks that were set aside.
	Torn, Damaged int
	// Evicted counts profiles that were dropped, Refused profiles (for RefusedSamples: samples) that were not kept.
	Evicted [NumEvicted]int
	Refused [NumRefused]int
}
