// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// startTarget builds and runs a real Go program that serves net/http/pprof, and returns its address.
func startTarget(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "target")
	output, err := exec.Command("go", "build", "-o", binary, "./testdata/target").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return collectortest.StartProgram(t, exec.Command(binary)).Line
}

func remoteConfig(endpoint, more string) string {
	return fmt.Sprintf("remote: {endpoint: %q, initial_delay: 0s, collection_interval: 10ms%s}\n", endpoint, more)
}

func functionNames(pd pprofile.Profiles) []string {
	var names []string
	for _, function := range pd.Dictionary().FunctionTable().All() {
		names = append(names, pd.Dictionary().StringTable().At(int(function.NameStrindex())))
	}
	return names
}

func TestRemoteScrapesARealProgram(t *testing.T) {
	address := startTarget(t)
	host, port, _ := strings.Cut(address, ":")

	// The timeout is far below the second for which the program records.
	f := startFixture(t, remoteConfig("http://"+address+"/debug/pprof/profile?seconds=1", ", timeout: 10ms")+
		"resource_attributes: {service.name: target}")
	cpu := f.Await(1)[0]
	assert.Contains(t, functionNames(cpu), "main.Spin")
	resource := sourcetest.ResourceOf(t, cpu)
	assert.Equal(t, "target", resource["service.name"])
	assert.Equal(t, host, resource["server.address"])
	assert.Equal(t, port, fmt.Sprint(resource["server.port"]))
	assert.Equal(t, "http://"+address+"/debug/pprof/profile?seconds=1", resource["url.full"])

	f = startFixture(t, remoteConfig("http://"+address+"/debug/pprof/heap", ""))
	assert.Equal(t, 4, f.Await(1)[0].ProfileCount())

	// A dump for humans is not a pprof.
	f = startFixture(t, remoteConfig("http://"+address+"/debug/pprof/goroutine?debug=1", ""))
	entry := f.AwaitLog(1, "cannot accept a profile")[0]
	assert.Contains(t, entry.ContextMap()["error"], "text/plain")
	assert.Contains(t, entry.ContextMap()["error"], "goroutine profile: total")
	assert.Empty(t, f.Next.All())
}

// A target that answers sooner than it was asked to record for has its totals, whatever the URL says.
func TestRemoteDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds string
		want    kind.Values
	}{"recorded": {"0.02", kind.Delta}, "ignored": {"60", kind.Cumulative}} {
		t.Run(name, func(t *testing.T) {
			site := sourcetest.NewSite(t, func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(20 * time.Millisecond)
				_, _ = w.Write(sourcetest.Captured(t, "go-mutex.pb.gz"))
			})
			pd := startFixture(t, remoteConfig(site.URL+"/mutex?seconds="+tc.seconds, "")).Await(1)[0]
			assert.Equal(t, tc.want, kind.ValuesOfProfile(profiletest.ProfileAt(pd, 0), pd.Dictionary()))
		})
	}
}

// Failures are counted each time, and logged when they begin, change and end. Those of all scrapes are in the tests of
// the source scrape.
func TestRemoteFaults(t *testing.T) {
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		reason  ingest.Reason
		says    string
	}{
		"404": {http.NotFound, ingest.HTTPStatus, `status 404 Not Found: it begins with "404 page not found"`},
		"a bomb, Content-Encoding": {sourcetest.Serve(profiletest.Gzip(make([]byte, 1<<20)), "Content-Type", "x/y",
			"Content-Encoding", "gzip"), ingest.TooLarge, "larger than"},
		"another host": {http.RedirectHandler("http://127.0.0.2:1/", http.StatusFound).ServeHTTP, ingest.Unreachable,
			"redirects to another scheme, host or port"},
	} {
		t.Run(name, func(t *testing.T) {
			site := sourcetest.NewSite(t, sourcetest.Serve(good))
			secret := strings.Replace(site.URL, "http://", "http://me:hunter2@", 1) + "/p?token=hunter2&seconds=0"
			f := startFixture(t, remoteConfig(secret, "")+"limits: {max_profile_bytes: 100000}\n")
			f.Await(1)
			site.Handler.Store(&tc.handler)
			site.AwaitRequests(t, 20)
			counted := f.Sum(sourcetest.MetricRejected, "reason", string(tc.reason), "source", "remote")
			assert.GreaterOrEqual(t, counted, int64(1))
			lines := f.AwaitLog(1, "cannot accept a profile")
			assert.Len(t, lines, 1)
			assert.Contains(t, lines[0].ContextMap()["error"], tc.says)

			working := sourcetest.Serve(good)
			site.Handler.Store(&working)
			f.AwaitLog(1, "accepting profiles again")
			for _, entry := range f.Logs.All() {
				assert.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), "hunter2")
			}
			assert.Equal(t, strings.Replace(site.URL, "http://", "http://REDACTED:REDACTED@", 1)+"/p?token=REDACTED&seconds=0",
				sourcetest.ResourceOf(t, f.Next.All()[0])["url.full"])
		})
	}
}

// Refusals of the pipeline are counted by the standard metrics and logged once.
func TestRemoteRefused(t *testing.T) {
	site := sourcetest.NewSite(t, sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")))
	f := newFixture(t, remoteConfig(site.URL, ""))
	f.Next.RefuseWith(errors.New("full"))
	f.start(nil)
	site.AwaitRequests(t, 5)
	lines := f.AwaitLog(1, "cannot accept a profile")
	assert.Len(t, lines, 1)
	assert.Equal(t, "refused", lines[0].ContextMap()["reason"])
	assert.Positive(t, f.Sum("otelcol_receiver_refused_profile_samples", "transport", "http"))
	assert.Zero(t, f.Sum(sourcetest.MetricRejected))
}

// The configured headers and the URL's credentials reach the target.
func TestRemoteSendsCredentials(t *testing.T) {
	headers := make(chan http.Header, 1)
	site := sourcetest.NewSite(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case headers <- r.Header.Clone():
		default:
		}
	})
	startFixture(t, remoteConfig(strings.Replace(site.URL, "http://", "http://me:pw@", 1), ", headers: {X-Scope: a}"))
	got := <-headers
	assert.Equal(t, "a", got.Get("X-Scope"))
	assert.Equal(t, "Basic bWU6cHc=", got.Get("Authorization"))
}

// Shutdown cancels a long request, which is not a failure.
func TestRemoteShutdownCancels(t *testing.T) {
	entered := make(chan struct{}, 1)
	site := sourcetest.NewSite(t, func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
	f := startFixture(t, remoteConfig(site.URL, ", timeout: 1h"))
	<-entered
	begun := time.Now()
	f.stop()
	assert.Less(t, time.Since(begun), sourcetest.Patience)
	assert.Zero(t, f.Sum(sourcetest.MetricRejected))
	assert.Zero(t, f.Logs.FilterMessageSnippet("cannot accept a profile").Len())
}
