// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hourOf returns the profiles of an hour: one every interval of each instance, two samples each.
func hourOf(start time.Time, instances int, interval time.Duration) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	str := func(s string) int32 { d.StringTable().Append(s); return int32(d.StringTable().Len() - 1) }
	str("")
	d.FunctionTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	cpu, ns := str("cpu"), str("nanoseconds")
	for i := range 10 {
		f := d.FunctionTable().AppendEmpty()
		f.SetNameStrindex(str(fmt.Sprint("function", i)))
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(i + 1))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(i + 1))
	}
	for i := range instances {
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", "shop")
		rp.Resource().Attributes().PutStr("k8s.pod.name", fmt.Sprint("shop-", i))
		sp := rp.ScopeProfiles().AppendEmpty()
		for at := start; at.Before(start.Add(time.Hour)); at = at.Add(interval) {
			p := sp.Profiles().AppendEmpty()
			p.SampleType().SetTypeStrindex(cpu)
			p.SampleType().SetUnitStrindex(ns)
			p.SetTime(pcommon.NewTimestampFromTime(at))
			p.SetDurationNano(uint64(interval))
			for k := range 2 {
				s := p.Samples().AppendEmpty()
				s.SetStackIndex(int32(1 + (i+k)%10))
				s.Values().Append(10_000_000)
			}
		}
	}
	return pd
}

// timedHour returns an hour of a process with n observations in every ten seconds.
func timedHour(start time.Time, n int) pprofile.Profiles {
	pd := hourOf(start, 1, 10*time.Second)
	list := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	for i := range list.Len() {
		p := list.At(i)
		p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		for k := range 10 {
			s := p.Samples().AppendEmpty()
			s.SetStackIndex(int32(1 + k))
			for j := range n / 10 {
				s.TimestampsUnixNano().Append(uint64(p.Time()) + uint64(1+k+10*j)*uint64(10*time.Second)/uint64(n+20))
				s.Values().Append(1_000_000)
			}
		}
	}
	return pd
}

// historyOf returns a store on disk with hours that add returns, all of them in blocks, its address, and the start of
// its first day. The process has a memory limit.
func historyOf(
	t *testing.T, limit int64, hours int, add func(start time.Time) pprofile.Profiles,
) (s *store.Store, address string, day time.Time) {
	t.Helper()
	limitMemory(t)
	budget.SetMemoryLimit(limit)
	s = store.New(store.Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 179 * mib, MaxSeries: 2000,
		Disk: store.DiskConfig{
			Directory: t.TempDir(), Retention: 15 * 24 * time.Hour, MaxBytes: 10 << 30, Report: func(m string, err error) {
				t.Log(m, err)
			},
		}})
	require.NoError(t, s.Open())
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	day = noon.Truncate(24 * time.Hour)
	for h := range hours {
		start := day.Add(time.Duration(h) * time.Hour)
		require.Zero(t, s.Add(add(start), start.Add(time.Hour-time.Nanosecond)).Refused)
		s.Maintain(start.Add(time.Hour))
	}
	now := day.Add(time.Duration(hours+2) * time.Hour)
	s.Maintain(now)
	require.NotEmpty(t, s.Blocks())
	settings := api.Settings{Store: s.Querier, Page: fstest.MapFS{}, MaxConcurrent: 4, Timeout: time.Minute,
		Now: func() time.Time { return now }}
	server := httptest.NewServer(api.New(settings))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return s, u.Host, day
}

// A query costs what it selects of a block: five minutes of a day of 8 pods, and the time line of the whole day.
func TestPartOfADayOnDisk(t *testing.T) {
	profiletest.SkipLarge(t)
	s, address, day := historyOf(t, 400*mib, 24, func(start time.Time) pprofile.Profiles {
		return hourOf(start, 8, 10*time.Second)
	})
	require.Len(t, s.Blocks(), 1)
	at := day.Add(15 * time.Hour)
	for _, path := range []string{
		fmt.Sprintf("flamegraph?service=shop&profile=process_cpu&from=%d&until=%d", at.Unix(), at.Add(5*time.Minute).Unix()),
		fmt.Sprintf("timeline?service=shop&profile=process_cpu&from=%d&until=%d", day.Unix(), day.Add(24*time.Hour).Unix()),
	} {
		status, _, body := ask(t, address, "/api/"+path)
		assert.Equal(t, http.StatusOK, status, "%s: %.300s", path, body)
	}
}

// Two days of one process, in a seventh of the memory that two weeks may take.
func TestDaysOfOneProcessOnDisk(t *testing.T) {
	profiletest.SkipLarge(t)
	_, address, _ := historyOf(t, memoryLimit/7, 48, func(start time.Time) pprofile.Profiles {
		return hourOf(start, 1, 10*time.Second)
	})
	for _, what := range []string{"flamegraph", "timeline"} {
		status, _, body := ask(t, address, "/api/"+what+"?service=shop&profile=process_cpu")
		assert.Equal(t, http.StatusOK, status, "%s: %.300s", what, body)
	}
}

// The threads of one minute cost what that minute has, not what came after it.
func TestThreadsOfAMinuteOnDisk(t *testing.T) {
	profiletest.SkipLarge(t)
	_, address, day := historyOf(t, 100*mib, 12, func(start time.Time) pprofile.Profiles { return timedHour(start, 200) })
	at := day.Add(time.Hour)
	status, _, body := ask(t, address,
		fmt.Sprintf("/api/events?service=shop&profile=process_cpu&limit=1000&from=%d&until=%d", at.Unix(),
			at.Add(time.Minute).Unix()))
	assert.Equal(t, http.StatusOK, status, "%.300s", body)
	assert.Contains(t, body, `"left_out":`)
}

// A profile of 31,000 stacks has the same answers on disk as in memory.
func TestLargeProfileOnDisk(t *testing.T) {
	profiletest.SkipLarge(t)
	var samples []profiletest.Sample
	var deep []string
	for i := range 60 {
		deep = append(deep, fmt.Sprint("example.com/shop.middle", i*37%60))
	}
	for i := range 31_309 {
		leaf := []string{fmt.Sprint("example.com/shop.leaf", i%1500), fmt.Sprint("example.com/shop.step", i/3%1300)}
		samples = append(samples, profiletest.Value(int64(1+i), append(leaf, deep...)...))
	}
	pd := build(samples...)
	memory := store.New(store.Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 179 * mib,
		MaxSeries: 2000})
	require.Zero(t, memory.Add(pd, noon).Refused)
	_, onDisk, _ := historyOf(t, memoryLimit, 1, func(time.Time) pprofile.Profiles { return pd })
	settings := api.Settings{Store: memory.Querier, Page: fstest.MapFS{}, MaxConcurrent: 4, Timeout: time.Minute,
		Now: func() time.Time { return noon }}
	server := httptest.NewServer(api.New(settings))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	for _, path := range []string{
		"/api/flamegraph?service=shop&profile=process_cpu&max_nodes=20000", "/api/table?service=shop&profile=process_cpu",
		"/profiles/shop/process_cpu",
	} {
		status, _, want := ask(t, u.Host, path)
		assert.Equal(t, http.StatusOK, status, "in memory: %s: %.200s", path, want)
		status, _, got := ask(t, onDisk, path)
		assert.Equal(t, http.StatusOK, status, "on disk: %s: %.200s", path, got)
		assert.Equal(t, len(want), len(got), path)
	}
}
