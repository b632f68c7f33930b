// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// serve returns a function that gets a path of a server that has profiles.
func serve(t *testing.T, pd pprofile.Profiles) func(path string) (status int, body string) {
	t.Helper()
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 256 << 20, MaxSeries: 100})
	require.NotZero(t, s.Add(pd, noon).Profiles)
	handler := api.New(api.Settings{
		Store: s.Querier, Page: fstest.MapFS{}, MaxConcurrent: 1, Timeout: time.Minute, Now: func() time.Time { return noon },
	})
	return func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path,
			http.NoBody))
		return w.Code, w.Body.String()
	}
}

func build(samples ...profiletest.Sample) pprofile.Profiles {
	return profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(noon.UnixNano()),
		1e9).Sample(samples...).Build()
}

const query = "?service=shop&profile=process_cpu"

// Whatever times a query names, it has an answer.
func TestAnyTime(t *testing.T) {
	get := serve(t, build(profiletest.Value(1, "leaf")))
	times := []string{
		"0", "1", "9.3e9", "5e10", "99999999999", "1e12", "5e13", "1e15", "9.9e16", "1e18", "9223372036854774784",
		"9223372036854775807",
		"9223372036854775808", "1e300", "1970-01-01T00:00:00Z", "2200-01-01T00:00:00Z",
	}
	for _, from := range times {
		for _, until := range times {
			for _, path := range []string{"/api/timeline" + query + "&points=1", "/api/timeline" + query, "/api/heatmap" + query,
				"/api/events" + query, "/api/flamegraph" + query} {
				status, body := get(path + "&from=" + from + "&until=" + until)
				assert.Contains(t, []int{http.StatusOK, http.StatusBadRequest}, status, body)
				assert.Less(t, len(body), 1<<20)
			}
		}
	}
	status, body := get("/api/timeline" + query + "&from=5e10")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "`from` is not a time")
}

// A text that few bytes make very long is refused before it takes memory.
func TestStacksAreBounded(t *testing.T) {
	names := make([]string, 300_000)
	for i := range names {
		names[i] = strings.Repeat("name", 256)
	}
	pd := build(profiletest.Value(1, names...))
	get := serve(t, pd)
	var status int
	var body string
	cost := profiletest.MeasureCost(t, func() { status, body = get("/profiles/shop/process_cpu.collapsed") })
	t.Log(cost)
	assert.Equal(t, http.StatusBadRequest, status, body[:min(len(body), 100)])
	assert.Contains(t, body, "too large: more than 134217728 bytes")
	profiletest.RequireBounded(t, cost, (&pprofile.ProtoMarshaler{}).ProfilesSize(pd), 300<<20, 128)
}

// A pprof without some of its samples would have wrong sums.
func TestIncompletePprofIsRefused(t *testing.T) {
	s := profiletest.Observed(nil, "leaf")
	for i := range 3000 {
		s.Attributes = append(s.Attributes, profiletest.Attr(fmt.Sprint("key", i), "value"))
	}
	for i := range 5000 {
		s.Timestamps = append(s.Timestamps, uint64(noon.UnixNano())+uint64(i))
	}
	get := serve(t, build(s))
	status, body := get("/profiles/shop/process_cpu?timestamps=true")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Regexp(t, `had to leave out \d+ samples`, body)
	status, _ = get("/profiles/shop/process_cpu")
	assert.Equal(t, http.StatusOK, status)
}

// Each observation of a recording has a whole stack in the pprof.
func TestObservationsOfDeepStacks(t *testing.T) {
	const stacks, observations = 40, 600
	var samples []profiletest.Sample
	for i := range stacks {
		names := make([]string, 500)
		for k := range names {
			names[k] = fmt.Sprint("function", 250*(i%4)+k)
		}
		names[0] = fmt.Sprint("leaf", i)
		s := profiletest.Observed(nil, names...).With(profiletest.Attr("thread.name", fmt.Sprint("worker", i%8)))
		for k := range observations {
			s.Timestamps = append(s.Timestamps, uint64(noon.UnixNano())+uint64(k*stacks+i)*1e4)
		}
		samples = append(samples, s)
	}
	get := serve(t, build(samples...))
	status, body := get("/profiles/shop/process_cpu?timestamps=true")
	require.Equal(t, http.StatusOK, status, body[:min(len(body), 200)])
	p, err := profile.ParseData([]byte(body))
	require.NoError(t, err)
	assert.Len(t, p.Sample, stacks*observations)
}

// Keys and values that are too long for a URL are left out; the values are counted.
func TestAttributes(t *testing.T) {
	long := strings.Repeat("x", 2000)
	get := serve(t, build(
		profiletest.Value(1, "leaf").With(profiletest.Attr("key", "<a>"), profiletest.Attr(long, "b")),
		profiletest.Value(1, "leaf").With(profiletest.Attr("key", long)),
	))
	status, body := get("/api/attributes" + query)
	require.Equal(t, http.StatusOK, status)
	assert.Less(t, len(body), 1000)
	assert.True(t, json.Valid([]byte(body)))
	assert.JSONEq(t, `{"attributes":[
		{"key":"service.name","scope":"resource","values":[{"value":"shop","samples":2}],"more":0},
		{"key":"key","scope":"sample","values":[{"value":"<a>","samples":1}],"more":1}]}`, body)
}

// Services can have any name. One of dots has no path of its own.
func TestProfilesOfServicesOfDots(t *testing.T) {
	for _, service := range []string{".", "..", "a/../b", "%2e%2e"} {
		get := serve(t, profiletest.New().Resource("service.name", service).Profile("cpu", "nanoseconds").
			Time(uint64(noon.UnixNano()), 1e9).
			Sample(profiletest.Value(7, "leaf")).Build())
		status, body := get("/profiles?service=" + url.QueryEscape(service) + "&profile=process_cpu.collapsed")
		assert.Equal(t, http.StatusOK, status, body)
		assert.Equal(t, "leaf 7\n", body)
	}
	status, body := serve(t, build(profiletest.Value(1, "leaf")))("/profiles?service=shop")
	assert.Equal(t, http.StatusNotFound, status, body)
}

// The mean of states over the last minute counts each for the part of the minute for which it was there, not for what
// may come: nine pods hold for all of it, the tenth for one second.
func TestMeansDoNotCountTheFuture(t *testing.T) {
	b := profiletest.New()
	for pod := range 10 {
		b.Resource("service.name", "shop", "service.instance.id", fmt.Sprint(pod))
		for _, ago := range []int{75, 60, 45, 30, 15, 1} {
			if pod == 9 && ago > 1 {
				continue
			}
			b.Profile("inuse_space", "bytes").Time(uint64(noon.Add(-time.Duration(ago)*time.Second).UnixNano()), 0).
				Sample(profiletest.Value(60_000_000, "hold", "main"))
		}
	}
	get := serve(t, b.Build())
	for _, span := range []string{"seconds=60", "from=now-60s", "from=now-60s&until=now"} {
		_, body := get("/api/table?service=shop&profile=memory&type=inuse_space&" + span)
		assert.Contains(t, body, `"total":541000000,`, span)
	}
}
