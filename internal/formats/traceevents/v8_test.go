// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package traceevents

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var (
	ended   = time.Date(2026, 11, 21, 21, 43, 54, 0, time.UTC)
	atEnded = Options{Options: events.Options{Anchor: events.Anchor{EndNanos: uint64(ended.UnixNano()), Guess: "arrival"}}}
)

func decodeText(text string) (pprofile.Profiles, events.Stats, error) {
	return Decode(strings.NewReader(text), atEnded)
}

const (
	began        = `"metadata":{"source":"DevTools","startTime":"2026-01-02T03:04:05.000Z","more":{"startTime":7}}`
	profileEvent = `{"name":"Profile","ph":"P","id":"0x2","pid":7,"tid":1,"ts":5000,"args":{"data":{"startTime":5000}}}`
	threadEvent  = `{"name":"thread_name","ph":"M","pid":7,"tid":1,"ts":0,"args":{"name":"CrRendererMain"}}`
)

func chunkEvent(ts int, samples, deltas, nodes string) string {
	return fmt.Sprintf(
		`{"name":"ProfileChunk","ph":"P","id":"0x2","pid":7,"tid":2,"ts":%d,"args":{"data":{"cpuProfile":{"nodes":[%s],"samples":[%s]},"timeDeltas":[%s]}}}`,
		ts, nodes, samples, deltas)
}

// Trace events are in no order, and their metadata, before or after them, place them in time.
func TestTraceEvents(t *testing.T) {
	const f, g = `{"id":1,"callFrame":{"functionName":"f"}}`, `{"id":2,"parent":1,"callFrame":{"functionName":"g"}}`
	events1 := strings.Join([]string{chunkEvent(6000, "2", "200", g), threadEvent, profileEvent,
		chunkEvent(5500, "1,1", "100,100", f)}, ",")
	want := `
      sample @1767323045000100000 @1767323045000200000 {process.pid=7, thread.id=1, thread.name="CrRendererMain"}
        f
      sample @1767323045000400000 {process.pid=7, thread.id=1, thread.name="CrRendererMain"}
        g
        f
`
	for name, text := range map[string]string{
		"metadata first": `{` + began + `,"traceEvents":[` + events1 + `]}`,
		"metadata last":  `{"traceEvents":[` + events1 + `],` + began + `}`,
	} {
		pd, stats, err := decodeText(text)
		require.NoError(t, err)
		assert.False(t, stats.GuessedClock, name)
		assert.Contains(t, profiletest.Render(pd), want[1:], name)
	}
	// Other events can be earlier than the profile.
	earlier := `{"name":"X","ph":"X","ts":4000},`
	pd, _, err := decodeText(`{` + began + `,"traceEvents":[` + earlier + events1 + `]}`)
	require.NoError(t, err)
	assert.Contains(t, profiletest.Render(pd), "@1767323045001100000")
	// Without the metadata the profile ends at the anchor.
	pd, stats, err := decodeText(`[` + events1 + `]`)
	require.NoError(t, err)
	assert.True(t, stats.GuessedClock)
	assert.Contains(t, profiletest.Render(pd), fmt.Sprint("@", ended.UnixNano()))
}

// A profile's nodes and samples are in several events, which refer to each other by the profile's id.
func TestChrome(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Chrome": {`{"metadata":{"x":[1]},"traceEvents":[
			{"name":"Other","ph":"X","args":"text"},
			{"name":"Profile","ph":"P","id":"0x1","pid":7,"tid":8,"args":{"data":{"startTime":5000}}},
			{"name":"ProfileChunk","ph":"P","id":"0x1","pid":7,"tid":9,"args":{"data":{"cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f","url":"a.js","lineNumber":1}}],"samples":[2]},"timeDeltas":[10]}}},
			{"name":"ProfileChunk","ph":"P","id":"0x1","pid":7,"tid":9,"args":{"data":{"cpuProfile":{"nodes":[{"id":3,"parent":2,"callFrame":{"functionName":"g","url":"a.js","lineNumber":2}}],"samples":[3,2]},"timeDeltas":[10,20]}}}]}`, `
      sample @1795297433999970000 @1795297434000000000 {process.pid=7, thread.id=8}
        f from line 2 a.js:2
      sample @1795297433999980000 {process.pid=7, thread.id=8}
        g from line 3 a.js:3
        f from line 2 a.js:2
`},
		"an array of events": {`[{"name":"Profile","id":1,"pid":7,"tid":8,"args":{"data":{"startTime":5000}}},
			{"name":"ProfileChunk","id":1,"pid":7,"args":{"data":{"cpuProfile":{"nodes":[{"id":2,"callFrame":{"functionName":"f"}}],"samples":[2]},"timeDeltas":[10]}}}]`, "sample @1795297434000000000 {process.pid=7, thread.id=8}\n        f\n"},
	} {
		t.Run(name, func(t *testing.T) {
			pd, _, err := decodeText(tc.text)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Contains(t, profiletest.Render(pd), strings.TrimPrefix(tc.want, "\n"))
		})
	}
	// A part that is not what it should be is counted.
	_, stats, err := decodeText(`[` + profileEvent +
		`,{"name":"ProfileChunk","id":"0x2","pid":7},{"name":"ProfileChunk","id":"0x2","pid":7,"args":{"data":7}}]`)
	require.NoError(t, err)
	assert.Equal(t, 2, stats.Dropped)
}

const oldNodes = `"nodes":[
 {"id":1,"callFrame":{"functionName":"(root)"},"children":[2,4]},{"id":2,"callFrame":{"functionName":"(idle)"}},
 {"id":4,"callFrame":{"functionName":"","url":"a.js"},"children":[5]},{"id":5,"callFrame":{"functionName":"f"}}]`

// Chrome up to 66 has a profile in one event, however long it is.
func TestOldChrome(t *testing.T) {
	const text = `[{"pid":7,"tid":8,"ts":9,"ph":"I","name":"CpuProfile","args":{"data":{"cpuProfile":{` +
		oldNodes +
		`,"startTime":5,"endTime":4000,"samples":[4,4,5,2],"timeDeltas":[0,1000,1000,1000]}}}}]`
	pd, stats, err := decodeText(text)
	require.NoError(t, err)
	assert.Equal(t, events.Stats{Events: 3, Filtered: 1, GuessedClock: true}, stats)
	assert.Contains(t, profiletest.Render(pd), "{process.pid=7, thread.id=8}")

	long := strings.Replace(text, "a.js", strings.Repeat("x", 5<<20), 1)
	profiletest.RequireReserved(t, profiletest.Bound{}, 4<<20, func(reserve func(int) error) {
		options := atEnded
		options.Meter = &size.Meter{Reserve: reserve}
		_, stats, err := Decode(strings.NewReader(long), options)
		require.NoError(t, err)
		assert.Equal(t, events.Stats{Events: 3, Filtered: 1, Truncated: 1, GuessedClock: true}, stats)
	})
}

// Trace events may lack their end, and an id: then the thread is it.
func TestUnfinishedTraceEvents(t *testing.T) {
	event := func(thread int, function string) string {
		return fmt.Sprintf(`{"name":"Profile","pid":7,"tid":%[1]d,"args":{"data":{"startTime":5}}},{"name":"ProfileChunk","pid":7,"tid":%[1]d,"args":
			{"data":{"cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"%s"}}],"samples":[1]},"timeDeltas":[10]}}}`, thread, function)
	}
	for _, end := range []string{"]", "", ",", `,{"name":"Pro`} {
		pd, stats, err := decodeText("[" + event(1, "f") + "," + event(2, "g") + end)
		require.NoError(t, err, end)
		assert.Equal(t, 2, stats.Events, end)
		text := profiletest.Render(pd)
		assert.Contains(t, text, "thread.id=1}\n        f\n", end)
		assert.Contains(t, text, "thread.id=2}\n        g\n", end)
	}
}

// A trace whose buffer went round begins within profiles. Samples of nodes that it still has keep their times; a
// profile of which it has no node is left out, and makes no profile longer.
func TestTraceEventsWithoutTheirBeginning(t *testing.T) {
	node := `{"id":9,"callFrame":{"functionName":"late"}}`
	for name, tc := range map[string]struct {
		events string
		want   events.Stats
		begin  int64 // microseconds before the end
	}{
		"no nodes": {chunkEvent(900, "3,3", "10,10", "") + "," + strings.ReplaceAll(profileEvent+","+
			chunkEvent(5040, "9,9", "10,20", node), "0x2", "0x3"), events.Stats{Events: 2, Dropped: 2, GuessedClock: true}, 30},
		"no start": {chunkEvent(5040, "3,9", "10,20", node) + "," + chunkEvent(5080, "9", "40", ""),
			events.Stats{Events: 2, Dropped: 1, GuessedClock: true}, 70},
	} {
		pd, stats, err := decodeText("[" + tc.events + "]")
		require.NoError(t, err, name)
		require.NoError(t, profiletest.Check(pd), name)
		assert.Equal(t, tc.want, stats, name)
		require.Equal(t, 1, pd.ProfileCount(), name)
		p := profiletest.ProfileAt(pd, 0)
		assert.Equal(t, ended.UnixNano()-1000*tc.begin, int64(p.Time()), name)
		assert.Equal(t, 1000*tc.begin+1, int64(p.DurationNano()), name)
	}
}

// Of a trace of DevTools only the CPU profiles are kept, and the events around them are not.
func TestTraceAroundAProfile(t *testing.T) {
	if profiletest.IsRace {
		t.Skip("it is one goroutine")
	}
	text := strings.Builder{}
	text.WriteString(`{"traceEvents":[` + profileEvent)
	for i := range 100_000 {
		fmt.Fprintf(&text, `,{"cat":"devtools.timeline","name":"RunTask","ph":"X","pid":7,"tid":1,"ts":%d,"dur":2,"args":{}}`, i+1)
	}
	text.WriteString("," + chunkEvent(5500, "1,1", "100,100", `{"id":1,"callFrame":{"functionName":"f"}}`) + "]}")
	reserved := 0
	profiletest.RequireReserved(t, profiletest.Bound{HeapBytes: 4 << 20}, 4<<20, func(reserve func(int) error) {
		reserved = 0
		options := atEnded
		options.Meter = &size.Meter{Reserve: func(n int) error {
			reserved += n
			return reserve(n)
		}}
		pd, stats, err := Decode(strings.NewReader(text.String()), options)
		require.NoError(t, err)
		assert.Equal(t, 1, pd.ProfileCount())
		assert.Equal(t, events.Stats{Events: 2, GuessedClock: true}, stats)
	})
	assert.Less(t, reserved, text.Len()/10)
}
