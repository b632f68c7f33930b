// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package folded

import (
	"errors"
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

// The example of OTEP 239, value for value. Its timestamp has 16 digits: microseconds.
func TestExampleOfOTEP239(t *testing.T) {
	const text = "foo;bar;baz 100 region=us,trace_id=0x01020304010203040102030401020304,span_id=0x9999999999999999 1687841528000000\n" +
		"foo;bar 200 region=us\n"
	got, stats, err := Decode([]byte(text), Options{SampleType: "cpu", Unit: "samples"})
	require.NoError(t, err)
	require.Equal(t, events.Stats{Events: 2}, stats)
	require.NoError(t, profiletest.Check(got))

	first := profiletest.Sample{
		Stack: profiletest.Stack("baz", "bar", "foo"), Values: []int64{100}, Timestamps: []uint64{1687841528_000000_000},
		Attributes: []profiletest.Attribute{profiletest.Attr("region", "us")},
		TraceID:    [16]byte{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4},
		SpanID:     [8]byte{0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99},
	}
	second := profiletest.Value(200, "bar", "foo")
	second.Attributes = []profiletest.Attribute{profiletest.Attr("region", "us")}
	want := profiletest.New().Resource().Scope("", "").
		Profile("cpu", "samples").Sample(first).Profile("cpu", "samples").Sample(second).Build()
	timed := profiletest.ProfileAt(want, 0)
	timed.SetTime(1687841528_000000_000)
	timed.SetDurationNano(1)
	require.NoError(t, profiletest.Equal(want, got))
}

func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"main 3":                    "sample 3\n        main",
		"main;work 3":               "sample 3\n        work\n        main",
		"main_[j];write_[k] 3":      `kernel`,
		"main;a b (JIT);c 3":        "a b (JIT)",
		"main 3\nmain 4":            "sample 7",
		"main;_ZN3foo3barEi_[k] 3":  "foo::bar (_ZN3foo3barEi)",
		"main -3":                   "sample -3",
		"main 3\r\n\n# comment\n":   "sample 3",
		"main;;work; 3":             "sample 3\n        work\n        main",
		"main 3 1687841528":         "sample 3@1687841528000000000",
		"main 3 1687841528123":      "sample 3@1687841528123000000",
		"main 3 1687841528123456":   "sample 3@1687841528123456000",
		"main 3 k=v 17":             "",
		"main 3 12":                 "main 3",
		"main 3 trace_id=1":         `trace_id="1"`,
		"main 3 k=v,k=w,novalue,=x": `{k="v"}`,
		"main 3 a=b=c":              `a="b=c"`,
	} {
		got, _, err := Decode([]byte(line), Options{})
		if want == "" {
			assert.ErrorIs(t, err, ErrNotFolded, line)
			continue
		}
		require.NoError(t, err, line)
		require.NoError(t, profiletest.Check(got), line)
		assert.Contains(t, profiletest.Render(got), want, line)
	}
}

// 1.5 s in nanoseconds are no time in 2017 only because they are all that a text has.
func TestOneLineOfTime(t *testing.T) {
	for unit, want := range map[string]string{"nanoseconds": "sample 1500000000\n", "count": "sample 3@1500000000000000000"} {
		got, _, err := Decode([]byte("main;worker 3 1500000000\n"), Options{SampleType: "off_cpu", Unit: unit})
		require.NoError(t, err)
		assert.Contains(t, profiletest.Render(got), want, unit)
	}
}

func TestLinesWithoutValues(t *testing.T) {
	got, stats, err := Decode([]byte("main;work 3\nmain;work 3\nmain\n"), Options{WithoutValues: true, SampleType: "cpu", Unit: "samples"})
	require.NoError(t, err)
	require.Equal(t, 3, stats.Events)
	require.Contains(t, profiletest.Render(got), "sample 2\n        \"work 3\"\n        main")
}

func TestFaults(t *testing.T) {
	got, stats, err := Decode([]byte("nonsense\nmain;\xff\xfe 3\n"+strings.Repeat("ä", 60)+" 1\n 7\n"), Options{Options: events.Options{MaxStringBytes: 51}})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(got))
	require.Equal(t, events.Stats{Events: 2, Dropped: 2, InvalidUTF8: 1, Truncated: 1}, stats)
	require.Contains(t, profiletest.Render(got), strings.Repeat("ä", 25)+"\n")
	_, _, err = Decode([]byte("<html>hello</html>"), Options{})
	require.ErrorIs(t, err, ErrNotFolded)
	got, _, err = Decode(nil, Options{})
	require.NoError(t, err)
	require.Zero(t, got.ResourceProfiles().Len())
}

var bounds = worst.Bounds{Inputs: worst.Folded, PerByte: 72, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	pd, _, err := Decode(data, Options{Options: events.Options{Meter: meter}})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

func FuzzDecode(f *testing.F) {
	bounds.Fuzz(f,
		"foo;bar 100 region=us,trace_id=0x01020304010203040102030401020304,span_id=0x9999999999999999 1687841528000000\n",
		"main;a b 3\n\xff 1\n", "\xef\xbb\xbf# mode: wall\nmain;a 3.5\n#<a>;b 3\n", "a;b 31 56\na;c 6 2\n")
}

// One line can be a whole payload: decoding ends in the middle of it if there is no memory for its stack.
func TestDecodeEndsWithinALine(t *testing.T) {
	data := worst.Folded["deep"](8 << 20)
	errFull := errors.New("full")
	// The whole stack takes more.
	profiletest.RequireCost(t, profiletest.Bound{HeapBytes: 4 * len(data)}, func() {
		left := 3 * len(data)
		_, _, err := Decode(data, Options{Options: events.Options{Meter: &size.Meter{Reserve: func(n int) error {
			if left -= n; left < 0 {
				return errFull
			}
			return nil
		}}}})
		require.ErrorIs(t, err, errFull)
	})
}

// A set has each key once. Pairs that repeat one, or have no key or value, are left out and counted.
func TestLeftOutAttributes(t *testing.T) {
	for line, leftOut := range map[string]int{
		"main;work 7 a=1,b=2\n":         0,
		"main;work 7 a=1,a=2\n":         1,
		"main;work 7 a\xff=1,a\xfe=2\n": 1, // repair makes the keys equal
		"main;work 7 a=1,b,=2\n":        2,
	} {
		pd, stats, err := Decode([]byte(line), Options{})
		require.NoError(t, err)
		require.NoError(t, profiletest.Check(pd))
		require.Equal(t, 1, stats.Events)
		require.Equal(t, leftOut, stats.LeftOutAttributes, "%q", line)
	}
}
