// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// Options are what Decode makes of a trace.
type Options struct {
	// Options has the Anchor of traces before Go 1.25.
	events.Options
	// Aggregate sums the intervals of each stack and state, without timestamps and ids.
	Aggregate bool
	// MinDuration is the shortest interval that becomes an event; stopping the world always does. Sums have all intervals.
	MinDuration time.Duration
	// Period is how often the CPU profiler that ran beside the trace sampled.
	Period time.Duration
	// SystemGoroutines keeps the waits of the runtime's own goroutines, GCWorkers all intervals of the workers of the
	// garbage collector.
	SystemGoroutines, GCWorkers bool
	// ForeverBlocked keeps goroutines that wait from the beginning of the trace to its end.
	ForeverBlocked bool
	// WithoutUnfinished leaves out intervals that had not ended when the trace did.
	WithoutUnfinished bool

	// MaxThreads is the largest number of threads in a part of a trace: the reader's time grows with it.
	MaxThreads int
	// MaxLegacyBytes is the largest trace of a version before Go 1.22, which is read whole.
	MaxLegacyBytes int
}

// DefaultOptions returns the options that configurations begin with.
func DefaultOptions() Options {
	return Options{MinDuration: 100 * time.Microsecond, Period: 10 * time.Millisecond, MaxThreads: 250, MaxLegacyBytes: 32 << 20}
}
