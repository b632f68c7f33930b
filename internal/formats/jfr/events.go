// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// eventReader makes samples of an event.
type eventReader func(d *decoder, e *event) error

// eventReaders are the events that are read, by their names.
var eventReaders = map[string]eventReader{
	"jdk.ExecutionSample": (*decoder).executionSample,
	"jdk.CPUTimeSample": func(d *decoder, e *event) error {
		return d.observeAt(e, 0, sample{cpuTimes, d.chunk.nanos(e.get(slotSamplingPeriod))})
	},
	"profiler.WallClockSample": (*decoder).wallClockSample,
	"datadog.ExecutionSample": func(d *decoder, e *event) error {
		period := cmp.Or(d.settings.datadogCPU, d.settings.period(d.options.Period))
		return d.observeAt(e, 0, sample{cpuTimes, e.scaled(uint64(period))})
	},
	"datadog.MethodSample": func(d *decoder, e *event) error {
		return d.observeAt(e, 0, sample{datadogWallTime, e.scaled(uint64(d.datadogWallPeriod()))})
	},
	"jdk.ObjectAllocationInNewTLAB":   allocated(tlab, slotTLABSize),
	"jdk.ObjectAllocationOutsideTLAB": allocated(outside, slotAllocationSize),
	"jdk.ObjectAllocationSample":      allocated(sampled, slotWeight),
	"datadog.ObjectSample": func(d *decoder, e *event) error {
		return d.observeAt(e, 0, sample{weighted.values, e.scaled(e.size())}, sample{weighted.events, e.scaled(1)})
	},
	"profiler.Malloc":     allocated(mallocs, slotSize),
	"profiler.LiveObject": func(d *decoder, e *event) error { return d.observeState(e, sample{liveObjects, 1}) },
	"datadog.HeapLiveObject": func(d *decoder, e *event) error {
		return d.observeState(e, sample{liveBytes, e.scaled(e.size())}, sample{liveObjects, e.scaled(1)})
	},
	"jdk.OldObjectSample":   (*decoder).oldObject,
	"jdk.JavaMonitorEnter":  counted(monitors),
	"profiler.NativeLock":   counted(monitors),
	"jdk.ThreadPark":        counted(parks),
	"jdk.MethodTrace":       counted(calls),
	"jdk.FileRead":          transferred(fileReads),
	"jdk.FileWrite":         transferred(fileWrites),
	"jdk.FileForce":         transferred(fileWrites),
	"jdk.SocketRead":        transferred(socketReads),
	"jdk.SocketWrite":       transferred(socketWrites),
	"jdk.GarbageCollection": (*decoder).collection,
}

// allocated reads events of which a size and the number matter.
func allocated(to pair, size slot) eventReader {
	return func(d *decoder, e *event) error {
		return d.observeAt(e, 0, sample{to.values, e.get(size)}, sample{to.events, 1})
	}
}

// counted reads events of which the durations and the number matter.
func counted(to pair) eventReader {
	return func(d *decoder, e *event) error { return d.observeInterval(to, e, 1) }
}

// transferred reads events of which the durations and the bytes matter.
func transferred(to pair) eventReader {
	return func(d *decoder, e *event) error { return d.observeInterval(to, e, e.get(slotSize)) }
}

func (d *decoder) datadogWallPeriod() int64 {
	return cmp.Or(d.settings.datadogWall, d.settings.wallPeriod(d.options.Period))
}

// The states of a thread that matter. Samples of the CPU may have others.
const (
	stateRunnable = "STATE_RUNNABLE"
	stateSleeping = "STATE_SLEEPING"
)

// sample is what an event has for a profile.
type sample struct {
	of    *definition
	value uint64
}

// observeAt adds an event's samples at its end.
func (d *decoder) observeAt(e *event, lengthNanos uint64, samples ...sample) error {
	t, id, err := d.place(e, lengthNanos)
	if t == 0 || err != nil {
		return err
	}
	for _, s := range samples {
		d.observe(s.of, id, t, s.value)
	}
	return nil
}

// observeInterval adds an event's duration and another number of it.
func (d *decoder) observeInterval(to pair, e *event, number uint64) error {
	nanos := d.chunk.nanos(e.get(slotDuration))
	return d.observeAt(e, nanos, sample{to.values, nanos}, sample{to.events, number})
}

// observeState adds what is so at the end of the recording: it has no time.
func (d *decoder) observeState(e *event, samples ...sample) error {
	id, err := d.sampleOf(e, "")
	if err != nil {
		return err
	}
	for _, s := range samples {
		d.observe(s.of, id, d.chunk.end-1, s.value)
	}
	return nil
}

// oldObject is an object that the JDK has sampled when it was allocated, and that is still there.
type oldObject struct {
	id   compact.Identity
	size uint64
}

// oldObject keeps an object of the last state. The JDK writes all that it has sampled each time that a recording is
// dumped, with the same time for all.
func (d *decoder) oldObject(e *event) error {
	t, ok := d.chunk.at(e.get(slotStartTime))
	switch {
	case !ok || t >= year2100:
		d.Stats.Dropped++
		return nil
	case t < d.oldObjectsAt:
		return nil
	case t > d.oldObjectsAt:
		d.oldObjectsAt, d.oldObjects = t, d.oldObjects[:0]
	}
	id, err := d.sampleOf(e, "")
	if err != nil {
		return err
	}
	if n := len(d.oldObjects); n == cap(d.oldObjects) {
		if err := d.Grow((n + 1) * oldObjectBytes); err != nil {
			return err
		}
	}
	d.oldObjects = append(d.oldObjects, oldObject{id, e.get(slotSize)})
	return nil
}

// oldObjectBytes is the memory of an object, of which append copies a part each time that it grows.
const oldObjectBytes = 48

// observeOldObjects adds the last state. JDKs before 21 do not know the sizes.
func (d *decoder) observeOldObjects() {
	for _, o := range d.oldObjects {
		d.observe(liveObjects, o.id, d.oldObjectsAt, 1)
		if o.size > 0 {
			d.observe(liveBytes, o.id, d.oldObjectsAt, o.size)
		}
	}
}

// collection adds the pauses of a garbage collection at its end. Its stack is the collector, which calls the cause.
func (d *decoder) collection(e *event) error {
	t, id, err := d.place(e, d.chunk.nanos(e.get(slotDuration)))
	if t == 0 || err != nil {
		return err
	}
	ref := stackKey{e.constantOf(slotName), e.constantOf(slotCause)}
	stack, known := d.chunk.stacks[ref]
	if !known {
		if err := d.Grow(originBytes); err != nil {
			return err
		}
		d.stackScratch = d.stackScratch[:0]
		for _, of := range []slot{slotCause, slotName} {
			name := d.CleanString(d.wordOf(e, of))
			d.stackScratch = append(d.stackScratch,
				d.Frame(dictionary.Function{Name: d.Dict.Strings.Intern(cmp.Or(name, unknownMethod))}, 0, 0))
		}
		stack = d.Dict.Stacks.Intern(d.stackScratch)
		d.chunk.stacks[ref] = stack
	}
	id.Stack = stack
	d.observe(collections.values, id, t, d.chunk.nanos(e.get(slotPauses)))
	d.observe(collections.events, id, t, 1)
	return nil
}

// place returns the time of an event's end and the identity of its samples. The time is 0 if the event was dropped.
func (d *decoder) place(e *event, lengthNanos uint64) (t uint64, id compact.Identity, err error) {
	t, ok := d.chunk.at(e.get(slotStartTime))
	if t += lengthNanos; !ok || t >= year2100 {
		d.Stats.Dropped++
		return 0, id, nil
	}
	if id, err = d.sampleOf(e, d.state(e)); err != nil {
		return 0, id, err
	}
	return t, id, nil
}

// executionSample adds a sample of CPU or wall clock time, or of what async-profiler samples by: it writes all of them
// as this event. If it samples by wall clock, a sample of a running thread counts as CPU time too.
func (d *decoder) executionSample(e *event) error {
	state := d.state(e)
	isSleeping, byWall := state == stateSleeping, d.settings.event == eventWall
	isWall := byWall || isSleeping || d.settings.wall > 0 && state == stateRunnable
	t, id, err := d.place(e, 0)
	if t == 0 || err != nil {
		return err
	}
	if isWall {
		d.observe(wallTime, id, t, uint64(d.settings.wallPeriod(d.options.Period)))
	}
	counted, interval := d.settings.countedEvent()
	switch {
	case isWall && (!byWall || isSleeping):
	case counted != "":
		d.observe(countedEvents, id, t, uint64(interval))
	default:
		d.observe(cpuSamples, id, t, 1)
	}
	return nil
}

// wallClockSample adds samples of wall clock time. One event can represent several samples of a sleeping thread: it
// begins with the first.
func (d *decoder) wallClockSample(e *event) error {
	n, period := max(e.get(slotSamples), 1), uint64(d.settings.wallPeriod(d.options.Period))
	if n > math.MaxUint32 || period > math.MaxInt64/(1<<32) {
		d.Stats.Dropped++
		return nil
	}
	t, id, err := d.place(e, (n-1)*period)
	if t == 0 || err != nil {
		return err
	}
	d.observe(wallTime, id, t, n*period)
	if d.state(e) == stateRunnable && d.settings.event == eventWall {
		d.observe(cpuSamples, id, t, 1)
	}
	return nil
}

// slot is where an event keeps the value of a field.
type slot uint8

const (
	noSlot slot = iota
	slotStartTime
	slotDuration
	slotThread
	slotStackTrace
	slotState
	slotAllocationSize
	slotTLABSize
	slotSize
	slotWeight
	slotSamples
	slotSamplingPeriod
	slotMethod
	slotContext
	slotSpan
	slotSpanName
	slotTraceHi
	slotTraceLo
	slotID
	slotName
	slotValue
	slotCause
	slotPauses
	numSlots
)

var slotOf = map[string]slot{
	"startTime": slotStartTime, "duration": slotDuration, "sampledThread": slotThread, "eventThread": slotThread,
	"stackTrace": slotStackTrace, "state": slotState, "allocationSize": slotAllocationSize, "tlabSize": slotTLABSize,
	"size":   slotSize,
	"weight": slotWeight, "samples": slotSamples, "samplingPeriod": slotSamplingPeriod, "method": slotMethod,
	"contextId": slotContext, "spanId": slotSpan, "spanName": slotSpanName, "traceIdHi": slotTraceHi,
	"traceIdLo": slotTraceLo,
	"id":        slotID, "name": slotName, "value": slotValue, "cause": slotCause, "sumOfPauses": slotPauses,
	"objectSize": slotSize, "bytesRead": slotSize, "bytesWritten": slotSize,
}

// event has the values of one event that matter, by their slots. Names of fields mean the same in all classes.
type event struct {
	of      *class
	numbers [numSlots]uint64
	fields  [numSlots]*field // of references
	// weight is that of Datadog's events, a floating point number in some.
	weight float64
	// name and value are those of a setting.
	name, value string
}

func (e *event) get(s slot) uint64 { return e.numbers[s] }

// maxValueBytes bounds a setting's value: the name of a method can be one.
const maxValueBytes = maxNameBytes

// readEvent reads the event at c, of a class.
func (d *decoder) readEvent(c *cursor, of *class) error {
	e := &d.event
	*e = event{of: of, weight: 1}
	c.visit(of, func(f *field) bool {
		switch {
		case f.slot == noSlot || f.isArray:
			return false
		case f.kind == kindNumber:
			e.numbers[f.slot], e.fields[f.slot] = c.number(), f
			if f.slot == slotWeight {
				e.weight = float64(e.numbers[f.slot])
			}
		case f.slot == slotWeight && (f.kind == kindFloat || f.kind == kindDouble):
			e.weight = c.real(f.kind)
		case f.slot == slotName && f.kind == kindString:
			e.name = d.string(c, f, maxNameBytes)
		case f.slot == slotValue && f.kind == kindString:
			e.value = d.string(c, f, maxValueBytes)
		default:
			return false
		}
		return true
	})
	return c.err
}

// size returns the size of an object, which Datadog's older versions name as the JDK does.
func (e *event) size() uint64 { return cmp.Or(e.get(slotSize), e.get(slotAllocationSize)) }

// scaled returns how much an event represents: so many times what it has itself.
func (e *event) scaled(of uint64) uint64 {
	scaled := math.Round(float64(of) * e.weight)
	if !(scaled >= 0 && scaled < math.MaxInt64) {
		return 0
	}
	return uint64(scaled)
}
