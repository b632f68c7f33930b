// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

var guess = events.Anchor{EndNanos: 1795297434e9, Guess: "arrival"}

const (
	metaText   = `"meta":{"interval":1,"startTime":1714979289000,"sampleUnits":{"time":"ms","threadCPUDelta":"µs"},"preprocessedProfileVersion":48}`
	libsText   = `"libs":[{"name":"shop","path":"/srv/shop","debugName":"shop","codeId":"ABCD1234"}]`
	stacksText = `"stackTable":{"length":3,"prefix":[null,0,1],"frame":[0,1,2]},
		"frameTable":{"length":3,"address":[-1,-1,4660],"func":[0,1,2],"line":[null,12,null],"column":[null,4,null]},
		"funcTable":{"length":3,"name":[0,1,2],"fileName":[null,3,null],"lineNumber":[null,10,null],"resource":[-1,-1,0]},
		"resourceTable":{"length":1,"lib":[0],"name":[4]}`
	textsText = `"stringArray":["main","checkout","0x1234","shop.c","shop"]`
	// The samples of a thread, as samply writes them.
	samplesText = `"name":"worker","pid":"12","tid":"13","samples":{"length":5,"weightType":"samples","weight":null,
		"stack":[1,2,null,1,99],"timeDeltas":[0.5,1.000001,1,1,1],"threadCPUDelta":[0,990,5,0,0]}`
)

// The tables are the thread's, or shared, and can come after what refers to them.
func TestProcessed(t *testing.T) {
	for name, text := range map[string]string{
		"of the thread": `{` + metaText + `,` + libsText + `,"threads":[{"jsAllocations":null,` + samplesText + `,` + stacksText + `,` + textsText + `}]}`,
		"shared":        `{` + metaText + `,"threads":[{` + samplesText + `}],"shared":{` + stacksText + `,` + textsText + `},` + libsText + `}`,
		"texts shared":  `{` + metaText + `,` + libsText + `,"shared":{` + textsText + `},"threads":[{` + stacksText + `,` + samplesText + `}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode([]byte(text), events.Options{Anchor: guess})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Equal(t, events.Stats{Events: 5, Dropped: 1, Filtered: 1}, stats)
			got := profiletest.Render(pd)
			assert.Contains(t, got, "period 1000000 wall in nanoseconds")
			assert.Contains(t, got, "      sample @1714979289000500000 @1714979289003500001 {process.pid=12, thread.id=13, thread.name=\"worker\"}\n        checkout from line 10 shop.c:12:4\n        main\n")
			assert.Contains(t, got, "990000@1714979289001500001")
			assert.Contains(t, got, "process.executable.build_id.gnu=\"abcd1234\"")
		})
	}
}

// Firefox writes rows, and the other processes within the profile of the first.
func TestGecko(t *testing.T) {
	process := func(start, pid string) string {
		return `"meta":{"version":24,"interval":2,"startTime":` + start + `},"threads":[{"name":"GeckoMain","tid":7,"pid":` + pid + `,
		"samples":{"schema":{"stack":0,"time":1,"eventDelay":2},"data":[[1,10.25],[null,11],[2,12.5,0],[]]},
		"stackTable":{"schema":{"prefix":0,"frame":1,"category":2},"data":[[null,0],[0,1],[1,2]]},
		"frameTable":{"schema":{"location":0,"relevantForJS":1,"implementation":2,"line":3,"column":4},"data":[[0],[1,true,null,9,3],[2]]},
		"stringTable":["(root)","checkout (https://shop.example/a.js:7:2)","price (https://shop.example/b.js:5)"]}]`
	}
	text := `{` + process("1714979289000.5", "20") + `,"processes":[{` + process("1714979290000", "21") + `}]}`
	for name, text := range map[string]string{"Firefox": text, "its old panel": `{"label":"","profile":` + text + `}`} {
		pd, stats, err := Decode([]byte(text), events.Options{})
		require.NoError(t, err, name)
		require.NoError(t, profiletest.Check(pd))
		assert.Equal(t, events.Stats{Events: 4, Filtered: 2, Dropped: 2}, stats, name)
		got := profiletest.Render(pd)
		assert.Contains(t, got, `
      period 2000000 wall in nanoseconds
      sample @1714979290010250000 {process.pid=21, thread.id=7, thread.name="GeckoMain"}
        checkout https://shop.example/a.js:9:3
        (root)
      sample @1714979290012500000 {process.pid=21, thread.id=7, thread.name="GeckoMain"}
        price https://shop.example/b.js:5
        checkout https://shop.example/a.js:9:3
        (root)
      sample @1714979289010750000 {process.pid=20, thread.id=7, thread.name="GeckoMain"}
`[1:])
	}
}

// Weights are times or bytes, and a file that was converted can have no start.
func TestWeights(t *testing.T) {
	thread := func(samples string) string {
		return `{"meta":{"startTime":0,"interval":1},"threads":[{` + stacksText + `,` + textsText + `,` + samples + `}]}`
	}
	for samples, want := range map[string]string{
		`"samples":{"stack":[0,0],"time":[5,8],"weight":[1.5,0],"weightType":"tracing-ms"}`:  "profile wall in nanoseconds",
		`"samples":{"stack":[0],"time":[5],"weight":[1.5],"weightType":"tracing-ms"}`:        "sample 1500000@1795297434000000000\n        main\n",
		`"samples":{"stack":[0,0],"time":[5,8],"weight":[3,1],"weightType":"samples"}`:       "sample 3@1795297433997000000 1@1795297434000000000\n        main\n",
		`"samples":{"stack":[0],"time":[5],"weight":[1]}`:                                    "sample @1795297434000000000\n        main\n",
		`"jsAllocations":{"stack":[0],"time":[5],"weight":[64],"weightType":"bytes"}`:        "profile alloc_space in bytes",
		`"nativeAllocations":{"stack":[0,0],"time":[5,6],"weight":[64,-64],"address":[7,7]}`: "sample 64@1795297434000000000\n        main\n",
	} {
		pd, stats, err := Decode([]byte(thread(samples)), events.Options{Anchor: guess})
		require.NoError(t, err, samples)
		require.NoError(t, profiletest.Check(pd))
		assert.True(t, stats.GuessedClock)
		assert.Zero(t, stats.Dropped)
		assert.Contains(t, profiletest.Render(pd), want, samples)
	}
}

// Vernier's retained mode has weights in bytes and no times; only since Vernier 1.6 the type of its weights tells so.
func TestRetained(t *testing.T) {
	const retained = "profile retained_space in bytes"
	for samples, want := range map[string]string{
		`"samples":{"stack":[0,1,0],"time":[0,0,0],"weight":[40,80,2],"weightType":"samples"}`: retained,
		`"samples":{"stack":[0,1,0],"time":[0,0,0],"weight":[40,80,2],"weightType":"bytes"}`:   retained,
		`"samples":{"stack":[0,1,0],"time":[7,8,9],"weight":[1,1,1],"weightType":"samples"}`:   "profile samples in count",
		`"jsAllocations":{"stack":[0,1,0],"time":[7,8,9],"weight":[1,1,1]}`:                    "profile alloc_space in bytes",
	} {
		pd, stats, err := Decode([]byte(`{"meta":{"startTime":5000,"interval":1,"product":"Ruby/Vernier"},"threads":[{`+
			stacksText+`,`+textsText+`,`+samples+`}]}`), events.Options{Anchor: guess})
		require.NoError(t, err, samples)
		require.NoError(t, profiletest.Check(pd))
		assert.True(t, stats.GuessedClock)
		got := profiletest.Render(pd)
		assert.Contains(t, got, want, samples)
		if want == retained {
			assert.Contains(t, got, "sample 42\n        main\n")
			assert.Equal(t, kind.Gauge, kind.ValuesOfProfile(pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0),
				pd.Dictionary()))
		}
	}
}

func TestFaults(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", "nonsense", `{"threads":7}`, `{"threads":[`, `{"threads":[]}`,
		`{"processes":[{"processes":[{"processes":[{"processes":[]}]}]}]}`} {
		_, _, err := Decode([]byte(text), events.Options{})
		assert.Error(t, err, text)
	}
	for text, dropped := range map[string]int{
		`"samples":{"stack":[0,1,2]}`:            3,
		`"samples":{"stack":[0],"time":["x"]}`:   2,
		`"samples":{"stack":[0],"time":[1e300]}`: 1,
		`"samples":{"stack":[0],"time":[1],"weight":[-1]},"stackTable":{"frame":[0]},"frameTable":{"func":[0]}`: 1,
		`"samples":{"stack":[0],"time":[1]},"stackTable":{"frame":[5]}`:                                         1,
		`"samples":{"stack":[0],"time":[1]},"stackTable":{"frame":[0],"prefix":[0]},"frameTable":{"func":[0]}`:  1,
	} {
		pd, stats, err := Decode([]byte(`{"threads":[{`+text+`}]}`), events.Options{})
		require.NoError(t, err, text)
		require.NoError(t, profiletest.Check(pd))
		assert.Equal(t, dropped, stats.Dropped, text)
		assert.Zero(t, pd.SampleCount(), strings.TrimSpace(text))
	}
}

var bounds = worst.Bounds{Inputs: worst.Firefox, PerByte: 64, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	pd, _, err := Decode(data, events.Options{Anchor: guess, Meter: meter})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

func FuzzDecode(f *testing.F) {
	bounds.Fuzz(f,
		`{`+metaText+`,`+libsText+`,"threads":[{`+samplesText+`,`+stacksText+`,`+textsText+`}]}`)
}
