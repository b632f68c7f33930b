// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package cpuprofile reads V8's profiles: a .cpuprofile file (node --cpu-prof, Chrome's inspector), Chrome's trace
// events with a CPU profile, in an array or under traceEvents, or a .heapprofile file (node --heap-prof).
//
// Decode walks over the JSON without keeping it (read.go). A profile is a tree of nodes, each of which has a
// function (tree.go). The samples of a CPU profile name nodes (samples.go); the nodes of a heap profile have the bytes
// themselves (heap.go). Times are microseconds. If they are not Unix time, they count from the start of the machine:
// the metadata of a trace state when it began, and otherwise the anchor is the end of the recording.
package cpuprofile

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

const (
	// maxDepth is how deeply nodes may have others in them. V8 records stacks of 255.
	maxDepth = 512
	// parserFactor is the memory of numbers.
	parserFactor = 10
)

// The errors for JSON without a profile.
var (
	ErrNotProfile = errors.New("there is no V8 CPU profile in the JSON")
	ErrNoSamples  = errors.New("the trace events have neither a CPU profile of V8 nor spans (events X, or B and E): " +
		"record with the category disabled-by-default-v8.cpu_profiler, as the Performance panel of DevTools does")
	errDeep = errors.New("the tree of calls is too deep")
)

// Decode returns the profiles of a file. CPU profiles are samples/count with timestamps alone: samples of (idle) are
// left out, those of (garbage collector) and (program) become a frame on top of the previous stack. Heap profiles are
// inuse_space/bytes.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{
		byKey: map[profileKey]*profile{}, threadNames: map[threadKey]string{}, stacks: events.NewCallTree(len(data)),
	}
	return d.b.Run(options, parserFactor*len(data), len(data), func() error {
		if err := d.read(bytes.TrimLeft(data, "\xef\xbb\xbf \t\r\n")); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		switch {
		case len(d.profiles) == 0 && d.numEvents > 0:
			return ErrNoSamples
		case len(d.profiles) == 0:
			return ErrNotProfile
		}
		return d.addProfiles()
	})
}

type decoder struct {
	json     wire.JSON
	b        events.Builder
	profiles []*profile
	byKey    map[profileKey]*profile
	// numEvents, firstEvent and threadNames are of Chrome's trace events; firstEvent is the least of their times that are
	// not 0.
	numEvents   int
	firstEvent  float64
	threadNames map[threadKey]string
	// began is when the recording began, if its metadata state that.
	began  time.Time
	stacks *events.CallTree // those of a profile
}

// profileKey names a profile among Chrome's trace events.
type profileKey struct {
	process int64
	id      string
}

type threadKey struct{ process, thread int64 }

type profile struct {
	tree
	chunks      []chunk
	start, end  float64 // microseconds
	process     int64
	thread      int64
	isOfBrowser bool
	isHeap      bool
}

// chunk is a part of a profile's samples. Trace events have them in no order.
type chunk struct {
	at         float64   // microseconds
	samples    []float64 // ids of nodes
	deltas     []float64 // microseconds since the previous sample
	timestamps []float64 // microseconds, instead of deltas
}

func newProfile() *profile { return &profile{tree: tree{index: map[int64]int32{}}} }
