// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The types of events that hostile traces are made of.
const (
	evBatch, evStacks, evStack, evStrings, evString, evCPUSamples, evCPUSample, evFrequency = 1, 2, 3, 4, 5, 6, 7, 8
	evProcStatus, evGoCreate, evGoStart, evGoStatus, evHeapAlloc, evRegionBegin             = 13, 14, 16, 25, 37, 42
)

const header22 = "go 1.22 trace\x00\x00\x00"

// ev encodes an event.
func ev(kind byte, arguments ...uint64) []byte {
	b := []byte{kind}
	for _, a := range arguments {
		b = binary.AppendUvarint(b, a)
	}
	return b
}

// batches encodes events as batches of a thread.
func batches(generation, thread, time uint64, prefix []byte, list ...[]byte) (out []byte) {
	const most = 60 << 10
	body := append([]byte(nil), prefix...)
	flush := func() {
		out = append(out, ev(evBatch, generation, thread, time, uint64(len(body)))...)
		out = append(out, body...)
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

const noThread = math.MaxUint64

func frequency(generation uint64) []byte {
	return batches(generation, noThread, 1, nil, ev(evFrequency, 1e9))
}

// generation encodes one with a goroutine that runs.
func generation(header string, number uint64, list ...[]byte) []byte {
	list = append([][]byte{ev(evProcStatus, 1, 0, 1), ev(evGoStatus, 1, 1, 7, 2)}, list...)
	out := append([]byte(header), frequency(number)...)
	return append(out, batches(number, 7, 1000*number, nil, list...)...)
}

func repeat(n int, event func(i uint64) []byte) (all [][]byte) {
	for i := range n {
		all = append(all, event(uint64(i)))
	}
	return all
}

func hostileTraces(n int) map[string][]byte {
	threads := func(n int) (out []byte) {
		for i := range n {
			out = append(out, batches(1, uint64(100+i), 500, nil, ev(evGoStart, 1, 1, 1000))...)
		}
		return out
	}
	var generations []byte
	for i := range uint64(n / 100) {
		generations = append(generations, generation("", i+2)...)
	}
	goroutines := repeat(n, func(i uint64) []byte { return ev(evGoCreate, 1, i+2, 0, 0) })
	legacyHeader := "go 1.19 trace\x00\x00\x00"
	var legacyProcs []byte
	for i := range uint64(n) {
		legacyProcs = append(legacyProcs, ev(1|1<<6, i, 1)...)
	}
	stacks := repeat(n/100, func(i uint64) []byte {
		s := ev(evStack, i+1, 100)
		for f := range uint64(100) {
			s = append(s, ev(byte(i*100+f)&0x7f, 1, 1, 1)...)
		}
		return s
	})
	twoNames := batches(1, noThread, 1, []byte{evStrings}, append(ev(evString, 1, 1), 'x'), append(ev(evString, 2, 1), 'y'))
	return map[string][]byte{
		"threads that wait":      append(generation(header22, 1, repeat(n, func(i uint64) []byte { return ev(evHeapAlloc, 1, i&0x7f) })...), threads(DefaultOptions().MaxThreads-2)...),
		"threads":                append(generation(header22, 1), threads(n)...),
		"goroutines":             generation(header22, 1, goroutines...),
		"generations":            append(generation(header22, 1, goroutines[:n/10]...), generations...),
		"strings":                append(generation(header22, 1), batches(1, noThread, 1, []byte{evStrings}, repeat(n, func(i uint64) []byte { return ev(evString, i+1, 0) })...)...),
		"stacks":                 append(append(generation(header22, 1), batches(1, noThread, 1, []byte{evStrings}, ev(evString, 1, 0))...), batches(1, noThread, 1, []byte{evStacks}, stacks...)...),
		"CPU samples":            append(generation(header22, 1), batches(1, noThread, 1, []byte{evCPUSamples}, repeat(n, func(i uint64) []byte { return ev(evCPUSample, i, i, i, i, 0) })...)...),
		"regions":                append(generation(header22, 1, repeat(n, func(uint64) []byte { return ev(evRegionBegin, 1, 0, 1, 0) })...), batches(1, noThread, 1, []byte{evStrings}, append(ev(evString, 1, 900), strings.Repeat("x", 900)...))...),
		"pieces":                 append(generation(header22, 1, repeat(n, func(i uint64) []byte { return ev(evRegionBegin, 1, 0, i%2+1, 0) })...), twoNames...),
		"legacy processors":      append([]byte(legacyHeader), legacyProcs...),
		"legacy events":          append([]byte(legacyHeader), append(append(ev(1|1<<6, 0, 1), ev(2, 1e9)...), []byte(strings.Repeat("\x61\x01\x02", n))...)...),
		"batches without events": append([]byte(header22), []byte(strings.Repeat("\x01\x01\x01\x01\x00", n))...),
		"a long batch":           append([]byte(header22), ev(evBatch, 1, 1, 1, math.MaxInt64)...),
		"a long text":            append([]byte(legacyHeader), ev(37, 1, math.MaxInt64)...),
	}
}

func requireBounded(t *testing.T, data []byte) {
	t.Helper()
	requireBoundedBy(t, data, everything())
}

func requireBoundedBy(t *testing.T, data []byte, options Options) {
	t.Helper()
	var got pprofile.Profiles
	var err error
	cost := profiletest.MeasureReserved(t, 4<<20, func(reserve func(int) error) {
		options.Meter = &size.Meter{Reserve: reserve}
		got, _, err = Decode(data, options)
	})
	// Threads that wait cost the reader a comparison each for each event: at most max_threads of them.
	profiletest.RequireBounded(t, cost, len(data)*4, 96<<20, 30)
	if err == nil {
		require.NoError(t, profiletest.Check(got))
	}
}

func TestDecodeIsBounded(t *testing.T) {
	for name, data := range hostileTraces(60_000) {
		t.Run(name, func(t *testing.T) {
			requireBounded(t, data)
			_, stats, err := Decode(data, everything())
			t.Log(len(data), stats, err)
			patient := everything()
			patient.MinDuration = time.Hour // pieces wait until the end
			requireBoundedBy(t, data, patient)
		})
	}
}

func TestLimits(t *testing.T) {
	hostile := hostileTraces(20_000)
	for _, name := range []string{"threads", "legacy processors"} {
		_, _, err := Decode(hostile[name], DefaultOptions())
		require.ErrorIs(t, err, events.ErrTooLarge, name)
		require.ErrorIs(t, err, ErrThreads, name)
	}
	o := DefaultOptions()
	o.MaxLegacyBytes = 1000
	_, _, err := Decode(testTrace(t, "go1.21"), o)
	require.ErrorIs(t, err, events.ErrTooLarge)
	require.ErrorIs(t, err, ErrLegacy)
}

func FuzzDecode(f *testing.F) {
	f.Add(testTrace(f, "go1.22"))
	f.Add(testTrace(f, "go1.25"))
	for name, data := range hostileTraces(100) {
		if !strings.HasPrefix(name, "threads") {
			f.Add(data)
		}
	}
	f.Fuzz(requireBounded)
}
