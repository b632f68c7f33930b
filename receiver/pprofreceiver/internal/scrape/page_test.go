// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// withPage serves the page of a fixture's scraper.
func (f *fixture) withPage() *fixture {
	status := StatusConfig{HTTP: confighttp.NewDefaultServerConfig()}
	status.HTTP.NetAddr.Endpoint = "127.0.0.1:0"
	status.AllowedHosts = []string{"agent.example"}
	*f.scraper.cfg.Status.GetOrInsertDefault() = status
	return f
}

// page requests the page, or its JSON.
func (f *fixture) page(query string) (status int, body string, header http.Header) {
	f.T.Helper()
	answer := collectortest.Ask(f.T, http.MethodGet, "http://"+f.scraper.page.http.Addr().String()+"/targets"+query, nil)
	return answer.StatusCode, answer.Body, answer.Header
}

func TestScrapePage(t *testing.T) {
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{"/memory": sourcetest.Serve(good)}))
	up := scrapeTargetOf(t, site.URL, "/memory?token=hunter2", "/mutex")
	up.Labels = labels.FromStrings("instance", "till-1", "note", "<script>alert(1)</script>", "from",
		"http://me:hunter2@copied/", "about", "ask the shop: http://me:hunter2@wiki/")
	up.Discovered = labels.FromStrings("__param_token", "hunter2", "__meta_url",
		"http://me:hunter2@discovery/targets?token=hunter2", "__address__", "till-1:80",
		"__meta_kubernetes_pod_annotation_note", "hunter2", "__meta_kubernetes_pod_annotationpresent_note", "true",
		"__meta_kubernetes_pod_annotation_read", "by-a-rule", "__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
		"by-identity")
	down := sourcetest.NewSite(t, sourcetest.Serve(nil))
	down.Close()
	f := newFixture(t, 0, func(c *targets.Config) {
		c.RelabelConfigs = []*relabel.Config{{SourceLabels: model.LabelNames{"__meta_kubernetes_pod_annotation_read"}}}
	}).withPage().begin()
	report := targets.JobReport{Job: "shop", Discovered: 12}
	report.Dropped[targets.DropRelabelled] = 10
	report.Examples = []targets.Dropped{{
		Discovered: labels.FromStrings("__address__", "dropped:80", "__param_secret", "hunter2"),
		Reason:     targets.DropRelabelled, Detail: "why not",
	}}
	f.report(targets.Update{Targets: []*targets.Target{up, scrapeTargetOf(t, down.URL, "/memory")},
		Jobs: []targets.JobReport{report}})
	f.eventually(func() bool {
		return f.endpoint(0, "memory").State == stateUp && f.endpoint(0, "mutex").State == stateBackedOff &&
			f.endpoint(1, "memory").State == stateDown
	})

	status, html, header := f.page("")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
	for _, want := range []string{
		"<h2>shop</h2>", "12 discovered, 10 relabelled", "till-1", "/memory?token=REDACTED", "status 404 Not Found",
		"by-a-rule", "by-identity", "REDACTED@discovery/targets?token=REDACTED", "REDACTED@copied/",
		"ask the shop: http://REDACTED:REDACTED@wiki/", "connection refused", "&lt;script&gt;", `service.name="till"`,
		"dropped:80", "why not", shortSize(len(good)), `<td class="error">status 404`,
	} {
		assert.Contains(t, html, want)
	}
	assert.NotContains(t, html, "hunter2")
	assert.NotContains(t, html, "annotationpresent")
	assert.NotContains(t, html, "<script>")

	var shown scrapeStatus
	_, text, header := f.page("?format=json")
	assert.Equal(t, "application/json", header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal([]byte(text), &shown))
	assert.NotContains(t, text, "hunter2")
	require.Len(t, shown.Jobs, 1)
	assert.Equal(t, map[string]int{"up": 1, "down": 1}, shown.Targets)
	assert.Equal(t, map[string]int{"relabelled": 10}, shown.Jobs[0].Dropped)
	memory := shown.Jobs[0].Targets[0].Endpoints[0]
	assert.Equal(t, len(good), memory.Bytes)
	assert.WithinDuration(t, time.Now(), memory.Last, sourcetest.Patience)

	for query, want := range map[string]int{
		"&state=down": 1, "&state=unknown": 0, "&job=shop": 2, "&job=other": 0, "&q=till-1": 1, "&limit=1": 1, "&limit=0": 0,
	} {
		_, text, _ := f.page("?format=json" + query)
		shown = scrapeStatus{}
		require.NoError(t, json.Unmarshal([]byte(text), &shown))
		n := 0
		for _, job := range shown.Jobs {
			n += len(job.Targets)
		}
		assert.Equal(t, want, n, query)
	}
	_, html, _ = f.page("?limit=1")
	assert.Contains(t, html, "1 more targets are not shown")
	status, text, _ = f.page("?limit=x")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, text, "limit must be")
	status, _, _ = f.page("?limit=5001")
	assert.Equal(t, http.StatusBadRequest, status)

	// Somebody else's DNS name may resolve to this machine.
	for name, want := range map[string]int{"evil.example:4041": 403, "localhost:4041": 200, "agent.example": 200} {
		request, err := http.NewRequest(http.MethodGet, "http://"+f.scraper.page.http.Addr().String()+"/targets", http.NoBody)
		require.NoError(t, err)
		request.Host = name
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, want, response.StatusCode, name)
	}
}

// A reader of the page that does not read neither delays the end of scrapes nor takes the time of deliveries.
func TestShutdownWithASlowReaderOfThePage(t *testing.T) {
	entered := make(chan struct{}, 1)
	site := sourcetest.NewSite(t, hang(entered))
	f := newFixture(t, 0, nil).withPage().begin()
	found := []*targets.Target{scrapeTargetOf(t, site.URL, "/memory")}
	for i := range maxStatusTargets - 1 {
		later := scrapeTargetOf(t, site.URL, "/mutex")
		later.Key, later.Interval = fmt.Sprint(i), 1000*time.Hour
		later.Labels = labels.FromStrings("long", strings.Repeat("x", 4000))
		found = append(found, later)
	}
	f.find(found...)
	<-entered
	address := f.scraper.page.http.Addr().String()
	reader, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = fmt.Fprintf(reader, "GET /targets?limit=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", maxStatusTargets)
	require.NoError(t, err)
	_, err = reader.Read(make([]byte, 1))
	require.NoError(t, err)
	f.once.Do(func() {}) // the test stops it
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = f.scraper.Shutdown(ctx)
	}()
	f.eventually(func() bool { return f.status().Requests == 0 })
	select {
	case <-stopped:
		assert.Fail(t, "the page waits for its reader")
	default: // scrapes ended before
	}
	require.NoError(t, reader.Close())
	<-stopped
}

// There is a page before discovery has found anything, and it is read only.
func TestScrapePageOfNothing(t *testing.T) {
	f := newFixture(t, 0, nil).withPage()
	require.NoError(t, f.scraper.Start(t.Context(), sourcetest.Host{}))
	t.Cleanup(f.end)
	_, html, _ := f.page("")
	assert.Contains(t, html, "not found anything yet")
	at := "http://" + f.scraper.page.http.Addr().String()
	answer := collectortest.Ask(t, http.MethodPost, at+"/targets", nil, "Content-Type", "x/y")
	assert.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	assert.Contains(t, answer.Body, "received on port 4040")
	assert.Equal(t, statusPath, collectortest.Ask(t, http.MethodGet, at, nil).Header.Get("Location"))

	// An address in use is an error at the start, and leaves nothing running.
	taken := newFixture(t, 0, nil).withPage()
	taken.scraper.cfg.Status.Get().HTTP.NetAddr.Endpoint = f.scraper.page.http.Addr().String()
	assert.ErrorContains(t, taken.scraper.Start(t.Context(), sourcetest.Host{}), "`status`: ")
}

func TestShownSizesAndDurations(t *testing.T) {
	assert.Equal(t, []string{"0 B", "1023 B", "1.0 KiB", "1.5 MiB"},
		[]string{shortSize(0), shortSize(1023), shortSize(1024), shortSize(3 << 19)})
	var shown []string
	for _, d := range []time.Duration{-time.Second, 1234567, 14230 * time.Millisecond, 3723 * time.Second} {
		shown = append(shown, shortDuration(d))
	}
	assert.Equal(t, "[0s 1ms 14.2s 1h2m3s]", fmt.Sprint(shown))
}
