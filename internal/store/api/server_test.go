// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mcp"
	querypkg "github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// serve returns a function that gets a path of a server that has profiles.
func serve(t *testing.T, pd pprofile.Profiles) func(path string) (status int, body string) {
	t.Helper()
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 256 << 20, MaxSeries: 100})
	require.NotZero(t, s.Add(pd, noon).Profiles)
	return serveStore(t, s)
}

// serveStore is serve for a store.
func serveStore(t *testing.T, s *store.Store) func(path string) (status int, body string) {
	handler := api.New(api.Settings{
		Store: s.Querier, Page: fstest.MapFS{}, Limits: querypkg.Limits{MaxConcurrent: 1, Timeout: time.Minute},
		Now: func() time.Time { return noon },
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
	assert.Contains(t, body, "`from`: \\\"5e10\\\" is not a time")
}

// A text that few bytes make very long is refused before it takes memory.
func TestStacksAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	names := make([]string, 300_000)
	for i := range names {
		names[i] = strings.Repeat("name", 256)
	}
	pd := build(profiletest.Value(1, names...))
	get := serve(t, pd)
	var status int
	var body string
	profiletest.RequireCost(t, profiletest.BoundOf((&pprofile.ProtoMarshaler{}).ProfilesSize(pd), 300<<20, 128), func() {
		status, body = get("/profiles/shop/process_cpu.collapsed")
	})
	assert.Equal(t, http.StatusBadRequest, status, body[:min(len(body), 100)])
	assert.Contains(t, body, "too large: more than 134217728 bytes")
}

// pprof's tools lose sample types that share a name, as those of async-profiler's OTLP do.
func TestTypesOfOneName(t *testing.T) {
	b := profiletest.New().Resource("service.name", "shop").Scope("", "")
	for _, unit := range []string{"count", "ns"} {
		b.Profile("itimer", unit).Time(uint64(noon.UnixNano()), 1e9).Sample(profiletest.Value(7, "leaf"))
	}
	get := serve(t, b.Build())
	for query, want := range map[string][]string{
		"": {"itimer_count", "itimer_nanoseconds"}, "?type=itimer/ns": {"itimer"},
	} {
		status, body := get("/profiles/shop/process_cpu" + query)
		require.Equal(t, http.StatusOK, status, body)
		p := profiletest.ParsePprof(t, []byte(body))
		var names []string
		for _, typ := range p.SampleType {
			names = append(names, typ.Type)
		}
		slices.Sort(names)
		assert.Equal(t, want, names)
	}
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
	profiletest.SkipLarge(t)
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
	p := profiletest.ParsePprof(t, []byte(body))
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

// Sums that exceed 64 bits are the largest number in every answer, not a negative one: in memory, on disk, and on a day
// that has become coarser.
func TestSumsDoNotWrap(t *testing.T) {
	const most = math.MaxInt64
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 256 << 20,
		Disk: store.DiskConfig{Directory: t.TempDir(), Retention: 1000 * time.Hour, MaxBytes: 1 << 30,
			Downsampling: store.Downsampling{After: time.Hour, Step: 10 * time.Minute},
			Report:       func(message string, err error) { t.Log(message, err) }}})
	require.NoError(t, s.Open())
	now := noon
	handler := api.New(api.Settings{
		Store: s.Querier, Page: fstest.MapFS{}, Limits: querypkg.Limits{MaxConcurrent: 1, Timeout: time.Minute},
		Now: func() time.Time { return now },
		MCP: func(q *querypkg.Queries) http.Handler {
			return mcp.Handler(mcp.Settings{Store: s.Querier, Queries: q, Now: func() time.Time { return now }})
		},
	})
	ask := func(method, path, body string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path,
			strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
		return w.Body.String()
	}
	for _, pod := range []string{"1", "2"} {
		b := profiletest.New().Resource("service.name", "shop", "pod", pod)
		for second := -120; second < 0; second += 10 {
			start := uint64(noon.Add(time.Duration(second) * time.Second).UnixNano())
			two := []profiletest.Sample{profiletest.Value(most, "a", "main"), profiletest.Value(most, "b", "main"),
				profiletest.Value(most, "a", "main").With(profiletest.Attr("endpoint", "/"))}
			b.Profile("cpu", "nanoseconds").Period(1e7, "cpu", "nanoseconds").Time(start, 10e9).Sample(two...)
			b.Profile("inuse_space", "bytes").Period(1, "space", "bytes").Time(start, 0).Sample(two...)
		}
		b.Resource("service.name", "counts", "pod", pod)
		for second := -120; second < 0; second += 10 {
			b.Profile("samples", "count").Period(1e7, "cpu", "nanoseconds").
				Time(uint64(noon.Add(time.Duration(second)*time.Second).UnixNano()), 10e9).
				Sample(profiletest.Value(most/2, "a"), profiletest.Value(most/2, "b"))
		}
		require.Zero(t, s.Add(b.Build(), noon).Refused)
	}
	span := fmt.Sprintf("from=%d&until=%d", noon.Add(-125*time.Second).UnixMilli(), noon.UnixMilli())
	isNegative := regexp.MustCompile(`[^-0-9T]-[0-9]{2,}`)
	for _, later := range []time.Duration{0, 2 * time.Hour, 49 * time.Hour, 50 * time.Hour} {
		now = noon.Add(later)
		s.Maintain(now)
		where := fmt.Sprint("after ", later)
		check := func(path, answer string) { assert.NotRegexp(t, isNegative, answer, "%s of %s", where, path) }
		for _, of := range []string{"service=shop&profile=process_cpu", "service=shop&profile=memory",
			"service=counts&profile=process_cpu"} {
			for _, path := range []string{"flamegraph?", "table?", "timeline?", "diff?base.from=now-1000h&base.until=now&",
				"lines?function=a&", "flamegraph?group_by=endpoint&", "flamegraph?state=last&", "flamegraph?max_nodes=2&"} {
				path = "/api/" + path + of + "&" + span
				check(path, ask(http.MethodGet, path, ""))
			}
			for _, suffix := range []string{".collapsed", ".speedscope.json"} {
				path := "/profiles?" + strings.Replace(of, "process_cpu", "process_cpu"+suffix, 1) + "&" + span
				check(path, ask(http.MethodGet, strings.Replace(path, "memory", "memory"+suffix, 1), ""))
			}
			p := profiletest.ParsePprof(t, []byte(ask(http.MethodGet, "/profiles?"+of+"&"+span, "")))
			for _, sample := range p.Sample {
				assert.Positive(t, sample.Value[0], where)
			}
			selection := regexp.MustCompile(`([a-z]+)=(\w+)`).ReplaceAllString(strings.Replace(of, "&", ",", 1), `"$1":"$2"`)
			for _, tool := range []string{"hottest_functions", "call_tree", "timeline"} {
				check(tool, ask(http.MethodPost, "/mcp", fmt.Sprintf(
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{%s,"seconds":1e6}}}`,
					tool, selection)))
			}
		}
		check("overview", ask(http.MethodGet, "/api/overview?"+span, ""))
		for _, typ := range []string{"process_cpu:cpu:nanoseconds:cpu:nanoseconds", "memory:inuse_space:bytes:space:bytes"} {
			call := fmt.Sprintf(`"profileTypeID":%q,"labelSelector":"{}","start":%d,"end":%d`, typ,
				noon.Add(-125*time.Second).UnixMilli(), noon.UnixMilli())
			for method, more := range map[string]string{
				"SelectMergeStacktraces": "", "SelectSeries": `,"step":15,"exemplarType":1`, "SelectMergeProfile": `,"maxNodes":1`,
				"SelectHeatmap": `,"step":15,"queryType":1`,
			} {
				path := "/querier.v1.QuerierService/" + method
				check(path, ask(http.MethodPost, path, "{"+call+more+"}"))
			}
			check("Diff", ask(http.MethodPost, "/querier.v1.QuerierService/Diff",
				"{\"left\":{"+call+"},\"right\":{"+call+"}}"))
			path := "/pyroscope/render?query=" + url.QueryEscape(typ+"{}") + "&" + span
			check(path, ask(http.MethodGet, path, ""))
		}
	}
	require.NotZero(t, s.Blocks()[0].Step)
	require.NoError(t, s.Close())
}
