// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"math"
)

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
