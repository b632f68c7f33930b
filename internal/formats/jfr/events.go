// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
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
	"jdk.JavaMonitorEnter": monitorEnter,
	"profiler.NativeLock":  monitorEnter,
	"jdk.ThreadPark": func(d *decoder, e *event) error {
		return d.observeInterval(pair{parkDelay, parkCount}, e)
	},
	"jdk.MethodTrace": func(d *decoder, e *event) error {
		return d.observeInterval(pair{traceTime, traceCalls}, e)
	},
}

func monitorEnter(d *decoder, e *event) error {
	return d.observeInterval(pair{monitorDelay, monitorCount}, e)
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

// observeInterval adds an event's duration and the event itself, at its end.
func (d *decoder) observeInterval(to pair, e *event) error {
	nanos := d.chunk.nanos(e.get(slotDuration))
	t, id, err := d.place(e, nanos)
	if t == 0 || err != nil {
		return err
	}
	d.observe(to.values, id, t, nanos)
	d.observe(to.events, id, t, 1)
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
		d.observe(to, id, 0, value)
	}
	return err
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

// executionSample adds a sample of CPU or wall clock time, or of what async-profiler samples by: it writes all of them as this event. If it
// samples by wall clock, a sample of a running thread counts as CPU time too.
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

// wallClockSample adds samples of wall clock time. One event can represent several samples of a sleeping thread: it begins with
// the first.
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
