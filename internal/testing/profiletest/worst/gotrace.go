// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"encoding/binary"
	"math"
	"strings"
)

// The types of events that traces are made of.
const (
	evBatch, evStacks, evStack, evStrings, evString, evCPUSamples, evCPUSample, evFrequency = 1, 2, 3, 4, 5, 6, 7, 8
	evProcStatus, evGoCreate, evGoStart, evGoStop, evGoStatus, evHeapAlloc                  = 13, 14, 16, 19, 25, 37
	evTaskBegin, evRegionBegin, evRegionEnd, evLog                                          = 40, 42, 43, 44
)

const (
	// TraceHeader begins a Go execution trace.
	TraceHeader  = "go 1.22 trace\x00\x00\x00"
	legacyHeader = "go 1.19 trace\x00\x00\x00"
	noThread     = math.MaxUint64
	// maxThreads is the number of threads that the receiver accepts by default.
	maxThreads = 250
)

// TraceEvent encodes an event.
func TraceEvent(kind byte, arguments ...uint64) []byte {
	b := []byte{kind}
	for _, a := range arguments {
		b = binary.AppendUvarint(b, a)
	}
	return b
}

// TraceBatches encodes events as batches of a thread, each with a prefix.
func TraceBatches(generation, thread, time uint64, prefix []byte, list ...[]byte) (out []byte) {
	const most = 60 << 10
	body := append([]byte(nil), prefix...)
	flush := func() {
		out = append(append(out, TraceEvent(evBatch, generation, thread, time, uint64(len(body)))...), body...)
		body = append(body[:0], prefix...)
	}
	for _, e := range list {
		if len(body)+len(e) > most {
			flush()
		}
		body = append(body, e...)
	}
	flush()
	return out
}

// TraceGeneration encodes a generation with a goroutine that runs.
func TraceGeneration(header string, number uint64, list ...[]byte) []byte {
	list = append([][]byte{TraceEvent(evProcStatus, 1, 0, 1), TraceEvent(evGoStatus, 1, 1, 7, 2)}, list...)
	out := append([]byte(header), TraceBatches(number, noThread, 1, nil, TraceEvent(evFrequency, 1e9))...)
	return append(out, TraceBatches(number, 7, 1000*number, nil, list...)...)
}

// traceOf returns a generation of the events that fit, and a tail.
func traceOf(event func(i uint64) []byte, tail ...[]byte) func(int) []byte {
	return func(size int) []byte {
		return append(TraceGeneration(TraceHeader, 1, eventsOf(size, event)...), join(tail...)...)
	}
}

func eventsOf(size int, event func(i uint64) []byte) (list [][]byte) {
	for n, i := 0, uint64(0); n < size; i++ {
		list = append(list, event(i))
		n += len(list[i])
	}
	return list
}

// tableOf returns a generation with one goroutine, and batches of a table.
func tableOf(prefix byte, event func(i uint64) []byte, head ...[]byte) func(int) []byte {
	return func(size int) []byte {
		return append(append(TraceGeneration(TraceHeader, 1), join(head...)...),
			TraceBatches(1, noThread, 1, []byte{prefix}, eventsOf(size, event)...)...)
	}
}

func threads(n int) (out []byte) {
	for i := range n {
		out = append(out, TraceBatches(1, uint64(100+i), 500, nil, TraceEvent(evGoStart, 1, 1, 1000))...)
	}
	return out
}

// aString is a batch with the string 1.
func aString(length int) []byte {
	return TraceBatches(1, noThread, 1, []byte{evStrings},
		append(TraceEvent(evString, 1, uint64(length)), strings.Repeat("x", length)...))
}

func created(i uint64) []byte { return TraceEvent(evGoCreate, 1, i+2, 0, 0) }

// GoTrace are Go execution traces.
var GoTrace = Inputs{
	"threads that wait": traceOf(func(i uint64) []byte { return TraceEvent(evHeapAlloc, 1, i&0x7f) },
		threads(maxThreads-2)),
	"threads":    func(size int) []byte { return append(TraceGeneration(TraceHeader, 1), threads(size/13)...) },
	"goroutines": traceOf(created),
	"generations": func(size int) []byte {
		trace := TraceGeneration(TraceHeader, 1, eventsOf(size/10, created)...)
		for i := uint64(2); len(trace) < size; i++ {
			trace = append(trace, TraceGeneration("", i)...)
		}
		return trace
	},
	"strings": tableOf(evStrings, func(i uint64) []byte { return TraceEvent(evString, i+1, 0) }),
	"stacks": tableOf(evStacks, func(i uint64) []byte {
		s := TraceEvent(evStack, i+1, 100)
		for f := range uint64(100) {
			s = append(s, TraceEvent(byte(i*100+f)&0x7f, 1, 1, 1)...)
		}
		return s
	}, TraceBatches(1, noThread, 1, []byte{evStrings}, TraceEvent(evString, 1, 0))),
	"CPU samples":      tableOf(evCPUSamples, func(i uint64) []byte { return TraceEvent(evCPUSample, i, i, i, i, 0) }),
	"same CPU samples": tableOf(evCPUSamples, func(uint64) []byte { return TraceEvent(evCPUSample, 1, 7, 0, 1, 0) }),
	"regions":          traceOf(func(uint64) []byte { return TraceEvent(evRegionBegin, 1, 0, 1, 0) }, aString(900)),
	"pieces": traceOf(func(i uint64) []byte { return TraceEvent(evRegionBegin, 1, 0, i%2+1, 0) },
		TraceBatches(1, noThread, 1, []byte{evStrings}, append(TraceEvent(evString, 1, 1), 'x'),
			append(TraceEvent(evString, 2, 1), 'y'))),
	"region ends": traceOf(func(uint64) []byte { return TraceEvent(evRegionEnd, 1, 0, 1, 0) }, aString(900)),
	"tasks":       traceOf(func(i uint64) []byte { return TraceEvent(evTaskBegin, 1, i+1, 0, 1, 0) }, aString(900)),
	"logs":        traceOf(func(uint64) []byte { return TraceEvent(evLog, 1, 0, 1, 1, 0) }, aString(900)),
	// It yields and runs again: two intervals each time.
	"a goroutine that yields": traceOf(func(i uint64) []byte {
		return join(TraceEvent(evGoStop, 200_000, 1, 0), TraceEvent(evGoStart, 200_000, 1, i+1))
	}, aString(1)),
	"legacy processors": func(size int) []byte {
		return fill(size, []byte(legacyHeader), func(b []byte, i int) []byte {
			return append(b, TraceEvent(1|1<<6, uint64(i), 1)...)
		})
	},
	"legacy events": same(legacyHeader+string(TraceEvent(1|1<<6, 0, 1))+string(TraceEvent(2, 1e9)), "\x61\x01\x02", ""),

	"batches without events": same(TraceHeader, "\x01\x01\x01\x01\x00", ""),
	"a long batch": func(int) []byte {
		return append([]byte(TraceHeader), TraceEvent(evBatch, 1, 1, 1, math.MaxInt64)...)
	},
	"a long text": func(int) []byte { return append([]byte(legacyHeader), TraceEvent(37, 1, math.MaxInt64)...) },
}
