// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package firefox reads profiles of the Firefox Profiler: those that samply and profiler.firefox.com write, in columns
// ("processed"), and those of Firefox itself, in rows ("Gecko").
//
// Decode walks over the JSON (read.go). Of each thread it keeps the columns of numbers (tables.go): samples name nodes
// of a table of stacks, those name frames, and those functions, whose names are strings (tables.go). The tables are the
// thread's own, or shared by all. Rows become columns as they are read. When a process has been read, addThread adds
// the samples of its threads (samples.go):
//
//	samples/count     the samples; the period is the interval, of wall clock time
//	cpu/nanoseconds   the CPU time between two samples, if it was recorded
//	wall/nanoseconds  samples whose weight is a time
//	alloc_space/bytes allocations that were sampled
//	retained_space/bytes of Vernier's retained mode: a state, without times
//
// Every other sample keeps its time, and the thread is its attributes. Times count from the start of the profile, which
// is Unix time, or 0 in files that were converted: those end at the anchor.
package firefox

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// parserFactor is the memory of columns.
const parserFactor = 12

// ErrNotProfile is the error for JSON without a thread.
var ErrNotProfile = errors.New("there is no thread of the Firefox Profiler in the JSON")

// Decode returns the profiles of a file.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{tree: events.NewCallTree(len(data))}
	return d.Run(options, parserFactor*len(data), len(data), func() error {
		d.json = wire.NewJSON(data)
		d.json.Check = func() error { return d.Check(0) }
		d.scope = d.NewScope()
		if err := d.readProcess(0); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		if d.threads == 0 {
			return ErrNotProfile
		}
		d.SetClock()
		return nil
	})
}

type decoder struct {
	events.Builder
	json    wire.JSON
	scope   compact.ScopeIndex
	tree    *events.CallTree
	threads int // number of them
}

// meta describes the profile of a process.
type meta struct {
	Interval  float64 `json:"interval"`  // milliseconds
	StartTime float64 `json:"startTime"` // milliseconds since the epoch
	Product   string  `json:"product"`
	Units     struct {
		CPU string `json:"threadCPUDelta"`
	} `json:"sampleUnits"`
}

type lib struct {
	Name   string  `json:"name"`
	Path   string  `json:"path"`
	CodeID *string `json:"codeId"`

	mapping dictionary.MappingIndex // 0 until the first time
}

// process is a profile: of all processes, or in Firefox's own format of one, which contains others.
type process struct {
	meta    meta
	libs    []lib
	shared  tables
	threads []*thread
}

// thread has the samples of a thread.
type thread struct {
	tables
	name     string
	pid, tid id
	samples  []samples // with allocations
}

// id is a number, or a string.
type id string

// UnmarshalJSON reads either.
func (i *id) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	if text != "null" {
		*i = id(text)
	}
	return nil
}
