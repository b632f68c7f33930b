// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// scrapeJob is the state that the targets of one configuration share.
type scrapeJob struct {
	name    string
	fetcher fetch.Fetcher
	log     *zap.Logger // within logLimits
	// isHidden reports whether the page must not show a discovered label.
	isHidden func(label string) bool
	metrics  *metadata.TelemetryBuilder

	// The schedule's mutex guards the fields below.

	// requests is the number of scrapes in progress.
	requests int64
	// targets are those of the last update, in its order.
	targets []*scrapedTarget
	// dropped counts the discovered targets of the last update that are not scraped, by reason.
	dropped [targets.NumDropReasons]int
}

func newScrapeJob(cfg *targets.Config, info component.BuildInfo, logger *zap.Logger,
	metrics *metadata.TelemetryBuilder) (*scrapeJob, error) {
	// A target's connection is used again at the next interval, and not kept for much longer.
	idle := promconfig.WithIdleConnTimeout(min(cfg.ScrapeInterval+5*time.Second, 5*time.Minute))
	client, err := promconfig.NewClientFromConfig(cfg.HTTPClient, cfg.JobName, idle)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", cfg.JobName, err)
	}
	makeLight(client)
	if cfg.HTTPClient.FollowRedirects { // otherwise Prometheus' client returns the redirect
		client.CheckRedirect = httpserver.SameOriginOnly
	}
	return &scrapeJob{
		name: cfg.JobName,
		fetcher: fetch.Fetcher{
			Client: client,
			Header: http.Header{
				// A pprof is compressed by itself: another layer would gain nothing.
				"Accept-Encoding": {"identity"},
				"User-Agent":      {httpclient.UserAgent(info)},
			},
		},
		isHidden: cfg.HiddenLabels(),
		log:      logLimits.Apply(logger.With(zap.String("job", cfg.JobName))),
		metrics:  metrics,
	}, nil
}

// makeLight halves the memory of a connection. Prometheus' client keeps a log of each connection's events, 13 kB large,
// for a page that the collector does not have. A request needs no buffer of 4 kB, and a header not the 10 MB that are
// allowed by default. The client of jobs with credentials, or with certificates in files, hides its transport and stays
// as it is.
func makeLight(client *http.Client) {
	if transport, found := client.Transport.(*http.Transport); found {
		transport.DialContext = (&net.Dialer{}).DialContext
		transport.WriteBufferSize = 1 << 10
		transport.MaxResponseHeaderBytes = 64 << 10
	}
}

// observe registers the gauges of m, which follow the schedule until the receiver shuts m down. Each job has a value
// for every state and reason, 0 included, so that no gauge keeps an old value.
func (s *schedule) observe(m *metadata.TelemetryBuilder) error {
	ofEachJob := func(observe func(metric.Int64Observer, *scrapeJob)) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, job := range s.jobs {
				observe(o, job)
			}
			return nil
		}
	}
	return errors.Join(
		m.RegisterReceiverPprofScrapeTargetsCallback(ofEachJob(func(o metric.Int64Observer, job *scrapeJob) {
			numbers := map[string]int64{}
			for _, t := range job.targets {
				numbers[t.state()]++
			}
			for _, state := range allStates {
				o.Observe(numbers[state], telemetry.Attributes("job", job.name, "state", state))
			}
		})),
		m.RegisterReceiverPprofScrapeDroppedTargetsCallback(ofEachJob(func(o metric.Int64Observer, job *scrapeJob) {
			for why, n := range job.dropped {
				o.Observe(int64(n), telemetry.Attributes("job", job.name, "reason", targets.DropReason(why).String()))
			}
		})),
		m.RegisterReceiverPprofScrapeRequestsCallback(ofEachJob(func(o metric.Int64Observer, job *scrapeJob) {
			o.Observe(job.requests, telemetry.Attributes("job", job.name))
		})),
		m.RegisterReceiverPprofScrapeBaselineBytesCallback(ofEachJob(func(o metric.Int64Observer, job *scrapeJob) {
			bytes := 0
			for _, t := range job.targets {
				for _, e := range t.endpoints {
					bytes += e.baselineBytes
				}
			}
			o.Observe(int64(bytes), telemetry.Attributes("job", job.name))
		})),
	)
}

// count adds one scrape to the metrics, unless it was cancelled.
func (j *scrapeJob) count(ctx context.Context, kind string, result *scrapeResult) {
	if result.isCancelled() {
		return
	}
	attributes := telemetry.Attributes("job", j.name, "profile", kind)
	j.metrics.ReceiverPprofScrapeAttempts.Add(ctx, 1,
		telemetry.Attributes("job", j.name, "profile", kind, "outcome", result.outcome))
	j.metrics.ReceiverPprofScrapeDuration.Record(ctx, result.took.Seconds(), attributes)
	if result.bodyBytes > 0 {
		j.metrics.ReceiverPprofScrapeBytes.Add(ctx, int64(result.bodyBytes), attributes)
	}
}

// logLimits bound the changes that a job logs: when a network fails, thousands of targets do at once.
var logLimits = telemetry.Limits{Lines: 10, Period: time.Minute, Level: zapcore.InfoLevel}

// stateChange is the begin or end of failures of an endpoint for one reason.
type stateChange struct {
	reason    string
	begins    bool
	backedOff bool
	isLogged  bool
}

// note logs a change: scrapes begin to fail, fail for another reason, or succeed again.
func (j *scrapeJob) note(change stateChange, kind, shown string, err error) {
	if !change.isLogged {
		return
	}
	fields := []zap.Field{zap.String("profile", kind), zap.String("url", shown), zap.String("reason", change.reason)}
	switch {
	case !change.begins:
		j.log.Info("scrape succeeds again", fields...)
	case change.backedOff:
		j.log.Warn("target does not serve this profile; scraping it less often", append(fields, zap.Error(err))...)
	default:
		j.log.Warn("scrape failed; suppressing repeats until the reason changes", append(fields, zap.Error(err))...)
	}
}
