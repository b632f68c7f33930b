// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/hot"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// restart is a connector that begins at a time with what the storage has.
func restart(t testing.TB, d *collectortest.Disk, section string, at time.Time) *fixture {
	t.Helper()
	f := start(t, section)
	f.clock.at = at
	require.NoError(t, f.Start(t.Context(), d))
	return f
}

// TestHistorySurvivesRestarts has a connector that restarts within each window beside one that does not: both compare
// alike, and the storage does not grow beyond a record for each window.
func TestHistorySurvivesRestarts(t *testing.T) {
	const section = "{storage: disk, top_functions: [{profile: process_cpu/cpu, count: 5, window: 10m, compare: {to: 30m, by: service.version}}]}"
	d := collectortest.NewDisk(nil)
	at := newClock().at.Truncate(10 * time.Minute)
	restarted, steady := restart(t, d, section, at), restart(t, collectortest.NewDisk(nil), section, at)
	defer func() { require.NoError(t, steady.Shutdown(t.Context())) }()
	for minute := range 80 {
		samples, version := map[string]int{"a": 100, "b": 700 + minute%3, "c": 200}, "1"
		if minute >= 40 {
			samples, version = map[string]int{"a": 200, "b": 601 + minute%3, "c": 199}, "2"
		}
		if minute%10 == 2 {
			require.NoError(t, restarted.Shutdown(t.Context()))
			restarted = restart(t, d, section, restarted.clock.at)
		}
		restarted.consume(t, profileOf(version, samples))
		steady.consume(t, profileOf(version, samples))
		got, want := restarted.collect(t), steady.collect(t)
		if minute%10 == 9 { // a window has ended, of which the restarted connector has a part of eight minutes
			for point, v := range want {
				if strings.HasPrefix(point, "profile.function.share{") || strings.HasPrefix(point, "profile.function.share.change{") {
					require.Contains(t, got, point, "minute %d", minute)
					assert.InDelta(t, v, got[point], 0.002, "%s in minute %d", point, minute)
				}
			}
		}
		if minute == 49 {
			assert.InDelta(t, 0.1, named(got, "profile.function.share.change", "baseline=30m")["a"], 0.002)
			assert.InDelta(t, 0.1, named(got, "profile.function.share.change", "baseline=service.version", "service.version=2")["a"], 0.002)
		}
	}
	assert.LessOrEqual(t, len(d.Content()), 3+2+1+1, "windows, versions and settings: %v", d.Content())
	require.NoError(t, restarted.Shutdown(t.Context()))

	// After a night, what is left is too old. Other settings begin anew, and nothing of the old ones stays.
	late := restart(t, d, section, restarted.clock.at.Add(50*time.Hour))
	assert.Zero(t, late.functions.Bytes())
	require.NoError(t, late.Shutdown(t.Context()))
	other := restart(t, d, strings.Replace(section, "30m", "40m", 1), restarted.clock.at)
	assert.Zero(t, other.functions.Bytes())
	require.NoError(t, other.Shutdown(t.Context()))
	assert.Len(t, d.Content(), 1)
}

// TestHistoryOnFullDisk has a storage that is full for a while, and damaged records.
func TestHistoryOnFullDisk(t *testing.T) {
	const section = "{storage: disk, top_functions: [{profile: process_cpu/cpu, window: 1m, compare: {to: 10m}}]}"
	d := collectortest.NewDisk(nil)
	f := restart(t, d, section, newClock().at.Truncate(time.Minute))
	for minute := range 5 {
		if d.Fail(nil, nil); minute < 3 {
			d.Fail(nil, errors.New("no space left on device"))
		}
		f.consume(t, profileOf("1", map[string]int{"a": 1}))
		f.collect(t)
	}
	assert.Equal(t, int64(1+2+3), collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_failed_saves"))
	require.NoError(t, f.Shutdown(t.Context()))
	again := restart(t, d, section, f.clock.at)
	assert.Equal(t, f.functions.Bytes(), again.functions.Bytes(), "all five windows")
	require.NoError(t, again.Shutdown(t.Context()))

	for key := range d.Content() {
		require.NoError(t, d.Set(t.Context(), key, []byte("[{")))
	}
	damaged := restart(t, d, section, f.clock.at)
	assert.Zero(t, damaged.functions.Bytes())
	require.NoError(t, damaged.Shutdown(t.Context()))
}

func TestStorageMustExist(t *testing.T) {
	f := start(t, "storage: absent")
	require.ErrorContains(t, f.Start(t.Context(), collectortest.NewDisk(nil)), `extension "absent" is not among the service's extensions`)
}

// TestHistoryHoldsItsNames has functions with long names, new ones in each window, which the bound on bytes has to
// count.
func TestHistoryHoldsItsNames(t *testing.T) {
	f := start(t, "{max_bytes: 4194304, top_functions: [{profile: process_cpu/cpu, count: 100, window: 1m, compare: {to: 24h}}]}")
	rnd := rand.New(rand.NewPCG(1, 2))
	before := profiletest.HeapBytes()
	for range 80 {
		samples := map[string]int{}
		for range 300 {
			samples[fmt.Sprintf("%d%s", rnd.Uint64(), strings.Repeat("x", 230))] = 1
		}
		f.consume(t, profileOf("1", samples))
		f.collect(t)
	}
	grown := profiletest.HeapBytes() - before
	t.Logf("%d bytes counted, %d on the heap", f.functions.Bytes(), grown)
	assert.LessOrEqual(t, f.functions.Bytes(), f.config.MaxBytes/2)
	assert.Less(t, grown, 2*f.functions.Bytes())
	f.clock.at = f.clock.at.Add(60 * time.Hour)
	f.collect(t)
	assert.Zero(t, f.functions.Bytes())
}

// FuzzRestore reads arbitrary records: the bounds hold.
func FuzzRestore(f *testing.F) {
	at := newClock().at.Truncate(time.Minute)
	options := hot.Options{
		Entries:      []hot.Entry{{Type: "process_cpu/cpu", Of: hot.Self, Count: 2, Window: time.Minute, To: time.Minute, Version: "v"}},
		ResourceKeys: []string{"service.name"}, MaxTracks: 10, MaxBytes: 1 << 16, IsSaved: true,
	}
	seed := hot.New(options)
	functions := []reduce.FunctionSum{{Name: "a", Value: 1}, {Name: "b", Value: 2}}
	seed.Add(&reduce.Result{Functions: []reduce.Functions{{Resource: []string{"shop"}, Version: "1", Total: 3, Observations: 3, Sums: functions}}}, at)
	seed.End()
	for _, record := range seed.Records() {
		f.Add(record.Value)
	}
	f.Add([]byte(`[{"resource":["shop"],"begin":"2023-11-14T22:13:00Z","observations":1e300,"functions":[{"name":"","share":-1e38,"variance":9}]}]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		read := hot.New(options)
		for _, record := range read.Wanted(at) {
			record.Value = value
			_ = read.Restore(record, at)
			require.LessOrEqual(t, read.Bytes(), options.MaxBytes)
		}
		_ = read.Write("scope", "writer", 1000, at)
		_, _, _ = read.Settings(value)
		read.Advance(at.Add(100 * time.Hour))
		require.Zero(t, read.Bytes())
	})
}
