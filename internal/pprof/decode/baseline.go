// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"cmp"
	"sync"
	"unsafe"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Baseline remembers what the last payload of an endpoint had counted, so that Decode can find out what
// has happened since. Each endpoint of each process needs its own. It is not for concurrent use.
//
// Decode leaves it as it was; Commit makes the payload the last one. Between the two the caller delivers
// the profiles. If that fails, nothing is lost: the next payload's profiles then cover both intervals.
type Baseline struct {
	maxStacks int
	last      snapshot
	// pending becomes last with Commit. It is nil if there is nothing to commit.
	pending *snapshot
}

// DefaultMaxStacks is five times what the large heap profile of testdata has (the Go compiler's), and bounds
// the memory of a Baseline to 2.4 MB.
const DefaultMaxStacks = 64 << 10

// maxKeptBytes bounds a snapshot that is kept for another payload.
const maxKeptBytes = 16 << 20

// maxMaxStacks keeps the numbers of stacks within int32.
const maxMaxStacks = 1 << 30

// NewBaseline returns a Baseline that has seen no payload yet. maxStacks is the largest number of distinct samples
// (stack and labels) to remember; 0 means DefaultMaxStacks. It is lower if there are more than two cumulative types, so
// that the memory is not larger. If a payload has more, its cumulative types are not emitted.
func NewBaseline(maxStacks int) *Baseline {
	return &Baseline{maxStacks: min(cmp.Or(max(0, maxStacks), DefaultMaxStacks), maxMaxStacks)}
}

// stacksOf returns how many stacks with this many cumulative values may be remembered: each is a fingerprint
// (two words) and its values.
func (b *Baseline) stacksOf(values int) int {
	return b.maxStacks * (2 + 2) / (2 + max(2, values))
}

// Commit makes the payload of the last Decode the one that the next is compared with. After a Decode that
// returned an error or found no cumulative type, there is nothing to commit, and nothing changes.
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
	if dictionary.BytesOf(b.pending.stacks)+dictionary.BytesOf(b.pending.values) <= maxKeptBytes {
		snapshots.Put(b.pending)
	}
	b.pending = nil
}

// Bytes returns the memory that the Baseline holds, except for what is pending.
func (b *Baseline) Bytes() int {
	return int(unsafe.Sizeof(*b)) + dictionary.BytesOf(b.last.stacks) + dictionary.BytesOf(b.last.values)
}

// snapshot is what has to be known of a payload to compare the next one with it.
type snapshot struct {
	// exists is false if there was no payload, or one with too many stacks.
	exists bool
	// isIncomplete tells that samples of the payload were dropped: a stack that is not here need not be new.
	isIncomplete bool
	// shape covers the sample types, the period and its type. Values of different shapes cannot be compared:
	// Go scales a heap's values by the period, so that another period changes them all.
	shape   fingerprint
	content otlp.ContentID
	// payloadNanos is the payload's own time, atNanos the caller's; 0 if there is none.
	payloadNanos, atNanos int64
	// stacks are the samples that have counted anything, values their cumulative values, one after another.
	stacks []fingerprint
	values []int64
}

// snapshots has those that are needed between Decode and Commit only, so that a Baseline at rest holds just one.
var snapshots = sync.Pool{New: func() any { return new(snapshot) }}

// fitted copies src into dst's memory if that fits well, otherwise into memory with little to spare:
// there may be thousands of baselines, and most of them never change their size.
func fitted[T any](dst, src []T) []T {
	if n := len(src); cap(dst) < n || cap(dst)/2 > n {
		dst = make([]T, 0, n+n/8)
	}
	return append(dst[:0], src...)
}

// DeltaStats is what became of the cumulative types of a payload.
// At most one of First, Restarted and Overflowed is set. If one is, nothing is emitted for the cumulative types.
type DeltaStats struct {
	// First is a payload with nothing to compare it with.
	First bool
	// Restarted is a payload that does not continue the one before, for the reason in Reason. Most likely
	// another process sent it. The next payload is compared with this one.
	Restarted bool
	Reason    RestartReason
	// Overflowed is a payload with more stacks than NewBaseline allows. The next payload is a first one.
	Overflowed bool
}

// RestartReason is what showed that a payload does not continue the one before.
// Its String is the value of a metric's attribute.
type RestartReason int

// The reasons, in the order in which they are checked.
const (
	// RestartNone is a payload that continues the one before.
	RestartNone RestartReason = iota
	// RestartTypesChanged is a payload with other sample types, another period type or another period.
	RestartTypesChanged
	// RestartTimeWentBack is a payload that is older than the one before, by its own time.
	RestartTimeWentBack
	// RestartValueFell is a stack that has counted less than before.
	RestartValueFell
	// RestartStackVanished is a stack that had counted something and no longer exists.
	RestartStackVanished
	// NumRestartReasons is the number of reasons, RestartNone included.
	NumRestartReasons int = iota
)

var restartReasonNames = [NumRestartReasons]string{"", "types_changed", "time_went_back", "value_fell",
	"stack_vanished"}

func (r RestartReason) String() string { return restartReasonNames[r] }
