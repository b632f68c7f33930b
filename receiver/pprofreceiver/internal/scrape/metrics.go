// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// observe reads the gauges from the schedule until the receiver shuts its metrics down.
func (s *schedule) observe(m *ingest.Metrics) error {
	if err := m.RegisterReceiverPprofScrapeTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
		for _, job := range s.numbers() {
			for state, n := range job.states {
				o.Observe(n, ingest.AttributesOption("job", job.name, "state", state))
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := m.RegisterReceiverPprofScrapeDroppedTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
		for _, job := range s.numbers() {
			for why, n := range job.dropped {
				o.Observe(n, ingest.AttributesOption("job", job.name, "reason", why))
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := m.RegisterReceiverPprofScrapeRequestsCallback(func(_ context.Context, o metric.Int64Observer) error {
		for _, job := range s.numbers() {
			o.Observe(job.requests, ingest.AttributesOption("job", job.name))
		}
		return nil
	}); err != nil {
		return err
	}
	return m.RegisterReceiverPprofScrapeBaselineBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		for name, job := range s.jobs {
			o.Observe(job.baselineBytes.Load(), ingest.AttributesOption("job", name))
		}
		return nil
	})
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
