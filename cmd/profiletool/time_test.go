// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted writes a pprof of samples of processor time, all in one function, as the eBPF profiler does.
func counted(t *testing.T, function string, samples, period int64) string {
	t.Helper()
	f := &profile.Function{ID: 1, Name: function}
	at := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}, Period: period, DurationNanos: 10e9,
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, TimeNanos: 1795262400e9,
		Sample:   []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{samples}}},
		Location: []*profile.Location{at}, Function: []*profile.Function{f},
	}
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return write(t, function+".pb.gz", b.String())
}

// Samples of different periods stand for different times: 100 of 10 ms are as much as 20 of 50 ms.
func TestSamplesOfDifferentPeriods(t *testing.T) {
	a, b := counted(t, "a", 100, 10e6), counted(t, "b", 20, 50e6)
	both := write(t, "both.otlp", must(t, "convert", "-o", outOTLP, a, b))
	for _, files := range [][]string{{a, b}, {both}} {
		assert.Equal(t, "a 1000000000\nb 1000000000\n", must(t, append([]string{"convert", "-o", outCollapsed}, files...)...))
		top := must(t, append([]string{"top"}, files...)...)
		assert.Contains(t, top, "Type: cpu\n")
		assert.Equal(t, 2, strings.Count(top, "\n        1s 50.00%"), top)
		p := parse(t, must(t, append([]string{"convert", "-o", outPprof}, files...)...))
		require.Len(t, p.SampleType, 2)
		assert.Equal(t, "cpu", p.DefaultSampleType)
		assert.Equal(t, []int64{100, 1e9}, p.Sample[0].Value)
		assert.Equal(t, []int64{20, 1e9}, p.Sample[1].Value)
	}
	assert.Contains(t, must(t, "diff", a, both), "100.00 %  50.00 %")
	assert.Contains(t, must(t, "top", "-diff_base="+a, b), "-1s")

	// What has one period, or is asked for, is a number of samples.
	assert.Equal(t, "a 100\n", must(t, "convert", "-o", outCollapsed, a))
	assert.Contains(t, must(t, "top", a), "Type: samples\n")
	assert.Equal(t, "a 100\nb 20\n", must(t, "convert", "-o", outCollapsed, "--type", "samples", both))
	assert.Contains(t, must(t, "top", "-sample_index=samples", a, b), "83.33%")
}

// A side that only counts samples is compared with one that has the time.
func TestDiffOfSamplesAndTime(t *testing.T) {
	a := counted(t, "a", 100, 10e6)
	assert.Contains(t, must(t, "diff", a, goCPU), "100.00 %")
}
