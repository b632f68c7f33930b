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
		return d.observeOne(cpuTimes, e, d.chunk.nanos(e.get(slotSamplingPeriod)))
	},
	"profiler.WallClockSample": (*decoder).wallClockSample,
	"datadog.ExecutionSample": func(d *decoder, e *event) error {
		return d.observeOne(cpuTimes, e, e.scaled(uint64(cmp.Or(d.settings.datadogCPU, d.settings.period(d.options.Period)))))
	},
	"datadog.MethodSample": func(d *decoder, e *event) error {
		return d.observeOne(datadogWallTime, e, e.scaled(uint64(d.datadogWallPeriod())))
	},
	"jdk.ObjectAllocationInNewTLAB": func(d *decoder, e *event) error {
		return d.observePair(pair{tlabBytes, tlabObjects}, e, e.get(slotTLABSize), 1)
	},
	"jdk.ObjectAllocationOutsideTLAB": func(d *decoder, e *event) error {
		return d.observePair(pair{outsideBytes, outsideObjects}, e, e.get(slotAllocationSize), 1)
	},
	"jdk.ObjectAllocationSample": func(d *decoder, e *event) error {
		return d.observePair(pair{sampledBytes, sampledObjects}, e, e.get(slotWeight), 1)
	},
	"datadog.ObjectSample": func(d *decoder, e *event) error {
		return d.observePair(pair{sampledBytes, weightedObjects}, e, e.scaled(e.size()), e.scaled(1))
	},
	"profiler.Malloc": func(d *decoder, e *event) error {
		return d.observePair(pair{mallocBytes, mallocObjects}, e, e.get(slotSize), 1)
	},
	"profiler.LiveObject": func(d *decoder, e *event) error { return d.observeState(liveObjects, e, 1) },
	"datadog.HeapLiveObject": func(d *decoder, e *event) error {
		if err := d.observeState(liveBytes, e, e.scaled(e.size())); err != nil {
			return err
		}
		return d.observeState(liveObjects, e, e.scaled(1))
	},
	"jdk.OldObjectSample":   (*decoder).oldObject,
	"jdk.JavaMonitorEnter":  counted(pair{monitorDelay, monitorCount}),
	"profiler.NativeLock":   counted(pair{monitorDelay, monitorCount}),
	"jdk.ThreadPark":        counted(pair{parkDelay, parkCount}),
	"jdk.MethodTrace":       counted(pair{traceTime, traceCalls}),
	"jdk.FileRead":          transfer(pair{fileReadTime, fileReadBytes}),
	"jdk.FileWrite":         transfer(pair{fileWriteTime, fileWriteBytes}),
	"jdk.FileForce":         transfer(pair{fileWriteTime, fileWriteBytes}),
	"jdk.SocketRead":        transfer(pair{socketReadTime, socketReadBytes}),
	"jdk.SocketWrite":       transfer(pair{socketWriteTime, socketWriteBytes}),
	"jdk.GarbageCollection": (*decoder).collection,
}

// counted reads events of which the durations and the number matter.
func counted(to pair) eventReader {
	return func(d *decoder, e *event) error { return d.observeInterval(to, e, 1) }
}

// transfer reads events of which the durations and the bytes matter.
func transfer(to pair) eventReader {
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

// pair is the profile of an event's values, and the profile that counts the events.
type pair struct{ values, events profileID }

// observePair adds an event's value, and how many events it represents.
func (d *decoder) observePair(to pair, e *event, value, number uint64) error {
	t, id, err := d.place(e, 0)
	if t == 0 || err != nil {
		return err
	}
	d.observe(to.values, id, t, value)
	d.observe(to.events, id, t, number)
	return nil
}

// observeInterval adds an event's duration and another number of it, at its end.
func (d *decoder) observeInterval(to pair, e *event, number uint64) error {
	nanos := d.chunk.nanos(e.get(slotDuration))
	t, id, err := d.place(e, nanos)
	if t == 0 || err != nil {
		return err
	}
	d.observe(to.values, id, t, nanos)
	d.observe(to.events, id, t, number)
	return nil
}

// observeOne adds an event's value to one profile.
func (d *decoder) observeOne(to profileID, e *event, value uint64) error {
	t, id, err := d.place(e, 0)
	if t == 0 || err != nil {
		return err
	}
	d.observe(to, id, t, value)
	return nil
}

// observeState adds what is so at the end of the recording: it has no time.
func (d *decoder) observeState(to profileID, e *event, value uint64) error {
	id, err := d.sampleOf(e, "")
	if err == nil {
		d.observe(to, id, d.chunk.end-1, value)
	}
	return err
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
	d.cover(t)
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
		d.stackScratch = d.stackScratch[:0]
		for _, of := range []slot{slotCause, slotName} {
			name := d.CleanString(d.symbol(e.fields[of], e.get(of), maxNameBytes))
			d.stackScratch = append(d.stackScratch,
				d.Frame(dictionary.Function{Name: d.Dict.Strings.Intern(cmp.Or(name, unknownMethod))}, 0, 0))
		}
		stack = d.Dict.Stacks.Intern(d.stackScratch)
		d.chunk.stacks[ref] = stack
	}
	id.Stack = stack
	d.observe(gcPauseTime, id, t, d.chunk.nanos(e.get(slotPauses)))
	d.observe(gcCount, id, t, 1)
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
	d.cover(t)
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
