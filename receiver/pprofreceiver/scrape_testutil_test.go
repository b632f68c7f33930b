// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

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
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// scrapeFixture is a scraper whose targets the test sets.
type scrapeFixture struct {
	*fixture
	scraper *scraper
	updates chan targets.Update
	applied chan struct{}
	jobs    []string
	once    sync.Once
}

// newScrapeFixture makes a scraper of jobs that follow redirects and have nothing else set, where edit does not.
func newScrapeFixture(t testing.TB, config string, edit func(*targets.Config)) *scrapeFixture {
	t.Helper()
	f := &scrapeFixture{fixture: newFixture(t, serverOnly), updates: make(chan targets.Update), applied: make(chan struct{})}
	cfg, err := loadConfig(serverOnly + config)
	require.NoError(t, err)
	job := &targets.Config{JobName: "shop", ScrapeInterval: time.Second, HTTPClient: promconfig.DefaultHTTPClientConfig}
	if edit != nil {
		edit(job)
	}
	f.jobs = []string{job.JobName}
	metrics, err := newMetrics(f.set.MeterProvider)
	require.NoError(t, err)
	in, err := newIngester(ingesterSettings{set: f.set, cfg: cfg, next: f.next, metrics: metrics, source: sourceScrape, transport: "http", budget: admission.New(cfg.Limits.bytesInFlight())})
	require.NoError(t, err)
	f.scraper = newScraper(&ScrapeConfig{MaxConcurrent: 8, Configs: []*targets.Config{job}}, f.set, in)
	f.scraper.discover = func(ctx context.Context, apply func(targets.Update)) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case update := <-f.updates:
				apply(update)
				f.applied <- struct{}{}
			}
		}
	}
	return f
}

func (f *scrapeFixture) begin(found ...*targets.Target) *scrapeFixture {
	f.t.Helper()
	require.NoError(f.t, f.scraper.Start(context.Background(), host{}))
	f.t.Cleanup(f.end)
	f.find(found...)
	return f
}

func (f *scrapeFixture) end() {
	f.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(f.t, f.scraper.Shutdown(ctx))
	})
}

// find makes found the targets.
func (f *scrapeFixture) find(found ...*targets.Target) {
	f.report(targets.Update{Targets: found, Jobs: []targets.JobReport{{Job: f.jobs[0], Discovered: len(found)}}})
}

// report gives update to the scraper and waits until it has it.
func (f *scrapeFixture) report(update targets.Update) {
	f.updates <- update
	<-f.applied
}

// status is what the page shows.
func (f *scrapeFixture) status() scrapeStatus {
	return f.scraper.schedule.status(statusFilter{limit: 10000})
}

// endpoint is the page's line for a kind of the n-th target.
func (f *scrapeFixture) endpoint(n int, kind string) endpointStatus {
	for _, e := range f.status().Jobs[0].Targets[n].Endpoints {
		if e.Profile == kind {
			return e
		}
	}
	return endpointStatus{}
}

func (f *scrapeFixture) eventually(condition func() bool) {
	f.t.Helper()
	require.Eventually(f.t, condition, patience, 2*time.Millisecond)
}

// gauge adds up the points of a gauge that have all the given attributes.
func (f *scrapeFixture) gauge(name string, attributes ...string) int64 {
	f.t.Helper()
	m, err := f.telemetry.GetMetric(name)
	require.NoError(f.t, err)
	var total int64
	for _, point := range m.Data.(metricdata.Gauge[int64]).DataPoints {
		if hasAttributes(point.Attributes, attributes) {
			total += point.Value
		}
	}
	return total
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
			Profile: targets.ProfileConfig{Name: kind, Enabled: true}, URL: u, Timeout: patience,
		})
	}
	return made
}

// ofKind gives the deliveries of one kind.
func ofKind(all []pprofile.Profiles, kind string) []pprofile.Profiles {
	var found []pprofile.Profiles
	for _, pd := range all {
		name, _ := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get(attributeProfileName)
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
