// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// scrapeJob is what the targets of one configuration share.
type scrapeJob struct {
	name    string
	fetcher fetch.Fetcher
	log     *scrapeLog
	// isHidden reports that a discovered label is not for the page.
	isHidden func(label string) bool
	metrics  *jobMetrics
	// requests is the number of scrapes under way; the schedule's mutex guards it.
	requests int64
	// baselineBytes is the memory that the baselines of all its targets hold.
	baselineBytes atomic.Int64
}

func newScrapeJob(cfg *targets.Config, info component.BuildInfo, logger *zap.Logger, metrics *ingest.Metrics) (*scrapeJob, error) {
	// A target's connections are used again at the next interval, and not kept for much longer.
	idle := promconfig.WithIdleConnTimeout(min(cfg.ScrapeInterval+5*time.Second, 5*time.Minute))
	client, err := promconfig.NewClientFromConfig(cfg.HTTPClient, cfg.JobName, idle)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", cfg.JobName, err)
	}
	makeLight(client)
	if cfg.HTTPClient.FollowRedirects { // otherwise Prometheus' client takes the redirect for the answer
		client.CheckRedirect = fetch.SameOriginOnly
	}
	return &scrapeJob{
		name: cfg.JobName,
		fetcher: fetch.Fetcher{
			Client: client,
			Header: http.Header{
				// A pprof is compressed by itself; another layer would only be taken off again.
				"Accept-Encoding": {"identity"},
				"User-Agent":      {fmt.Sprintf("%s/%s (%s/%s)", info.Command, info.Version, runtime.GOOS, runtime.GOARCH)},
			},
			ExplicitEncoding: true,
		},
		isHidden: cfg.HiddenLabels(),
		log:      newScrapeLog(logger.With(zap.String("job", cfg.JobName))),
		metrics:  newJobMetrics(metrics, cfg.JobName),
	}, nil
}

// makeLight halves what a connection costs. Prometheus' client keeps a log of the events of each, 13 kB
// large, for a page that the collector does not have, a request needs no buffer of 4 kB, and no answer's
// header is anywhere near the 10 MB that are allowed by default. Jobs with credentials, or with
// certificates in files, have a client that does not show its transport, and keep all that.
func makeLight(client *http.Client) {
	if transport, found := client.Transport.(*http.Transport); found {
		transport.DialContext = (&net.Dialer{}).DialContext
		transport.WriteBufferSize = 1 << 10
		transport.MaxResponseHeaderBytes = 64 << 10
	}
}
