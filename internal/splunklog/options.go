// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// Options configures how records are read, and bounds what one request may cost.
type Options struct {
	// FullThreadMetadata keeps all of the first line of a text stack. Priorities, times and
	// addresses differ from stack to stack, so that with them hardly two samples are the same.
	FullThreadMetadata bool
	// MaxProfileBytes bounds the bodies of one request together, in bytes: a pprof counts after decompression, a text
	// as it is. 0 means 128 MiB.
	MaxProfileBytes int
	// MaxStackDepth is the largest number of frames in one stack; a deeper stack is left out. 0 means 1024, which is
	// where the agents themselves cut.
	MaxStackDepth int
	// MaxTextBytes and MaxExpansion are those of pprofconv.Limits, for each pprof. A text body is bounded by itself.
	MaxTextBytes, MaxExpansion int
	// maxSamples bounds the samples of one request: a sample can be two bytes long in a pprof, and is many times that
	// in memory. Only tests set it.
	maxSamples int
}

func (o Options) withDefaults() Options {
	if o.MaxProfileBytes <= 0 {
		o.MaxProfileBytes = 128 << 20
	}
	o.MaxProfileBytes = min(o.MaxProfileBytes, math.MaxInt32)
	if o.MaxStackDepth <= 0 {
		o.MaxStackDepth = 1024
	}
	defaults := pprofconv.DefaultLimits()
	if o.MaxTextBytes <= 0 {
		o.MaxTextBytes = defaults.MaxTextBytes
	}
	if o.MaxExpansion <= 0 {
		o.MaxExpansion = defaults.MaxExpansion
	}
	o.MaxExpansion = min(o.MaxExpansion, math.MaxInt32)
	if o.maxSamples <= 0 {
		o.maxSamples = 4 << 20
	}
	return o
}
