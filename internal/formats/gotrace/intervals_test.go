// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"bytes"
	"context"
	"math"
	runtimetrace "runtime/trace"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// running returns the on_cpu observations of a goroutine, and their sum.
func running(all []interval, goroutine int64) (list []interval, sum int64) {
	for _, i := range all {
		if i.profile == "on_cpu" && i.goroutine == goroutine {
			list, sum = append(list, i), sum+i.length
		}
	}
	return list, sum
}

// A goroutine that logs very often is busy for as long as one that does not.
func TestLogsDoNotSplit(t *testing.T) {
	const logs = 3000
	var data bytes.Buffer
	require.NoError(t, runtimetrace.Start(&data))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, task := runtimetrace.NewTask(context.Background(), "request")
		defer task.End()
		defer runtimetrace.StartRegion(ctx, "busy").End()
		for range logs {
			runtimetrace.Log(ctx, "step", "next")
			for end := time.Now().Add(30 * time.Microsecond); time.Now().Before(end); {
			}
		}
	}()
	<-done
	runtimetrace.Stop()

	pd, _ := decode(t, data.Bytes(), everything())
	exact := intervals(pd)
	busy := int64(0)
	for _, i := range exact {
		if i.region == "busy" {
			busy = i.goroutine
		}
	}
	require.NotZero(t, busy)
	all, total := running(exact, busy)
	require.Less(t, len(all), logs/3, "a log is no reason for another interval")
	require.GreaterOrEqual(t, total, int64(logs*10*time.Microsecond))

	pd, stats := decode(t, data.Bytes(), DefaultOptions())
	_, long := running(intervals(pd), busy)
	assert.GreaterOrEqual(t, long, total-int64(stats.TooShort)*int64(DefaultOptions().MinDuration),
		"what is missing is counted")
}

// An interval is split where the task, the region or the span changes. Its length as a whole decides whether its pieces
// are left out.
func TestPiecesAddUp(t *testing.T) {
	const (
		goStop, goStart, taskBegin, taskEnd, regionBegin, regionEnd, userLog = 19, 16, 40, 41, 42, 43, 44
		strings, text                                                        = 4, 5
		step                                                                 = 30_000 // nanoseconds
	)
	ev := worst.TraceEvent
	names := worst.TraceBatches(1, math.MaxUint64, 1, []byte{strings},
		append(ev(text, 1, 7), "request"...), append(ev(text, 2, 7), "compute"...), append(ev(text, 3, 4), "step"...),
		append(ev(text, 4, 11), "traceparent"...),
		append(ev(text, 5, 55), "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01"...))
	log := ev(userLog, step, 0, 3, 3, 0)
	list := [][]byte{
		log, log, // 60 µs without a context
		ev(taskBegin, step, 5, 0, 1, 0), log, // 30 µs more, then 30 in the task
		ev(regionBegin, step, 5, 2, 0), log, log, // 30 more, then 60 in the region
		ev(userLog, step, 5, 4, 5, 0), log, // 30 more, then 30 with a span
		ev(userLog, step, 5, 4, 5, 0), // 30 more: the same span again
		ev(regionEnd, step, 5, 2, 0),  // 30 more
		ev(taskEnd, step, 5, 0), log,  // 30 in the span's task, 30 without a task
		ev(goStop, step, 3, 0),             // 30 more
		ev(goStart, 10*step, 1, 1),         // runnable for 300 µs
		log, log, ev(goStop, step/2, 3, 0), // 75 µs: too short
		ev(goStart, step, 1, 2), // 30 µs: too short
		log,                     // 30 µs, and the trace ends
	}
	data := append(worst.TraceGeneration(worst.TraceHeader, 1, list...), names...)
	want := map[string][]int64{"": {90_000, 60_000}, "task": {60_000}, "region": {90_000}, "span": {90_000, 30_000}}

	lengths := func(o Options) (pieces map[string][]int64, n int, short int) {
		pd, stats := decode(t, data, o)
		pieces = map[string][]int64{}
		for _, i := range intervals(pd) {
			if i.profile != "on_cpu" {
				continue
			}
			context := ""
			switch {
			case i.link != [16]byte{}:
				context = "span"
			case i.region != "":
				context = "region"
			case i.isTask:
				context = "task"
			}
			pieces[context] = append(pieces[context], i.length/5000*5000) // events that begin a trace take a nanosecond each
		}
		return pieces, stats.Events, stats.TooShort
	}
	got, events, short := lengths(DefaultOptions())
	assert.Equal(t, want, got)
	assert.Equal(t, 3, short)
	all, allEvents, _ := lengths(everything())
	want[""] = append(want[""], 75_000, 30_000)
	assert.Equal(t, want, all)
	assert.Equal(t, allEvents, events+short)
}

// What the options leave out is counted: observations and what is counted add up to all there are.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	for _, name := range testTraces {
		data := testTrace(t, name)
		_, all := decode(t, data, everything())
		assert.Zero(t, all.TooShort+all.Filtered, name)
		for _, change := range []func(*Options){
			func(*Options) {},
			func(o *Options) { o.MinDuration = 0 },
			func(o *Options) { o.MinDuration = time.Hour },
			func(o *Options) { o.Everything = true },
		} {
			o := DefaultOptions()
			change(&o)
			_, stats := decode(t, data, o)
			assert.Equal(t, all.Events, stats.Events+stats.TooShort+stats.Filtered, "%s: %+v", name, o)
			assert.Positive(t, stats.TooShort+stats.Filtered, name)
		}
	}
}
