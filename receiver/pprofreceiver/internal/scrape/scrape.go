// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// Scraper finds targets and scrapes them.
type Scraper struct {
	cfg    *Config
	set    receiver.Settings
	ingest *ingest.Ingester
	worker worker.Worker

	schedule *schedule
	// discover calls apply with every set of targets that it finds until ctx ends.
	discover func(ctx context.Context, apply func(targets.Update))
	page     *statusServer

	// slots bounds the payloads that are decoded and delivered at once. Requests that wait for their
	// target to record, or for the rest of its answer, hold none: a target that hangs uses no slot.
	slots chan struct{}
}

// New returns a scraper that is not started.
func New(cfg *Config, set receiver.Settings, in *ingest.Ingester) *Scraper {
	return &Scraper{cfg: cfg, set: set, ingest: in, slots: make(chan struct{}, cfg.MaxConcurrent)}
}

// Start begins to look for targets. Each is scraped for the first time within its interval.
func (s *Scraper) Start(ctx context.Context, host component.Host) error {
	jobs := make(map[string]*scrapeJob, len(s.cfg.Configs))
	for _, cfg := range s.cfg.Configs {
		job, err := newScrapeJob(cfg, s.set.BuildInfo, s.set.Logger, s.ingest.Metrics)
		if err != nil {
			return err
		}
		job.fetcher.MaxBytes = s.ingest.MaxBytes()
		jobs[cfg.JobName] = job
	}
	// Collectors that scrape the same target should not do so at the same moment.
	seed, _ := os.Hostname()
	s.schedule = &schedule{jobs: jobs, seed: seed}
	if s.discover == nil {
		manager, err := targets.NewManager(s.cfg.Configs, s.set.Logger)
		if err != nil {
			return err
		}
		s.discover = manager.Run
	}
	if err := s.schedule.observe(s.ingest.Metrics); err != nil {
		return err
	}
	if status := s.cfg.Status.Get(); status != nil {
		s.page = &statusServer{cfg: status, set: s.set.TelemetrySettings, schedule: s.schedule}
		if err := s.page.start(ctx, host); err != nil {
			return fmt.Errorf("`status`: %w", err)
		}
	}
	s.worker.Start(s.run)
	return nil
}

// run scrapes until stopping ends, and returns when all that was fetched by then is delivered.
func (s *Scraper) run(stopping, deliver context.Context) {
	s.schedule.run(stopping, s.discover, func(task scrapeTask) { s.scrape(deliver, task) })
}

// Shutdown cancels the scrapes in progress, and delivers the fetched profiles. Meanwhile the page stops, whose readers
// may be slow.
func (s *Scraper) Shutdown(ctx context.Context) error {
	var errOfPage error
	var stopping sync.WaitGroup
	if s.page != nil {
		stopping.Go(func() { errOfPage = s.page.http.Shutdown(ctx) })
	}
	err := s.worker.Shutdown(ctx)
	stopping.Wait()
	for _, job := range s.schedule.jobs {
		job.fetcher.Client.CloseIdleConnections()
	}
	return errors.Join(errOfPage, err)
}
