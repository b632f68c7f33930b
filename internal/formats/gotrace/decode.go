// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotrace turns Go execution traces into OTLP profiles, in one scope:
//
//	samples/count        samples of the CPU profiler, if it ran beside the trace
//	off_cpu/nanoseconds  goroutines that wait, are runnable or in a system call
//	on_cpu/nanoseconds   goroutines that run
//	gc_pause/nanoseconds stopping the world, and goroutines that assist the garbage collector
//
// An interval is an observation: its length is the value, its end the timestamp. It is split where the task, region or
// span changes.
//
// checkSize bounds what the reader may cost (scan.go), then golang.org/x/exp/trace reads event after event.
// decoder.event follows goroutines from state to state (goroutines.go) and the user's tasks and regions (tasks.go);
// decoder.stack interns stacks. Times count from the first event. At the end finish moves them to the wall clock: by
// the trace's clock snapshot (Go 1.25), or else by the anchor.
package gotrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// legacyReader allows one trace from before Go 1.22 to be read at a time: the reader allocates 32 MiB even for the
// smallest, which are reserved for each.
var legacyReader sync.Mutex

// The memory of what is known of a goroutine, and of a part of its state that waits.
const (
	goroutineBytes = 512
	partBytes      = 72
)

// Decode returns the profiles of a trace. Of a trace that breaks off it returns what comes before that, and counts one
// dropped record. data is only read.
func Decode(data []byte, options Options) (pprofile.Profiles, events.Stats, error) {
	isLegacy, readerBytes, err := checkSize(data, &options)
	if err != nil {
		return pprofile.NewProfiles(), events.Stats{}, err
	}
	if isLegacy {
		legacyReader.Lock()
		defer legacyReader.Unlock()
	}
	d := decoder{options: options, goroutines: map[trace.GoID]*goroutine{}, tasks: map[trace.TaskID]*task{},
		ranges: map[rangeKey]openRange{}, splitsLeft: splitsConstant}
	return d.b.Run(options.Options, readerBytes, len(data), func() error {
		d.addProfiles()
		if err := d.read(bytes.NewReader(data)); err != nil {
			if d.syncs < 2 || options.Meter.Err() != nil {
				return err
			}
			d.b.Stats.Dropped++
		}
		d.finish()
		return nil
	})
}

// cpuPeriod is the sampling period of the CPU profiler that runs beside the trace: the runtime's default.
const cpuPeriod = 10 * time.Millisecond

// The profiles, in the order in which they are written.
const (
	samples = iota
	offCPU
	onCPU
	gcPause
	numProfiles
)

var profileTypes = [numProfiles]events.Type{events.Count("samples"), events.Nanoseconds("off_cpu"),
	events.Nanoseconds("on_cpu"), events.Nanoseconds("gc_pause")}

type decoder struct {
	options Options
	b       events.Builder

	goroutines map[trace.GoID]*goroutine
	// parts is how many parts of their states the goroutines have room for.
	parts  int
	tasks  map[trace.TaskID]*task
	ranges map[rangeKey]openRange
	// splitsLeft is how many more states of goroutines the events of others may split.
	splitsLeft int

	// stacks and locations are those of the current generation.
	stacks    map[trace.Stack]stackInfo
	locations map[uint64]int32

	profiles [numProfiles]compact.ProfileIndex

	syncs int
	// start, generation and now are the times of the first event, of the beginning of the generation, and of the current
	// event.
	start, generation, now trace.Time
	clock                  *trace.ClockSnapshot // the first one

	list []int32 // scratch
}

// read passes all events to d.event. The reader panics on some malformed traces.
func (d *decoder) read(from io.Reader) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = events.ShortError(fmt.Errorf("the trace is damaged: %v", fault))
		}
	}()
	reader, err := trace.NewReader(from)
	if err != nil {
		return events.ShortError(err)
	}
	for {
		event, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return events.ShortError(err)
		}
		d.event(&event)
		if err := d.b.Check(goroutineBytes*len(d.goroutines) + partBytes*d.parts); err != nil {
			return err
		}
	}
}

func (d *decoder) event(e *trace.Event) {
	if d.now = max(d.now, e.Time()); d.syncs == 0 {
		d.start, d.now = e.Time(), e.Time()
	}
	switch e.Kind() {
	case trace.EventSync:
		d.sync(e)
	case trace.EventStateTransition:
		if t := e.StateTransition(); t.Resource.Kind == trace.ResourceGoroutine {
			d.transition(e, &t)
		}
	case trace.EventLabel:
		d.label(e)
	case trace.EventStackSample:
		d.sample(e)
	case trace.EventRangeBegin, trace.EventRangeActive, trace.EventRangeEnd:
		d.rangeEvent(e)
	case trace.EventTaskBegin, trace.EventTaskEnd, trace.EventRegionBegin, trace.EventRegionEnd, trace.EventLog:
		d.user(e)
	}
}

// sync begins a generation, which has its own numbers of stacks and addresses.
func (d *decoder) sync(e *trace.Event) {
	d.syncs++
	d.generation = d.now
	d.stacks, d.locations = map[trace.Stack]stackInfo{}, map[uint64]int32{}
	if clock := e.Sync().ClockSnapshot; d.clock == nil && clock != nil {
		d.clock = clock
	}
}

// stackInfo is an interned stack of the trace, and what its root implies about the goroutine.
type stackInfo struct {
	stack              dictionary.StackIndex
	isSystem, isWorker bool
}

func (d *decoder) stack(s trace.Stack) stackInfo {
	if s == trace.NoStack {
		return stackInfo{}
	}
	if known, ok := d.stacks[s]; ok {
		return known
	}
	d.list = d.list[:0]
	root := ""
	for frame := range s.Frames() {
		if frame.PC == 0 && frame.Func == "" { // before Go 1.22, all there is of some preempted goroutines
			continue
		}
		root = frame.Func
		location, ok := d.locations[frame.PC]
		if !ok {
			location = d.b.Frame(dictionary.Function{
				Name: d.b.InternString(frame.Func), Filename: d.b.InternString(frame.File),
			}, int64(frame.Line), 0)
			d.locations[frame.PC] = location
		}
		d.list = append(d.list, location)
	}
	info := stackInfo{
		stack:    d.b.Dict.Stacks.Intern(d.list),
		isSystem: strings.HasPrefix(root, "runtime.") && root != "runtime.main",
		isWorker: strings.HasPrefix(root, "runtime.gcBgMark"), // or a closure of gcBgMarkStartWorkers, since Go 1.23
	}
	d.stacks[s] = info
	return info
}

// addProfiles adds the profiles, of which some can stay empty.
func (d *decoder) addProfiles() {
	scope := d.b.NewScope()
	for which, sample := range profileTypes {
		p := events.Profile{Sample: sample, Shape: compact.Shape{Timestamps: true, Values: which != samples}}
		if d.options.Aggregate {
			p.Shape = compact.Shape{Values: true}
		}
		if which == samples {
			p.Period, p.Every = events.Nanoseconds("cpu"), int64(cpuPeriod)
		}
		d.profiles[which] = d.b.NewProfile(scope, p)
	}
}

// place is who ran where.
type place struct {
	goroutine trace.GoID
	thread    trace.ThreadID
	proc      trace.ProcID
}

// observe adds an observation. Its attributes are state, its place, unless Options.Aggregate leaves that out, and its
// context.
func (d *decoder) observe(which int, state int32, at place, p *part) {
	isApart := !d.options.Aggregate
	c := &p.context
	id := compact.Identity{Stack: p.stack, Link: c.link, Attributes: d.b.AddAttributes(0, state,
		d.b.NumberAttribute(events.AttributeGoroutine, int64(at.goroutine), isApart && at.goroutine > 0),
		d.b.NumberAttribute(events.AttributeThreadID, int64(at.thread), isApart && at.thread > 0),
		d.b.NumberAttribute(events.AttributeGoProc, int64(at.proc), isApart && at.proc >= 0),
		d.b.TextAttribute(attributeRegion, c.region), d.b.TextAttribute(attributeTaskType, c.task),
		d.b.NumberAttribute(attributeTaskID, int64(c.taskID), c.taskID != 0),
	)}
	d.b.Event(d.profiles[which], id, compact.Observation{Timestamp: uint64(p.end - d.start), Value: p.length})
}

func (d *decoder) sample(e *trace.Event) {
	g := e.Goroutine()
	d.observe(samples, 0, place{g, e.Thread(), e.Proc()},
		&part{end: d.now, length: 1, stack: d.stack(e.Stack()).stack, context: d.contextOf(d.goroutines[g])})
}

// finish ends the open intervals, and moves all times to the wall clock.
func (d *decoder) finish() {
	if !d.options.WithoutUnfinished {
		d.endAll()
	}
	length := uint64(d.now - d.start)
	for _, p := range d.profiles {
		d.b.SetWindow(p, 0, length)
	}
	if d.clock != nil {
		const latest = 1 << 62 // in the year 2116
		begin := d.clock.Wall.UnixNano() - int64(d.clock.Trace-d.start)
		if d.clock.Wall.Unix() > 0 && begin > 0 && begin < latest && length < latest {
			d.b.Shift(uint64(begin))
		}
	}
	d.b.SetClock()
}

// Options configure what becomes of a trace.
type Options struct {
	// Options has the Anchor, for traces from before Go 1.25.
	events.Options
	// Aggregate sums the intervals of each stack and state, without timestamps and ids.
	Aggregate bool
	// MinDuration is the shortest interval that becomes an event. Stopping the world always does, and sums contain all
	// intervals.
	MinDuration time.Duration
	// Everything keeps the waits of the runtime's own goroutines, all intervals of the workers of the garbage collector,
	// and goroutines that wait from the beginning of the trace to its end.
	Everything bool
	// WithoutUnfinished leaves out intervals that had not ended when the trace did.
	WithoutUnfinished bool
	// MaxLegacyBytes is the largest trace of a version before Go 1.22, which is read whole.
	MaxLegacyBytes int
}

// DefaultOptions returns the options that configurations begin with.
func DefaultOptions() Options {
	return Options{MinDuration: 100 * time.Microsecond, MaxLegacyBytes: 32 << 20}
}
