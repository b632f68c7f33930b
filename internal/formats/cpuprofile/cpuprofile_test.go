// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

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
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

var (
	ended = time.Date(2026, 11, 21, 21, 43, 54, 0, time.UTC)
	guess = events.Anchor{EndNanos: uint64(ended.UnixNano()), Guess: "arrival"}
)

// The output of node --cpu-prof: the profile ends at the anchor, and has all samples except those of (idle).
func TestNode(t *testing.T) {
	data := profiletest.FileBytes(t, "testdata/node20.cpuprofile")
	pd, stats, err := Decode(data, events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Equal(t, events.Stats{Events: 170 - 58, Filtered: 58, GuessedClock: true}, stats)
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	assert.Equal(t, ended.UnixNano(), int64(p.Time())+int64(p.DurationNano())-1)
	assert.InDelta(t, 1.8e9, p.DurationNano(), 0.1e9)
	profiletest.Golden(t, "testdata/node20.txt", profiletest.Render(pd))
}

const nodes = `"nodes":[
 {"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2,3,4,6]},
 {"id":2,"callFrame":{"functionName":"(idle)"}},
 {"id":3,"callFrame":{"functionName":"(garbage collector)"}},
 {"id":4,"callFrame":{"functionName":"","url":"a.js","lineNumber":0,"columnNumber":4},"children":[5]},
 {"id":5,"callFrame":{"functionName":"f","url":"a.js","lineNumber":9,"columnNumber":0}},
 {"id":6,"callFrame":{"functionName":"(program)"}}]`

func TestSmall(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"lines and columns": {`{"startTime":1000,"endTime":9000,` + nodes + `,"samples":[5],"timeDeltas":[500]}`, `
      time 1795297433992000000 ns
      duration 8000001 ns
      period 500000 cpu in nanoseconds
      attributes {profile.clock.guess="arrival"}
      sample @1795297433992500000
        f from line 10 a.js:10:1
        (anonymous) from line 1 a.js:1:5
`},
		"states of the machine": {`{"samples":[5,3,2,6,3],"timeDeltas":[1,1,1,1,1],"startTime":1,"endTime":10,` + nodes + `}`, `
      sample @1795297433999992000
        f from line 10 a.js:10:1
        (anonymous) from line 1 a.js:1:5
      sample @1795297433999993000
        "(garbage collector)"
        f from line 10 a.js:10:1
        (anonymous) from line 1 a.js:1:5
      sample @1795297433999995000
        (program)
      sample @1795297433999996000
        "(garbage collector)"
`},
		"a Unix time": {`{"startTime":1714979289000000,"endTime":1714979290000000,` + nodes +
			`,"samples":[5],"timeDeltas":[7]}`, "      time 1714979289000000000 ns\n"},
	} {
		t.Run(name, func(t *testing.T) {
			pd, _, err := Decode([]byte(tc.text), events.Options{Anchor: guess})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Contains(t, profiletest.Render(pd), strings.TrimPrefix(tc.want, "\n"))
		})
	}
}

func TestFaults(t *testing.T) {
	for _, text := range []string{"{}", "[]", "nonsense", `{"nodes":7}`, `{"nodes":[`} {
		_, _, err := Decode([]byte(text), events.Options{})
		require.Error(t, err, text)
	}
	for text, dropped := range map[string]int{
		`{` + nodes + `,"samples":[99,5],"timeDeltas":[1]}`:                                                         1,
		`{"nodes":[{"id":1,"children":[2]},{"id":2,"children":[1]}],"samples":[1,2]}`:                               2,
		`{"nodes":[{"id":2,"parent":3},{"id":3,"parent":3,"callFrame":{"functionName":"(idle)"}}],"samples":[2,2]}`: 2,
		`{"nodes":[{"id":1}],"samples":[1],"timeDeltas":[1e300]}`:                                                   1,
		`{"nodes":[{"id":1}],"samples":[1],"timeDeltas":[-5]}`:                                                      1,
		`{"nodes":[{"id":1,"callFrame":{"functionName":5,"lineNumber":9223372036854775807}}],"samples":["x",1]}`:    1,
	} {
		pd, stats, err := Decode([]byte(text), events.Options{Anchor: guess})
		require.NoError(t, err, text)
		require.NoError(t, profiletest.Check(pd), text)
		assert.Equal(t, dropped, stats.Dropped, text)
	}
}

// hostileProfiles are profiles of n nodes or samples, with states and circles.
func hostileProfiles(n int) map[string][]byte {
	var chain, numbers strings.Builder
	numbers.WriteString("0")
	for i := 2; i < n; i++ {
		fmt.Fprintf(&chain, `,{"id":%d,"parent":%d,"callFrame":{"functionName":"f%d"}}`, i, i-i%500, i)
		fmt.Fprintf(&numbers, ",%d", i)
	}
	tooDeep := strings.Builder{}
	for i := 2; i <= 600; i++ {
		fmt.Fprintf(&tooDeep, `{"id":%d,"parent":%d,"callFrame":{"functionName":"f"}},`, i, i-1)
	}
	// Each of several states above each of many deep stacks: about ten bytes of samples for a stack.
	var deepStates strings.Builder
	const kinds, depth = 32, 400
	deepStates.WriteString(`{"nodes":[{"id":0}`)
	for i := 1; i <= kinds; i++ {
		fmt.Fprintf(&deepStates, `,{"id":%d,"callFrame":{"functionName":"(garbage collector)","lineNumber":%d}}`, i, i)
	}
	stacks := max(n/kinds, 1)
	for i := range stacks {
		parent := kinds + i
		if i%depth == 0 {
			parent = 0
		}
		fmt.Fprintf(&deepStates, `,{"id":%d,"parent":%d,"callFrame":{"functionName":"f%d"}}`, kinds+1+i, parent, i)
	}
	deepStates.WriteString(`],"samples":[0`)
	for i := range stacks * kinds {
		fmt.Fprintf(&deepStates, ",%d,%d", kinds+1+i%stacks, 1+i/stacks)
	}
	deepStates.WriteString(`]}`)
	const states = `{"nodes":[{"id":1,"callFrame":{"functionName":"(program)"}}`
	return map[string][]byte{
		"states above deep stacks": []byte(deepStates.String()),
		"circle of idle nodes": []byte(`{"nodes":[{"id":1,"parent":2,"callFrame":{"functionName":"(idle)"}},` +
			`{"id":2,"parent":1,"callFrame":{"functionName":"(idle)"}},{"id":3,"parent":1}],"samples":[3` + strings.Repeat(",3",
			n) + `]}`),
		"idle circle": []byte(
			`{"nodes":[{"id":1,"parent":1,"callFrame":{"functionName":"(idle)"}},{"id":2,"parent":1}],"samples":[2` +
				strings.Repeat(",2", n) + `]}`),
		"states above all stacks": []byte(states + chain.String() + `],"samples":[` +
			strings.ReplaceAll(numbers.String(), ",", ",1,") + `]}`),
		"unreadable stack": []byte(`{"nodes":[` + tooDeep.String() + `{"id":1}],"samples":[600` + strings.Repeat(",600",
			4*n) + `]}`),
	}
}

var bounds = worst.Bounds{Inputs: worst.V8, PerByte: 48, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	pd, _, err := Decode(data, events.Options{Anchor: guess, Meter: meter})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) {
	bounds.Test(t)
	for name, data := range hostileProfiles(50_000) {
		t.Run(name, func(t *testing.T) { bounds.Require(t, data) })
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range hostileProfiles(20) {
		f.Add(data)
	}
	bounds.Fuzz(f, `{"startTime":1000,"endTime":9000,`+nodes+`,"samples":[5,3,2,6],"timeDeltas":[500,1,2,3]}`)
}
