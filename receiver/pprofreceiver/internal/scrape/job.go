// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
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
	if cfg.HTTPClient.FollowRedirects { // else Prometheus' client returns the redirect
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

// observe reads the gauges from the schedule until the receiver shuts its metrics down.
func (s *schedule) observe(m *ingest.Metrics) error {
	ofEachJob := func(observe func(metric.Int64Observer, jobNumbers)) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, job := range s.numbers() {
				observe(o, job)
			}
			return nil
		}
	}
	return errors.Join(
		m.RegisterReceiverPprofScrapeTargetsCallback(ofEachJob(func(o metric.Int64Observer, job jobNumbers) {
			for state, n := range job.states {
				o.Observe(n, ingest.AttributesOption("job", job.name, "state", state))
			}
		})),
		m.RegisterReceiverPprofScrapeDroppedTargetsCallback(ofEachJob(func(o metric.Int64Observer, job jobNumbers) {
			for why, n := range job.dropped {
				o.Observe(n, ingest.AttributesOption("job", job.name, "reason", why))
			}
		})),
		m.RegisterReceiverPprofScrapeRequestsCallback(ofEachJob(func(o metric.Int64Observer, job jobNumbers) {
			o.Observe(job.requests, ingest.AttributesOption("job", job.name))
		})),
		m.RegisterReceiverPprofScrapeBaselineBytesCallback(ofEachJob(func(o metric.Int64Observer, job jobNumbers) {
			o.Observe(s.jobs[job.name].baselineBytes.Load(), ingest.AttributesOption("job", job.name))
		})),
	)
}

// jobMetrics counts the scrapes of one job.
type jobMetrics struct {
	*ingest.Metrics
	job string

	mu    sync.Mutex
	kinds map[string]metric.MeasurementOption
}

func newJobMetrics(m *ingest.Metrics, job string) *jobMetrics {
	return &jobMetrics{Metrics: m, job: job, kinds: map[string]metric.MeasurementOption{}}
}

// kind returns the attributes of one kind of profile, made once.
func (m *jobMetrics) kind(name string) metric.MeasurementOption {
	m.mu.Lock()
	defer m.mu.Unlock()
	option := m.kinds[name]
	if option == nil {
		option = ingest.AttributesOption("job", m.job, "profile", name)
		m.kinds[name] = option
	}
	return option
}

// count notes one scrape. Where it was broken off, there is nothing to count.
func (m *jobMetrics) count(ctx context.Context, kind string, result *scrapeResult) {
	if result.brokenOff() {
		return
	}
	m.ReceiverPprofScrapeAttempts.Add(ctx, 1, ingest.AttributesOption("job", m.job, "profile", kind, "outcome", result.outcome))
	m.ReceiverPprofScrapeDuration.Record(ctx, result.took.Seconds(), m.kind(kind))
	if result.bodyBytes > 0 {
		m.ReceiverPprofScrapeBytes.Add(ctx, int64(result.bodyBytes), m.kind(kind))
	}
}

// restartTooManyStacks is the reason where a payload has too many stacks to be compared with.
const restartTooManyStacks = "too_many_stacks"

func (m *jobMetrics) restart(ctx context.Context, kind, why string) {
	m.ReceiverPprofScrapeRestarts.Add(ctx, 1, ingest.AttributesOption("job", m.job, "profile", kind, "reason", why))
}

const (
	// logLines is how many changes of its targets a job logs one by one in logWindow; it counts the rest.
	logLines  = 10
	logWindow = time.Minute
)

// stateChange is a change of why an endpoint fails. reason is the new one, or the old one of what succeeds again.
type stateChange struct {
	reason    string
	begins    bool // or else it has ended
	backedOff bool
	isLogged  bool
}

// scrapeLog logs the changes of a job's targets: when something fails, fails for another reason, and works
// again. When a network breaks, thousands of targets do at once, and a line for each would bury the rest.
type scrapeLog struct {
	logger *zap.Logger
	now    func() time.Time

	mu    sync.Mutex
	since time.Time // of the current window
	lines int
	held  map[heldChange]int
}

type heldChange struct {
	reason string
	begins bool
}

func newScrapeLog(logger *zap.Logger) *scrapeLog {
	return &scrapeLog{logger: logger, now: time.Now, held: map[heldChange]int{}}
}

// note logs one change, or counts it for the summary.
func (l *scrapeLog) note(change stateChange, kind, shown string, err error) {
	if !change.isLogged {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(l.now())
	if l.lines++; l.lines > logLines {
		l.held[heldChange{change.reason, change.begins}]++
		return
	}
	fields := []zap.Field{zap.String("profile", kind), zap.String("url", shown), zap.String("reason", change.reason)}
	switch {
	case !change.begins:
		l.logger.Info("scrape succeeds again", fields...)
	case change.backedOff:
		l.logger.Warn("target does not serve this profile; asking less often", append(fields, zap.Error(err))...)
	default:
		l.logger.Warn("scrape failed; suppressing repeats until the reason changes", append(fields, zap.Error(err))...)
	}
}

// flush logs the summary once its window is over.
func (l *scrapeLog) flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
}

// close logs the summary.
func (l *scrapeLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summarise()
}

func (l *scrapeLog) turn(now time.Time) {
	if now.Sub(l.since) < logWindow {
		return
	}
	l.summarise()
	l.since, l.lines = now, 0
}

func (l *scrapeLog) summarise() {
	for change, n := range l.held {
		fields := []zap.Field{zap.Int("targets", n), zap.String("reason", change.reason)}
		if change.begins {
			l.logger.Warn("scrapes of further targets failed", fields...)
		} else {
			l.logger.Info("scrapes of further targets succeed again", fields...)
		}
	}
	clear(l.held)
}
