// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package speedscope

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

const (
	frames = `"shared":{"frames":[{"name":"main","file":"shop.py","line":3},{"name":"checkout","file":"shop.py","line":7,"col":2},{"name":"price"}]}`
	ended  = 1795297434e9
)

var guess = events.Anchor{EndNanos: ended, Guess: "arrival"}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		options Options
		want    string
		stats   events.Stats
	}{
		// As py-spy writes it: the profiles come first.
		"sampled": {text: `{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{"type":"sampled","name":"Thread 1","unit":"seconds",
			"startValue":0,"endValue":0.03,"samples":[[0,1],[0,1,2],[0,1],[]],"weights":[0.01,0.01,0.01,0.005]}],` + frames + `,"exporter":"py-spy@0.3.14"}`,
			stats: events.Stats{Events: 4, GuessedClock: true}, want: `
    profile wall in nanoseconds
      time 1795297433970000000 ns
      duration 30000001 ns
      period 0 wall in nanoseconds
      attributes {profile.clock.guess="arrival"}
      sample 20000000
        checkout shop.py:7:2
        main shop.py:3
      sample 10000000
        price
        checkout shop.py:7:2
        main shop.py:3
      sample 5000000
`},
		// As this project writes files: values of one unit, or of one type of two profiles, are not summed.
		"several types": {text: `{"exporter":"otelcol-profiles",` + frames + `,"profiles":[
			{"type":"sampled","name":"shop memory alloc_space/bytes","unit":"bytes","samples":[[0]],"weights":[700]},
			{"type":"sampled","name":"shop memory inuse_objects/count","unit":"none","samples":[[0]],"weights":[2]},
			{"type":"sampled","name":"my shop mutex delay","unit":"nanoseconds","samples":[[0]],"weights":[5]},
			{"type":"sampled","name":"my shop block delay","unit":"nanoseconds","samples":[[0]],"weights":[9]}]}`,
			stats: events.Stats{Events: 4, GuessedClock: true}, want: `
  scope "" "" {pprof.scope.profile_name="memory"}
    profile alloc_space in bytes
      time 1795297434000000000 ns
      duration 1 ns
      period 0 alloc_space in bytes
      attributes {profile.clock.guess="arrival"}
      sample 700 {thread.name="shop"}
        main shop.py:3
    profile inuse_objects in count
      time 1795297434000000000 ns
      duration 1 ns
      period 0 inuse_objects in count
      attributes {profile.clock.guess="arrival"}
      sample 2 {thread.name="shop"}
        main shop.py:3
  scope "" "" {pprof.scope.profile_name="mutex"}
    profile delay in nanoseconds
      time 1795297434000000000 ns
      duration 1 ns
      period 0 delay in nanoseconds
      attributes {profile.clock.guess="arrival"}
      sample 5 {thread.name="my shop"}
        main shop.py:3
  scope "" "" {pprof.scope.profile_name="block"}
    profile delay in nanoseconds
      time 1795297434000000000 ns
      duration 1 ns
      period 0 delay in nanoseconds
      attributes {profile.clock.guess="arrival"}
      sample 9 {thread.name="my shop"}
        main shop.py:3
`},
		// Each interval ends at its timestamp, and the last event at the anchor.
		"evented": {text: `{` + frames + `,"profiles":[{"type":"evented","name":"a","unit":"milliseconds","startValue":100,"endValue":114,"events":[
			{"type":"O","frame":0,"at":100},{"type":"O","frame":1,"at":102},{"type":"C","frame":1,"at":106},{"type":"O","frame":1,"at":106},
			{"type":"C","frame":1,"at":107.5},{"type":"C","frame":0,"at":114}]}]}`,
			stats: events.Stats{Events: 4, GuessedClock: true}, want: `
      time 1795297433986000000 ns
      duration 14000001 ns
      period 0 wall in nanoseconds
      attributes {profile.clock.guess="arrival"}
      sample 2000000@1795297433988000000 6500000@1795297434000000000
        main shop.py:3
      sample 4000000@1795297433992000000 1500000@1795297433993500000
        checkout shop.py:7:2
        main shop.py:3
`},
		"Unix time, and a frame that does not close": {text: `{` + frames + `,"profiles":[{"unit":"microseconds","startValue":1714979289000000,
			"endValue":1714979289000007,"events":[{"type":"O","frame":2,"at":1714979289000002}]}]}`,
			stats: events.Stats{Events: 1}, want: `
      time 1714979289000002000 ns
      duration 5001 ns
      period 0 wall in nanoseconds
      sample 5000@1714979289000007000
        price
`},
		"sampled in Unix time": {text: `{` + frames + `,"profiles":[{"unit":"seconds","startValue":1714979289,
			"endValue":1714979299,"samples":[[0]],"weights":[10]}]}`, stats: events.Stats{Events: 1}, want: `
      time 1714979289000000000 ns
      duration 10000000001 ns
      period 0 wall in nanoseconds
      sample 10000000000
`},
		"fractions": {text: `{` + frames + `,"profiles":[{"unit":"none","samples":[[0],[2],[0],[2],[0],[2]],
			"weights":[0.4,0.5,0.4,0.5,0.4,3.5]},{"unit":"none","events":[{"type":"O","frame":1,"at":-1},
			{"type":"O","frame":0,"at":0.4},{"type":"C","frame":0,"at":0.8},{"type":"C","frame":1,"at":1.2}]}]}`,
			stats: events.Stats{Events: 9, GuessedClock: true}, want: `
      sample 5
        price
      sample 1
        main shop.py:3
      sample 2
        checkout shop.py:7:2
`},
		"fractions of two types": {text: `{` + frames + `,"profiles":[{"unit":"none","samples":[[0]],"weights":[3.4]},
			{"unit":"bytes","samples":[[0]],"weights":[7.4]}]}`, stats: events.Stats{Events: 2, GuessedClock: true}, want: "      sample 7\n"},
		"two threads": {
			text:  `{"profiles":[{"name":"worker 1","unit":"none","samples":[[0]],"weights":[3]},{"name":"worker 2","unit":"none","samples":[[0]],"weights":[4]}],` + frames + `}`,
			stats: events.Stats{Events: 2, GuessedClock: true}, want: `
      sample 3 {thread.name="worker 1"}
        main shop.py:3
      sample 4 {thread.name="worker 2"}
        main shop.py:3
`},
		"bytes": {text: `{"profiles":[{"unit":"bytes","samples":[[0]],"weights":[4096]}],` + frames + `}`,
			stats: events.Stats{Events: 1, GuessedClock: true}, want: "    profile space in bytes\n"},
		"evented bytes have no times": {
			text: `{"profiles":[{"unit":"bytes","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":12}]}],` +
				frames + `}`,
			stats: events.Stats{Events: 1, GuessedClock: true}, want: "      sample 12\n        main shop.py:3\n"},
		"a stated type": {text: `{"profiles":[{"unit":"seconds","samples":[[0]],"weights":[1]}],` + frames + `}`,
			options: Options{SampleType: "cpu"},
			stats:   events.Stats{Events: 1, GuessedClock: true}, want: "    profile cpu in nanoseconds\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Anchor = guess
			pd, stats, err := Decode([]byte(tc.text), tc.options)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Equal(t, tc.stats, stats)
			assert.Contains(t, profiletest.Render(pd), strings.TrimPrefix(tc.want, "\n"))
		})
	}
}

// What is not as it should be is counted.
func TestFaults(t *testing.T) {
	for text, dropped := range map[string]int{
		`[{"samples":[[0],[9],[-1],"x",[0]],"weights":[1,1,1,1]}]`:                                       4,
		`[{"samples":[[0],[0]],"weights":["1","2"]}]`:                                                    2,
		`[{"samples":[[0],[0]],"weights":[-1,1e300]}]`:                                                   2,
		`[{"unit":"seconds","events":[{"type":"O","frame":0,"at":5},{"type":"C","frame":0,"at":4}]}]`:    1,
		`[{"events":[{"type":"C","frame":0,"at":5},{"type":"X","frame":0},{"type":"O","frame":7},{}]}]`:  4,
		`[{"events":[{"type":"O","frame":0},{"type":"O","frame":1},{"type":"C","frame":0,"at":7}]}]`:     1,
		`[{"unit":"seconds","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":1e30}]}]`: 1,
	} {
		pd, stats, err := Decode([]byte(`{`+frames+`,"profiles":`+text+`}`), Options{})
		require.NoError(t, err, text)
		require.NoError(t, profiletest.Check(pd))
		assert.Equal(t, dropped, stats.Dropped, text)
	}
	for _, text := range []string{"", "{}", "[]", "nonsense", `{"profiles":7}`, `{"profiles":[`, `{` + frames + `}`} {
		_, _, err := Decode([]byte(text), Options{})
		assert.Error(t, err, text)
	}
}

var bounds = worst.Bounds{Inputs: worst.Speedscope, PerByte: 48, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	pd, _, err := Decode(data, Options{Options: events.Options{Anchor: guess, Meter: meter}})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

func FuzzDecode(f *testing.F) {
	bounds.Fuzz(f, fmt.Sprintf(`{%s,"profiles":[{"unit":"seconds","samples":[[0,1]],"weights":[1],`+
		`"events":[{"type":"O","frame":1,"at":2}],"endValue":5}]}`, frames))
}
