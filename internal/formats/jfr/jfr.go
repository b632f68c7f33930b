// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr reads recordings of Java Flight Recorder, which the JDK, async-profiler and Pyroscope's Java agent write.
//
//	pd, stats, err := jfr.Decode(data, jfr.Options{})
//
// data is the uncompressed file, with any number of chunks. Decode is a pure function, and keeps nothing of data. Its steps:
//
//	check         refuses recordings that would cost the parser more than their bytes (check.go)
//	parseLabels   reads the labels that Pyroscope's Java agent sends beside a recording (labels.go)
//	event         one event of github.com/grafana/jfr-parser becomes samples (events.go)
//	stack         its stack trace, whose methods are interned once for each chunk (stacks.go)
//	sampleOf      its thread, labels and span, as attributes and a link (context.go)
//	finish        times, durations and periods of the profiles (below)
//
// Every event keeps its time. The profiles, by the scope attribute pprof.scope.profile_name, with Pyroscope's names for the
// types:
//
//	process_cpu  samples/count, timestamps alone; the period is the recording's, or else Options.Period
//	wall         wall/nanoseconds, ending at the timestamp
//	memory       alloc_in_new_tlab_*, alloc_outside_tlab_*, alloc_sample_*, malloc_* in objects/count and bytes/bytes; live/count
//	mutex        delay/nanoseconds and contentions/count: waiting for a monitor, ending at the timestamp
//	block        delay/nanoseconds and contentions/count: parked threads, ending at the timestamp
//
// An event with a length is a value, with its end as the timestamp. If each event counts as one, samples have only timestamps.
// Live objects are a state: they have a value and no timestamp.
package jfr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/parser/types"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Options are what a recording does not state itself. The zero value is fine.
type Options struct {
	// Options has no use for an Anchor: every chunk states its time.
	events.Options
	// Labels is a LabelsSnapshot, as Pyroscope's Java agent sends it, in protobuf without compression. It may be empty.
	Labels []byte
	// Period is the time between two samples of CPU or wall clock time, for recordings that do not state it. 0 means 10 ms.
	Period time.Duration
}

// ErrNotJFR is the error for data that does not begin as a recording does.
var ErrNotJFR = errors.New("not a recording of Java Flight Recorder")

// Decode returns the profiles of a recording, on a resource without attributes. A recording without events of interest makes
// no profiles. Events whose time is impossible are dropped. The error is ErrNotJFR, or describes what is wrong with
// the recording or the labels.
func Decode(data []byte, options Options) (pd pprofile.Profiles, stats events.Stats, err error) {
	if !bytes.HasPrefix(data, []byte(chunkMagic)) {
		return pprofile.NewProfiles(), stats, ErrNotJFR
	}
	defer func() {
		// The parser may still panic on what check does not know.
		if r := recover(); r != nil {
			pd, err = pprofile.NewProfiles(), events.ShortError(fmt.Errorf("read recording: %v", r))
		}
	}()
	if options.Period <= 0 {
		options.Period = defaultPeriod
	}
	if err := check(data); err != nil {
		return pprofile.NewProfiles(), stats, fmt.Errorf("read recording: %w", err)
	}
	d := decoder{options: options, nameBytes: nameBytesPerByte*len(data) + 1<<20}
	if d.labels, err = parseLabels(options.Labels); err != nil {
		return pprofile.NewProfiles(), stats, err
	}
	const plainBytes = math.MaxInt // the parser's strings are cut from data
	return d.Run(options.Options, parserFactor*len(data), plainBytes, func() error {
		d.Stats.LeftOutAttributes, d.Stats.Truncated = d.labels.leftOut, d.labels.truncated
		d.resource = d.Resource(pcommon.NewResource(), "")
		if err := d.read(data); options.Meter.Err() != nil {
			return options.Meter.Err()
		} else if err != nil {
			return fmt.Errorf("read recording: %w", events.ShortError(err))
		}
		d.finish()
		return nil
	})
}

const (
	// defaultPeriod is async-profiler's.
	defaultPeriod = 10 * time.Millisecond
	// nameBytesPerByte bounds the names of methods. Each consists of two strings, which other methods can share.
	nameBytesPerByte = 16
	// parserFactor is the memory of the parser's tables.
	parserFactor = 8
)

var errNames = fmt.Errorf("%w: the names of its methods together", events.ErrTooLarge)

type decoder struct {
	events.Builder
	options   Options
	labels    labels
	nameBytes int // how many more bytes names of methods may have
	resource  compact.ResourceIndex

	parser   *parser.Parser
	chunk    chunk
	settings settings
	profiles [numProfiles]compact.ProfileIndex
	has      [numProfiles]bool
	contexts map[int64][]int32 // attributes, by number in labels
	first    uint64            // of all timestamps and chunks
	last     uint64

	// Scratch.
	stackScratch, attributes []int32
}

// read makes samples of all events.
func (d *decoder) read(data []byte) error {
	isNewChunk := false
	d.parser = parser.NewParser(data, parser.Options{SymbolProcessor: func(symbols *types.SymbolList) {
		isNewChunk = true
		parser.ProcessSymbols(symbols) // one name for all classes that the JVM generates for one
	}})
	for {
		if err := d.Step(0); err != nil {
			return err
		}
		class, err := d.parser.ParseEvent()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if isNewChunk {
			isNewChunk = false
			if d.chunk, err = newChunk(d.parser.ChunkHeader()); err != nil {
				return err
			}
			d.cover(d.chunk.start)
			d.cover(d.chunk.end - 1)
		}
		if err := d.event(class); err != nil {
			return err
		}
	}
}

// cover widens the time of the recording so that it contains t.
func (d *decoder) cover(t uint64) {
	if d.first == 0 || t < d.first {
		d.first = t
	}
	d.last = max(d.last, t)
}

// The profiles that a recording can have.
type profileID int

const (
	cpuSamples profileID = iota
	wallTime
	tlabBytes
	tlabObjects
	outsideBytes
	outsideObjects
	sampledBytes
	sampledObjects
	mallocBytes
	mallocObjects
	liveObjects
	monitorDelay
	monitorCount
	parkDelay
	parkCount
	numProfiles
)

// definition is what all samples of a profile have in common.
type definition struct {
	name           string
	sample, period events.Type
	shape          compact.Shape
}

var (
	points    = compact.Shape{Timestamps: true}
	intervals = compact.Shape{Timestamps: true, Values: true}
	states    = compact.Shape{Values: true}
)

var (
	cpuTime     = events.Type{Name: "cpu", Unit: "nanoseconds"}
	wallClock   = events.Type{Name: "wall", Unit: "nanoseconds"}
	space       = events.Type{Name: "space", Unit: "bytes"}
	objects     = events.Type{Name: "objects", Unit: "count"}
	monitors    = events.Type{Name: "mutex", Unit: "count"}
	parks       = events.Type{Name: "block", Unit: "count"}
	delay       = events.Type{Name: "delay", Unit: "nanoseconds"}
	contentions = events.Type{Name: "contentions", Unit: "count"}
)

func bytesOf(name string) events.Type { return events.Type{Name: name + "_bytes", Unit: "bytes"} }

func objectsOf(name string) events.Type { return events.Type{Name: name + "_objects", Unit: "count"} }

var definitions = [numProfiles]definition{
	cpuSamples:     {profilekind.ProcessCPU, events.Type{Name: "samples", Unit: "count"}, cpuTime, points},
	wallTime:       {profilekind.Wall, wallClock, wallClock, intervals},
	tlabBytes:      {profilekind.Memory, bytesOf("alloc_in_new_tlab"), space, intervals},
	tlabObjects:    {profilekind.Memory, objectsOf("alloc_in_new_tlab"), space, points},
	outsideBytes:   {profilekind.Memory, bytesOf("alloc_outside_tlab"), space, intervals},
	outsideObjects: {profilekind.Memory, objectsOf("alloc_outside_tlab"), space, points},
	sampledBytes:   {profilekind.Memory, bytesOf("alloc_sample"), space, intervals},
	sampledObjects: {profilekind.Memory, objectsOf("alloc_sample"), space, points},
	mallocBytes:    {profilekind.Memory, bytesOf("malloc"), space, intervals},
	mallocObjects:  {profilekind.Memory, objectsOf("malloc"), space, points},
	liveObjects:    {profilekind.Memory, events.Type{Name: "live", Unit: "count"}, objects, states},
	monitorDelay:   {profilekind.Mutex, delay, monitors, intervals},
	monitorCount:   {profilekind.Mutex, contentions, monitors, points},
	parkDelay:      {profilekind.Block, delay, parks, intervals},
	parkCount:      {profilekind.Block, contentions, parks, points},
}

func (d *decoder) observe(p profileID, id compact.Identity, timestamp uint64, value int64) {
	if !d.has[p] {
		d.has[p] = true
		d.profiles[p] = d.newProfile(&definitions[p])
	}
	d.Event(d.profiles[p], id, compact.Observation{Timestamp: timestamp, Value: value})
}

func (d *decoder) newProfile(of *definition) compact.ProfileIndex {
	scope := pcommon.NewInstrumentationScope()
	scope.Attributes().PutStr(profilekind.NameAttribute, of.name)
	return d.NewProfile(d.Scope(d.resource, scope, ""), events.Profile{Sample: of.sample, Period: of.period, Shape: of.shape})
}

// finish sets what is known only at the end.
func (d *decoder) finish() {
	periods := d.settings.periods(d.options.Period)
	for p, has := range d.has {
		if has {
			d.SetWindow(d.profiles[p], d.first, d.last)
			d.Header(d.profiles[p]).Period = periods[p]
		}
	}
}
