// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofdelta

import (
	"sync"
	"unsafe"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
)

// Baseline remembers what the last payload of an endpoint had counted, so that Compare can find out what
// has happened since. Each endpoint of each process needs its own. It is not for concurrent use.
//
// Compare leaves it as it was: what the payload counted takes effect with Commit. Between the two the
// caller delivers the profiles, and where that fails nothing is lost: the next payload's profiles
// then cover both intervals.
type Baseline struct {
	maxStacks int
	last      snapshot
	// pending is what Commit takes over; nil if there is nothing.
	pending *snapshot
}

// BaselineOptions bounds the memory of a Baseline.
type BaselineOptions struct {
	// MaxStacks is the largest number of distinct samples (stack and labels) to remember; 0 means
	// DefaultMaxStacks. Where there are more than two cumulative types it is lower, so that the memory is
	// not larger. Of a payload with more, cumulative types are not emitted.
	MaxStacks int
}

// DefaultMaxStacks is five times what the large heap profile of testdata has (the Go compiler's), and bounds
// the memory of a Baseline to 2.4 MB.
const DefaultMaxStacks = 64 << 10

// maxKeptBytes bounds a snapshot that is kept for another payload.
const maxKeptBytes = 16 << 20

// maxMaxStacks keeps numbers of stacks within int32.
const maxMaxStacks = 1 << 30

// NewBaseline returns a Baseline that has seen no payload yet.
func NewBaseline(opts BaselineOptions) *Baseline {
	if opts.MaxStacks <= 0 {
		opts.MaxStacks = DefaultMaxStacks
	}
	return &Baseline{maxStacks: min(opts.MaxStacks, maxMaxStacks)}
}

// stacksOf returns how many stacks with this many cumulative values may be remembered: each is a fingerprint
// (two words) and its values.
func (b *Baseline) stacksOf(values int) int {
	return b.maxStacks * (2 + 2) / (2 + max(2, values))
}

// Commit makes the payload of the last Decode the one that the next is compared with. After a Decode
// that gave an error, or that met no cumulative type, there is nothing to commit, and nothing changes.
func (b *Baseline) Commit() {
	p := b.pending
	if p == nil {
		return
	}
	stacks, values := fitted(b.last.stacks, p.stacks), fitted(b.last.values, p.values)
	b.last = *p
	b.last.stacks, b.last.values = stacks, values
	b.Discard()
}

// Discard keeps the Baseline as it was before the last Decode.
func (b *Baseline) Discard() {
	if b.pending == nil {
		return
	}
	if pprofscan.BytesOf(b.pending.stacks)+pprofscan.BytesOf(b.pending.values) <= maxKeptBytes {
		snapshots.Put(b.pending)
	}
	b.pending = nil
}

// Bytes is the memory that the Baseline holds, what is pending aside.
func (b *Baseline) Bytes() int {
	return int(unsafe.Sizeof(*b)) + pprofscan.BytesOf(b.last.stacks) + pprofscan.BytesOf(b.last.values)
}

// snapshot is what has to be known of a payload to compare the next one with it.
type snapshot struct {
	// isTaken is false where there was no payload, or one with too many stacks.
	isTaken bool
	// incomplete tells that samples of the payload were dropped: a stack that is not here may not be new.
	incomplete bool
	// shape covers the sample types, the period and its type. Values of different shapes do not compare:
	// Go scales a heap's values by the period, so that another period changes them all.
	shape   fingerprint
	content pprofscan.ContentID
	// payloadNanos is the payload's own time, atNanos the caller's; 0 if there is none.
	payloadNanos, atNanos int64
	// stacks are the samples that have counted anything, values their cumulative values, one after another.
	stacks []fingerprint
	values []int64
}

// snapshots has those that are between Decode and Commit, so that a Baseline at rest holds but one.
var snapshots = sync.Pool{New: func() any { return new(snapshot) }}

// fitted copies src into dst's memory where that fits well, else into memory with little to spare:
// there may be thousands of baselines, and most of them never change their size.
func fitted[T any](dst, src []T) []T {
	if n := len(src); cap(dst) < n || cap(dst)/2 > n {
		dst = make([]T, 0, n+n/8)
	}
	return append(dst[:0], src...)
}

// Stats is what became of the cumulative types of a payload.
// At most one of First, Restarted and Overflowed is set; where one is, the payload gave nothing for its
// cumulative types.
type Stats struct {
	// First is a payload with nothing to compare it with.
	First bool
	// Restarted is a payload that does not continue the one before, for the reason in Reason: that of
	// another process, most likely. The next payload is compared with this one.
	Restarted bool
	Reason    RestartReason
	// Overflowed is a payload of more stacks than BaselineOptions.MaxStacks. The next payload is a first one.
	Overflowed bool
}

// RestartReason is what showed that a payload does not continue the one before.
// Its String is the value of a metric's attribute.
type RestartReason int

// The reasons, in the order in which they are looked for.
const (
	// RestartNone is for payloads that continue the one before.
	RestartNone RestartReason = iota
	// RestartTypesChanged is a payload with other sample types, another period type or another period.
	RestartTypesChanged
	// RestartTimeWentBack is a payload that is older than the one before, by its own time.
	RestartTimeWentBack
	// RestartValueFell is a stack that has counted less than before.
	RestartValueFell
	// RestartStackVanished is a stack that had counted something and is gone.
	RestartStackVanished
	numRestartReasons
)

var restartReasonNames = [numRestartReasons]string{"", "types_changed", "time_went_back", "value_fell", "stack_vanished"}

func (r RestartReason) String() string { return restartReasonNames[r] }

// NumRestartReasons is the number of reasons, RestartNone included.
const NumRestartReasons = int(numRestartReasons)
