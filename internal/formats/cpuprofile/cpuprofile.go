// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package cpuprofile reads V8's profiles: .cpuprofile files (node --cpu-prof, Chrome's inspector), .heapprofile files
// (node --heap-prof), and the CPU profiles that package traceevents finds in Chrome's trace events.
//
// A Reader walks over the JSON without keeping it (read.go). A profile is a tree of nodes, each of which has a function
// (tree.go). The samples of a CPU profile name nodes; the nodes of a heap profile have the bytes themselves
// (samples.go). Times are microseconds. If they are not Unix time, they count from the start of the machine, and unless
// the trace states when that was, the anchor is the end of the recording.
package cpuprofile

import (
	"bytes"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

const (
	// maxDepth is how deeply nodes may have others in them. V8 records stacks of 255.
	maxDepth = 512
	// parserFactor is the memory of numbers.
	parserFactor = 10
)

// ErrNotProfile is the error for JSON without a profile.
var (
	ErrNotProfile = errors.New("there is no V8 CPU profile in the JSON (the format of Chrome's trace events is trace_events)")
	errDeep       = errors.New("the tree of calls is too deep")
)

// Decode returns the profiles of a .cpuprofile or .heapprofile file. CPU profiles are samples/count with timestamps
// alone: samples of (idle) are left out, those of (garbage collector) and (program) become a frame on top of the
// previous stack. Heap profiles are inuse_space/bytes.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	var b events.Builder
	r := NewReader(&b)
	return b.Run(options, parserFactor*len(data), len(data), func() error {
		p := r.NewProfile()
		if err := r.readFile(p, bytes.TrimLeft(data, "\xef\xbb\xbf \t\r\n")); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		if len(p.nodes) == 0 {
			return ErrNotProfile
		}
		return r.AddSamples(len(data), 0)
	})
}

// Reader reads profiles, whose clocks are the same one, into a builder.
type Reader struct {
	b        *events.Builder
	json     wire.JSON
	profiles []*Profile
	stacks   *events.CallTree // those of a profile
}

// NewReader returns a reader without profiles.
func NewReader(b *events.Builder) *Reader { return &Reader{b: b} }

// NewProfile adds a profile without samples.
func (r *Reader) NewProfile() *Profile {
	p := &Profile{tree: tree{index: map[int64]int32{}}}
	r.profiles = append(r.profiles, p)
	return p
}

// Profile is a profile that is being read.
type Profile struct {
	tree
	// Attributes are those of its samples.
	Attributes dictionary.AttributeSetIndex
	chunks     []chunk
	start, end float64 // microseconds
	isHeap     bool
}

// chunk is a part of a profile's samples. Trace events have them in no order.
type chunk struct {
	at         float64   // microseconds
	samples    []float64 // ids of nodes
	deltas     []float64 // microseconds since the previous sample
	timestamps []float64 // microseconds, instead of deltas
}
