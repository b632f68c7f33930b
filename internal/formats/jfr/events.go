// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/parser/types"
	"github.com/grafana/jfr-parser/parser/types/def"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// chunk is a part of a recording with its own constant pools and clock, and what has been interned of them.
type chunk struct {
	header     parser.ChunkHeader
	start, end uint64 // nanoseconds since the epoch

	stacks  map[types.StackTraceRef]dictionary.StackIndex
	names   map[types.MethodRef]dictionary.StringIndex
	origins map[origin]interned
	threads map[types.ThreadRef][]int32
}

// A recording is from between these times, in nanoseconds.
const year2000, year2100 = events.Year2000 * 1e9, events.Year2100 * 1e9

func newChunk(header parser.ChunkHeader) (chunk, error) {
	c := chunk{
		header: header, start: header.StartNanos, end: header.StartNanos + max(header.DurationNanos, 1),
		stacks: map[types.StackTraceRef]dictionary.StackIndex{}, names: map[types.MethodRef]dictionary.StringIndex{},
		origins: map[origin]interned{}, threads: map[types.ThreadRef][]int32{},
	}
	if header.TicksPerSecond == 0 || c.start < year2000 || c.start >= year2100 || header.DurationNanos > year2100 || c.end >= year2100 {
		return c, errors.New("the time of a chunk is impossible")
	}
	return c, nil
}

// at returns the time of a number of ticks, or false for one that is impossible.
func (c *chunk) at(ticks uint64) (nanos uint64, ok bool) {
	since := int64(ticks - c.header.StartTicks)
	if since < 0 { // events can be older than the chunk that they are written to
		before := c.nanos(uint64(-since))
		return c.start - before, before <= c.start-year2000
	}
	nanos = c.start + c.nanos(uint64(since))
	return nanos, nanos >= c.start && nanos < year2100
}

// nanos converts ticks to nanoseconds. It returns the largest int64 if there are more.
func (c *chunk) nanos(ticks uint64) uint64 {
	high, low := bits.Mul64(ticks, 1e9)
	if high >= c.header.TicksPerSecond {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, c.header.TicksPerSecond)
	return min(quotient, math.MaxInt64)
}

// settings are those of the recorder's settings that matter here. 0 means that the recording does not state it.
type settings struct {
	event                         string // what async-profiler samples by: cpu, wall, itimer …
	cpu, wall, allocation, malloc int64
}

// read reads one setting of a class of events: async-profiler's (interval=10000000), or the JDK's (period=20 ms).
func (s *settings) read(of *types.ActiveSetting, classes *def.TypeMap) {
	value := of.Value[:min(len(of.Value), 32)]
	number, _ := strconv.ParseInt(value, 10, 64)
	number = max(number, 0)
	isExecution := of.Id == uint64(classes.T_EXECUTION_SAMPLE)
	switch {
	case of.Name == "event":
		s.event = value
	case of.Name == "interval" && isExecution:
		s.cpu = number
	case of.Name == "wall" && isExecution:
		s.wall = number
	case of.Name == "period" && isExecution:
		if d, err := time.ParseDuration(strings.ReplaceAll(value, " ", "")); err == nil && d > 0 {
			s.cpu = int64(d)
		}
	case of.Name == "alloc" && of.Id == uint64(classes.T_ALLOC_IN_NEW_TLAB):
		s.allocation = number
	case of.Name == "nativemem":
		s.malloc = number
	}
}

// period returns the time between two samples of the CPU.
func (s *settings) period(unstated time.Duration) int64 {
	return cmp.Or(s.cpu, int64(unstated))
}

// wallPeriod returns the time between two samples of the wall clock.
func (s *settings) wallPeriod(unstated time.Duration) int64 {
	if s.event != eventWall && s.wall > 0 {
		return s.wall
	}
	return s.period(unstated)
}

// periods returns the period of each profile: what lies between two samples, or 1 if each event is one.
func (s *settings) periods(unstated time.Duration) (periods [numProfiles]int64) {
	for i := range periods {
		periods[i] = 1
	}
	periods[cpuSamples], periods[wallTime] = s.period(unstated), s.wallPeriod(unstated)
	for _, p := range []profileID{tlabBytes, tlabObjects, outsideBytes, outsideObjects, sampledBytes, sampledObjects} {
		periods[p] = max(s.allocation, 1)
	}
	periods[mallocBytes], periods[mallocObjects] = max(s.malloc, 1), max(s.malloc, 1)
	return periods
}

// eventWall is the setting `event` of a recording of wall clock time alone.
const eventWall = "wall"

// The states of a thread that matter. Samples of the CPU may have others.
const (
	stateRunnable = "STATE_RUNNABLE"
	stateSleeping = "STATE_SLEEPING"
)

// event adds samples for the event that the parser has just read.
func (d *decoder) event(class def.TypeID) error {
	p := d.parser
	switch class {
	case p.TypeMap.T_EXECUTION_SAMPLE:
		return d.executionSample(&p.ExecutionSample)
	case p.TypeMap.T_WALL_CLOCK_SAMPLE:
		return d.wallClockSample(&p.WallClockSample)
	case p.TypeMap.T_ALLOC_IN_NEW_TLAB:
		e := &p.ObjectAllocationInNewTLAB
		from := origin{thread: e.EventThread, span: span{e.ContextId, e.SpanId, e.SpanName, e.TraceIdHi, e.TraceIdLo}}
		return d.observePair(pair{tlabBytes, tlabObjects}, occurrence{e.StartTime, e.StackTrace, from}, 0, e.TlabSize)
	case p.TypeMap.T_ALLOC_OUTSIDE_TLAB:
		e := &p.ObjectAllocationOutsideTLAB
		from := origin{thread: e.EventThread, span: span{e.ContextId, e.SpanId, e.SpanName, e.TraceIdHi, e.TraceIdLo}}
		return d.observePair(pair{outsideBytes, outsideObjects}, occurrence{e.StartTime, e.StackTrace, from}, 0, e.AllocationSize)
	case p.TypeMap.T_ALLOC_SAMPLE:
		e := &p.ObjectAllocationSample
		from := origin{thread: e.EventThread}
		return d.observePair(pair{sampledBytes, sampledObjects}, occurrence{e.StartTime, e.StackTrace, from}, 0, e.Weight)
	case p.TypeMap.T_MALLOC:
		e := &p.Malloc
		from := origin{thread: e.EventThread}
		return d.observePair(pair{mallocBytes, mallocObjects}, occurrence{e.StartTime, e.StackTrace, from}, 0, e.Size)
	case p.TypeMap.T_LIVE_OBJECT:
		e := &p.LiveObject
		id, err := d.sampleOf(e.StackTrace, origin{thread: e.EventThread})
		if err == nil {
			d.observe(liveObjects, id, 0, 1)
		}
		return err
	case p.TypeMap.T_MONITOR_ENTER:
		e := &p.JavaMonitorEnter
		from := origin{thread: e.EventThread, span: span{e.ContextId, e.SpanId, e.SpanName, e.TraceIdHi, e.TraceIdLo}}
		nanos := d.chunk.nanos(e.Duration)
		return d.observePair(pair{monitorDelay, monitorCount}, occurrence{e.StartTime, e.StackTrace, from}, nanos, nanos)
	case p.TypeMap.T_THREAD_PARK:
		e := &p.ThreadPark
		from, nanos := origin{thread: e.EventThread}, d.chunk.nanos(e.Duration)
		return d.observePair(pair{parkDelay, parkCount}, occurrence{e.StartTime, e.StackTrace, from}, nanos, nanos)
	case p.TypeMap.T_ACTIVE_SETTING:
		d.settings.read(&p.ActiveSetting, &p.TypeMap)
	}
	return nil
}

// occurrence is when and where an event happened.
type occurrence struct {
	ticks uint64
	trace types.StackTraceRef
	origin
}

// pair is the profile of an event's values, and the profile that counts the events.
type pair struct{ values, events profileID }

// observePair adds an event's value and the event itself, at its end.
func (d *decoder) observePair(to pair, at occurrence, lengthNanos, value uint64) error {
	t, id, err := d.place(&at, lengthNanos)
	if t == 0 || err != nil {
		return err
	}
	d.observe(to.values, id, t, int64(min(value, math.MaxInt64)))
	d.observe(to.events, id, t, 1)
	return nil
}

// place returns the time of an event's end and the identity of its samples. The time is 0 if the event was dropped.
func (d *decoder) place(at *occurrence, lengthNanos uint64) (t uint64, id compact.Identity, err error) {
	t, ok := d.chunk.at(at.ticks)
	if t += lengthNanos; !ok || t >= year2100 {
		d.Stats.Dropped++
		return 0, id, nil
	}
	if id, err = d.sampleOf(at.trace, at.origin); err != nil {
		return 0, id, err
	}
	d.cover(t)
	return t, id, nil
}

// executionSample adds a sample of CPU or wall clock time: async-profiler writes both as this event. If it samples by wall
// clock, a sample of a running thread counts as CPU time too.
func (d *decoder) executionSample(e *types.ExecutionSample) error {
	at := occurrence{e.StartTime, e.StackTrace, origin{
		thread: e.SampledThread, state: d.state(e.State), span: span{e.ContextId, e.SpanId, e.SpanName, e.TraceIdHi, e.TraceIdLo},
	}}
	isSleeping, byWall := at.state == stateSleeping, d.settings.event == eventWall
	isWall := byWall || isSleeping || d.settings.wall > 0 && at.state == stateRunnable
	t, id, err := d.place(&at, 0)
	if t == 0 || err != nil {
		return err
	}
	if isWall {
		d.observe(wallTime, id, t, d.settings.wallPeriod(d.options.Period))
	}
	if !isWall || byWall && !isSleeping {
		d.observe(cpuSamples, id, t, 0)
	}
	return nil
}

// wallClockSample adds samples of wall clock time. One event can represent several samples of a sleeping thread: it begins with
// the first.
func (d *decoder) wallClockSample(e *types.WallClockSample) error {
	at := occurrence{e.StartTime, e.StackTrace, origin{
		thread: e.SampledThread, state: d.state(e.State), span: span{e.ContextId, e.SpanId, e.SpanName, e.TraceIdHi, e.TraceIdLo},
	}}
	n, period := uint64(max(e.Samples, 1)), uint64(d.settings.wallPeriod(d.options.Period))
	if period > math.MaxInt64/(1<<32) {
		d.Stats.Dropped++
		return nil
	}
	t, id, err := d.place(&at, (n-1)*period)
	if t == 0 || err != nil {
		return err
	}
	d.observe(wallTime, id, t, int64(n*period))
	if at.state == stateRunnable && d.settings.event == eventWall {
		d.observe(cpuSamples, id, t, 0)
	}
	return nil
}

// state returns the name of a thread's state, or "". Every event looks it up, so a long one would cost too much.
func (d *decoder) state(ref types.ThreadStateRef) string {
	const longest = 64
	if state := d.parser.GetThreadState(ref); state != nil && len(state.Name) <= longest {
		return state.Name
	}
	return ""
}
