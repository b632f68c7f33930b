// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The page, and the headers of each answer.
func TestPageAndHeaders(t *testing.T) {
	f := startExporter(t, nil)
	response, body := f.get("/")
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Contains(t, body, "static/app.js")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
			"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
	} {
		assert.Equal(t, want, response.Header.Get(name), name)
	}
	assert.Empty(t, response.Header.Values("Set-Cookie"))
	response, _ = f.get("/static/app.js")
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Contains(t, response.Header.Get("Content-Type"), "javascript")
	require.Len(t, f.logs.FilterMessageSnippet("open http://localhost:").All(), 1)
}

// A browser fetches the files of the page compressed, and not again while they are the same.
func TestPageFilesAreCached(t *testing.T) {
	f := startExporter(t, nil)
	for _, path := range []string{"/", "/static/app.js", "/static/style.css"} {
		plain, body := f.get(path)
		require.Equal(t, http.StatusOK, plain.StatusCode, path)
		tag := plain.Header.Get("ETag")
		assert.NotEmpty(t, tag, path)
		compressed, short := f.get(path, "Accept-Encoding", "gzip")
		assert.Equal(t, "gzip", compressed.Header.Get("Content-Encoding"), path)
		assert.Equal(t, tag, compressed.Header.Get("ETag"), path)
		assert.Less(t, len(short), len(body), path)
		again, rest := f.get(path, "Accept-Encoding", "gzip", "If-None-Match", tag)
		assert.Equal(t, http.StatusNotModified, again.StatusCode, path)
		assert.Empty(t, rest, path)
	}
}

// Whatever is wrong with a query, the answer describes it in plain words.
func TestErrors(t *testing.T) {
	f := startExporter(t, nil)
	f.send(small("shop"))
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/nothing":                               {404, "Datadog's on 4040"},
		"/mcp":                                   {404, "set `mcp: {}`"},
		"/api/flamegraph":                        {400, "`service` and `profile` must be given"},
		"/api/flamegraph?service=shop&profile=x": {404, `service \"shop\" has no profile \"x\"`},
		"/api/flamegraph?service=shop&profile=process_cpu&type=y":         {404, "it has cpu/nanoseconds"},
		"/api/flamegraph?service=shop&profile=process_cpu&tpye=y":         {400, `unknown parameter \"tpye\"`},
		"/api/flamegraph?service=shop&profile=process_cpu&seconds=-1":     {400, "`seconds` must be a positive number"},
		"/api/flamegraph?service=shop&profile=process_cpu&seconds=NaN":    {400, "`seconds` must be a positive number"},
		"/api/flamegraph?service=shop&profile=process_cpu&from=yesterday": {400, "`from`: \\\"yesterday\\\" is not a time"},
		"/api/flamegraph?service=shop&profile=process_cpu&from=5&until=4": {400, "`until` must be after `from`"},
		"/api/flamegraph?service=shop&profile=process_cpu&max_nodes=1e9": {400,
			"`max_nodes` must be a number from 1 to 500000"},
		"/api/table?service=shop&profile=process_cpu&sort=x":   {400, "`sort` must be one of self, total, name"},
		"/api/sandwich?service=shop&profile=process_cpu":       {404, "nothing is here"},
		"/api/heatmap?service=shop&profile=process_cpu&rows=7": {400, "`rows` must be one of"},
		"/api/events":                                                         {400, "`service` must be given"},
		"/api/events?service=x":                                               {404, `there is no service \"x\"`},
		"/api/flamegraph?service=%zz":                                         {400, "cannot be read"},
		"/api/flamegraph?" + strings.Repeat("a=1&", 200):                      {400, "more than 100 parameters"},
		"/api/flamegraph?" + strings.Repeat("a", 20_000):                      {414, "too long"},
		"/api/flamegraph?service=shop&profile=" + strings.Repeat("x", 10_000): {404, "xxx…"},
	} {
		response, body := f.get(path)
		assert.Equal(t, want.status, response.StatusCode, "%s: %s", path, body)
		assert.Contains(t, body, want.text, path)
		assert.Equal(t, "application/json", response.Header.Get("Content-Type"), path)
		assert.Less(t, len(body), 1000)
		var answer struct{ Error, Hint string }
		assert.NoError(t, json.Unmarshal([]byte(body), &answer), path)
	}
	response, body := f.get("/profiles/shop/nope?seconds=5")
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
	assert.Equal(t, "1", response.Header.Get("X-Go-Pprof"))
	assert.Equal(t, "text/plain; charset=utf-8", response.Header.Get("Content-Type"))
	assert.Equal(t, "no such profiles: service \"shop\" has no profile \"nope\"; GET /api/profiles lists what there is\n",
		body)
	_, body = f.get("/profiles/shop/process_cpu?until=1000")
	_, there, _ := strings.Cut(strings.TrimSpace(body), "no profile is in the selected time; there are profiles ")
	response, body = f.get("/profiles/shop/process_cpu?" + there)
	assert.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", there, body)
	_, body = f.get("/profiles/shop/process_cpu?attr.none=x")
	assert.Contains(t, body, "no profile in the selected time has these attributes; there are profiles from=")

	refused := collectortest.Ask(t, http.MethodPost, "http://"+f.server.Addr().String()+"/api/services", http.NoBody)
	assert.Equal(t, http.StatusMethodNotAllowed, refused.StatusCode)
}

// A page elsewhere cannot make its own name resolve to this machine and read profiles (DNS rebinding).
func TestHostsThatAnybodyCouldHave(t *testing.T) {
	f := startExporter(t, map[string]any{"server": map[string]any{"allowed_hosts": []any{"profiles.example.org"}}})
	for host, want := range map[string]int{
		"evil.example.com": 403, "evil.example.com:4042": 403, "printer": 403, "localhost:4042": 200, "127.0.0.1": 200,
		"profiles.example.org": 200,
	} {
		response, body := f.get("/api/status", "Host", host)
		assert.Equal(t, want, response.StatusCode, host)
		assert.Equal(t, want == 403, strings.Contains(body, "`server.allowed_hosts`"), body)
		response, _ = f.get("/", "Host", host)
		assert.Equal(t, want, response.StatusCode, host)
	}
}

// A dashboard of another origin reads what the page reads, if the configuration lists the origin.
func TestPagesOfListedOriginsMayRead(t *testing.T) {
	f := startExporter(t, map[string]any{"server": map[string]any{
		"cors": map[string]any{"allowed_origins": []any{"https://dash.example"}}}})
	response, body := f.get("/api/services", "Origin", "https://dash.example", "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusOK, response.StatusCode, body)
	assert.Equal(t, "https://dash.example", response.Header.Get("Access-Control-Allow-Origin"))
	response, body = f.get("/api/services", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusForbidden, response.StatusCode)
	assert.Contains(t, body, "`cors.allowed_origins`")
	assert.NotContains(t, body, "`server.allowed_hosts`")
}

func TestPasswordsAreNotLogged(t *testing.T) {
	f := startExporter(t, map[string]any{"clickhouse": map[string]any{"endpoint": "http://u:s3cret@127.0.0.1:1"}})
	lines := fmt.Sprint(f.logs.All())
	assert.Contains(t, lines, "127.0.0.1:1")
	assert.NotContains(t, lines, "s3cret")
}

// The password for ClickHouse is in a header of its own, which a redirect to another host would keep.
func TestPasswordStaysWithClickHouse(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s has the password %q", r.Method, r.URL.Path, r.Header.Get("X-ClickHouse-Key"))
	}))
	defer stranger.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		clickHouse := httptest.NewServer(http.RedirectHandler(stranger.URL, status))
		defer clickHouse.Close()
		f := startExporter(t, map[string]any{"clickhouse": map[string]any{
			"endpoint": clickHouse.URL, "username": "u", "password": "s3cret"}})
		response, body := f.get("/api/services")
		assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode, body)
	}
}

func TestETagAndGzip(t *testing.T) {
	f := startExporter(t, nil)
	_, pd := captured(t, "go-heap", true)
	f.send(pd)
	path := "/api/flamegraph?service=shop&profile=memory"
	plain, body := f.get(path)
	assert.Empty(t, plain.Header.Get("Content-Encoding"))
	etag := plain.Header.Get("ETag")
	require.NotEmpty(t, etag)
	zipped, packed := f.get(path, "Accept-Encoding", "br, gzip")
	require.Equal(t, "gzip", zipped.Header.Get("Content-Encoding"))
	assert.Equal(t, body, string(profiletest.Gunzip(t, []byte(packed))))
	again, nothing := f.get(path, "If-None-Match", `"x", `+etag)
	assert.Equal(t, http.StatusNotModified, again.StatusCode)
	assert.Empty(t, nothing)
}

// A pprof that was pushed is downloaded unchanged, and pprof's own tools read it by its URL.
func TestGoToolPprofReadsTheURL(t *testing.T) {
	f := startExporter(t, nil)
	payload, pd := captured(t, "go-cpu-labels", false)
	f.send(pd)
	want := profiletest.ParsePprof(t, payload)
	response, body := f.get("/profiles/shop/process_cpu")
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	assert.Equal(t, `attachment; filename="shop.process_cpu.pb.gz"`, response.Header.Get("Content-Disposition"))
	got := profiletest.ParsePprof(t, []byte(body))
	assert.NoError(t, profiletest.EqualPprof(want, got, profiletest.CanonicalLinks()))

	command := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top",
		"http://"+f.server.Addr().String()+"/profiles/shop/process_cpu?seconds=300")
	command.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "Type: cpu")
	assert.Contains(t, string(out), "flat%")

	var profiles struct{ Profiles []struct{ Rearranged int } }
	f.getJSON("/api/profiles?service=shop", &profiles)
	assert.Equal(t, 1, profiles.Profiles[0].Rearranged, "taken long ago, kept under its arrival")
}

// docs/api.md's line for profile-guided optimisation, with a real profile and the real compiler.
func TestProfileGuidedOptimisation(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the Go runtime again")
	}
	f := startExporter(t, nil)
	_, pd := captured(t, "go-build-merged-cpu-large", true)
	f.send(pd)
	response, body := f.get("/profiles/shop/process_cpu?seconds=3600")
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/pgo\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { println(\"optimised\") }\n", "default.pgo": body,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(folder, "program")).Output()
	require.NoError(t, err)
	assert.Contains(t, string(info), "-pgo="+filepath.Join(folder, "default.pgo"))
}

// Scrapers fetch profiles, even pushed ones, from the paths of net/http/pprof.
func TestScrapersCanPull(t *testing.T) {
	f := startExporter(t, nil)
	for _, name := range []string{"go-cpu-labels", "go-heap", "go-goroutine"} {
		_, pd := captured(t, name, true)
		f.send(pd)
	}
	for path, types := range map[string]int{
		// A state without a time; what happened with one. net/http/pprof has totals without one, and differences of states
		// with one.
		"profile?seconds=10": 2, "heap": 2, "allocs?debug=0&seconds=3600": 2, "goroutine": 1,
	} {
		response, body := f.get("/services/shop/debug/pprof/" + path)
		if !assert.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body) {
			continue
		}
		p := profiletest.ParsePprof(t, []byte(body))
		assert.Len(t, p.SampleType, types, path)
		assert.NotEmpty(t, p.Sample, path)
	}
	response, body := f.get("/services/shop/debug/pprof/allocs")
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	assert.Contains(t, body, "seconds=60")
	response, _ = f.get("/services/shop/debug/pprof/trace")
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
	response, _ = f.get("/services/shop/debug/pprof/mutex?seconds=60")
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
}

// The other formats, by suffix and by Accept.
func TestCollapsedAndSpeedscope(t *testing.T) {
	f := startExporter(t, nil)
	f.send(small("shop", profiletest.Value(3, "leaf;x", "main"), profiletest.Value(4, "main")))
	_, body := f.get("/profiles/shop/process_cpu.collapsed")
	assert.Equal(t, "main 4\nmain;leaf:x 3\n", body)
	_, byAccept := f.get("/profiles/shop/process_cpu", "Accept", "text/plain")
	assert.Equal(t, body, byAccept)
	var speedscope struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Unit     string
			EndValue int64
			Samples  [][]int
			Weights  []int64
		}
	}
	f.getJSON("/profiles/shop/process_cpu.speedscope.json", &speedscope)
	require.Len(t, speedscope.Profiles, 1)
	p := speedscope.Profiles[0]
	assert.EqualValues(t, 7, p.EndValue)
	assert.Equal(t, "nanoseconds", p.Unit)
	assert.Equal(t, []int64{4, 3}, p.Weights)
	assert.Equal(t, "leaf;x", speedscope.Shared.Frames[p.Samples[1][1]].Name)
}

// Names are data: HTML, scripts, control characters and a megabyte of text are returned unchanged, as text.
func TestHostileNames(t *testing.T) {
	f := startExporter(t, nil)
	names := []string{
		"<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "a\x00\x1b[31mb\r\nc", "\u202egnp.exe",
		"../../etc/passwd",
		`"; DROP TABLE`, strings.Repeat("m", 1<<20),
	}
	for _, name := range names {
		f.send(small(name, profiletest.Value(1, name, "main").With(profiletest.Attr(name, name))))
	}
	var services struct{ Services []struct{ Service string } }
	f.getJSON("/api/services", &services)
	require.Len(t, services.Services, len(names))
	for _, s := range services.Services {
		query := "service=" + url.QueryEscape(s.Service) + "&profile=process_cpu"
		response, body := f.get("/api/flamegraph?" + query)
		require.Equal(t, http.StatusOK, response.StatusCode, body)
		assert.NotContains(t, body, "<script")
		assert.NotContains(t, body, "\x1b")
		assert.Less(t, len(body), 5000, "a megabyte is cut")
		var graph struct{ Frames struct{ Name []string } }
		require.NoError(t, json.Unmarshal([]byte(body), &graph))
		leaf := graph.Frames.Name[1]
		if leaf == "main" {
			leaf = graph.Frames.Name[0]
		}
		assert.True(t, strings.HasPrefix(s.Service, leaf[:min(len(leaf), 100)]), "%q is %q", s.Service, leaf)
		for _, path := range []string{"/api/table?", "/api/attributes?", "/api/timeline?group_by=x&"} {
			response, body := f.get(path + query)
			assert.Equal(t, http.StatusOK, response.StatusCode, body)
			assert.NotContains(t, body, "<script")
		}
		response, body = f.get("/profiles/" + escape(s.Service) + "/process_cpu")
		require.Equal(t, http.StatusOK, response.StatusCode, body)
		assert.NotContains(t, response.Header.Get("Content-Disposition"), "<")
		p := profiletest.ParsePprof(t, []byte(body))
		assert.Len(t, p.Sample[0].Location, 2)
	}
}

// A comparison over HTTP; the base has the parameters that it names, and the others of the selection.
func TestDiff(t *testing.T) {
	f := startExporter(t, nil)
	f.send(small("shop", profiletest.Value(3, "leaf", "main")), small("cart", profiletest.Value(5, "leaf", "main")))
	var diff struct {
		Total     int64
		BaseTotal int64 `json:"base_total"`
		Nodes     struct {
			Total     []int64
			BaseTotal []int64 `json:"base_total"`
		}
	}
	f.getJSON("/api/diff?service=shop&profile=process_cpu&base.service=cart", &diff)
	assert.EqualValues(t, 3, diff.Total)
	assert.EqualValues(t, 5, diff.BaseTotal)
	assert.Equal(t, []int64{3, 3, 3}, diff.Nodes.Total)
	assert.Equal(t, []int64{5, 5, 5}, diff.Nodes.BaseTotal)
}

// Heat map and events of a profile with timestamps over HTTP.
func TestHeatMapAndEvents(t *testing.T) {
	f := startExporter(t, nil)
	begin := time.Now().Add(-time.Minute).Truncate(time.Second)
	wait := profiletest.Observed([]uint64{uint64(begin.Add(530 * time.Millisecond).UnixNano())}, "lock", "main")
	wait.Values = []int64{30e6}
	f.send(profiletest.New().Resource("service.name", "shop").Profile("off_cpu", "nanoseconds").
		Time(uint64(begin.UnixNano()), 10e9).
		Sample(wait.With(profiletest.Attr("thread.id", 7), profiletest.Attr("thread.name", "worker"))).Build())
	var heat struct {
		From, Columns, Rows, Observations int64
		Cells                             []float64
	}
	f.getJSON("/api/heatmap?service=shop&profile=off_cpu&rows=50", &heat)
	assert.Equal(t, begin.UnixMilli(), heat.From)
	assert.EqualValues(t, 1, heat.Observations)
	assert.Equal(t, []float64{20e6, 10e6}, heat.Cells[25:27], "from 500 to 530 ms")
	var events struct {
		Base, Start, Length any
		Lanes, States       []string
		Stacks              [][]int
		Frames              struct{ Name []string }
	}
	f.getJSON("/api/events?service=shop", &events)
	assert.Equal(t, []string{"thread 7 worker"}, events.Lanes)
	assert.Equal(t, []string{"off CPU"}, events.States)
	assert.Equal(t, []any{30e6}, events.Length)
	assert.InDelta(t, begin.UnixMilli()+500, events.Base, 0)
	require.Equal(t, [][]int{{0, 1}}, events.Stacks)
	assert.Equal(t, []string{"lock", "main"}, events.Frames.Name)
}

// Queries wait for their turn for at most query_timeout, and then the answer says so.
func TestQueriesAreBounded(t *testing.T) {
	f := startExporter(t, map[string]any{"server": map[string]any{"query_timeout": "1ns"}})
	f.send(small("shop"))
	response, body := f.get("/api/flamegraph?service=shop&profile=process_cpu")
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode, body)
	assert.NotEmpty(t, response.Header.Get("Retry-After"))
	assert.Contains(t, body, "the query took longer than 1ns")
	assert.Contains(t, body, "`server.query_timeout`")
}

// A query has the whole query_timeout, however short write_timeout is: that is for those who read the answer.
func TestQueryTimeoutIsNotCutShort(t *testing.T) {
	f := startExporter(t, map[string]any{"server": map[string]any{"query_timeout": "20s", "write_timeout": "500ms"}})
	f.send(small("shop"))
	reservations := make([]*budget.Reservation, 16) // all memory of answers is in use for longer than write_timeout
	for i := range reservations {
		reservations[i] = budget.Queries().Begin()
		require.NoError(t, reservations[i].ReserveBody(t.Context(), budget.Queries().MaxBodyBytes()/12))
	}
	start := time.Now()
	time.AfterFunc(time.Second, func() {
		for _, c := range reservations {
			c.Release()
		}
	})
	response, body := f.get("/api/flamegraph?service=shop&profile=process_cpu")
	assert.Equal(t, http.StatusOK, response.StatusCode, body)
	assert.Greater(t, time.Since(start), 500*time.Millisecond)
}

// A query with a name tells how far it is, while others have all slots, and ends with its client.
func TestProgressAndCancelling(t *testing.T) {
	f := startExporter(t, nil)
	f.send(small("shop"))
	reservations := make([]*budget.Reservation, 16) // the query waits
	for i := range reservations {
		reservations[i] = budget.Queries().Begin()
		defer reservations[i].Release()
		require.NoError(t, reservations[i].ReserveBody(t.Context(), budget.Queries().MaxBodyBytes()/12))
	}
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+f.server.Addr().String()+"/api/flamegraph?service=shop&profile=process_cpu", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Progress-Id", "one")
	ended := make(chan error, 1)
	go func() {
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	status := func() int {
		response, _ := f.get("/api/progress?id=one")
		return response.StatusCode
	}
	require.Eventually(t, func() bool { return status() == http.StatusOK }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return status() == http.StatusNoContent }, time.Minute, time.Millisecond)
}

// processBytes is the memory that the Go runtime has from the system and has not given back.
func processBytes() uint64 {
	samples := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// A hundred times keep.max_bytes passes through, and the process grows by at most 1.3 times keep.max_bytes.
func TestMemoryStaysWithinMaxBytes(t *testing.T) {
	const bound = 32 << 20
	rounds := 30 // the store is full after a few
	if profiletest.IsRace {
		rounds = 10
	}
	f := startExporter(t, map[string]any{"keep": map[string]any{"max_bytes": bound}})
	pd, names := manyFunctions(500)
	pad := strings.Repeat("x", 1900)
	runtime.GC()
	before, peak, sent := processBytes(), uint64(0), 0
	for round := 0; sent < rounds*bound; round++ {
		for i := range names {
			name := fmt.Sprintf("%d.%d.%s", round, i, pad)
			pd.Dictionary().StringTable().SetAt(names[i], name)
			sent += len(name)
		}
		f.send(pd)
		peak = max(peak, processBytes())
	}
	grown := float64(peak) - float64(before)
	t.Logf("grown by %.0f MiB, %.2f of the bound; the store holds %d bytes", grown/(1<<20), grown/bound,
		f.store.Stats().Bytes)
	assert.Less(t, grown, 1.3*bound)
	assert.Greater(t, f.store.Stats().Bytes, bound/100*keptShare*5/10)
}

// manyFunctions returns a profile of n functions, and the indices of their names.
func manyFunctions(n int) (pd pprofile.Profiles, names []int) {
	pd = small("shop")
	d := pd.Dictionary()
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	p.SetTime(unixNow())
	for i := range n {
		names = append(names, d.StringTable().Len())
		d.StringTable().Append("")
		function := d.FunctionTable().AppendEmpty()
		function.SetNameStrindex(int32(d.StringTable().Len() - 1))
		function.SetStartLine(int64(i))
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(d.FunctionTable().Len() - 1))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(d.LocationTable().Len() - 1))
		sample := p.Samples().AppendEmpty()
		sample.SetStackIndex(int32(d.StackTable().Len() - 1))
		sample.Values().Append(1)
	}
	return pd, names
}

// FuzzQuery sends any path and query to the server: it never answers with an internal error.
func FuzzQuery(f *testing.F) {
	for _, target := range []string{
		"/api/flamegraph?service=shop&profile=process_cpu&from=1&until=1e18&attr.x=y&group_by=service.name&max_nodes=1",
		"/api/timeline?service=shop&profile=process_cpu&seconds=1e300&points=10000",
		"/api/diff?service=shop&profile=process_cpu&base.from=5",
		"/profiles/shop/process_cpu.collapsed?state=last", "/services/shop/debug/pprof/heap?seconds=1&gc=1",
		"/api/timeline?service=shop&profile=process_cpu&from=1&until=9223372036854775807",
	} {
		f.Add(target)
	}
	e := newFixture(f, nil)
	e.store.Add(small("shop"), time.Now())
	handler := api.New(e.settings())
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" {
			return
		}
		r := (&http.Request{Method: http.MethodGet, URL: u, Host: "localhost", Header: http.Header{}}).
			WithContext(t.Context())
		w := &recorder{header: http.Header{}}
		handler.ServeHTTP(w, r)
		if w.status >= http.StatusInternalServerError && w.status != http.StatusServiceUnavailable {
			t.Fatalf("%q: %d %s", target, w.status, w.body.String())
		}
	})
	require.NoError(f, e.Shutdown(f.Context()))
}

// recorder is a minimal ResponseWriter.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// Assistants ask at /mcp if that is on, under the rules for browsers that hold for everything here.
func TestAssistants(t *testing.T) {
	ask := func(f *fixture, headers ...string) (int, string) {
		f.t.Helper()
		answer := collectortest.Ask(t, http.MethodPost, "http://"+f.server.Addr().String()+"/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_services"}}`),
			append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")...)
		return answer.StatusCode, answer.Body
	}
	off := startExporter(t, nil)
	status, body := ask(off)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "set `mcp: {}`")
	// What Grafana asks has a body, too.
	answer := collectortest.Ask(t, http.MethodPost, "http://"+off.server.Addr().String()+
		"/querier.v1.QuerierService/ProfileTypes", strings.NewReader(`{"start":1000,"end":4000}`), "Content-Type",
		"application/json")
	assert.Equal(t, http.StatusOK, answer.StatusCode)

	on := startExporter(t, map[string]any{"mcp": map[string]any{}})
	on.send(small("shop"))
	status, body = ask(on)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "shop")
	for _, headers := range [][]string{
		{"Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "cross-site"}, {"Host", "evil.example.com"},
	} {
		status, body = ask(on, headers...)
		assert.Equal(t, http.StatusForbidden, status, "%v: %s", headers, body)
	}
	for _, encoding := range []string{"gzip", "zstd"} {
		status, _ = ask(on, "Content-Encoding", encoding)
		assert.Contains(t, []int{http.StatusBadRequest, http.StatusUnsupportedMediaType}, status)
	}
	_, err := collectortest.LoadConfig(createDefaultConfig().(*Config),
		map[string]any{"mcp": map[string]any{"default_time": "-1s"}})
	assert.ErrorContains(t, err, "`default_time` must not be negative")
}

// Totals of two processes with one identity are told, those of a process that restarts are not.
func TestTotalsOfTwoProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		totals []int64
		lines  int
	}{
		"one that restarts": {[]int64{100, 110, 120, 10, 20, 30, 40, 1, 5}, 0},
		"two":               {[]int64{1000, 500, 1010, 510, 1020, 520, 1030, 530}, 1},
	} {
		f := startExporter(t, nil)
		for i, total := range tt.totals {
			pd := profiletest.New().Resource("service.name", "shop").Profile("alloc_space", "bytes").
				Time(uint64(unixNow())-60e9+uint64(i)*1e9, 0).
				Sample(profiletest.Value(total, "main.main")).Build()
			f.send(pd)
		}
		lines := f.logs.FilterMessage(kind.Alternates).All()
		if assert.Len(t, lines, tt.lines, name) && tt.lines > 0 {
			assert.Equal(t, map[string]any{"service": "shop"}, lines[0].ContextMap())
		}
	}
}
