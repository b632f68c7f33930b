// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// Options configure what becomes of a trace.
type Options struct {
	// Options has the Anchor, for traces from before Go 1.25.
	events.Options
	// Aggregate sums the intervals of each stack and state, without timestamps and ids.
	Aggregate bool
	// MinDuration is the shortest interval that becomes an event. Stopping the world always does, and sums contain all
	// intervals.
	MinDuration time.Duration
	// Period is the sampling period of the CPU profiler that ran beside the trace.
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
	return Options{MinDuration: 100 * time.Microsecond, Period: 10 * time.Millisecond, MaxThreads: 250,
		MaxLegacyBytes: 32 << 20}
}
