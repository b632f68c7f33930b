// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// definition is what all samples of a profile have in common. every returns the sampling interval; it is nil for events
// that are not sampled.
type definition struct {
	name           string
	sample, period events.Type
	shape          compact.Shape
	every          func(*decoder) int64
}

// pair is the profile of an event's values, and another one of the event.
type pair struct{ values, events *definition }

var (
	points    = compact.Shape{Timestamps: true}
	intervals = compact.Shape{Timestamps: true, Values: true}
	states    = compact.Shape{Values: true}
)

var (
	cpuTime   = events.Nanoseconds("cpu")
	wallClock = events.Nanoseconds("wall")
	space     = events.Bytes("space")
	objects   = events.Count("objects")
)

// The profiles that a recording can have.
var (
	cpuSamples = &definition{profilekind.ProcessCPU, events.Count("samples"), cpuTime, points, func(d *decoder) int64 {
		return d.settings.period(d.options.Period)
	}}
	cpuTimes = &definition{profilekind.ProcessCPU, cpuTime, cpuTime, intervals, func(d *decoder) int64 {
		return cmp.Or(d.settings.datadogCPU, d.settings.throttle, 1)
	}}
	wallTime = &definition{profilekind.Wall, wallClock, wallClock, intervals, func(d *decoder) int64 {
		return d.settings.wallPeriod(d.options.Period)
	}}
	datadogWallTime = &definition{profilekind.Wall, wallClock, wallClock, intervals, (*decoder).datadogWallPeriod}
	// countedEvents are what async-profiler samples by, whose name the settings have.
	countedEvents = &definition{every: func(d *decoder) int64 {
		_, interval := d.settings.countedEvent()
		return interval
	}}

	tlab     = allocations("alloc_in_new_tlab", points, allocationPeriod)
	outside  = allocations("alloc_outside_tlab", points, allocationPeriod)
	sampled  = allocations("alloc_sample", points, allocationPeriod)
	weighted = allocations("alloc_sample", intervals, allocationPeriod)
	mallocs  = allocations("malloc", points, func(d *decoder) int64 { return max(d.settings.malloc, 1) })

	liveObjects = &definition{profilekind.Memory, events.Count("live"), objects, states, nil}
	liveBytes   = &definition{profilekind.Memory, events.Bytes("live_bytes"), objects, states, nil}

	monitors = waits(profilekind.Mutex)
	parks    = waits(profilekind.Block)
	calls    = pair{
		&definition{"method_trace", events.Nanoseconds("duration"), events.Count("calls"), intervals, nil},
		&definition{"method_trace", events.Count("calls"), events.Count("calls"), points, nil},
	}
	fileReads    = transfers("file_io", "file_io_read")
	fileWrites   = transfers("file_io", "file_io_write")
	socketReads  = transfers("socket_io", "socket_read")
	socketWrites = transfers("socket_io", "socket_write")
	collections  = pair{
		&definition{"gc", events.Nanoseconds("gc_pause_time"), events.Count("gc"), intervals, nil},
		&definition{"gc", events.Count("gc_collections"), events.Count("gc"), points, nil},
	}
)

func allocationPeriod(d *decoder) int64 { return max(d.settings.allocation, 1) }

// allocations are bytes and objects.
func allocations(name string, shape compact.Shape, every func(*decoder) int64) pair {
	return pair{
		&definition{profilekind.Memory, events.Bytes(name + "_bytes"), space, intervals, every},
		&definition{profilekind.Memory, events.Count(name + "_objects"), space, shape, every},
	}
}

// waits are how long and how often threads waited.
func waits(name string) pair {
	return pair{
		&definition{name, events.Nanoseconds("delay"), events.Count(name), intervals, nil},
		&definition{name, events.Count("contentions"), events.Count(name), points, nil},
	}
}

// transfers are the time and the bytes of input and output.
func transfers(profile, name string) pair {
	operations := events.Count("operations")
	return pair{
		&definition{profile, events.Nanoseconds(name + "_time"), operations, intervals, nil},
		&definition{profile, events.Bytes(name + "_size"), operations, intervals, nil},
	}
}

// profileKey is what distinguishes profiles: the period, and what async-profiler samples by.
type profileKey struct {
	of     *definition
	period int64
	event  string
}

// keyOf returns the key of a profile in the chunk.
func (d *decoder) keyOf(of *definition) profileKey {
	key := profileKey{of: of, period: 1}
	if of.every != nil {
		key.period = of.every(d)
	}
	if of == countedEvents {
		key.event, _ = d.settings.countedEvent()
	}
	return key
}

func (d *decoder) observe(of *definition, id compact.Identity, timestamp, value uint64) {
	key := d.keyOf(of)
	to, ok := d.profiles[key]
	if !ok {
		to = d.newProfile(key)
		d.profiles[key], d.seen[of] = to, true
	}
	d.Event(to, id, compact.Observation{Timestamp: timestamp, Value: int64(min(value, math.MaxInt64))})
}

func (d *decoder) newProfile(key profileKey) compact.ProfileIndex {
	of := *key.of
	if key.of == countedEvents {
		counted := events.Count(d.CleanString(key.event))
		of = definition{counted.Name, counted, counted, points, nil}
		if key.period > 1 {
			of.shape = intervals
		}
	}
	scope := pcommon.NewInstrumentationScope()
	scope.Attributes().PutStr(profilekind.NameAttribute, of.name)
	return d.NewProfile(d.Scope(d.resource, scope, ""),
		events.Profile{Sample: of.sample, Period: of.period, Every: key.period, Shape: of.shape})
}
