// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr reads recordings of Java Flight Recorder, which the JDK, async-profiler and Pyroscope's Java agent write.
//
//	pd, stats, err := jfr.Decode(data, jfr.Options{})
//
// data is the plain file, with any number of chunks; ErrNotJFR says that it is something else. Decode is a pure function,
// and keeps nothing of data. Its steps:
//
//	check         refuses what would cost the parser more than its bytes (check.go)
//	parseLabels   reads the labels that Pyroscope's Java agent sends beside a recording (labels.go)
//	event         one event of github.com/grafana/jfr-parser becomes samples (events.go)
//	stack         its stack trace, whose methods are interned once a chunk (stacks.go)
//	sampleOf      its thread, labels and span, as attributes and a link (context.go)
//	finish        times, durations and periods of the profiles (below)
//
// Every event keeps its time. What becomes a profile, all with Pyroscope's names for the types, by scope attribute
// pprof.scope.profile_name:
//
//	process_cpu  samples/count, timestamps alone; the period is the recording's, else Options.Period
//	wall         wall/nanoseconds, ending at the timestamp
//	memory       alloc_in_new_tlab_*, alloc_outside_tlab_*, alloc_sample_*, malloc_* in objects/count and bytes/bytes; live/count
//	mutex        delay/nanoseconds and contentions/count: waiting for a monitor, ending at the timestamp
//	block        delay/nanoseconds and contentions/count: parked threads, ending at the timestamp
//
// An event that has a length is a value, with its end as timestamp. Where each event counts one, timestamps stand alone.
// Live objects are a state: they have a value and no timestamp.
package jfr

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/parser/types"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profilekind"
)

// Options are what a recording does not say itself. The zero value is fine.
type Options struct {
	// Labels is a LabelsSnapshot, as Pyroscope's Java agent sends it, in protobuf without compression. It may be empty.
	Labels []byte
	// Period is the time between two samples of CPU or wall clock time, for recordings that do not say it. 0 is 10 ms.
	Period time.Duration
	// MaxTextBytes is the longest text of a frame or attribute; a longer one is cut. 0 is 64 KiB.
	MaxTextBytes int
}

// ErrNotJFR is the error for what does not begin as a recording does.
var ErrNotJFR = errors.New("not a recording of Java Flight Recorder")

// Decode returns the profiles of a recording, on a resource without attributes. A recording without events of interest makes
// no profiles. Events whose time is impossible are dropped. The error is ErrNotJFR, or says what is wrong with the
// recording or the labels.
func Decode(data []byte, options Options) (pd pprofile.Profiles, stats events.Stats, err error) {
	if !strings.HasPrefix(string(data[:min(len(data), len(chunkMagic))]), chunkMagic) {
		return pprofile.NewProfiles(), stats, ErrNotJFR
	}
	defer func() {
		// The parser may still meet what it did not expect.
		if r := recover(); r != nil {
			pd, err = pprofile.NewProfiles(), fmt.Errorf("read recording: %.200v", r)
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
	d.Reset(events.Options{MaxTextBytes: options.MaxTextBytes})
	d.resource = d.Resource(pcommon.NewResource(), "")
	if err := d.read(data); err != nil {
		return pprofile.NewProfiles(), d.Stats, fmt.Errorf("read recording: %w", shortened(err))
	}
	d.finish()
	return d.Finish(math.MaxInt), d.Stats, nil // the parser's strings are cut from data
}

const (
	// defaultPeriod is async-profiler's.
	defaultPeriod = 10 * time.Millisecond
	// nameBytesPerByte bounds the names of methods, each of which is made of two texts that others may have too.
	nameBytesPerByte = 16
)

var errNames = fmt.Errorf("%w: the names of its methods together", events.ErrTooLarge)

// shortened bounds the text of an error of the parser, which may have whole tables in it.
func shortened(err error) error {
	const longest = 300
	if text := err.Error(); len(text) > longest {
		return errors.New(profiledict.ValidUTF8(text[:longest]) + "…")
	}
	return err
}

type decoder struct {
	events.Builder
	options   Options
	labels    labels
	nameBytes int // that are left
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

// cover makes a time one of the recording's.
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

// observe adds an observation to a profile.
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

// finish sets what is known at the end only.
func (d *decoder) finish() {
	periods := d.settings.periods(d.options.Period)
	for p, has := range d.has {
		if has {
			d.SetWindow(d.profiles[p], d.first, d.last)
			d.Header(d.profiles[p]).Period = periods[p]
		}
	}
}
