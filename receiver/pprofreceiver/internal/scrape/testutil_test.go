// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

const (
	metricScrapes        = "otelcol_receiver_pprof_scrape_attempts"
	metricScrapeDuration = "otelcol_receiver_pprof_scrape_duration"
	metricScrapeBytes    = "otelcol_receiver_pprof_scrape_bytes"
	metricScrapeSkipped  = "otelcol_receiver_pprof_scrape_skipped"
	metricScrapeRestarts = "otelcol_receiver_pprof_scrape_restarts"
	metricScrapeTargets  = "otelcol_receiver_pprof_scrape_targets"
	metricScrapeDropped  = "otelcol_receiver_pprof_scrape_dropped_targets"
	metricScrapeRequests = "otelcol_receiver_pprof_scrape_requests"
	metricScrapeBaseline = "otelcol_receiver_pprof_scrape_baseline_bytes"
)

// fixture is a scraper whose targets the test sets.
type fixture struct {
	*sourcetest.Fixture
	scraper *Scraper
	updates chan targets.Update
	applied chan struct{}
	jobs    []string
	once    sync.Once
}

// newFixture makes a scraper of jobs that follow redirects and have nothing else set, unless edit does. A
// maxProfileBytes of 0 is the default.
func newFixture(t testing.TB, maxProfileBytes int, edit func(*targets.Config)) *fixture {
	t.Helper()
	f := &fixture{Fixture: sourcetest.New(t), updates: make(chan targets.Update), applied: make(chan struct{})}
	job := &targets.Config{JobName: "shop", ScrapeInterval: time.Second, HTTPClient: promconfig.DefaultHTTPClientConfig}
	if edit != nil {
		edit(job)
	}
	f.jobs = []string{job.JobName}
	f.scraper = New(&Config{MaxConcurrent: 8, Configs: []*targets.Config{job}}, f.Set,
		f.Ingester("scrape", "http", maxProfileBytes))
	f.scraper.discover = func(ctx context.Context, apply func(targets.Update)) {
		for {
			select {
			case <-ctx.Done():
				return
			case update := <-f.updates:
				apply(update)
				f.applied <- struct{}{}
			}
		}
	}
	return f
}

func (f *fixture) begin(found ...*targets.Target) *fixture {
	f.T.Helper()
	require.NoError(f.T, f.scraper.Start(context.Background(), sourcetest.Host{}))
	f.T.Cleanup(f.end)
	f.find(found...)
	return f
}

func (f *fixture) end() {
	f.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sourcetest.Patience)
		defer cancel()
		require.NoError(f.T, f.scraper.Shutdown(ctx))
	})
}

// find makes found the targets.
func (f *fixture) find(found ...*targets.Target) {
	f.report(targets.Update{Targets: found, Jobs: []targets.JobReport{{Job: f.jobs[0], Discovered: len(found)}}})
}

// report gives update to the scraper and waits until it has it.
func (f *fixture) report(update targets.Update) {
	f.updates <- update
	<-f.applied
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// status is what the page shows.
func (f *fixture) status() scrapeStatus {
	return f.scraper.schedule.status(statusFilter{limit: 10000})
}

// endpoint is the page's line for a kind of the n-th target.
func (f *fixture) endpoint(n int, kind string) endpointStatus {
	for _, e := range f.status().Jobs[0].Targets[n].Endpoints {
		if e.Profile == kind {
			return e
		}
	}
	return endpointStatus{}
}

func (f *fixture) eventually(condition func() bool) {
	f.T.Helper()
	require.Eventually(f.T, condition, sourcetest.Patience, 2*time.Millisecond)
}

// quickly is the interval of tests: a scrape begins within that time.
const quickly = 20 * time.Millisecond

// scrapeTargetOf makes a target of a server, with one endpoint for each path: the kind is its last element.
func scrapeTargetOf(t testing.TB, base string, paths ...string) *targets.Target {
	t.Helper()
	made := &targets.Target{
		Key: base + strings.Join(paths, ""), Job: "shop", Interval: quickly, Resource: pcommon.NewMap(),
		Labels: labels.FromStrings("instance", strings.TrimPrefix(base, "http://")),
	}
	made.Resource.PutStr("service.name", "till")
	for _, path := range paths {
		u, err := url.Parse(base + path)
		require.NoError(t, err)
		kind := u.Path[strings.LastIndex(u.Path, "/")+1:]
		made.Endpoints = append(made.Endpoints, targets.Endpoint{
			Profile: targets.ProfileConfig{Name: kind, Enabled: true}, URL: u, Timeout: sourcetest.Patience,
		})
	}
	return made
}

// ofKind gives the deliveries of one kind.
func ofKind(all []pprofile.Profiles, kind string) []pprofile.Profiles {
	var found []pprofile.Profiles
	for _, pd := range all {
		name, _ := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get(profilekind.NameAttribute)
		if name.Str() == kind {
			found = append(found, pd)
		}
	}
	return found
}

// hang says that a request is there, and never answers it.
func hang(entered chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	}
}
