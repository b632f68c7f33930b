// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/traceevents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Trace events without a CPU profile are spans of wall-clock time: each with its own time, without that of others in
// it.
func TestSpans(t *testing.T) {
	const clang = `{"traceEvents":[{"pid":9,"tid":9,"ts":5,"ph":"X","dur":100,"name":"ExecuteCompiler"},
		{"pid":9,"tid":9,"ts":7,"ph":"X","dur":40,"name":"ParseClass","args":{"detail":"std::vector<\"x\">"}},
		{"cat":"Source","id":0,"pid":9,"tid":9,"ts":8,"ph":"b","name":"Source","args":{"detail":"a.h"}},
		{"pid":9,"tid":10,"ts":0,"ph":"X","dur":100,"name":"Total ExecuteCompiler","args":{"count":1,"avg ms":0}},
		{"cat":"","pid":9,"tid":9,"ts":0,"ph":"M","name":"thread_name","args":{"name":"clang"}}],
		"beginningOfTime":1684828020000000}`
	const bazel = `{"otherData":{"build_id":"x","profile_start_ts":1677666095162},"traceEvents":[
		{"name":"thread_name","ph":"M","pid":1,"tid":3,"args":{"name":"Main Thread"}},
		{"cat":"action processing","name":"Compiling a.cc","ph":"X","ts":"10","dur":"30.0","pid":1,"tid":3,"args":{"mnemonic":"CppCompile"}},
		{"name":"cpu usage","ph":"C","ts":10,"pid":1,"tid":3,"args":{"cpu":"1"}}]}`
	const pairs = `[{"ph":"B","name":"main","pid":"shop","tid":"worker","ts":1714979289000000},
		{"ph":"B","name":"nothing","pid":"shop","tid":"worker","ts":1714979289000003},
		{"ph":"E","pid":"shop","tid":"worker","ts":1714979289000003},
		{"ph":"B","name":"work","pid":"shop","tid":"worker","ts":1714979289000003},
		{"ph":"X","name":"other","pid":"shop","tid":"helper","ts":1714979289000000,"dur":2},
		{"ph":"E","pid":"shop","tid":"worker","ts":1714979289000007.5},{"ph":"i","name":"mark","ts":1714979289000008},
		{"ph":"E","pid":"shop","tid":"worker","ts":1714979289000008}`
	const devTools = `{"metadata":{"source":"DevTools","startTime":"2026-01-02T03:04:05.000Z"},"traceEvents":[
		{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"CrBrowserMain"}},
		{"ph":"I","name":"TracingStartedInBrowser","pid":1,"tid":2,"ts":4000},
		{"ph":"X","name":"RunTask","pid":1,"tid":2,"ts":4002,"dur":3}]}`
	want := map[string]int64{"wall main worker@1714979289000003000": 3000,
		"wall work;main worker@1714979289000007500": 4500, "wall main worker@1714979289000008000": 500,
		"wall other helper@1714979289000002000": 2000}
	for name, tc := range map[string]struct {
		text string
		want map[string]int64
	}{
		"clang": {clang, map[string]int64{
			"wall ExecuteCompiler clang@1684828020000007000":                               2000,
			"wall ParseClass std::vector<\"x\">;ExecuteCompiler clang@1684828020000047000": 40_000,
			"wall ExecuteCompiler clang@1684828020000105000":                               58_000,
		}},
		"DevTools":                {devTools, map[string]int64{"wall RunTask CrBrowserMain@1767323045000005000": 3000}},
		"Bazel":                   {bazel, map[string]int64{"wall Compiling a.cc Main Thread@1677666095162040000": 30_000}},
		"begin and end":           {pairs + "]", want},
		"it breaks off":           {pairs, want},
		"it breaks off, a comma":  {pairs + ",\n", want},
		"it breaks off, an event": {pairs + `,{"ph":"X","na`, want},
		"a byte order mark":       {"\ufeff" + pairs + "]", want},
	} {
		t.Run(name, func(t *testing.T) {
			format := formats.Sniff([]byte(tc.text))
			require.Equal(t, formats.TraceEvents, format)
			pd, stats, err := formats.Decode([]byte(tc.text), format, formats.Options{})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Zero(t, stats.Dropped)
			got := map[string]int64{}
			for o := range profiletest.Observations(pd) {
				got[fmt.Sprintf("%s %s %s@%d", o.SampleType, o.Stack(), o.Attributes()["thread.name"], o.Timestamp)] = o.Value
			}
			assert.Equal(t, tc.want, got)
		})
	}
	// An event that has a category of PyTorch's among many others is one of them.
	many := strings.Repeat(`{"ph":"X","cat":"scheduler","name":"a","ts":1,"dur":1},`, 2000)
	pd, stats, err := formats.Decode([]byte("["+many+`{"ph":"X","cat":"kernel","name":"b","ts":5,"dur":2}]`),
		formats.TraceEvents, formats.Options{})
	require.NoError(t, err)
	assert.Empty(t, stats.Unread)
	assert.Equal(t, 1, pd.ProfileCount())
	assert.Contains(t, profiletest.Render(pd), "profile wall in nanoseconds")
	pySpy := `[{"args":{"filename":"shop.py","line":7},"cat":"py-spy","name":"work","ph":"B","pid":1,"tid":2,"ts":1},
		{"args":{"filename":"shop.py","line":7},"cat":"py-spy","name":"work","ph":"E","pid":1,"tid":2,"ts":4}]`
	options := formats.Options{Options: events.Options{Anchor: events.Anchor{EndNanos: 1795297434e9, Guess: "arrival"}}}
	pd, _, err = formats.Decode([]byte(`[{"ph":"X","ts":7,"dur":3,"name":"a"}]`), formats.TraceEvents, options)
	require.NoError(t, err)
	assert.Contains(t, profiletest.Render(pd), "sample 3000@1795297434000000000")
	pd, _, err = formats.Decode([]byte(pySpy), formats.TraceEvents, options)
	require.NoError(t, err)
	assert.Contains(t, profiletest.Render(pd), "sample 3000@1795297434000000000 {process.pid=1, thread.id=2}\n"+
		"        work shop.py {profile.frame.type=\"cpython\"}\n")
	for text, want := range map[string]string{
		`[{"ph":"i","ts":1}]`: "record that", `[{"ph":"E","pid":1,"tid":1}]`: "record that",
		`{"traceEvents":[{"ph":"C","ts":1}]}`: "record that", `[{"ph":"X","cat":"kernel"}]`: "record that",
		`[{"ph":"b","id":1,"ts":1},{"ph":"e","id":1,"ts":5}]`:                                         "asynchronous",
		`{"traceEvents":[],"samples":[{"ts":"1","sf":1}],"stackFrames":{"1":{"name":"f(a.js:1:1)"}}}`: "Hermes",
		`{"name":"f","ph":"X","ts":1,"dur":5}` + "\n" + `{"name":"g","ph":"X","ts":7,"dur":5}`:        "jq -s . FILE",
	} {
		format := formats.Sniff([]byte(text))
		assert.Equal(t, formats.TraceEvents, format, text)
		_, _, err := formats.Decode([]byte(text), format, formats.Options{})
		assert.ErrorIs(t, err, traceevents.ErrNoProfile, text)
		assert.ErrorContains(t, err, want, text)
	}
}
